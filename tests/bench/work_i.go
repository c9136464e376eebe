package main

// #include "upfront.h"
//
// static uint64_t finalized;
// static void finalize(void *object) { finalized += *(uint64_t *)object; }
// static void (*volatile finalizer)(void *) = finalize; // who runs it doesn't know it
//
// // A scope with size bytes in blocks, each of whose pages was written to, or, if count isn't 0, just taken; and count objects of 8 bytes
// // with a finalizer.
// static void floor_fill(void *row, uint64_t size, uint64_t count) {
//     upfront_scope s = upfront_scope_open((upfront_row *)row);
//     uint64_t i;
//     char *p = (char *)upfront_scope_alloc(s, size, 64);
//     for (i = 0; i < size && p != NULL && count == 0; i += 4096)
//         p[i] = 1;
//     while (count-- != 0) {
//         uint64_t *object = (uint64_t *)upfront_linear_bump(s.slot, s.tag + 24, 24, 7);
//         if (object == NULL)
//             return;
//         *object = 1;
//         upfront_row_link(s.slot, (upfront_node *)(object + 1), 5, upfront_offset(s.slot, object));
//     }
// }
//
// // Scopes of size bytes that nobody writes to: n are opened and closed.
// static void floor_again(void *row, uint64_t size, uint64_t n) {
//     while (n-- != 0) {
//         upfront_scope s = upfront_scope_open((upfront_row *)row);
//         upfront_scope_alloc(s, size, 64);
//         upfront_scope_close(s);
//     }
// }
//
// // Closes the topmost scope: the finalizers run, then the cursor moves.
// static uint64_t floor_close(void *row) {
//     upfront_row *r = (upfront_row *)row;
//     upfront_linear *s = upfront_row_slot(r, r->open - 1);
//     upfront_node node;
//     finalized = 0;
//     upfront_row_freeze(s);
//     while (upfront_row_unlink(s, &node))
//         finalizer(upfront_at(s, node.what));
//     upfront_row_close(r);
//     return finalized;
// }
import "C"

import (
	"context"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var workI = work{
	letter: "I", title: "rewind of 1 GiB that was written to, of 1 GiB just taken (for a region with its load), and of 1 GiB with " +
		"1 million objects of 8 bytes that have a finalizer",
	absent: "What the Go heap has for it is to forget the memory and collect; for finalizers, a list of what to call. " +
		"The others have neither.",
	loops: []loop{
		{name: "I rewind 1 GiB", unit: "rewind", units: 1, once: true, enter: enterRewind},
		{name: "I rewind 1 GiB, 1000 times", unit: "rewind", units: thousand, once: true, enter: enterAgain},
		{name: "I rewind 1 M finalizers", unit: "finalizer", units: million, once: true, enter: enterFinalizers},
	},
}

const (
	thousand  = 1_000
	million   = 1_000_000
	finalSize = 64 * budget.MiB // room for the objects with a finalizer
)

var small = scope.Object(func(x *uint64) error {
	finalized += *x
	return nil
})

// touch writes to each page.
func touch(b []byte) {
	for at := 0; at < len(b); at += 4096 {
		b[at] = 1
	}
}

const ofRegion = "upfront, Region.Rewind"

// closingScope closes a scope of a pad that load filled.
func closingScope(size uint64, load func(s scope.Scope)) contestant {
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
		return finalized
	}}
}

// rewinding rewinds a region that load filled.
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
	var kept []byte
	fill := func(s scope.Scope) { touch(s.Block(budget.GiB)) }
	return []contestant{
		{who: floor, before: func() { C.floor_fill(r, budget.GiB, 0) }, run: func(int) uint64 { return uint64(C.floor_close(r)) }},
		closingScope(budget.GiB, fill), rewinding(budget.GiB, fill),
		{who: goHeap, before: func() {
			kept = make([]byte, budget.GiB)
			touch(kept)
		}, run: func(int) uint64 {
			kept = nil
			collect()
			return 0
		}},
	}
}

// enterAgain is what a rewind costs when the caches hold its tables. The first of enterRewind comes after 1 GiB went through them.
func enterAgain() []contestant {
	r := rowInC(budget.GiB)
	b, end := pads(1, budget.GiB)
	region := rewinding(budget.GiB, func(s scope.Scope) { s.Block(budget.GiB) })
	rewind, load := region.run, region.before
	region.before, region.run = load, func(int) uint64 {
		rewind(1)
		for range thousand - 1 {
			load()
			rewind(1)
		}
		return 0
	}
	return []contestant{
		{who: floor, run: func(int) uint64 {
			C.floor_again(r, budget.GiB, thousand)
			return 0
		}},
		{who: library, end: end, run: func(int) uint64 {
			for range thousand {
				s := b.Pad(0, 0).Open("rewound")
				s.Block(budget.GiB)
				_ = s.Close()
			}
			return 0
		}},
		region,
	}
}

func enterFinalizers() []contestant {
	r := rowInC(budget.GiB)
	var list []func() error
	return []contestant{
		{who: floor, before: func() { C.floor_fill(r, budget.GiB-finalSize, million) },
			run: func(int) uint64 { return uint64(C.floor_close(r)) }},
		closingScope(budget.GiB, func(s scope.Scope) {
			s.Block(budget.GiB - finalSize)
			for range million {
				*small.New(s) = 1
			}
		}),
		{who: goHeap, before: func() {
			list = list[:0]
			for range million {
				p := new(uint64)
				*p = 1
				list = append(list, func() error {
					finalized += *p
					return nil
				})
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
