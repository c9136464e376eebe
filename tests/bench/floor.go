package main

// #cgo CFLAGS: -O2 -I${SRCDIR}/../../arena_c
// #include "upfront.h"
//
// // What a time leaves behind is a chain of objects: word 0 is a number, word 1 the one before, the others are zero. look sums it up,
// // and fills the others, so that who takes the same bytes next and doesn't zero them is seen.
// static uint64_t look(uint64_t newest, uint64_t words) {
//     uint64_t sum = 0, i;
//     while (newest != 0) {
//         uint64_t *p = (uint64_t *)(uintptr_t)newest;
//         sum = sum * 31 + p[0] + (newest & 7);
//         for (i = 2; i < words; i++) {
//             sum += p[i];
//             p[i] = 0xDBDBDBDBDBDBDBDB;
//         }
//         newest = p[1];
//     }
//     return sum;
// }
//
// static void nothing(void) {}
// #cgo noescape nothing
// #cgo nocallback nothing
import "C"

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type (
	object [objectWords]uint64
	large  [largeWords]uint64
)

const (
	objectWords = 8
	objectSize  = 8 * objectWords
	largeWords  = 32
	objectCount = 1000 // of a round
)

var (
	objects = scope.Plain[object]()
	larges  = scope.Plain[large]()
)

func look(newest uintptr, words int) uint64 {
	return uint64(C.look(C.uint64_t(newest), C.uint64_t(words)))
}

// rowInC is an arena of the map for a loop in C: what a pad is for Go. It lies on the Go heap, which doesn't move it.
func rowInC(size uint64) unsafe.Pointer {
	plan := []arena_c.Arena{{Kind: arena_c.KindPad, Size: size}}
	total := arena_c.MapSize(plan, 64, 4, 0)
	block := arena.NewBlock(int(total), arena_c.Edge)
	return unsafe.Pointer(arena_c.MapInit(unsafe.Pointer(&block[0]), total, plan, 64, 4, 0).Row(0))
}

// pads are those of a budget of their own.
func pads(workers int, size uint64) (*budget.Budget, func()) {
	b, err := budget.Open(budget.Plan{Name: "bench", Regions: []budget.Region{{Name: "level", Size: budget.KiB}},
		Pads: budget.Pads{Workers: workers, Size: size}, Pages: budget.Pages{Prefault: budget.Off}})
	if err != nil {
		panic(err)
	}
	return b, func() { _ = b.Close() }
}

func nothing() { C.nothing() }
