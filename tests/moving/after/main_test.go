package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/moving/fleet"
)

// open opens the budget of the plan. GOGC still drives the collector, because the plan's limit of
// the Go heap isn't set.
func open(t testing.TB) *budget.Budget {
	plan, err := budget.ReadPlan("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	plan.GoHeap = 0
	b, err := budget.Open(plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestDay compares the output with that of the other program.
func TestDay(t *testing.T) {
	want, err := os.ReadFile("../testdata/day.txt")
	if err != nil {
		t.Fatal(err)
	}
	h, err := load(open(t), 300)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if day(h, 100, &out); out.String() != string(want) {
		t.Error(out.String())
	}
}

// TestPlan measures a day, and compares the plan: a tenth of its size is headroom.
func TestPlan(t *testing.T) {
	plan, err := budget.ReadPlan("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	report, err := budget.Measure(plan, func(b *budget.Budget) error {
		h, err := load(b, 300)
		if err == nil {
			day(h, 100, io.Discard)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	have, need := plan.Regions[0].Size, report.Plan.Regions[0].Size
	if have < need+need/10 || have > need+need/9 {
		t.Errorf("the region has %d bytes, and a day needs %d", have, need)
	}
}

// kept keeps the history alive until the profile is written.
var kept *History

// BenchmarkAfter counts the cost of a day for the Go heap.
func BenchmarkAfter(b *testing.B) {
	mem := open(b)
	for b.Loop() {
		cost := fleet.Cost(func() {
			var err error
			if kept, err = load(mem, 300); err != nil {
				b.Fatal(err)
			}
			day(kept, 100, io.Discard)
		})
		for unit, n := range cost {
			b.ReportMetric(n, unit)
		}
	}
	b.ReportMetric(0, "ns/op") // not shown
}
