package main

import (
	"math/bits"
	"sync"
	"unsafe"

	"modernc.org/memory"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

const (
	lifoDepth = 8 // chunks taken before as many are put, newest first

	unzeroed = "upfront, unzeroed"
)

var workC = work{
	letter: "C", title: "pool: get a chunk, and put it; 8, put newest first (LIFO), or 1024, put in another order (random)",
	absent: "The arena experiment gives nothing back alone. C and hand-written Go neither zero nor check.",
	loops: []loop{
		{name: "C pool 64 LIFO", unit: "get+put", units: chunkCount, enter: enterC(objects, false)},
		{name: "C pool 64 random", unit: "get+put", units: chunkCount, enter: enterC(objects, true)},
		{name: "C pool 256 LIFO", unit: "get+put", units: chunkCount, enter: enterC(larges, false)},
		{name: "C pool 256 random", unit: "get+put", units: chunkCount, enter: enterC(larges, true)},
	},
}

type chunk interface{ object | large }

// inspectChunks sums up the second words, which are what was written, and of chunks that are to be
// zeroed the others.
func inspectChunks(list []unsafe.Pointer, words int, zeroed bool) (sum uint64) {
	for _, at := range list {
		p := unsafe.Slice((*uint64)(at), words)
		sum = sum*31 + p[1] + uint64(uintptr(at)&7)
		for i := range p {
			if zeroed && i != 1 {
				sum += p[i]
				p[i] = dirtyWord
			}
		}
	}
	return sum
}

//go:noinline
func enterC[T chunk](maker scope.Maker[T], random bool) func() []contestant {
	return func() []contestant {
		size := unsafe.Sizeof(*new(T))
		list := []contestant{poolC(size, random), poolByHand(size, random)}
		return append(append(list, poolUpfront(maker, random)...), poolPeers[T](random)...)
	}
}

//go:noinline
func poolC(size uintptr, random bool) contestant {
	p, out := cfloor.NewPool(int(size), chunkCount), listInC(chunkCount)
	return contestant{who: floor, run: func(n int) uint64 {
		if random {
			for range n {
				p.Random(unsafe.SliceData(out), order[:])
			}
			return inspectChunks(out, int(size/8), false)
		}
		for range n {
			p.LIFO(unsafe.SliceData(out), lifoDepth, chunkCount)
		}
		return inspectChunks(out[:lifoDepth], int(size/8), false)
	}}
}

// wrote is what the floors write to a chunk.
func wrote(p unsafe.Pointer, i int) { *(*int64)(unsafe.Add(p, 8)) = int64(i) }

//go:noinline
func poolByHand(size uintptr, random bool) contestant {
	p, shift := bump.NewPool(size, chunkCount), uint(bits.TrailingZeros(uint(size)))
	if random {
		return contestant{who: byHand, run: func(n int) uint64 {
			for range n {
				for i := range keptRaw {
					x := p.Get()
					wrote(x, i)
					keptRaw[i] = x
				}
				for _, j := range order {
					p.PutShift(keptRaw[j], shift)
				}
			}
			return inspectChunks(keptRaw[:], int(size/8), false)
		}}
	}
	return contestant{who: byHand, run: func(n int) uint64 {
		var held [lifoDepth]unsafe.Pointer
		for range n {
			for r := 0; r < chunkCount; r += lifoDepth {
				for i := range lifoDepth {
					x := p.Get()
					wrote(x, i)
					held[i] = x
				}
				for i := lifoDepth - 1; i >= 0; i-- {
					p.PutShift(held[i], shift)
				}
			}
		}
		return inspectChunks(held[:], int(size/8), false)
	}}
}

//go:noinline
func poolUpfront[T chunk](maker scope.Maker[T], random bool) []contestant {
	b, end := scratches(1, chunkCount*1024)
	s := b.Scratch(0, 0).Open("pools")
	pool, other := maker.Pool(s, chunkCount), maker.Pool(s, chunkCount)
	keep := new([chunkCount]*T)
	if random {
		return []contestant{
			{who: library, end: end, run: func(n int) uint64 { return shuffled(pool, keep, n) }},
			{who: unzeroed, run: func(n int) uint64 { return shuffledUnzeroed(other, keep, n) }},
		}
	}
	return []contestant{
		{who: library, end: end, run: func(n int) uint64 { return lifo(pool, n) }},
		{who: unzeroed, run: func(n int) uint64 { return lifoUnzeroed(other, n) }},
	}
}

func lookChunks[T chunk](list []*T, zeroed bool) uint64 {
	return inspectChunks(pointers(list), int(unsafe.Sizeof(*new(T))/8), zeroed)
}

func lifo[T chunk](pool scope.Pool[T], n int) uint64 {
	var held [lifoDepth]*T
	for range n {
		for r := 0; r < chunkCount; r += lifoDepth {
			for i := range lifoDepth {
				x := pool.Get()
				(*x)[1] = uint64(i)
				held[i] = x
			}
			for i := lifoDepth - 1; i >= 0; i-- {
				pool.Put(held[i])
			}
		}
	}
	for i := range lifoDepth { // once more, to be looked at
		held[i] = pool.Get()
		(*held[i])[1] = uint64(i)
	}
	sum := lookChunks(held[:], true)
	for i := lifoDepth - 1; i >= 0; i-- {
		pool.Put(held[i])
	}
	return sum
}

func shuffled[T chunk](pool scope.Pool[T], keep *[chunkCount]*T, n int) (sum uint64) {
	for round := range n {
		for i := range keep {
			x := pool.Get()
			(*x)[1] = uint64(i)
			keep[i] = x
		}
		if round == n-1 {
			sum = lookChunks(keep[:], true)
		}
		for _, j := range order {
			pool.Put(keep[j])
		}
	}
	return sum
}

func lifoUnzeroed[T chunk](pool scope.Pool[T], n int) uint64 {
	var held [lifoDepth]*T
	for range n {
		for r := 0; r < chunkCount; r += lifoDepth {
			for i := range lifoDepth {
				x := pool.GetUnzeroed()
				(*x)[1] = uint64(i)
				held[i] = x
			}
			for i := lifoDepth - 1; i >= 0; i-- {
				pool.Put(held[i])
			}
		}
	}
	return lookChunks(held[:], false)
}

func shuffledUnzeroed[T chunk](pool scope.Pool[T], keep *[chunkCount]*T, n int) uint64 {
	for range n {
		for i := range keep {
			x := pool.GetUnzeroed()
			(*x)[1] = uint64(i)
			keep[i] = x
		}
		for _, j := range order {
			pool.Put(keep[j])
		}
	}
	return lookChunks(keep[:], false)
}

// poolPeers is work C of the others; they zero.
//
//go:noinline
func poolPeers[T chunk](random bool) []contestant {
	size := int(unsafe.Sizeof(*new(T)))
	var heap memory.Allocator
	shared := &sync.Pool{New: func() any { return new(T) }}
	of := func(who string, get func() *T, put func(*T)) contestant {
		return contestant{who: who, run: func(n int) uint64 { return poolFrom(random, get, put, n) }}
	}
	return []contestant{
		of(modernc, func() *T {
			b, _ := heap.Calloc(size)
			return (*T)(unsafe.Pointer(unsafe.SliceData(b)))
		}, func(p *T) { _ = heap.UnsafeFree(unsafe.Pointer(p)) }).ending(func() { _ = heap.Close() }),
		of(goHeap, func() *T { return new(T) }, func(*T) {}),
		of(syncPool, func() *T {
			p := shared.Get().(*T)
			*p = *new(T)
			return p
		}, func(p *T) { shared.Put(p) }),
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
