//go:build linux && cgo && !asan

package malloc_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
)

// From Open on, C's malloc allocates in 16 MiB of the plan. A process has one such heap, which
// stays after Close.
func Example() {
	b, err := budget.Open(budget.Plan{
		Name:  "indexer",
		CHeap: budget.CHeapPlan{Size: 16 * budget.MiB},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	stats := malloc.ReadStats()
	fmt.Println(budget.SizeText(stats.Size), "for C,", stats.Fulls+stats.Larges, "requests refused")
	fmt.Println(stats.Used <= stats.Peak, stats.Peak+stats.Reserve <= stats.Size)
	// Output:
	// 16384KiB for C, 0 requests refused
	// true true
}

// A profile of C's heap goes to a file, for go tool pprof. A program that may leak keeps two, an
// hour apart, and compares them with -diff_base.
func ExampleWriteProfile() {
	b, err := budget.Open(budget.Plan{
		Name:  "indexer",
		CHeap: budget.CHeapPlan{Size: 16 * budget.MiB},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	file, err := os.CreateTemp("", "cmalloc*.pb.gz")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(file.Name())
	fmt.Println(errors.Join(malloc.WriteProfile(file), file.Close()))
	// Output: <nil>
}
