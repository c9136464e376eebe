package container_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

type fly struct{ ID, Bites int32 }

var (
	flies  = scope.Plain[fly]()
	flyIDs = scope.Plain[int32]()
)

func openPond() *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
	if err != nil {
		panic(err)
	}
	return b
}

// Push returns false when the list is full. After its scope has closed the list is empty.
func ExampleList() {
	b := openPond()
	defer b.Close()
	s := b.Scratch(0, 0).Open("level")

	near := container.NewList(s, flies, 3)
	fmt.Println("used:", b.Scratch(0, 0).Stats().Used)
	for id := range int32(4) {
		fmt.Println("push", id, near.Push(fly{ID: id}))
	}
	near.RemoveSwap(0)
	fmt.Println(near.Slice())
	fmt.Println(s.Close(), near.Len())
	// Output:
	// used: 32
	// push 0 true
	// push 1 true
	// push 2 true
	// push 3 false
	// [{2 0} {1 0}]
	// <nil> 0
}

func ExampleDeque() {
	b := openPond()
	defer b.Close()
	s := b.Scratch(0, 0).Open("level")

	turns := container.NewDeque(s, flyIDs, 4)
	fmt.Println("room for", turns.Cap())
	turns.PushBack(1)
	turns.PushBack(2)
	turns.PushFront(7) // in a hurry
	for turns.Len() > 0 {
		id, _ := turns.PopFront()
		fmt.Println("fly", id)
	}
	fmt.Println(s.Close())
	// Output:
	// room for 4
	// fly 7
	// fly 1
	// fly 2
	// <nil>
}

// A map ranges in the order of insertion, in each run.
func ExampleMap() {
	b := openPond()
	defer b.Close()
	s := b.Scratch(0, 0).Open("level")

	byID := container.NewMap(s, flyIDs, flies, 100)
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

// Names come from players. After a name that is too long other names may still fit; after a full no
// new name fits.
func ExampleStringMap() {
	b := openPond()
	defer b.Close()
	s := b.Scratch(0, 0).Open("level")

	byName := container.NewStringMap(s, flies, 2, 8)
	for i, name := range []string{"zoe", "maximilian", "ada", "bob"} {
		switch err := byName.Set(name, fly{ID: int32(i)}); {
		case errors.Is(err, container.ErrLongKey):
			fmt.Println(name, "is too long")
		case errors.Is(err, scope.ErrFull):
			fmt.Println("no place for", name)
		}
	}
	byName.Get("ada").Bites++
	for name, f := range byName.All() {
		fmt.Println(name, *f)
	}
	fmt.Println(s.Close(), byName.Get("ada") == nil)
	// Output:
	// maximilian is too long
	// no place for bob
	// zoe {0 0}
	// ada {2 1}
	// <nil> true
}

// A server reads each packet into the same buffer. The map copies its keys, so a name is looked up,
// set and deleted as a part of the packet.
func ExampleStringMap_SetBytes() {
	b := openPond()
	defer b.Close()
	s := b.Scratch(0, 0).Open("room")
	byName := container.NewStringMap(s, flies, 10, 8)

	var buffer [64]byte
	for i, received := range []string{"+ada", "+zoe", "+ada", "-zoe"} {
		packet := buffer[:copy(buffer[:], received)] // as conn.Read does
		name := packet[1:]
		switch known := byName.GetBytes(name); {
		case packet[0] == '-':
			fmt.Printf("%s leaves: %v\n", name, byName.DeleteBytes(name))
		case known != nil:
			known.Bites++
			fmt.Printf("%s is fly %d, and bites\n", name, known.ID)
		default:
			fmt.Printf("%s comes: %v\n", name, byName.SetBytes(name, fly{ID: int32(i)}))
		}
	}
	for name, f := range byName.All() {
		fmt.Println(name, *f)
	}
	fmt.Println(s.Close())
	// Output:
	// ada comes: <nil>
	// zoe comes: <nil>
	// ada is fly 0, and bites
	// zoe leaves: true
	// ada {0 1}
	// <nil>
}

// All that is made between Begin and NewRing is part of the state, containers included.
func Example_state() {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{
		{Name: "level", Size: budget.MiB, State: true}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	var byName container.StringMap[fly]
	var ring *save.Ring
	ctx, level := context.Background(), b.Region("level")
	_, err = budget.Load(ctx, level, func(s scope.Scope) (*fly, error) {
		state, root := save.Begin(level, s, flies)
		byName = container.NewStringMap(s, flies, 10, 8)
		byName.Seed(20261126) // the same on every machine that plays this match
		ring = save.NewRing(s, 2, state)
		return root, nil
	})
	if err != nil {
		panic(err)
	}
	_ = byName.Set("ada", fly{ID: 1})
	fmt.Println(ring.Take(1))
	byName.Delete("ada")
	_ = byName.Set("bob", fly{ID: 2})
	fmt.Println(ring.Restore(ctx, 1))
	fmt.Println(byName.Len(), *byName.Get("ada"), byName.Get("bob") == nil)
	// Output:
	// <nil>
	// <nil>
	// 1 {1 0} true
}

// A list on a heap may end before the scope of the heap, as the list of a chunk of a world does.
func ExampleNewListOn() {
	b := openPond()
	defer b.Close()
	world := b.Scratch(0, 0).Open("world")
	heap, err := arena.NewHeap(world.BytesUnzeroed(16<<10, 64), 0)
	if err != nil {
		panic(err)
	}

	chunk, ok := container.NewListOn(heap, flies, 100)
	fmt.Println(ok, chunk.Push(fly{ID: 7}), chunk.Len(), "of", chunk.Cap())
	byID, ok := container.NewMapOn(heap, flyIDs, flies, 10)
	fmt.Println(ok, byID.Set(7, fly{ID: 7}), byID.Len(), "of", byID.Cap())
	names, ok := container.NewStringMapOn(heap, flyIDs, 10, 16)
	fmt.Println(ok, names.Set("ada", 7), *names.Get("ada"), "of", names.Cap())
	fmt.Println(chunk.Free(), byID.Free(), names.Free(), heap.Stats().Used)
	fmt.Println(world.Close())
	// Output:
	// true true 1 of 100
	// true true 1 of 10
	// true <nil> 7 of 10
	// <nil> <nil> <nil> 0
	// <nil>
}
