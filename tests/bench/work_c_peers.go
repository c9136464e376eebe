package main

import (
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	"github.com/bytedance/gopkg/lang/mcache"
	"modernc.org/memory"
)

// poolPeers is work C of the others; they zero.
//
//go:noinline
func poolPeers[T chunk](random bool) []contestant {
	size := int(unsafe.Sizeof(*new(T)))
	heap, from := &memory.Allocator{}, mallocator.NewMallocator()
	shared := &sync.Pool{New: func() any { return new(T) }}
	at := func(b []byte) *T { return (*T)(unsafe.Pointer(unsafe.SliceData(b))) }
	bytes := func(p *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(p)), size) }
	of := func(who string, get func() *T, put func(*T)) contestant {
		return contestant{who: who, run: func(n int) uint64 { return poolFrom(random, get, put, n) }}
	}
	own := of(modernc, func() *T {
		b, _ := heap.Calloc(size)
		return at(b)
	}, func(p *T) { _ = heap.Free(bytes(p)) })
	own.end = func() { _ = heap.Close() }
	return []contestant{own,
		of(goHeap, func() *T { return new(T) }, func(*T) {}),
		of(syncPool, func() *T {
			p := shared.Get().(*T)
			*p = *new(T)
			return p
		}, func(p *T) { shared.Put(p) }),
		of(mcached, func() *T {
			b := mcache.Malloc(size)
			clear(b)
			return at(b)
		}, func(p *T) { mcache.Free(bytes(p)) }),
		of(arrow, func() *T { return at(from.Allocate(size)) }, func(p *T) { from.Free(bytes(p)) }),
	}
}

// poolFrom costs its calls through a variable, 1 or 2 ns each, which is little beside what they do.
func poolFrom[T chunk](random bool, get func() *T, put func(*T), n int) (sum uint64) {
	keep := make([]*T, chunkCount)
	for round := range n {
		if random {
			for i := range keep {
				keep[i] = get()
				(*keep[i])[1] = uint64(i)
			}
			if round == n-1 {
				sum = lookChunks(keep, true)
			}
			for _, j := range order {
				put(keep[j])
			}
			continue
		}
		for r := 0; r < chunkCount; r += lifoDepth {
			for i := range lifoDepth {
				keep[i] = get()
				(*keep[i])[1] = uint64(i)
			}
			if round == n-1 && r == chunkCount-lifoDepth {
				sum = lookChunks(keep[:lifoDepth], true)
			}
			for i := lifoDepth - 1; i >= 0; i-- {
				put(keep[i])
			}
		}
	}
	return sum
}
