package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
)

var heaps = []line{
	{"free, realloc or SizeOf of a heap's freed, foreign or interior block", []program{
		{name: "free twice", run: freeTwice, says: "put twice"},
		{name: "free of a foreign block", run: freeForeign, says: "not from here"},
		{name: "free inside a block", run: freeInterior, says: "inside a chunk, not at its start"},
		{name: "realloc of a freed block", run: reallocStale, says: "put twice"},
		{name: "Delete twice", run: deleteTwice, says: "put twice"},
		{name: "SizeOf of a freed block", run: sizeOfStale, says: "put twice"},
		{name: "free in a heap that was reset", run: staleHeap, says: "put twice"},
	}, []answer{
		{every, "seal", "arena: BUG: Heap…", told},
	}, ""},
	{"free or rewind a Stack, Ring or Linear out of order", []program{
		{name: "free in a stack's wrong order", run: freeStackOrder, says: "out of order"},
		{name: "rewind a stack to a newer mark", run: rewindToNewerMark, says: "out of order"},
		{name: "free in a ring's wrong order", run: freeRingOrder, says: "out of order"},
		{name: "free in a ring that was reset", run: staleRing, says: "not from here"},
		{name: "free in a ring that has overwritten the block", run: freeOverwritten, says: "out of order"},
		{name: "rewind to a forgotten mark", run: rewindToForgottenMark, says: "out of order"},
	}, []answer{
		{every, "order", "arena: BUG: …", told},
	}, ""},
}

func freeTwice(wrong bool) {
	heap := load(open(), "level", heapOf).Get()
	block := heap.Alloc(64, 16)
	check(heap.Free(block))
	if wrong {
		check(heap.Free(block))
	}
}

func freeForeign(wrong bool) {
	heap := load(open(), "level", heapOf).Get()
	block := heap.Alloc(64, 16)
	if wrong {
		block = unsafe.Pointer(new(Frog))
	}
	check(heap.Free(block))
}

func freeInterior(wrong bool) {
	heap := load(open(), "level", heapOf).Get()
	block := heap.Alloc(64, 16)
	if wrong {
		block = unsafe.Add(block, 16)
	}
	check(heap.Free(block))
}

func reallocStale(wrong bool) {
	heap := load(open(), "level", heapOf).Get()
	block := heap.Alloc(64, 16)
	if wrong {
		check(heap.Free(block))
	}
	_, err := heap.Realloc(block, 128)
	check(err)
}

var heapFrogs = arena.HeapOf[Frog](nil)

func deleteTwice(wrong bool) {
	heap := load(open(), "level", heapOf).Get()
	frog := heapFrogs.New(heap)
	check(heapFrogs.Delete(heap, frog))
	if wrong {
		check(heapFrogs.Delete(heap, frog))
	}
}

func sizeOfStale(wrong bool) {
	heap := load(open(), "level", heapOf).Get()
	block := heap.Alloc(64, 16)
	if wrong {
		check(heap.Free(block))
	}
	size, err := heap.SizeOf(block)
	check(err)
	say("the block has %d bytes", size)
}

func freeStackOrder(wrong bool) {
	stack, err := arena.NewStack(arena.NewBlock(4096, 64))
	check(err)
	first := stack.Alloc(64, 16)
	second := stack.Alloc(64, 16)
	if !wrong {
		check(stack.Free(second))
	}
	check(stack.Free(first))
}

func rewindToNewerMark(wrong bool) {
	stack, err := arena.NewStack(arena.NewBlock(4096, 64))
	check(err)
	old := stack.Mark()
	stack.Alloc(64, 16)
	mark := stack.Mark()
	if wrong {
		check(stack.Rewind(old))
	}
	check(stack.Rewind(mark))
}

func freeRingOrder(wrong bool) {
	ring, err := arena.NewRing(arena.NewBlock(4096, 64))
	check(err)
	first := ring.Alloc(64, 8)
	second := ring.Alloc(64, 8)
	if !wrong {
		check(ring.Free(first))
	}
	check(ring.Free(second))
}

func freeOverwritten(wrong bool) {
	ring, err := arena.NewRing(arena.NewBlock(256, 64))
	check(err)
	oldest := ring.Alloc(40, 8)
	ring.Alloc(40, 8)
	if wrong {
		ring.Overwrite(30, 8) // the oldest makes room
	}
	check(ring.Free(oldest))
}

func rewindToForgottenMark(wrong bool) {
	linear, err := arena.NewLinear(arena.NewBlock(4096, 64))
	check(err)
	old := linear.Mark()
	linear.Alloc(64, 8)
	mark := linear.Mark()
	if wrong {
		check(linear.Rewind(old))
	}
	check(linear.Rewind(mark))
}

func staleRing(wrong bool) {
	ring, err := arena.NewRing(arena.NewBlock(4096, 64))
	check(err)
	block := ring.Alloc(64, 8)
	if wrong {
		ring.Reset()
	}
	check(ring.Free(block))
}

func staleHeap(wrong bool) {
	heap, err := arena.NewHeap(arena.NewBlock(4096, 64))
	check(err)
	block := heap.Alloc(64, 16)
	if wrong {
		heap.Reset()
	}
	check(heap.Free(block))
}
