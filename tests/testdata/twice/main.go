// Command twice links two copies of the module, each with a core of its own. Its C code calls one
// of the two cores.
package main

// #include "upfront.h"
//
// static int *numbers(void *header, uint64_t generation, uint64_t n) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     return upfront_scope_alloc(upfront_scope_temp(s, 8192), n * sizeof(int), sizeof(int));
// }
import "C"

import (
	"context"
	"fmt"
	"log"

	forkarena "example.com/fork/upfront/v2/arena"
	forkbudget "example.com/fork/upfront/v2/budget"
	forkscope "example.com/fork/upfront/v2/scope"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func main() {
	ours, err := budget.Open(budget.Plan{Name: "ours", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
	check(err)
	theirs, err := forkbudget.Open(forkbudget.Plan{Name: "theirs", Regions: []forkbudget.RegionPlan{{Name: "level", Size: forkbudget.MiB}}})
	check(err)
	ctx := context.Background()
	heap, err := budget.Load(ctx, ours.Region("level"), func(s scope.Scope) (*arena.Heap, error) {
		header, generation := s.C()
		fmt.Println(C.numbers(header, C.uint64_t(generation), 16) != nil)
		h, err := arena.NewHeap(s.BytesUnzeroed(4096, 64), 0)
		return &h, err
	})
	check(err)
	fork, err := forkbudget.Load(ctx, theirs.Region("level"), func(s forkscope.Scope) (*forkarena.Heap, error) {
		h, err := forkarena.NewHeap(s.BytesUnzeroed(8192, 64), 0)
		return &h, err
	})
	check(err)
	heap.Get().Alloc(100, 16)
	fork.Get().Alloc(5000, 16)
	fmt.Println(ours.Close()) // a leak, by its own copy
	fmt.Println(theirs.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
