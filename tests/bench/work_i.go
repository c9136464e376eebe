package main

// #include "upfront.h"
//
// static uint64_t deferred;
// static void count_one(void *arg) { deferred += *(uint64_t *)arg; }
//
// // A scope with n objects that have a finalizer.
// static uint64_t floor_defer(void *row, uint64_t n) {
//     upfront_scope s = upfront_scope_open((upfront_row *)row);
//     while (n-- != 0) {
//         uint64_t *p = (uint64_t *)upfront_scope_alloc(s, 64, 8);
//         if (p == NULL)
//             return 0;
//         *p = 1;
//         if (upfront_scope_defer(s, count_one, p) != UPFRONT_OK)
//             return 0;
//     }
//     return 1;
// }
//
// // Closes the topmost scope: the finalizers run, then the cursor moves.
// static uint64_t floor_close(void *row) {
//     upfront_row *r = (upfront_row *)row;
//     upfront_linear *slot = upfront_row_slot(r, r->open - 1);
//     upfront_scope s = {slot, upfront_tag(slot)};
//     deferred = 0;
//     return upfront_scope_close(s) == UPFRONT_OK ? deferred : ~UINT64_C(0);
// }
import "C"

import (
	"context"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var workI = work{
	letter: "I", title: "rewind of 1 GiB that was written to, and of 1 million objects with a finalizer",
	absent: "What the Go heap has for it is to forget the memory and collect; for finalizers, a list of what to call. The others have neither.",
	loops: []loop{
		{name: "I rewind 1 GiB", unit: "rewind", units: 1, once: true, enter: enterRewind},
		{name: "I rewind 1 M finalizers", unit: "finalizer", units: million, once: true, enter: enterFinalizers},
	},
}

const (
	million   = 1_000_000
	blockSize = 64 * budget.KiB
	blocks    = budget.GiB / blockSize
)

// touch writes to each page.
func touch(b []byte) {
	for at := 0; at < len(b); at += 4096 {
		b[at] = 1
	}
}

const ofRegion = "upfront, Region.Rewind"

// closing scope of a pad that load fills.
func closingScope(size uint64, load func(s scope.Scope), sum func() uint64) contestant {
	b, end := pads(1, size)
	var s scope.Scope
	return contestant{who: library, end: end, before: func() {
		s = b.Pad(0, 0).Open("rewound")
		load(s)
		finalized = 0
	}, run: func(int) uint64 {
		if err := s.Close(); err != nil {
			panic(err)
		}
		return sum()
	}}
}

// rewinding a region that load fills.
func rewinding(size uint64, load func(s scope.Scope)) contestant {
	b, err := budget.Open(budget.Plan{Name: "bench", Regions: []budget.Region{{Name: "level", Size: size}}})
	if err != nil {
		panic(err)
	}
	r, ctx := b.Region("level"), context.Background()
	return contestant{who: ofRegion, end: func() { _ = b.Close() }, before: func() {
		_, err := budget.Load(ctx, r, func(s scope.Scope) (*struct{}, error) {
			load(s)
			return &struct{}{}, nil
		})
		if err != nil {
			panic(err)
		}
	}, run: func(int) uint64 {
		if err := r.Rewind(ctx); err != nil {
			panic(err)
		}
		return 0
	}}
}

func enterRewind() []contestant {
	r := rowInC(budget.GiB)
	var keep [blocks][]byte
	fill := func(s scope.Scope) {
		for range blocks {
			touch(s.Block(blockSize))
		}
	}
	return []contestant{
		{who: floor, before: func() {
			s := C.upfront_scope_open((*C.upfront_row)(r))
			for range blocks {
				touch(unsafe.Slice((*byte)(C.upfront_scope_alloc(s, blockSize, 64)), blockSize))
			}
		}, run: func(int) uint64 { return uint64(C.floor_close(r)) }},
		closingScope(budget.GiB, fill, func() uint64 { return 0 }), rewinding(budget.GiB, fill),
		{who: goHeap, before: func() {
			for i := range keep {
				keep[i] = make([]byte, blockSize)
				touch(keep[i])
			}
		}, run: func(int) uint64 {
			clear(keep[:])
			collect()
			return 0
		}},
	}
}

func enterFinalizers() []contestant {
	r := rowInC(128 * budget.MiB)
	var list []func() error
	return []contestant{
		{who: floor, before: func() { C.floor_defer(r, million) }, run: func(int) uint64 { return uint64(C.floor_close(r)) }},
		closingScope(128*budget.MiB, func(s scope.Scope) {
			for range million {
				closing.New(s)[0] = 1
			}
		}, func() uint64 { return finalized }),
		{who: goHeap, before: func() {
			list = list[:0]
			for range million {
				p := new(object)
				p[0] = 1
				list = append(list, func() error { return finalize(p) })
			}
		}, run: func(int) uint64 {
			finalized = 0
			for i := len(list) - 1; i >= 0; i-- {
				_ = list[i]()
			}
			clear(list)
			return finalized
		}},
	}
}
