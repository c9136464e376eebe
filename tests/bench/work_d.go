package main

// #include "upfront.h"
//
// static uint64_t finalized;
// static void finalize(void *object) { finalized += *(uint64_t *)object; }
// static void (*volatile finalizer)(void *) = finalize; // who runs it doesn't know it
//
// // Scopes in scopes, each with 8 zeroed objects, and 2 more with a finalizer.
// static void nest(upfront_row *r, uint64_t depth) {
//     upfront_linear *s = upfront_row_slot(r, r->open);
//     uint64_t tag = upfront_row_open(r), i;
//     upfront_node node;
//     for (i = 0; i < 10; i++) {
//         uint64_t *p = (uint64_t *)upfront_linear_bump(s, tag + (i < 8 ? 64 : 80), i < 8 ? 64 : 80, 7);
//         if (p == NULL)
//             return;
//         memset(p, 0, 64);
//         p[0] = depth + i;
//         if (i >= 8)
//             upfront_row_link(s, (upfront_node *)(p + 8), 5, upfront_offset(s, p));
//     }
//     if (depth > 1)
//         nest(r, depth - 1);
//     upfront_row_freeze(s);
//     while (upfront_row_unlink(s, &node))
//         finalizer(upfront_at(s, node.what));
//     upfront_row_close(r);
// }
//
// static uint64_t floor_nest(void *row, uint64_t n, uint64_t depth) {
//     finalized = 0;
//     while (n-- != 0)
//         nest((upfront_row *)row, depth);
//     return finalized;
// }
//
// #cgo noescape floor_nest
// #cgo nocallback floor_nest
import "C"

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

const depthD = 4

var workD = work{
	letter: "D", title: "four nested scopes, each with 8 zeroed objects, and 2 more with a finalizer",
	absent: "The others have no finalizers. One empty cgo call for each scope is there for its price.",
	loops: []loop{{name: "D scopes", unit: "scope", units: depthD, enter: func() []contestant {
		return []contestant{nestC(), nestUpfront(), nestGoHeap(), {who: oneCall, run: func(n int) uint64 {
			for range n * depthD {
				nothing()
			}
			return expectedD(n)
		}}}
	}}},
}

const oneCall = "one empty cgo call"

// expectedD is what the finalizers of n times sum up to: depth + 8 and depth + 9 of each scope.
func expectedD(n int) (sum uint64) {
	for depth := range uint64(depthD) {
		sum += 2*(depth+1) + 8 + 9
	}
	return sum * uint64(n)
}

var (
	finalized uint64
	closing   = scope.Object(finalize)
)

func finalize(p *object) error {
	finalized += p[0]
	return nil
}

func nestC() contestant {
	r := rowInC(budget.MiB)
	return contestant{who: floor, run: func(n int) uint64 { return uint64(C.floor_nest(r, C.uint64_t(n), depthD)) }}
}

func nestUpfront() contestant {
	b, end := pads(1, budget.MiB)
	pad := b.Pad(0, 0)
	return contestant{who: library, end: end, run: func(n int) uint64 {
		finalized = 0
		for range n {
			nest(pad, depthD)
		}
		return finalized
	}}
}

func nest(pad scope.Pad, depth uint64) {
	s := pad.Open("nest")
	for i := range uint64(8) {
		objects.New(s)[0] = depth + i
	}
	closing.New(s)[0] = depth + 8
	closing.New(s)[0] = depth + 9
	if depth > 1 {
		nest(pad, depth-1)
	}
	_ = s.Close()
}

// nestGoHeap is what a Go program does: new, and defer.
func nestGoHeap() contestant {
	var keep [8]*object
	var of func(depth uint64)
	of = func(depth uint64) {
		for i := range uint64(8) {
			keep[i] = new(object)
			keep[i][0] = depth + i
		}
		for i := range uint64(2) {
			p := new(object)
			p[0] = depth + 8 + i
			defer finalizeHeap(p)
		}
		if depth > 1 {
			of(depth - 1)
		}
	}
	return contestant{who: goHeap, run: func(n int) uint64 {
		finalized = 0
		for range n {
			of(depthD)
		}
		return finalized
	}}
}

var finalizeHeap = func(p *object) { _ = finalize(p) } // through a variable: else p would live on the stack
