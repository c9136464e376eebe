package scope_test

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// file stands for anything that must be closed.
type file struct{ FD int32 }

func (f *file) close() error {
	fmt.Println("close", f.FD)
	return nil
}

var files = scope.Object((*file).close)

func ExampleScope() {
	b, err := budget.Open(budget.Plan{Name: "example", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
	if err != nil {
		panic(err)
	}
	defer b.Close()

	outer := b.Scratch(0, 0).Open("outer")
	files.New(outer).FD = 1
	inner := outer.Open("inner")
	files.New(inner).FD = 2
	inner.Defer(func() { fmt.Println("deferred") })
	fmt.Println(outer.Close()) // out of order: refused, nothing changes
	fmt.Println(inner.Close())
	fmt.Println(outer.Close())
	// Output:
	// scope: BUG: Close of scope "outer" of scratch 0.0 while scope "inner", opened in it, is open
	// deferred
	// close 2
	// <nil>
	// close 1
	// <nil>
}

func ExampleScope_Do() {
	b, err := budget.Open(budget.Plan{Name: "b", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
	if err != nil {
		panic(err)
	}
	defer b.Close()

	err = b.Scratch(0, 0).Do("s", func(s scope.Scope) error {
		files.New(s).FD = 3
		s.Bytes(100 * budget.KiB) // full: unwinds to Do
		return nil
	})
	var full *scope.FullError
	fmt.Println(errors.Is(err, scope.ErrFull), errors.As(err, &full))
	fmt.Println(full.Arena, "asked", full.Asked, "free", full.Free, "key", full.Key, "need", full.Need)
	// Output:
	// close 3
	// true true
	// scratch 0.0 asked 102400 free 65524 key scratch.size need 102416
}
