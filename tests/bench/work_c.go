package main

import (
	"math/bits"
	"unsafe"

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
	absent: "z and the arena experiment give nothing back alone. C and hand-written Go neither zero nor check.",
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
		list := []contestant{poolC(size, random), poolCore(size, random), poolByHand(size, random)}
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

// poolCore zeroes what upfront is asked to zero: 64 bytes.
//
//go:noinline
func poolCore(size uintptr, random bool) contestant {
	c, end := newCore()
	p, out, zeroed := c.pool(size), listInC(chunkCount), uintptr(0)
	if size == 64 {
		zeroed = size
	}
	return contestant{who: ownCore, end: end, run: func(n int) uint64 {
		if random {
			for range n {
				p.random(out, zeroed)
			}
			return inspectChunks(out, int(size/8), false)
		}
		for range n {
			p.lifo(out, zeroed)
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
