//go:build c_heap

package process

import (
	"log"
	"time"

	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
)

// Open opens the plan. A library with much memory of its own, such as GLib, starts after it.
func Open() (end func()) {
	b, err := budget.Open(budget.Plan{
		Name:  "library",
		CHeap: budget.CHeapPlan{Size: 256 * budget.MiB, Trim: time.Second},
		Pages: budget.Pages{Prefault: budget.Off},
	})
	if err != nil {
		log.Fatal(err)
	}
	return func() {
		if err := b.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

// trim returns the free memory of the heap to the system.
func trim() { malloc.Trim() }
