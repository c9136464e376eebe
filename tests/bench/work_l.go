package main

import (
	"math/rand/v2"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

var workL = work{
	letter: "L", title: "20 levels of things of 16 to 4096 bytes that live for the program, for their level or for a moment",
	absent: "It is about what lies between things; sync.Pool is the Go heap, the arena experiment gives nothing back alone.",
	parts: []part{{name: "L", measure: func(h *harness) ([]series, error) {
		return inChildren("L", 1, []string{library, goHeap, glibc}, []figure{{"wasted of what is held, level full", "%"}})
	}}},
}

// holder is memory that things of three lifetimes lie in. held is what it holds from the system.
type holder struct {
	lives [3]lifetime
	held  func() float64
}

// lifetime is what things begin in, one by one, and end in together.
type lifetime struct {
	begin func(size int)
	end   func()
}

const (
	forProgram = iota
	forLevel
	forMoment
)

const (
	levelsL = 20
	thingsL = 20_000 // of a level
)

// childL plays the levels: of 100 things 1 lives for the program, 59 for their level, 40 until 16 of them are.
func childL(who string) map[string]float64 {
	runtime.LockOSThread() // glibc has an arena for each thread
	h := map[string]func() holder{library: holdScopes, goHeap: holdGo, glibc: holdMalloc}[who]()
	r, bytes := rand.New(rand.NewPCG(20, 16)), [3]int{}
	figures, wanted := map[string]float64{}, 0.0
	for range levelsL {
		bytes[forLevel] = 0
		moments := 0
		for range thingsL {
			size := 16 << r.Uint32N(8)
			size += int(r.Uint32N(uint32(size)))
			life := forMoment
			switch kind := r.Uint32N(100); {
			case kind == 0:
				life = forProgram
			case kind < 60:
				life = forLevel
			}
			h.lives[life].begin(size)
			bytes[life] += size
			if life == forMoment {
				if moments++; moments%16 == 0 {
					h.lives[forMoment].end()
				}
			}
		}
		h.lives[forMoment].end()
		wanted = float64(bytes[forProgram] + bytes[forLevel])
		figures["wasted of what is held, level full"] = 100 * (1 - wanted/h.held())
		h.lives[forLevel].end()
	}
	figures["sum"] = wanted
	return figures
}

const sizeL = 48 * budget.MiB

// holdScopes is a budget of three arenas: what they hold is what they use, and what is free is one block each.
func holdScopes() holder {
	b, _ := open(budget.Plan{Scratch: budget.ScratchPlan{Workers: 2, Size: sizeL}})
	h := holder{}
	for i := range h.lives {
		scratch := b.Scratch(i/2, i%2)
		s := scratch.Open("life")
		h.lives[i] = lifetime{
			begin: func(size int) { *(*byte)(s.AllocUnzeroed(uint64(size), 8)) = 1 },
			end:   func() { _ = s.Close(); s = scratch.Open("life") },
		}
	}
	h.held = func() (sum float64) {
		for i := range h.lives {
			sum += float64(b.Scratch(i/2, i%2).Stats().Used)
		}
		return sum
	}
	return h
}

// holdEach frees one by one: what a heap of any kind is told.
func holdEach(get func(int) unsafe.Pointer, put func(unsafe.Pointer), held func() float64) holder {
	h := holder{held: held}
	for i := range h.lives {
		var list []unsafe.Pointer
		h.lives[i] = lifetime{
			begin: func(size int) {
				p := get(size)
				*(*byte)(p) = 1
				list = append(list, p)
			},
			end: func() {
				for _, p := range list {
					put(p)
				}
				clear(list)
				list = list[:0]
			},
		}
	}
	return h
}

func holdMalloc() holder {
	start := float64(cfloor.HeapSize()) // the program's own
	return holdEach(cfloor.Malloc, cfloor.Free, func() float64 { return float64(cfloor.HeapSize()) - start })
}

// holdGo holds the spans that are in use after a collection.
func holdGo() holder {
	inUse := func() float64 {
		runtime.GC()
		runtime.ReadMemStats(&after)
		return float64(after.HeapInuse)
	}
	start := inUse()
	return holdEach(func(size int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]byte, size))) },
		func(unsafe.Pointer) {}, func() float64 { return inUse() - start })
}
