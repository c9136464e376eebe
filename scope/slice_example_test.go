package scope_test

import (
	"fmt"
	"strconv"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// frog is plain data.
type frog struct{ X, Y float32 }

var frogs = scope.Plain[frog]()

func exampleScratch() (*budget.Budget, scope.Scratch) {
	b, err := budget.Open(budget.Plan{Name: "example", Regions: []budget.Region{{Name: "level", Size: budget.MiB}},
		Scratch: budget.Scratch{Workers: 1, Size: 64 * budget.KiB}})
	if err != nil {
		panic(err)
	}
	return b, b.Scratch(0, 0)
}

func ExampleMaker_Append() {
	b, scratch := exampleScratch()
	defer b.Close()
	s := scratch.Open("pond")
	defer s.Close()

	var pond []frog
	for i := range 5 {
		pond = frogs.Append(s, pond, frog{X: float32(i)}) // the last thing in s: it grows where it is
	}
	fmt.Println(len(pond), cap(pond), scratch.Stats().Used)
	s.Bytes(16) // now it is the last no more
	pond = frogs.Append(s, pond, frog{X: 5})
	fmt.Println(len(pond), cap(pond), scratch.Stats().Used)

	inner := s.Open("more frogs")
	more := frogs.Append(inner, pond, frog{X: 6}) // a copy: what lies in s is not inner's to write to
	fmt.Println(len(more), len(pond), inner.Close())
	// Output:
	// 5 5 40
	// 6 10 136
	// 7 6 <nil>
}

func ExampleText() {
	b, scratch := exampleScratch()
	defer b.Close()
	s := scratch.Open("tick")
	defer s.Close()

	text := s.Text()
	text.Add("frog ").AddInt(3).Add(" at ")
	var room [32]byte
	text.Write(strconv.AppendFloat(room[:0], 1.0/3, 'f', 2, 64)) // no Go allocation
	fmt.Println(text.String())
	fmt.Println(text.Len(), scratch.Stats().Used)
	fmt.Fprintf(text.Reset(), "%02x %v", 255, frog{1, 2}) // formatting uses the Go heap
	fmt.Println(text.String())
	// Output:
	// frog 3 at 0.33
	// 14 14
	// ff {1 2}
}

func ExampleSprintf() {
	b, scratch := exampleScratch()
	defer b.Close()

	err := scratch.Do("load", func(s scope.Scope) error {
		name := scope.Sprintf(s, "maps/%s/%02d.map", "pond", 7) // dies with s
		fmt.Println(name, scratch.Stats().Used)
		return nil
	})
	fmt.Println(err, scratch.Stats().Used)
	// Output:
	// maps/pond/07.map 16
	// <nil> 0
}
