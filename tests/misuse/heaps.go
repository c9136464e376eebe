package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/tests/misuse/caller"
)

var heaps = []line{
	{"free, realloc or SizeOf of a heap's freed, foreign or interior block", []program{
		{name: "free twice", says: "freed already",
			run: frees(func(heap *arena.Heap, block unsafe.Pointer) unsafe.Pointer {
				check(heap.Free(block))
				return block
			})},
		{name: "free of a foreign block", says: "not a block of this arena",
			run: frees(func(*arena.Heap, unsafe.Pointer) unsafe.Pointer {
				return unsafe.Pointer(new(Frog))
			})},
		{name: "free inside a block", says: "inside a block, not at its start", run: frees(func(_ *arena.Heap,
			block unsafe.Pointer) unsafe.Pointer {
			return unsafe.Add(block, 16)
		})},
		{name: "free in a heap that was reset", says: "freed already",
			run: frees(func(heap *arena.Heap, block unsafe.Pointer) unsafe.Pointer {
				heap.Reset()
				return block
			})},
		{name: "realloc of a freed block", says: "freed already", run: func(wrong bool) {
			heap := load(open(), "level", heapOf).Get()
			block := heap.Alloc(64, 16)
			if wrong {
				check(heap.Free(block))
			}
			_, err := heap.Realloc(block, 128)
			check(err)
		}},
		{name: "Delete twice", says: "freed already", run: func(wrong bool) {
			heap := load(open(), "level", heapOf).Get()
			frog := heapFrogs.New(heap)
			check(heapFrogs.Delete(heap, frog))
			if wrong {
				check(heapFrogs.Delete(heap, frog))
			}
		}},
		{name: "SizeOf of a freed block", says: "freed already", run: func(wrong bool) {
			heap := load(open(), "level", heapOf).Get()
			block := heap.Alloc(64, 16)
			if wrong {
				check(heap.Free(block))
			}
			size, err := heap.SizeOf(block)
			check(err)
			say("the block has %d bytes", size)
		}},
	}, []answer{
		{every, "seal", "arena: BUG: Heap…", told},
	}, ""},
	{"free, realloc or SizeOf of a buddy's freed, foreign or interior block", []program{
		{name: "free a buddy's block twice", says: "freed already",
			run: freesPage(func(b arena.Buddy, block unsafe.Pointer) unsafe.Pointer {
				check(b.Free(block))
				return block
			})},
		{name: "free inside a buddy's free block", says: "freed already", run: freesPage(func(b arena.Buddy,
			block unsafe.Pointer) unsafe.Pointer {
			check(b.Free(block))
			return unsafe.Add(block, 64)
		})},
		{name: "free of a block that no buddy gave", says: "not a block of this arena", run: freesPage(func(arena.Buddy,
			unsafe.Pointer) unsafe.Pointer {
			return unsafe.Pointer(new(Frog))
		})},
		{name: "free inside a buddy's block", says: "inside a block, not at its start",
			run: freesPage(func(_ arena.Buddy,
				block unsafe.Pointer) unsafe.Pointer {
				return unsafe.Add(block, 64)
			})},
		{name: "free in a buddy that was reset", says: "freed already", run: freesPage(func(b arena.Buddy,
			block unsafe.Pointer) unsafe.Pointer {
			b.Reset()
			return block
		})},
		{name: "realloc of a buddy's freed block", says: "freed already", run: func(wrong bool) {
			b := made(arena.NewBuddy(arena.NewBlock(8192, 64), 64))
			block := b.Alloc(128, 1)
			if wrong {
				check(b.Free(block))
			}
			_, err := b.Realloc(block, 500)
			check(err)
		}},
		{name: "Delete of another size in a buddy", says: "the block has 128 bytes, the value 64",
			run: func(wrong bool) {
				b := made(arena.NewBuddy(arena.NewBlock(8192, 64), 64))
				frog := heapFrogs.New(b)
				if wrong {
					frog = (*Frog)(b.Alloc(128, 1))
				}
				check(heapFrogs.Delete(b, frog))
			}},
	}, []answer{
		{every, "block's state", "arena: BUG: …", told},
	}, ""},
	{"Grow or DeleteSlice of a slice that ended or was cut, or in another heap", []program{
		{name: "Grow of a slice that was freed", says: "freed already", run: func(wrong bool) {
			heap := load(open(), "level", heapOf).Get()
			slice := heapFrogs.Slice(heap, 10)
			if wrong {
				check(heapFrogs.DeleteSlice(heap, slice))
			}
			slice, err := heapFrogs.Grow(heap, slice, 30)
			check(err)
			check(heapFrogs.DeleteSlice(heap, slice))
		}},
		{name: "DeleteSlice twice", says: "freed already", run: endsSlice(func(heap *arena.Heap, slice []Frog) []Frog {
			check(heapFrogs.DeleteSlice(heap, slice))
			return slice
		})},
		{name: "DeleteSlice of a slice that Grow moved", says: "freed already",
			run: endsSlice(func(heap *arena.Heap, slice []Frog) []Frog {
				heapFrogs.New(heap) // so that it moves
				made(heapFrogs.Grow(heap, slice, 20))
				return slice
			})},
		{name: "DeleteSlice of a slice that Grow extended",
			says: "the value 240: the slice was cut, or Grow has replaced it",
			run: endsSlice(func(heap *arena.Heap, slice []Frog) []Frog {
				made(heapFrogs.Grow(heap, slice, 20))
				return slice
			})},
		{name: "DeleteSlice of a part", says: "inside a block, not at its start",
			run: endsSlice(func(_ *arena.Heap, slice []Frog) []Frog {
				return slice[5:]
			})},
		{name: "DeleteSlice of a slice that append moved to the Go heap", says: "not a block of this arena",
			run: endsSlice(func(_ *arena.Heap, slice []Frog) []Frog {
				return append(slice, Frog{})
			})},
		{name: "DeleteSlice in another heap", says: "not a block of this arena",
			run: endsSlice(func(*arena.Heap, []Frog) []Frog {
				other := made(arena.NewHeap(arena.NewBlock(8192, 64), 0))
				return heapFrogs.Slice(other, 10)
			})},
		{name: "DeleteString twice", says: "freed already", run: func(wrong bool) {
			b := open()
			heap := load(b, "level", heapOf).Get()
			name, _ := arena.NewString(heap, b.Base(), "ada")
			check(arena.DeleteString(heap, b.Base(), name))
			if wrong {
				check(arena.DeleteString(heap, b.Base(), name))
			}
		}},
	}, []answer{
		{every, "seal, and the block's size", "arena: …HeapMaker.", told},
	}, ""},
	{"C gives free, realloc or size a Shared's freed, foreign or interior block", []program{
		{name: "C frees twice", says: "free of … freed already",
			run: cSays(func(c arena.CFunctions, block unsafe.Pointer) {
				caller.FreeBy(c.Free, c.Context, block)
				caller.FreeBy(c.Free, c.Context, block)
			})},
		{name: "C frees its own memory", says: "free of … not a block of this arena",
			run: cSays(func(c arena.CFunctions, _ unsafe.Pointer) {
				caller.FreeOwn(c.Free, c.Context)
			})},
		{name: "C reallocates a freed block", says: "realloc of … freed already",
			run: cSays(func(c arena.CFunctions, block unsafe.Pointer) {
				caller.FreeBy(c.Free, c.Context, block)
				caller.ReallocBy(c.Realloc, c.Context, block)
			})},
		{name: "C asks for the size inside a block", says: "size of … inside a block, not at its start",
			run: cSays(func(c arena.CFunctions,
				block unsafe.Pointer) {
				caller.SizeBy(c.Size, c.Context, unsafe.Add(block, 16))
			})},
	}, []answer{
		{every, "seal; Shared.Err returns it", "arena: BUG: 1 call from C refused; the last: …", told},
	}, ""},
	{"leave a block of a heap, buddy or Shared live at its end, or a chunk where none must be", []program{
		{name: "leave a block in a level", says: "region level … an arena.Heap of 32768 bytes", run: func(wrong bool) {
			b := open()
			heap := load(b, "level", heapOf).Get()
			block := heap.Alloc(64, 16)
			when(!wrong, func() error { return heap.Free(block) })
			check(b.Region("level").Rewind(ctx))
		}},
		{name: "leave a block of no bytes", says: "region level … an arena.Heap of 32768 bytes", run: func(wrong bool) {
			b := open()
			heap := load(b, "level", heapOf).Get()
			list := arena.SliceOf(b.Base(), unsafe.Slice((*byte)(heap.Alloc(0, 1)), 0))
			when(!wrong, func() error { return heap.Free(unsafe.Pointer(unsafe.SliceData(list.Get(b.Base())))) })
			closeAll(b)
		}},
		{name: "leave a page", says: "scope \"query\": an arena.Buddy", run: func(wrong bool) {
			_, query := openQuery()
			pages := made(arena.NewBuddy(query.BytesUnzeroed(8192, 64), 64))
			page := pages.Alloc(4096, 64)
			when(!wrong, func() error { return pages.Free(page) })
			closeAll(query)
		}},
		{name: "C leaves a block", says: "scope \"query\": an arena.Heap", run: func(wrong bool) {
			_, query := openQuery()
			heap := made(arena.NewHeap(query.BytesUnzeroed(8192, 64), 0))
			shared := made(heap.Shared())
			if !wrong {
				heap.MayLive()
			}
			shared.Alloc(64, 16)
			closeAll(query)
		}},
		{name: "leave a chunk", says: "MustEmpty", run: func(wrong bool) {
			_, query := openQuery()
			seats := made(arena.NewBlockPool[Frog](query.BytesUnzeroed(1024, 64)))
			seats.MustEmpty()
			frog := seats.Get()
			when(!wrong, func() error { return seats.Put(frog) })
			closeAll(query)
		}},
	}, []answer{
		{"release, race, asan", "count, unless MayLive", "ends with 1 live", told},
		{"checked", "count, with call sites", "ends with 1 live … allocated at / MustEmpty asked for none … made at",
			told},
	}, ""},
	{"free or rewind a Stack, Ring or Linear out of order", []program{
		{name: "free in a stack's wrong order", says: "out of order", run: func(wrong bool) {
			stack := made(arena.NewStack(arena.NewBlock(4096, 64)))
			first := stack.Alloc(64, 16)
			second := stack.Alloc(64, 16)
			if !wrong {
				check(stack.Free(second))
			}
			check(stack.Free(first))
		}},
		{name: "rewind a stack to a newer mark", says: "out of order", run: func(wrong bool) {
			stack := made(arena.NewStack(arena.NewBlock(4096, 64)))
			old := stack.Mark()
			stack.Alloc(64, 16)
			mark := stack.Mark()
			if wrong {
				check(stack.Rewind(old))
			}
			check(stack.Rewind(mark))
		}},
		{name: "free in a ring's wrong order", says: "out of order", run: func(wrong bool) {
			ring := made(arena.NewRing(arena.NewBlock(4096, 64)))
			first := ring.Alloc(64, 8)
			second := ring.Alloc(64, 8)
			if !wrong {
				check(ring.Free(first))
			}
			check(ring.Free(second))
		}},
		{name: "free in a ring that was reset", says: "not a block of this arena", run: func(wrong bool) {
			ring := made(arena.NewRing(arena.NewBlock(4096, 64)))
			block := ring.Alloc(64, 8)
			if wrong {
				ring.Reset()
			}
			check(ring.Free(block))
		}},
		{name: "free in a ring that has overwritten the block", says: "out of order", run: func(wrong bool) {
			ring := made(arena.NewRing(arena.NewBlock(1024, 64)))
			oldest := ring.Alloc(200, 8)
			for ring.Alloc(200, 8) != nil { // until it is full
			}
			if wrong {
				ring.Overwrite(200, 8)
			}
			check(ring.Free(oldest))
		}},
		{name: "rewind to a forgotten mark", says: "out of order", run: func(wrong bool) {
			linear := made(arena.NewLinear(arena.NewBlock(4096, 64)))
			old := linear.Mark()
			linear.Alloc(64, 8)
			mark := linear.Mark()
			if wrong {
				check(linear.Rewind(old))
			}
			check(linear.Rewind(mark))
		}},
	}, []answer{
		{every, "order", "arena: BUG: …", told},
	}, ""},
}

var heapFrogs = arena.HeapOf[Frog](nil)

// freesPage is a program that frees a block of a buddy, or another pointer after a step with the
// buddy.
func freesPage(instead func(b arena.Buddy, block unsafe.Pointer) unsafe.Pointer) func(wrong bool) {
	return func(wrong bool) {
		b := made(arena.NewBuddy(arena.NewBlock(8192, 64), 64))
		block := b.Alloc(128, 1)
		if wrong {
			block = instead(b, block)
		}
		check(b.Free(block))
	}
}

// cSays is a program in which C uses a block wrongly, which is found at the end.
func cSays(wrongly func(c arena.CFunctions, block unsafe.Pointer)) func(wrong bool) {
	return func(wrong bool) {
		shared := made(load(open(), "level", heapOf).Get().Shared())
		block := shared.Alloc(64, 16)
		if wrong {
			wrongly(shared.Functions(), block)
		}
		check(shared.Err())
	}
}

// endsSlice is a program that frees a slice of a heap, or another slice after a step with the
// slice.
func endsSlice(instead func(heap *arena.Heap, slice []Frog) []Frog) func(wrong bool) {
	return func(wrong bool) {
		heap := load(open(), "level", heapOf).Get()
		slice := heapFrogs.Slice(heap, 10)
		if wrong {
			slice = instead(heap, slice)
		}
		check(heapFrogs.DeleteSlice(heap, slice))
	}
}

// frees is a program that frees a block, or another pointer after a step with the heap.
func frees(instead func(heap *arena.Heap, block unsafe.Pointer) unsafe.Pointer) func(wrong bool) {
	return func(wrong bool) {
		heap := load(open(), "level", heapOf).Get()
		block := heap.Alloc(64, 16)
		if wrong {
			block = instead(heap, block)
		}
		check(heap.Free(block))
	}
}
