package main

// #include <malloc.h>
// #include <stdint.h>
// #include <stdio.h>
// #include <stdlib.h>
// #include <string.h>
//
// static void *c_get(uint64_t size) { return malloc(size); }
// static void c_put(void *p) { free(p); }
//
// // What glibc has from the system, and what of it is handed out, in bytes.
// static uint64_t c_has(void) { struct mallinfo2 m = mallinfo2(); return m.arena + m.hblkhd; }
// static uint64_t c_top(void) { struct mallinfo2 m = mallinfo2(); return m.keepcost; }
//
// // The largest free block in its lists: malloc_info tells sizes as to="n".
// static uint64_t c_largest(void) {
//     char *text = NULL, *at;
//     size_t length = 0;
//     uint64_t largest = 0;
//     FILE *f = open_memstream(&text, &length);
//     malloc_info(0, f);
//     fclose(f);
//     for (at = text; (at = strstr(at, " to=\"")) != NULL; at++) {
//         uint64_t to = strtoull(at + 5, NULL, 10);
//         if (to > largest)
//             largest = to;
//     }
//     free(text);
//     return largest;
// }
import "C"

import (
	"math/rand/v2"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

const ownHeap = "upfront, arena.Heap"

var workL = work{
	letter: "L", title: "20 levels of things of 16 to 4096 bytes that live for the program, for their level or for a moment",
	absent: "It is about what lies between things; sync.Pool and mcache are the Go heap, z and the arena experiment give nothing back " +
		"alone. Of the Go heap's free bytes nobody tells which hang together; a scope's are one block.",
	other: func(h *harness) ([]series, error) {
		return inChildren("L", 1, []string{library, ownHeap, goHeap, glibc}, []figure{
			{"wasted of what is held, level full", "%"}, {"wasted of what is held, level gone", "%"},
			{"largest free block, level gone", "% of free"},
		})
	},
}

// holder is memory that things of three lifetimes lie in. held is what it holds from the system, largest its largest free block; -1
// where it can't be told.
type holder struct {
	forProgram, forLevel, forMoment func(size int)
	endMoment, endLevel             func()
	held, largest                   func() float64
}

const (
	levelsL = 20
	thingsL = 20_000 // of a level
)

// childL plays the levels: of 100 things 1 lives for the program, 59 for their level, 40 until 16 of them are.
func childL(who string) map[string]float64 {
	runtime.LockOSThread() // glibc has an arena for each thread
	h := map[string]func() holder{library: holdScopes, ownHeap: holdHeap, goHeap: holdGo, glibc: holdMalloc}[who]()
	r, program, level := rand.New(rand.NewPCG(20, 16)), 0, 0
	figures := map[string]float64{}
	waste := func(asked int) float64 { return 100 * (1 - float64(asked)/h.held()) }
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
		figures["wasted of what is held, level full"] = waste(program + level)
		h.endLevel()
	}
	figures["wasted of what is held, level gone"] = waste(program)
	if largest := h.largest(); largest >= 0 {
		figures["largest free block, level gone"] = 100 * largest / (h.held() - float64(program))
	}
	figures["sum"] = float64(program + level)
	return figures
}

const sizeL = 48 * budget.MiB

// holdScopes is a budget of three arenas: what they hold is what they use, and what is free is one block each.
func holdScopes() holder {
	b, err := budget.Open(budget.Plan{Name: "bench", Regions: []budget.Region{{Name: "init", Size: budget.KiB}},
		Scratch: budget.Scratch{Workers: 2, Size: sizeL}})
	if err != nil {
		panic(err)
	}
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
		held:      used, largest: func() float64 { return -1 },
	}
}

// holdEach frees one by one: what a heap of any kind is told.
func holdEach(get func(int) unsafe.Pointer, put func(unsafe.Pointer), held, largest func() float64) holder {
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
		held: held, largest: largest}
}

// holdHeap holds up to where its last block ends: what lies beyond was never touched.
func holdHeap() holder {
	block := arena.NewBlock(sizeL, 64)
	h, err := arena.NewHeap(block)
	if err != nil {
		panic(err)
	}
	end := uintptr(0)
	return holdEach(func(size int) unsafe.Pointer {
		p := h.Alloc(uint64(size), 16)
		end = max(end, uintptr(p)+uintptr(size)-uintptr(unsafe.Pointer(&block[0])))
		return p
	}, func(p unsafe.Pointer) {
		if err := h.Free(p); err != nil {
			panic(err)
		}
	}, func() float64 { return float64(end) }, func() float64 { return float64(h.LargestFree()) - float64(sizeL-end) })
}

func holdMalloc() holder {
	start := float64(C.c_has()) // the program's own
	return holdEach(func(size int) unsafe.Pointer { return C.c_get(C.uint64_t(size)) }, func(p unsafe.Pointer) { C.c_put(p) },
		func() float64 { return float64(C.c_has()) - start },
		func() float64 { return max(float64(C.c_largest()), float64(C.c_top())) })
}

// holdGo holds the spans that are in use after a collection; which of what is free hangs together, the runtime doesn't tell.
func holdGo() holder {
	inUse := func() float64 {
		runtime.GC()
		runtime.ReadMemStats(&after)
		return float64(after.HeapInuse)
	}
	start := inUse()
	return holdEach(func(size int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]byte, size))) },
		func(unsafe.Pointer) {}, func() float64 { return inUse() - start }, func() float64 { return -1 })
}
