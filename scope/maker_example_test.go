package scope_test

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// A scope makes one value, n, n with room for more, and n at an aligned address.
func ExampleMaker() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("pond")

	one, some := frogs.New(s), frogs.Slice(s, 3)
	room := frogs.SliceCap(s, 1, 10) // the built-in append stays in s, up to 10
	line := frogs.SliceAligned(s, 8, 64)
	fmt.Println(one.X, len(some), len(room), cap(room), uintptr(unsafe.Pointer(&line[0]))%64)

	fmt.Println(frogs.TrySlice(s, 1_000_000) == nil, frogs.TryNew(s) != nil)
	fmt.Println(errors.Is(s.Err(), scope.ErrFull)) // the scope remembers
	fmt.Println(errors.Is(s.Close(), scope.ErrFull))
	// Output:
	// 0 3 1 10 0
	// true true
	// true
	// true
}

// frog is plain data.
type frog struct{ X, Y float32 }

var frogs = scope.Plain[frog]()

func ExampleMaker_Append() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("pond")
	defer s.Close()

	var pond []frog
	for i := range 5 {
		// the newest allocation of s: it grows where it is
		pond = frogs.Append(s, pond, frog{X: float32(i)})
	}
	fmt.Println(len(pond), cap(pond), scratch.Stats().Used)
	s.Bytes(16) // now it isn't the newest
	pond = frogs.Append(s, pond, frog{X: 5})
	fmt.Println(len(pond), cap(pond), scratch.Stats().Used)

	inner := s.Open("more frogs")
	more := frogs.Append(inner, pond, frog{X: 6}) // a copy: inner may not write to the memory of s
	fmt.Println(len(more), len(pond), inner.Close())
	// Output:
	// 5 5 40
	// 6 10 136
	// 7 6 <nil>
}

type fly struct{ ID, Bites int32 }

var flies = scope.Plain[fly]()

// An array of unknown size: the builder holds all that is free, and returns the rest.
func ExampleBuilder() {
	b, scratch := openExample()
	defer b.Close()
	level := scratch.Open("level")

	list := flies.Build(level)
	for id := int32(1); id*id < 1000; id++ {
		list.Push(fly{ID: id * id})
	}
	pond := list.Done()
	fmt.Println(len(pond), cap(pond), pond[30].ID)
	fmt.Println(scratch.Stats().Used, "bytes")
	flies.New(level).ID = 1 // level allocates again
	fmt.Println(level.Close())
	// Output:
	// 31 31 961
	// 248 bytes
	// <nil>
}

// Two arrays of unknown size grow on scratch at once. Each is then copied to the level, in one
// piece of the exact size.
func ExampleList() {
	b, _ := openExample()
	defer b.Close()
	scratches := b.Scratches(0)
	level := scratches.Pick().Open("level")
	defer level.Close()

	sort := func(out scope.Scope) (odd, even []fly) {
		t := scratches.Pick(out).Open("sort")
		defer t.Close()
		odds, evens := flies.List(t), flies.List(t)
		for id := int32(1); id*id < 1000; id++ {
			if id%2 == 1 {
				odds.Push(fly{ID: id * id})
			} else {
				evens.Push(fly{ID: id * id})
			}
		}
		for _, f := range odds.All() {
			f.Bites++
		}
		return odds.Slice(out), evens.Slice(out)
	}
	odd, even := sort(level)
	fmt.Println(len(odd), odd[15], len(even), even[14])
	// Output:
	// 16 {961 1} 15 {900 0}
}

// A Go slice's elements are on the Go heap. The copy is in the scope.
func ExampleMaker_Clone() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("query")
	defer s.Close()
	read := []Spark{{Heat: 1}, {Heat: 2}}
	kept := sparks.Clone(s, read)
	read[0].Heat = 7
	fmt.Println(kept, cap(kept))
	// Output: [{1} {2}] 2
}
