package arena_test

import (
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// toad is plain data: it refers to other data of its block by offsets and handles.
type toad struct {
	Name   arena.String
	Eggs   arena.Slice[int32]
	Mother arena.Ptr[toad]
	Prey   arena.Handle[fly]
}

type fly struct{ X, Y int32 }

var (
	toads = scope.Plain[toad]()
	flies = scope.Plain[fly]()
	eggs  = scope.Plain[int32]()
)

// inSwamp calls fn with a scope, and the base of its budget.
func inSwamp(fn func(s scope.Scope, base arena.Base)) {
	b, err := budget.OpenScratch(1, 64*budget.KiB)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	s := b.Scratch(0, 0).Open("swamp")
	defer s.Close()
	fn(s, b.Base())
}

// A pointer to another object of the block. The zero Ptr is nil.
func ExamplePtr() {
	inSwamp(func(s scope.Scope, base arena.Base) {
		mother, child := toads.New(s), toads.New(s)
		child.Mother = arena.PtrTo(base, mother)
		fmt.Println(child.Mother.Get(base) == mother, mother.Mother.IsNil())
	})
	// Output: true true
}

// A slice that is stored in an object.
func ExampleSlice() {
	inSwamp(func(s scope.Scope, base arena.Base) {
		t := toads.New(s)
		t.Eggs = arena.SliceOf(base, eggs.Slice(s, 3))
		for i := range t.Eggs.Get(base) {
			t.Eggs.Get(base)[i] = int32(10 * i)
		}
		fmt.Println(t.Eggs.Len(), t.Eggs.Get(base))
	})
	// Output: 3 [0 10 20]
}

// A string that is stored in an object. Its bytes are in the same block.
func ExampleString() {
	inSwamp(func(s scope.Scope, base arena.Base) {
		t := toads.New(s)
		name := s.Bytes(len("Fred"))
		copy(name, "Fred")
		t.Name = arena.StringOf(base, name)
		fmt.Println(t.Name.Get(base), t.Name.Len())
	})
	// Output: Fred 4
}

// A handle finds its value until the value is put back, and nil from then on, even if the chunk was
// taken again.
func ExampleHandle() {
	inSwamp(func(s scope.Scope, _ arena.Base) {
		pool := flies.HandlePool(s, 8)
		t := toads.New(s)
		prey, h := pool.Get()
		prey.X, t.Prey = 7, h
		fmt.Println(pool.At(t.Prey).X)
		pool.Put(h)
		pool.Get() // takes the same chunk
		fmt.Println(pool.At(t.Prey) == nil)
	})
	// Output:
	// 7
	// true
}
