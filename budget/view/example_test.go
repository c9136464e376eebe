package view_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/scope"
)

// The example draws a plan into a file, for a page on which the plan is reviewed.
func ExamplePlan() {
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 2 * budget.MiB}}}
	file, err := os.CreateTemp("", "*.svg")
	if err != nil {
		panic(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := view.Plan(file, plan); err != nil {
		panic(err) // all faults of the plan, or the file's error
	}
	// Output:
}

// The description of a picture lists the parts that differ.
func ExamplePlanDiff() {
	plan := func(level, net uint64) budget.Plan {
		return budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: level},
			{Name: "net", Size: net}}}
	}
	var picture strings.Builder
	if err := view.PlanDiff(&picture, plan(2*budget.MiB, budget.MiB), plan(3*budget.MiB, budget.MiB)); err != nil {
		panic(err) // names the plan that is wrong
	}
	_, text, _ := strings.Cut(picture.String(), "<desc>")
	text, _, _ = strings.Cut(text, "</desc>")
	fmt.Println(text)
	// Output: Two memory maps, lowest addresses first: level grown, net moved, the rest untouched
}

// Labels share the bar of their region, largest first.
func ExampleReportText() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*[]byte, error) {
		err := scope.Label(s, "sound", func() error { s.Bytes(20_000); return nil })
		water := s.Bytes(8_000)
		return &water, err
	})
	report := b.Report()
	report.GoHeap, report.Outside = budget.GoHeap{}, budget.Outside{} // differ each time
	report.Resident = 80 * budget.KiB                                 // with pages of 4 KiB
	if err := view.ReportText(os.Stdout, report); err != nil {
		panic(err)
	}
	// Output:
	// budget pond: 128KiB, 80KiB resident
	//                                                              now at most planned
	//   level                 [############..................] 27.4KiB 27.4KiB   64KiB
	//    label sound          [#########.....................] 19.6KiB 19.6KiB
	//    no label             [###...........................]  7.9KiB
	//    scope level          [############..................] 27.4KiB 27.4KiB
	//   tables, edges, guards                                                    64KiB
}
