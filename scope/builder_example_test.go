package scope_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type fly struct{ ID, Bites int32 }

var flies = scope.Plain[fly]()

// openPond opens a budget with a scratch arena for the examples.
func openPond() *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
	if err != nil {
		panic(err)
	}
	return b
}

// An array whose size nobody knows yet: the builder has all that is free, and gives the rest back.
func ExampleBuilder() {
	b := openPond()
	defer b.Close()
	level := b.Scratch(0, 1).Open("level")

	list := flies.Build(level)
	for id := int32(1); id*id < 1000; id++ {
		list.Push(fly{ID: id * id})
	}
	pond := list.Done()
	fmt.Println(len(pond), cap(pond), pond[30].ID)
	fmt.Println(b.Scratch(0, 1).Stats().Used, "bytes")
	flies.New(level).ID = 1 // it allocates again
	fmt.Println(level.Close())
	// Output:
	// 31 31 961
	// 248 bytes
	// <nil>
}
