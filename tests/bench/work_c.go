package main

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"modernc.org/memory"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

const (
	chunkCount = 1024 // of a pool
	lifoDepth  = 8    // chunks taken before as many are put, newest first

	unzeroed      = "upfront, unzeroed"
	checkedByHand = "hand-written Go, checked"
)

var workC = work{
	letter: "C", title: "pool: get a chunk, and put it; 8, put newest first (LIFO), or 1024, put in another order " +
		"(random); a loop over 4096 chunks, none of them taken before, or with none, a tenth or all live",
	absent: "The arena experiment can't free one object. C and hand-written Go neither zero nor check. The checked " +
		"pool checks each put.",
	loops: []loop{
		{name: "C pool 64 LIFO", unit: "get+put", units: chunkCount, enter: func() []contestant {
			return enter64(false)
		}},
		{name: "C pool 64 random", unit: "get+put", units: chunkCount, enter: func() []contestant {
			return enter64(true)
		}},
		{name: "C pool 256 LIFO", unit: "get+put", units: chunkCount, enter: func() []contestant {
			return enter256(false)
		}},
		{name: "C pool 256 random", unit: "get+put", units: chunkCount, enter: func() []contestant {
			return enter256(true)
		}},
		{name: "C all, none taken", unit: "thousand chunks", units: perLoop, enter: func() []contestant {
			return enterAll(0, noneLive)
		}},
		{name: "C all, none live", unit: "thousand chunks", units: perLoop, enter: func() []contestant {
			return enterAll(loopCount, noneLive)
		}},
		{name: "C all, a tenth live", unit: "thousand chunks", units: perLoop, enter: func() []contestant {
			return enterAll(loopCount, tenthLive)
		}},
		{name: "C all, all live", unit: "thousand chunks", units: perLoop, enter: func() []contestant {
			return enterAll(loopCount, allLive)
		}},
	},
}

type large [32]uint64 // 256 bytes

var larges = scope.Plain[large]()

type chunk interface{ object | large }

// order is a shuffled order of puts.
var order = func() (t [chunkCount]uint32) {
	r := rand.New(rand.NewPCG(3, 4))
	for i, j := range r.Perm(len(t)) {
		t[i] = uint32(j)
	}
	return
}()

// inspectChunks returns a checksum of the second words, which were written, and of the other words
// of zeroed chunks.
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
func enter64(random bool) []contestant {
	zeroed, raw := lifo[object], lifoUnzeroed[object]
	if random {
		zeroed, raw = shuffled[object], shuffledUnzeroed[object]
	}
	list := []contestant{poolC(64, random), poolByHand(64, random), poolChecked[object](random, true),
		poolUpfront(library, objects, zeroed), poolUpfront(unzeroed, objects, raw)}
	return append(list, poolPeers(random)...)
}

//go:noinline
func enter256(random bool) []contestant {
	raw := lifoUnzeroed[large]
	if random {
		raw = shuffledUnzeroed[large]
	}
	return []contestant{poolByHand(256, random), poolChecked[large](random, false),
		poolUpfront(unzeroed, larges, raw)}
}

//go:noinline
func poolC(size int, random bool) contestant {
	p, out := cfloor.NewPool(size, chunkCount), cfloor.List(chunkCount)
	do := func() { p.Random(out, order[:]) }
	if !random {
		out = out[:lifoDepth]
		do = func() { p.LIFO(out, chunkCount) }
	}
	return again(floor, do, func() uint64 { return inspectChunks(out, size/8, false) }, nil)
}

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

// poolChecked is poolByHand with a pool whose Put checks.
//
//go:noinline
func poolChecked[T chunk](random, zeroes bool) contestant {
	p, keep := bump.NewChecked[T](chunkCount, zeroes), new([chunkCount]*T)
	if random {
		return contestant{who: checkedByHand, run: func(n int) uint64 {
			for range n {
				for i := range keep {
					x := p.Get()
					(*x)[1] = uint64(i)
					keep[i] = x
				}
				for _, j := range order {
					p.Put(keep[j])
				}
			}
			return lookChunks(keep[:], false)
		}}
	}
	return contestant{who: checkedByHand, run: func(n int) uint64 {
		var held [lifoDepth]*T
		for range n {
			for r := 0; r < chunkCount; r += lifoDepth {
				for i := range lifoDepth {
					x := p.Get()
					(*x)[1] = uint64(i)
					held[i] = x
				}
				for i := lifoDepth - 1; i >= 0; i-- {
					p.Put(held[i])
				}
			}
		}
		return lookChunks(held[:], false)
	}}
}

// poolUpfront gets and puts in a pool; keep holds the chunks.
//
//go:noinline
func poolUpfront[T chunk](who string, maker scope.Maker[T],
	do func(pool scope.Pool[T], keep *[chunkCount]*T, n int) uint64) contestant {
	b, end := scratches(1, chunkCount*512)
	pool, keep := maker.Pool(b.Scratch(0, 0).Open("pools"), chunkCount), new([chunkCount]*T)
	return contestant{who: who, end: end, run: func(n int) uint64 { return do(pool, keep, n) }}
}

func lookChunks[T chunk](list []*T, zeroed bool) uint64 {
	return inspectChunks(pointers(list), int(unsafe.Sizeof(*new(T))/8), zeroed)
}

func lifo[T chunk](pool scope.Pool[T], _ *[chunkCount]*T, n int) uint64 {
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
	for i := range lifoDepth { // once more, for the inspection
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

func lifoUnzeroed[T chunk](pool scope.Pool[T], _ *[chunkCount]*T, n int) uint64 {
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

// poolPeers is work C with the other libraries, which zero.
//
//go:noinline
func poolPeers(random bool) []contestant {
	var heap memory.Allocator
	shared := objectsInPool()
	return []contestant{
		poolFrom(modernc, random, func() *object {
			b, _ := heap.Calloc(64)
			return (*object)(unsafe.Pointer(unsafe.SliceData(b)))
		}, func(p *object) { _ = heap.UnsafeFree(unsafe.Pointer(p)) }).ending(func() { _ = heap.Close() }),
		poolFrom(goHeap, random, func() *object { return new(object) }, func(*object) {}),
		poolFrom(syncPool, random, func() *object {
			p := shared.Get().(*object)
			*p = object{}
			return p
		}, func(p *object) { shared.Put(p) }),
	}
}

// poolFrom calls functions through variables, which costs 1 or 2 ns a call: little compared with
// the functions.
//
//go:noinline
func poolFrom(who string, random bool, get func() *object, put func(*object)) contestant {
	list, back := make([]*object, lifoDepth), []uint32{7, 6, 5, 4, 3, 2, 1, 0}
	if random {
		list, back = make([]*object, chunkCount), order[:]
	}
	c := again(who, func() {
		for i := range list {
			list[i] = get()
			list[i][1] = uint64(i)
		}
	}, func() uint64 { return lookChunks(list, true) }, func() {
		for _, j := range back {
			put(list[j])
		}
	})
	c.units = len(list)
	return c
}

const (
	loopCount = 4096 // chunks that are looped over
	perLoop   = 4    // thousands of chunks

	handles = "upfront, with handles"
)

// slot is a chunk in careful Go, with a flag that is true if the chunk is live.
type slot struct {
	live bool
	x    object
}

// These report whether a chunk stays live, by its index.
func noneLive(int) bool    { return false }
func tenthLive(i int) bool { return i%10 == 3 }
func allLive(int) bool     { return true }

// enterAll sums up the values of the live chunks. It takes some chunks first, and then puts those
// that don't live.
//
//go:noinline
func enterAll(taken int, lives func(i int) bool) []contestant {
	slab := make([]slot, loopCount)
	b, end := scratches(1, 4*loopCount*uint64(unsafe.Sizeof(object{})))
	s := b.Scratch(0, 0).Open("pools")
	pool, named := objects.Pool(s, loopCount), objects.HandlePool(s, loopCount)
	type both struct {
		x, named *object
		handle   arena.Handle[object]
	}
	list := make([]both, taken)
	for i := range list {
		list[i].x = pool.Get()
		list[i].named, list[i].handle = named.Get()
		slab[i].live = lives(i)
		slab[i].x[1], list[i].x[1], list[i].named[1] = uint64(i), uint64(i), uint64(i)
	}
	for i, l := range list {
		if !lives(i) {
			pool.Put(l.x)
			named.Put(l.handle)
		}
	}
	return []contestant{
		allOf(byHand, func() (sum uint64) {
			for i := range slab {
				if x := &slab[i]; x.live {
					sum += x.x[1]
				}
			}
			return sum
		}),
		allOf(library, func() (sum uint64) {
			for _, x := range pool.All() {
				sum += x[1]
			}
			return sum
		}).ending(end),
		allOf(handles, func() (sum uint64) {
			for _, x := range named.All() {
				sum += x[1]
			}
			return sum
		}),
	}
}

//go:noinline
func allOf(who string, sum func() uint64) contestant {
	return contestant{who: who, run: func(n int) (last uint64) {
		for range n {
			last = sum()
		}
		return last
	}}
}
