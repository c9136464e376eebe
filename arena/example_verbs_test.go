package arena_test

import (
	"errors"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
)

func must[A any](a A, err error) A {
	if err != nil {
		panic(err)
	}
	return a
}

func ExampleStack() {
	s := must(arena.NewStack(arena.NewBlock(4096, 64)))
	first, second := s.Alloc(100, 8), s.Alloc(50, 8)
	fmt.Println(s.Free(first))
	fmt.Println(s.Free(second), s.Stats().Used, "used,", s.Padding(), "of it padding")
	mark := s.Mark()
	s.Alloc(10, 1)
	fmt.Println(s.Rewind(mark), s.Stats().Used, "of", s.Stats().Size, "peak", s.Stats().Peak)
	s.Reset()
	fmt.Println(s.Stats().Used)
	// Output:
	// arena: BUG: Stack.Free: out of order: a Stack frees its newest block first
	// <nil> 116 used, 16 of it padding
	// <nil> 116 of 3968 peak 194
	// 0
}

func ExampleStack_Far() {
	s := must(arena.NewStack(arena.NewBlock(4096, 64)))
	far := s.Far()
	raw := far.Alloc(1000, 1)
	mark := far.Mark()
	far.Alloc(500, 1)
	fmt.Println(far.Rewind(mark))
	fmt.Println(far.Free(raw), far.Stats().Used, far.Stats().Peak, s.Stats().Used)
	far.Reset()
	// Output:
	// <nil>
	// <nil> 0 1552 0
}

func ExampleLinearFar() {
	far := must(arena.NewLinear(arena.NewBlock(4096, 64))).Far()
	mark := far.Mark()
	far.Alloc(1000, 8)
	fmt.Println(far.Stats().Used, far.Rewind(mark), far.Stats().Used)
	fmt.Println(far.Rewind(mark + 1))
	// Output:
	// 1000 <nil> 0
	// arena: BUG: LinearFar.Rewind to 4097: out of order: the mark is past the end of the allocated bytes
}

func ExampleFrame_Now() {
	f := must(arena.NewFrame(arena.NewBlock(4096, 64), 3))
	f.Alloc(40, 8)
	now := f.Now() // a system keeps it, and checks later whether its blocks live
	f.Next()
	fmt.Println(now.Live(), "in buffer", f.Current(), "of", f.Buffers(), "size", f.Stats().Size, "peak", f.Stats().Peak)
	// Output: true in buffer 1 of 3 size 1280 peak 40
}

func ExampleRing_Reset() {
	r := must(arena.NewRing(arena.NewBlock(1024, 64)))
	r.Alloc(100, 8)
	r.Alloc(200, 8)
	fmt.Println(r.Len(), "blocks, room for", r.Room(), "more bytes")
	r.Reset()
	fmt.Println(r.Len(), "blocks, room for", r.Room(), "peak", r.Stats().Peak)
	// Output:
	// 2 blocks, room for 568 more bytes
	// 0 blocks, room for 888 peak 320
}

func ExampleHeap() {
	h := must(arena.NewHeap(arena.NewBlock(8192, 64), 0))
	text := h.Alloc(100, 16)
	text = must(h.Realloc(text, 300))
	fmt.Println(must(h.SizeOf(text)), h.Stats().Live, "live")
	fmt.Println(h.Free(text), h.Free(text))
	h.Reset()
	fmt.Println(h.Stats().Used, h.LargestFree() > 7000)
	// Output:
	// 300 1 live
	// <nil> arena: BUG: Heap.Free: freed already
	// 0 true
}

// Pages for other arenas, aligned to their size and freed in any order.
func ExampleBuddy() {
	const page = 4096
	b := must(arena.NewBuddy(arena.NewBlock(64<<10, 64<<10), page))
	wide := b.Alloc(3*page, 1) // of four pages
	l := must(arena.NewLinear(unsafe.Slice((*byte)(b.Alloc(page, 64)), page)))
	fmt.Println(must(b.SizeOf(wide)), uintptr(wide)%(4*page), l.Alloc(3900, 8) != nil)
	s := b.Stats()
	fmt.Println(s.Live, "live of", s.Used/page, "pages, asked for", (s.Given-s.Internal)/page, "largest free",
		b.LargestFree()/page)
	fmt.Println(b.Free(wide), b.Free(wide))
	// Output:
	// 16384 0 true
	// 2 live of 5 pages, asked for 4 largest free 8
	// <nil> arena: BUG: Buddy.Free: freed already
}

// A client without any free memory can't even clean up, unless a reserve was kept for that.
func ExampleHeap_Reserve() {
	h := must(arena.NewHeap(arena.NewBlock(8192, 64), 0))
	h.Reserve(512)
	blocks := 0
	for h.Alloc(200, 16) != nil {
		blocks++
	}
	fmt.Println("full after", blocks, "blocks;", h.Stats().Failed, "refused")
	h.Reserve(0)
	fmt.Println("tidies up:", h.Alloc(400, 16) != nil, "the most it took:", h.Phase())
	// Output:
	// full after 29 blocks; 1 refused
	// tidies up: true the most it took: 6912
}

func ExampleHeapOf() {
	type sound struct{ Device int32 }
	// A program declares sounds at package level.
	sounds := arena.HeapOf(func(s *sound) error { fmt.Println("closes", s.Device); return nil })
	h := must(arena.NewHeap(arena.NewBlock(8192, 64), 0))
	s := must(sounds.Make(h, func(s *sound) error { s.Device = 7; return nil }))
	fmt.Println(sounds.Delete(h, s))
	_, err := sounds.Make(h, func(*sound) error { return errors.New("no such device") })
	fmt.Println(err, h.Stats().Live, "live")
	fmt.Println(sounds.Delete(h, sounds.New(h)))
	// Output:
	// closes 7
	// <nil>
	// no such device 0 live
	// closes 0
	// <nil>
}

func ExampleBlockPool_All() {
	pool := must(arena.NewBlockPool[uint64](arena.NewBlock(1024, 64)))
	names := make([]string, pool.Cap()) // a table parallel to the pool
	for _, name := range []string{"toad", "frog", "newt"} {
		x := pool.GetUnzeroed()
		*x = uint64(len(name))
		names[must(pool.Index(x))] = name
	}
	_ = pool.Put(pool.At(0))
	for i, x := range pool.All() {
		fmt.Print(names[i], " ", *x, ", ")
	}
	fmt.Println(pool.Live(), "live, at most", pool.Peak())
	// Output: frog 4, newt 4, 2 live, at most 3
}

// A block that may be saved holds offsets instead of addresses.
func ExampleBase() {
	type frog struct {
		Name    arena.String
		Friends arena.Slice[uint16]
		Home    arena.Ptr[uint64]
	}
	block := arena.NewBlock(1024, 64)
	level := must(arena.NewLinear(block))
	f := (*frog)(level.Alloc(uint64(unsafe.Sizeof(frog{})), 8))
	name := unsafe.Slice((*byte)(level.Alloc(4, 1)), 4)
	copy(name, "Fred")
	friends := unsafe.Slice((*uint16)(level.Alloc(4, 2)), 2)
	friends[0], friends[1] = 3, 5
	home := (*uint64)(level.Alloc(8, 8))
	*home = 42

	// the last byte used
	end := uintptr(unsafe.Pointer(home)) + 8 - uintptr(unsafe.Pointer(&block[0]))
	base := arena.BaseOf(block[:end])
	*f = frog{arena.StringOf(base, name), arena.SliceOf(base, friends), arena.PtrTo(base, home)}
	at := uintptr(unsafe.Pointer(f)) - uintptr(unsafe.Pointer(&block[0]))

	loaded := arena.NewBlock(1024, 64) // another process
	copy(loaded, base.Bytes())
	base = arena.BaseAt(unsafe.Pointer(&loaded[0]), 1024)
	g := (*frog)(unsafe.Pointer(&loaded[at]))
	fmt.Println(g.Name.Get(base), g.Friends.Get(base), *g.Home.Get(base))
	fmt.Println(g.Name.Len(), g.Friends.Len(), g.Home.IsNil())
	// Output:
	// Fred [3 5] 42
	// 4 2 false
}

func ExampleCheckPlain() {
	type frog struct {
		Name string
		Born time.Time
	}
	fmt.Println(arena.CheckPlain(reflect.TypeFor[frog]()))
	fmt.Println(arena.CheckPlain(reflect.TypeFor[[4]float64]()))
	// Output:
	// frog.Name (string) holds a Go pointer; use arena.String, or arena.Inline for a short text
	// frog.Born (time.Time) holds a Go pointer; use int64 of UnixNano
	// <nil>
}
