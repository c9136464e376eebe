package scope_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type fly struct{ ID, Bites int32 }

var (
	flies  = scope.Plain[fly]()
	flyIDs = scope.Plain[int32]()
)

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

// A container owns no byte while it is empty, so an entity may have many.
func ExampleArray() {
	b := openPond()
	defer b.Close()
	s := b.Pad(0, 0).Open("level")

	near := flies.Array(s, 3)
	fmt.Println("used:", b.Pad(0, 0).Stats().Used)
	for id := range int32(4) {
		fmt.Println("push", id, near.Push(fly{ID: id}))
	}
	fmt.Println("used:", b.Pad(0, 0).Stats().Used)
	near.RemoveSwap(0)
	fmt.Println(near.Slice())
	fmt.Println(s.Close(), near.Len())
	// Output:
	// used: 0
	// push 0 true
	// push 1 true
	// push 2 true
	// push 3 false
	// used: 24
	// [{2 0} {1 0}]
	// <nil> 0
}

func ExampleDeque() {
	b := openPond()
	defer b.Close()
	s := b.Pad(0, 0).Open("level")

	turns := flyIDs.Deque(s, 4)
	turns.PushBack(1)
	turns.PushBack(2)
	turns.PushFront(7) // in a hurry
	for turns.Len() > 0 {
		id, _ := turns.PopFront()
		fmt.Println("fly", id)
	}
	fmt.Println(s.Close())
	// Output:
	// fly 7
	// fly 1
	// fly 2
	// <nil>
}

// A map ranges in the order of insertion, in each run.
func ExampleMap() {
	b := openPond()
	defer b.Close()
	s := b.Pad(0, 0).Open("level")

	byID := scope.NewMap(s, flyIDs, flies, 100)
	for _, id := range []int32{30, 10, 20} {
		byID.Set(id, fly{ID: id})
	}
	byID.Get(10).Bites++
	fmt.Println(byID.Get(40) == nil, byID.Delete(40))
	for id, f := range byID.All() {
		fmt.Println(id, f.Bites)
	}
	fmt.Println(s.Close())
	// Output:
	// true false
	// 30 0
	// 10 1
	// 20 0
	// <nil>
}
