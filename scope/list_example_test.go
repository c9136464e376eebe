package scope_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type fly struct{ ID, Bites int32 }

var flies = scope.Plain[fly]()

// openPond opens a budget with a pad for the examples.
func openPond() *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.Region{{Name: "level", Size: budget.MiB}},
		Pads: budget.Pads{Workers: 1, Size: 64 * budget.KiB}})
	if err != nil {
		panic(err)
	}
	return b
}

// An array whose size nobody knows yet: fill a list on one pad, then copy it, in one allocation, to where it belongs.
func ExampleList() {
	b := openPond()
	defer b.Close()
	level := b.Pad(0, 1).Open("level")

	t := b.Pad(0, 0).Open("parse")
	list := flies.List(t)
	for id := int32(1); id*id < 1000; id++ {
		list.New().ID = id * id // its address stays
	}
	list.Append(fly{ID: 1000}, fly{ID: 1001})
	pond := list.Copy(level)
	fmt.Println(t.Close(), list.Len())
	fmt.Println(len(pond), cap(pond), pond[30].ID, pond[32].ID)
	// Output:
	// <nil> 0
	// 33 33 961 1001
}
