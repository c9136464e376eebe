// Command malloc runs the work unchanged, with C's malloc in a plan. HOW may also be 1s: then
// memory that stayed free for a second is returned to the system.
package main

import (
	"log"
	"os"
	"slices"
	"time"

	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/bench/resident/work"
)

func main() {
	plan := budget.Plan{
		Name:  "visits",
		CHeap: budget.CHeapPlan{Size: 96 * budget.MiB, Trim: time.Second},
		Pages: budget.Pages{Prefault: budget.Off},
	}
	if !slices.Contains(os.Args, "1s") {
		plan.CHeap.Trim = 0
	}
	b, err := budget.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	cost, err := plan.Cost()
	if err != nil {
		log.Fatal(err)
	}
	work.Main(cost.Resident4K+cost.CHeap, func() { malloc.Trim() })
	if err := b.Close(); err != nil {
		log.Fatal(err)
	}
}
