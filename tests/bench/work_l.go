package main

import (
	"math/rand/v2"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

var workL = work{
	letter: "L", title: "20 levels of things of 16 to 4096 bytes that live for the program, for their level or for a moment",
	absent: "It is about what lies between things; sync.Pool is the Go heap, the arena experiment gives nothing back alone.",
	other: func(h *harness) ([]series, error) {
		return inChildren("L", 1, []string{library, goHeap, glibc}, []figure{{"wasted of what is held, level full", "%"}})
	},
}

// holder is memory that things of three lifetimes lie in. held is what it holds from the system.
type holder struct {
	forProgram, forLevel, forMoment func(size int)
	endMoment, endLevel             func()
	held                            func() float64
}

const (
	levelsL = 20
	thingsL = 20_000 // of a level
)

// childL plays the levels: of 100 things 1 lives for the program, 59 for their level, 40 until 16 of them are.
func childL(who string) map[string]float64 {
	runtime.LockOSThread() // glibc has an arena for each thread
	h := map[string]func() holder{library: holdScopes, goHeap: holdGo, glibc: holdMalloc}[who]()
	r, program, level := rand.New(rand.NewPCG(20, 16)), 0, 0
	figures := map[string]float64{}
	for range levelsL {
		level = 0
		moments := 0
		for range thingsL {
			size := 16 << r.Uint32N(8)
			size += int(r.Uint32N(uint32(size)))
			switch kind := r.Uint32N(100); {
			case kind == 0:
				program += size
				h.forProgram(size)
			case kind < 60:
				level += size
				h.forLevel(size)
			default:
				h.forMoment(size)
				if moments++; moments%16 == 0 {
					h.endMoment()
				}
			}
		}
		h.endMoment()
		figures["wasted of what is held, level full"] = 100 * (1 - float64(program+level)/h.held())
		h.endLevel()
	}
	figures["sum"] = float64(program + level)
	return figures
}

const sizeL = 48 * budget.MiB

// holdScopes is a budget of three arenas: what they hold is what they use, and what is free is one block each.
func holdScopes() holder {
	b, _ := open(budget.Plan{Scratch: budget.ScratchPlan{Workers: 2, Size: sizeL}})
	program, level := b.Scratch(0, 0).Open("program"), b.Scratch(0, 1).Open("level")
	moment := b.Scratch(1, 0).Open("moment")
	write := func(s scope.Scope, size int) { *(*byte)(s.AllocUnzeroed(uint64(size), 8)) = 1 }
	used := func() (sum float64) {
		for i := range 3 {
			sum += float64(b.Scratch(i/2, i%2).Stats().Used)
		}
		return sum
	}
	return holder{
		forProgram: func(size int) { write(program, size) }, forLevel: func(size int) { write(level, size) },
		forMoment: func(size int) { write(moment, size) },
		endMoment: func() { _ = moment.Close(); moment = b.Scratch(1, 0).Open("moment") },
		endLevel:  func() { _ = level.Close(); level = b.Scratch(0, 1).Open("level") },
		held:      used,
	}
}

// holdEach frees one by one: what a heap of any kind is told.
func holdEach(get func(int) unsafe.Pointer, put func(unsafe.Pointer), held func() float64) holder {
	var program, level, moment []unsafe.Pointer
	to := func(list *[]unsafe.Pointer) func(int) {
		return func(size int) {
			p := get(size)
			*(*byte)(p) = 1
			*list = append(*list, p)
		}
	}
	end := func(list *[]unsafe.Pointer) func() {
		return func() {
			for _, p := range *list {
				put(p)
			}
			clear(*list)
			*list = (*list)[:0]
		}
	}
	return holder{forProgram: to(&program), forLevel: to(&level), forMoment: to(&moment), endMoment: end(&moment), endLevel: end(&level),
		held: held}
}

func holdMalloc() holder {
	start := float64(cfloor.Held()) // the program's own
	return holdEach(cfloor.Malloc, cfloor.Free, func() float64 { return float64(cfloor.Held()) - start })
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
