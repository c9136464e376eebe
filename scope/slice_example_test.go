package scope_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// frog is plain data.
type frog struct{ X, Y float32 }

var frogs = scope.Plain[frog]()

func exampleScratch() (*budget.Budget, scope.Scratch) {
	b, err := budget.Open(budget.Plan{Name: "example", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
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
	text.Add("frog ").AddInt(3).Add(" at ").AddFloat(1.0/3, 2).AddByte(' ').AddQuoted("Señor\n")
	fmt.Println(text.String())
	fmt.Println(text.Len(), scratch.Stats().Used)
	text.Reset().AddHex(255)
	fmt.Fprintf(&text, " %v", frog{1, 2})
	fmt.Println(text.String())
	// Output:
	// frog 3 at 0.33 "Señor\n"
	// 25 25
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
