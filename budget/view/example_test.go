package view_test

import (
	"os"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
)

// A picture for the folder of the plan: show it where the plan is reviewed.
func ExamplePlan() {
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 2 * budget.MiB}}}
	file, err := os.CreateTemp("", "*.svg")
	if err != nil {
		panic(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := view.Plan(file, plan); err != nil {
		panic(err) // all that is wrong with the plan, or what the file says
	}
	// Output:
}
