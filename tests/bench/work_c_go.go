package main

import (
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// poolsGo is work C for who is so quick that a call more would show: each has the two loops for itself.
func poolsGo[T chunk](maker scope.Maker[T], random bool) []contestant {
	b, end := pads(1, budget.MiB)
	pool := maker.Pool(b.Pad(0, 0).Open("pool"), objectCount+1)
	shared := &sync.Pool{New: func() any { return new(T) }}
	keep := make([]*T, objectCount)
	if random {
		return []contestant{
			{who: library, end: end, run: func(n int) uint64 { return shuffledUpfront(pool, keep, n) }},
			{who: goHeap, run: func(n int) uint64 { return shuffledGoHeap(keep, n) }},
			{who: syncPool, run: func(n int) uint64 { return shuffledSyncPool(shared, keep, n) }},
		}
	}
	return []contestant{
		{who: library, end: end, run: func(n int) uint64 { return lifoUpfront(pool, n) }},
		{who: goHeap, run: func(n int) uint64 { return lifoGoHeap(keep, n) }},
		{who: syncPool, run: func(n int) uint64 { return lifoSyncPool[T](shared, n) }},
	}
}

// lookChunk looks at the newest chunk and those before it.
func lookChunk[T chunk](p *T) uint64 {
	return look(uintptr(unsafe.Pointer(p)), int(unsafe.Sizeof(*p)/8))
}

func lifoUpfront[T chunk](pool scope.Pool[T], n int) uint64 {
	for range n {
		for i := range uint64(objectCount) {
			p := pool.Get()
			(*p)[0], (*p)[len(*p)-1] = i, i
			pool.Put(p)
		}
	}
	p := pool.Get()
	defer pool.Put(p)
	(*p)[0] = objectCount
	return lookChunk(p)
}

func shuffledUpfront[T chunk](pool scope.Pool[T], keep []*T, n int) (sum uint64) {
	for round := range n {
		var newest *T
		for i := range keep {
			p := pool.Get()
			(*p)[0], (*p)[1] = uint64(i), uint64(uintptr(unsafe.Pointer(newest)))
			keep[i], newest = p, p
		}
		if round == n-1 {
			sum = lookChunk(newest)
		}
		for _, k := range order {
			pool.Put(keep[k])
		}
	}
	return sum
}

func lifoGoHeap[T chunk](keep []*T, n int) uint64 {
	for range n {
		for i := range uint64(objectCount) {
			p := new(T)
			(*p)[0], (*p)[len(*p)-1] = i, i
			keep[0] = p
		}
	}
	p := new(T)
	(*p)[0] = objectCount
	return lookChunk(p)
}

func shuffledGoHeap[T chunk](keep []*T, n int) (sum uint64) {
	for round := range n {
		var newest *T
		for i := range keep {
			p := new(T)
			(*p)[0], (*p)[1] = uint64(i), uint64(uintptr(unsafe.Pointer(newest)))
			keep[i], newest = p, p
		}
		if round == n-1 {
			sum = lookChunk(newest)
		}
		for _, k := range order {
			keep[k] = nil
		}
	}
	return sum
}

func lifoSyncPool[T chunk](pool *sync.Pool, n int) uint64 {
	for range n {
		for i := range uint64(objectCount) {
			p := pool.Get().(*T)
			*p = *new(T)
			(*p)[0], (*p)[len(*p)-1] = i, i
			pool.Put(p)
		}
	}
	p := pool.Get().(*T)
	defer pool.Put(p)
	*p = *new(T)
	(*p)[0] = objectCount
	return lookChunk(p)
}

func shuffledSyncPool[T chunk](pool *sync.Pool, keep []*T, n int) (sum uint64) {
	for round := range n {
		var newest *T
		for i := range keep {
			p := pool.Get().(*T)
			*p = *new(T)
			(*p)[0], (*p)[1] = uint64(i), uint64(uintptr(unsafe.Pointer(newest)))
			keep[i], newest = p, p
		}
		if round == n-1 {
			sum = lookChunk(newest)
		}
		for _, k := range order {
			pool.Put(keep[k])
		}
	}
	return sum
}

// poolFrom costs its calls through a variable, 1 or 2 ns each, which is little beside what they do.
func poolFrom[T chunk](who string, random bool, get func() []byte, put func([]byte), end func()) contestant {
	keep := make([][]byte, objectCount)
	at := func(b []byte) *T { return (*T)(unsafe.Pointer(unsafe.SliceData(b))) }
	lifo := func(n int) uint64 {
		for range n {
			for i := range uint64(objectCount) {
				b := get()
				p := at(b)
				(*p)[0], (*p)[len(*p)-1] = i, i
				put(b)
			}
		}
		b := get()
		defer put(b)
		(*at(b))[0] = objectCount
		return lookChunk(at(b))
	}
	shuffled := func(n int) (sum uint64) {
		for round := range n {
			var newest *T
			for i := range keep {
				keep[i] = get()
				p := at(keep[i])
				(*p)[0], (*p)[1] = uint64(i), uint64(uintptr(unsafe.Pointer(newest)))
				newest = p
			}
			if round == n-1 {
				sum = lookChunk(newest)
			}
			for _, k := range order {
				put(keep[k])
			}
		}
		return sum
	}
	if random {
		return contestant{who: who, end: end, run: shuffled}
	}
	return contestant{who: who, end: end, run: lifo}
}
