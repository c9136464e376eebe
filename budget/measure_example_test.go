package budget_test

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type newt struct{ X, Y, Age, Friends, Hunger, ID int32 }

var newts = scope.Plain[newt]()

// Will it fit? A plan of guesses, and what a run of the largest map needs of it.
func ExampleMeasure() {
	guess := budget.Plan{Name: "handheld", Regions: []budget.RegionPlan{{Name: "systems", Size: 12 * budget.MiB},
		{Name: "level", Size: 40 * budget.MiB}}, Frame: budget.FramePlan{Buffers: 2, Size: budget.MiB}}
	report, err := budget.Measure(guess, func(b *budget.Budget) error {
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*newt, error) {
			pond := newts.Slice(s, 1000)
			return &pond[0], nil
		})
		if err != nil {
			return err
		}
		b.Frame().Bytes(100)
		return b.NextFrame()
	})
	fmt.Println(err)
	for _, region := range report.Plan.Regions {
		fmt.Println(region.Name, region.Size)
	}
	fmt.Println("frame", report.Plan.Frame.Size)
	// Output:
	// <nil>
	// systems 1
	// level 24000
	// frame 100
}

// A plan from what programs in the field recorded, with a tenth to spare.
func ExampleSuggest() {
	var reports []budget.Report
	for _, size := range []int{20000, 50000} { // each a run in the field, its report kept as JSON
		b, err := budget.Open(budget.Plan{Name: "field", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*byte, error) {
			return &s.Bytes(size)[0], nil
		})
		fmt.Println(err, b.Close())
		reports = append(reports, b.Report())
	}
	plan, err := budget.Suggest(reports...)
	fmt.Println(plan.Regions[0].Size, plan.Regions[0].Note, err)
	fmt.Println(plan.Headroom(10).Regions[0].Size)
	// Output:
	// <nil> <nil>
	// <nil> <nil>
	// 50000 50000 bytes in report 2, "field" <nil>
	// 55296
}
