package budget_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type borrowedFrog struct{ Age, X, Y int32 }

var borrowed = scope.Plain[borrowedFrog]()

// ExampleOpenScratch is a whole program that uses only scratch.
func ExampleOpenScratch() {
	b, err := budget.OpenScratch(1, 64*budget.KiB)
	if err != nil {
		panic(err)
	}
	defer b.Close()
	err = b.Scratch(0, 0).Do("frogs", func(s scope.Scope) error {
		fmt.Println(len(borrowed.Slice(s, 100)), "frogs")
		return nil
	}) // here the frogs end
	fmt.Println(err, b.Report().Arena("scratch 0.0").Used)
	// Output:
	// 100 frogs
	// <nil> 0
}

// ExampleBudget_Lease lends scratch arenas to goroutines that come and go. There are more
// goroutines than workers.
func ExampleBudget_Lease() {
	b, err := budget.Open(budget.Plan{Name: "example",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Scratch: budget.ScratchPlan{Workers: 3, Size: 64 * budget.KiB}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	b.Scratches(0) // worker 0 is known at set-up, and never lent

	ctx := context.Background()
	sums := make([]int32, 5)
	var jobs sync.WaitGroup
	for i := range sums {
		jobs.Go(func() {
			scratches, err := b.Lease(ctx) // waits until one is free
			if err != nil {
				return
			}
			defer scratches.Release()
			s := scratches.Pick().Open("sum")
			defer s.Close()
			for j, frog := range borrowed.Slice(s, i+1) {
				frog.X = int32(j)
				sums[i] += frog.X
			}
		})
	}
	jobs.Wait()
	fmt.Println(sums)

	one, _ := b.Lease(ctx)
	two, _ := b.Lease(ctx)
	soon, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = b.Lease(soon)
	fmt.Println(err)
	fmt.Println(one.Release(), two.Release())
	fmt.Println(two.Release() != nil) // NOT OKAY: a second Release
	// Output:
	// [0 1 3 6 10]
	// budget "example": Lease of scratch: 2 of 3 workers are lent, 1 taken by number; Release a Lease, or raise scratch.workers in the plan: context deadline exceeded
	// <nil> <nil>
	// true
}
