package scope_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// openExample opens a budget for examples; its scratch arena 0.0 is the one that most use.
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

// file stands for anything that must be closed.
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
	// scope: BUG: Close of scope "outer" of scratch 0.0 while scope "inner", opened in it, is open
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

// What a scope gives: one, n, n with room for more, n at an address that is a multiple.
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

// Raw memory, which holds anything: a size and an alignment, as numbers or, faster, as a constant.
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
	fmt.Println(errors.Is(s.Close(), scope.ErrFull)) // what TryAllocUnzeroed met
	// Output:
	// 7 0 true
	// 100 100 0
	// true
}

// What is needed only while something is loaded lies at the far end of the arena, and leaves no gap.
func ExampleScope_Temp() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("level")

	temp := s.Temp(1000)
	packed := temp.Bytes(1000) // the file as it was read
	pond := frogs.Slice(s, 4)  // what is made of it, meanwhile
	pond[0].X = float32(len(packed))
	fmt.Println(temp.Close(), pond[0].X, scratch.Stats().Used >= 4*8)

	fmt.Println(s.Keep("the collector leaves it alone").Value()) // until s closes
	fmt.Println(s.Close())
	// Output:
	// <nil> 1000 true
	// the collector leaves it alone
	// <nil>
}

func ExampleReadFile() {
	b, scratch := openExample()
	defer b.Close()

	err := scratch.Do("load", func(s scope.Scope) error {
		name := scope.Sprintf(s, "%s/pond%d.txt", os.TempDir(), os.Getpid())
		s.Defer(func() { _ = os.Remove(name) })
		if err := os.WriteFile(name, []byte("12 frogs"), 0o600); err != nil {
			return err
		}
		text, err := scope.ReadFile(s, name)
		fmt.Printf("%q\n", text)
		return err
	})
	fmt.Println(err)
	// Output:
	// "12 frogs"
	// <nil>
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
	b, scratch := openExample()
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
	b, scratch := openExample()
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

type fly struct{ ID, Bites int32 }

var flies = scope.Plain[fly]()

// An array whose size nobody knows yet: the builder has all that is free, and gives the rest back.
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
	flies.New(level).ID = 1 // it allocates again
	fmt.Println(level.Close())
	// Output:
	// 31 31 961
	// 248 bytes
	// <nil>
}

var letters = scope.Plain[rune]()

// reversed gives the text backwards. The result lives where the caller says, in out; the scratch lives on the other scratch arena
// and is gone when reversed returns.
func reversed(scratches scope.Scratches, out scope.Scope, text string) string {
	scratch := scratches.Pick(out).Open("reversed") // doesn't cover out
	defer scratch.Close()
	list := letters.Slice(scratch, utf8.RuneCountInString(text))
	i := len(list)
	for _, letter := range text {
		i--
		list[i] = letter
	}
	result := out.Bytes(len(text))[:0]
	for _, letter := range list {
		result = utf8.AppendRune(result, letter)
	}
	return string(result) // a copy on the Go heap, for the example
}

// ExampleScratches_Pick shows why a worker has two scratch arenas: on the caller's, the scope of the scratch would cover the scope of the
// result.
func ExampleScratches_Pick() {
	b, _ := openExample()
	defer b.Close()
	scratches := b.Scratches(0)

	out := scratches.Pick().Open("result")
	defer out.Close()
	fmt.Println(reversed(scratches, out, "frösche"))

	other := scratches.Pick(out).Open("on the other scratch") // and the other way round
	defer other.Close()
	fmt.Println(reversed(scratches, other, "pond"))

	defer func() { fmt.Println(recover()) }()
	scratches.Pick(out, other) // NOT OKAY: there are two
	// Output:
	// ehcsörf
	// dnop
	// scope: BUG: Pick: each of scratch 0.0 to scratch 0.1 holds a scope that it should avoid
}
