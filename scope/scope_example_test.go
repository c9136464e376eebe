package scope_test

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// openExample opens a budget for examples, and returns its scratch arena 0.0 too.
func openExample() (*budget.Budget, scope.Scratch) {
	b, err := budget.Open(budget.Plan{
		Name:    "example",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB},
	})
	if err != nil {
		panic(err)
	}
	return b, b.Scratch(0, 0)
}

// file stands for a value that must be closed.
type file struct{ FD int32 }

func (f *file) close() error {
	fmt.Println("close", f.FD)
	return nil
}

var files = scope.Object((*file).close)

func ExampleScope() {
	b, scratch := openExample()
	defer b.Close()

	outer := scratch.Open("outer")
	files.New(outer).FD = 1
	inner := outer.Open("inner")
	files.New(inner).FD = 2
	inner.Defer(func() { fmt.Println("deferred") })
	fmt.Println(outer.Close()) // out of order: refused, nothing changes
	fmt.Println(inner.Close())
	fmt.Println(outer.Close())
	// Output:
	// scope: BUG: Close of scope "outer" of scratch 0.0 while scope "inner", opened in it, is open; close "inner" first
	// deferred
	// close 2
	// <nil>
	// close 1
	// <nil>
}

func ExampleScope_Do() {
	b, scratch := openExample()
	defer b.Close()

	err := scratch.Do("s", func(s scope.Scope) error {
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

// Raw memory of any content: a size and an alignment, as numbers or, faster, as a constant.
func ExampleScope_AllocUnzeroed() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("raw")

	p := (*uint64)(s.AllocUnzeroed(8, 8))
	*p = 7
	lanes := s.AllocUnzeroedAs(64, scope.Align64)
	fmt.Println(*p, uintptr(lanes)%64, s.TryAllocUnzeroed(1<<20, 8) == nil)
	page := s.BytesUnzeroed(100, 4096)
	fmt.Println(len(page), cap(page), uintptr(unsafe.Pointer(&page[0]))%4096)
	fmt.Println(errors.Is(s.Close(), scope.ErrFull)) // the full of TryAllocUnzeroed
	// Output:
	// 7 0 true
	// 100 100 0
	// true
}

// Temporaries of a load are at the far end of the arena, and leave no gap.
func ExampleScope_Temp() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("level")

	temp := s.Temp(1000)
	packed := temp.Bytes(1000) // the file as it was read
	pond := frogs.Slice(s, 4)  // made from it, meanwhile
	pond[0].X = float32(len(packed))
	fmt.Println(temp.Close(), pond[0].X, scratch.Stats().Used >= 4*8)

	fmt.Println(s.Keep("the collector leaves it alone").Value()) // until s closes
	fmt.Println(s.Close())
	// Output:
	// <nil> 1000 true
	// the collector leaves it alone
	// <nil>
}

type (
	wide   struct{ Lanes [8]uint32 }
	number uint32
	flag   uint8
)

var (
	wides   = scope.Plain[wide]()
	numbers = scope.Plain[number]()
	flags   = scope.Plain[flag]()
)

// A scope allocates each object after the last one, at the next aligned address. The padding
// between is lost until the scope closes. In another order the same objects need less: the largest
// alignment first.
func ExampleStats_padding() {
	b, _ := openExample()
	defer b.Close()
	scratch := b.Scratch(0, 0)
	show := func(order string, make func(s scope.Scope)) {
		_ = scratch.Do(order, func(s scope.Scope) error {
			make(s)
			used := scratch.Stats().Used
			fmt.Printf("%-13s  %d bytes, %4d of them padding\n", order, used, used-100*(32+4+1+1))
			return nil
		})
	}
	show("as it comes", func(s scope.Scope) {
		for range 100 {
			flags.New(s)
			wides.New(s)
			flags.New(s)
			numbers.New(s)
		}
	})
	show("largest first", func(s scope.Scope) {
		for range 100 {
			wides.New(s)
			numbers.New(s)
			flags.New(s)
			flags.New(s)
		}
	})
	show("kind by kind", func(s scope.Scope) {
		wides.Slice(s, 100)
		numbers.Slice(s, 100)
		flags.Slice(s, 200)
	})
	// Output:
	// as it comes    4400 bytes,  600 of them padding
	// largest first  3998 bytes,  198 of them padding
	// kind by kind   3800 bytes,    0 of them padding
}
