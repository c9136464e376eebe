package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/misuse/caller"
)

var bounds = []line{
	{"index beyond a slice's length, from Go", []program{
		{name: "index past a slice", run: func(wrong bool) {
			b, query := openQuery()
			list := frogs.Slice(query, 3)
			n := len(list) - 1
			if wrong {
				n++
			}
			list[n].Age = 7
			closeAll(query, b)
		}},
	}, []answer{
		{every, "Go's own check", "index out of range", panics},
	}, ""},
	{"write past an object, slice, chunk or a region's last; before its first", []program{
		{name: "write past an object", goesOn: "the next frog's X is 0x7", right: "the next frog's X is 0x0",
			run: func(wrong bool) {
				b, query := openQuery()
				frog, next := frogs.New(query), frogs.New(query)
				words := unsafe.Slice(&frog.X, 3)
				if wrong {
					words = unsafe.Slice(&frog.X, 4)
				}
				for i := range words {
					words[i] = 7
				}
				say("the next frog's X is %#x", next.X)
				closeAll(query, b)
			}},
		{name: "write past an object, C", run: writePastObjectInC, goesOn: "the next frog's X is 0x707070707070707",
			right: "the next frog's X is 0x0"},
		{name: "write past a slice", goesOn: "the next frog's X is 0x7", right: "the next frog's X is 0x0",
			run: func(wrong bool) {
				b, query := openQuery()
				list, next := frogs.Slice(query, 3), frogs.New(query)
				if wrong {
					list = unsafe.Slice(&list[0], 4)
				}
				list[len(list)-1].X = 7
				say("the next frog's X is %#x", next.X)
				closeAll(query, b)
			}},
		{name: "write past a chunk", goesOn: "the next frog's X is 0x7", right: "the next frog's X is 0x0",
			run: func(wrong bool) {
				b := open()
				pool := load(b, "level", pondOfFrogs).Get()
				frog, next := pool.Get(), pool.Get()
				list := unsafe.Slice(frog, 1)
				if wrong {
					list = unsafe.Slice(frog, 2)
				}
				list[len(list)-1].X = 7
				say("the next frog's X is %#x", next.X)
				pool.Put(next)
				pool.Put(frog)
				check(b.Close())
			}},
		{name: "write past a region", goesOn: "the level's frog's X is 0x7", right: "the level's frog's X is 0x0",
			run: func(wrong bool) {
				b := open()
				list := *load(b, "systems", wholeRegion).Get()
				frog := load(b, "level", frogs.New).Get()
				if wrong {
					list = unsafe.Slice(&list[0], len(list)+1)
				}
				list[len(list)-1] = 7
				say("the level's frog's X is %#x", frog.X)
				check(b.Close())
			}},
		{name: "write before a region", run: writeBeforeRegion, goesOn: "the systems' last word is 0x7",
			right: "the systems' last word is 0x0"},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"checked", "redzone", "write past the end / write before the start", panics},
	}, ""},
	{"write past a region's last object, with guards in the plan", []program{
		{name: "write past a region, guards", only: "release", run: func(wrong bool) {
			plan := pondPlan
			plan.Pages.Guards = budget.Wished
			b := made(budget.Open(plan))
			list := *load(b, "systems", wholeRegion).Get()
			if wrong {
				list = unsafe.Slice(&list[0], len(list)+1)
			}
			list[len(list)-1] = 7
			check(b.Close())
		}},
	}, []answer{
		{"release", "guard", "fatal error: fault", panics},
	}, ""},
	{"write past a heap's block", []program{
		{name: "write past a block of a heap", run: func(wrong bool) {
			b := open()
			heap := load(b, "level", heapOf).Get()
			heap.MayLive()
			block := heap.Alloc(64, 16)
			heap.Alloc(64, 16)
			size := uintptr(64)
			if wrong {
				size += 16
			}
			caller.Fill(block, 7, size)
			check(heap.Free(block))
			check(b.Close())
		}},
	}, []answer{
		{"release, race, checked", "seal, when it is freed",
			"BUG: Heap.Free: … a write past a block or into freed memory", told},
		{"asan", "ASan", poison, asanEnd},
	}, ""},
	{"write a byte past a block of a heap or a buddy", []program{
		{name: "write a byte past a block of a heap", goesOn: "live: 0", run: func(wrong bool) {
			heap := made(arena.NewHeap(arena.NewBlock(8192, 64), 0))
			writePastBlock(heap, 60, wrong)
			say("live: %d", heap.Stats().Live)
		}},
		{name: "write a byte past a block of a buddy", goesOn: "live: 0", run: func(wrong bool) {
			buddy := made(arena.NewBuddy(arena.NewBlock(8192, 64), 64))
			writePastBlock(buddy, 64, wrong)
			say("live: %d", buddy.Stats().Live)
		}},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"checked", "redzone, when it is freed", "BUG: … a write past a block … made at", told},
	}, ""},
	{"write past the size requested of a buddy, in its block or into the next", []program{
		{name: "write past the size requested of a buddy", goesOn: "live: 0", run: func(wrong bool) {
			buddy := made(arena.NewBuddy(arena.NewBlock(8192, 64), 64))
			writePastBlock(buddy, 40, wrong)
			say("live: %d", buddy.Stats().Live)
		}},
		{name: "write past a block of a buddy into the next", goesOn: "live: 1", run: func(wrong bool) {
			buddy := made(arena.NewBuddy(arena.NewBlock(8192, 64), 64))
			first, next := buddy.Alloc(64, 4), buddy.Alloc(64, 4)
			caller.Fill(next, 7, 64)
			check(buddy.Free(first))
			writePastBlock(buddy, 64, wrong)
			say("live: %d", buddy.Stats().Live)
		}},
	}, []answer{
		{"checked", "redzone, when it is freed", "BUG: … a write past a block … made at", told},
	}, ""},
}

// writePastBlock fills a block of a size, and one byte more.
func writePastBlock(a arena.Reallocator, size uint64, wrong bool) {
	block := a.Alloc(size, 4)
	if wrong {
		size++
	}
	caller.Fill(block, 7, uintptr(size))
	check(a.Free(block))
}

func writePastObjectInC(wrong bool) {
	b, query := openQuery()
	frog, next := frogs.New(query), frogs.New(query)
	size := unsafe.Sizeof(*frog)
	if wrong {
		size += 8
	}
	caller.Fill(unsafe.Pointer(frog), 7, size)
	say("the next frog's X is %#x", next.X)
	closeAll(query, b)
}

// wholeRegion fills a region to its last byte.
func wholeRegion(s scope.Scope) *[]uint64 {
	list := words.Slice(s, 64*budget.KiB/8)
	return &list
}

var words = scope.Plain[uint64]()

func writeBeforeRegion(wrong bool) {
	b := open()
	list := *load(b, "systems", wholeRegion).Get()
	frog := load(b, "level", frogs.New).Get()
	first := &frog.X
	if wrong {
		first = (*uint64)(unsafe.Add(unsafe.Pointer(first), -8))
	}
	*first = 7
	say("the systems' last word is %#x", list[len(list)-1])
	check(b.Close())
}

// heapOf makes a heap in a scope, as a C library gets one.
func heapOf(s scope.Scope) *arena.Heap {
	heap := made(arena.NewHeap(s.BytesUnzeroed(32*budget.KiB, 64), 0))
	return &heap
}
