package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

var workI = work{
	letter: "I", title: "rewind of 1 GiB that was written to, the end of 1 million objects of 8 bytes that have " +
		"a finalizer, and the load of a region among 64 siblings",
	absent: "The Go heap drops the memory and collects; for finalizers, it has a list of functions to call. " +
		"The others have neither.",
	loops: []loop{
		{name: "I rewind 1 GiB", unit: "rewind", units: 1, once: true, few: true, enter: enterRewind},
		{name: "I rewind 1 M finalizers", unit: "finalizer", units: million, once: true, enter: enterFinalizers},
		{name: "I load", unit: "load", units: 1, enter: enterSiblings},
	},
}

const sizeI = 64 * budget.MiB // room for the objects with a finalizer

func touch(b []byte) {
	for at := 0; at < len(b); at += 4096 {
		b[at] = 1
	}
}

const (
	ofRegion  = "upfront, Region.Rewind"
	oneRegion = "upfront, one region"
)

//
//go:noinline
func closingScope(size uint64, load func(s scope.Scope)) contestant {
	b, end := scratches(1, size)
	var s scope.Scope
	return contestant{who: library, end: end, before: func() {
		s = b.Scratch(0, 0).Open("rewound")
		load(s)
		cleaned = 0
	}, run: func(int) uint64 {
		if err := s.Close(); err != nil {
			panic(err)
		}
		return cleaned
	}}
}

//
//go:noinline
func rewinding(size uint64, load func(s scope.Scope)) contestant {
	b, end := open(budget.Plan{Regions: []budget.RegionPlan{{Name: "level", Size: size}}})
	r, ctx := b.Region("level"), context.Background()
	return contestant{who: ofRegion, end: end, before: func() {
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

//go:noinline
func enterRewind() []contestant {
	var kept []byte
	fill := func(s scope.Scope) { touch(s.BytesUnzeroed(budget.GiB, 64)) }
	return []contestant{
		closingScope(budget.GiB, fill), rewinding(budget.GiB, fill),
		{who: goHeap, before: func() {
			kept = make([]byte, budget.GiB)
			touch(kept)
		}, run: func(int) uint64 {
			cleaned, kept = 0, nil
			runtime.GC()
			return cleaned
		}},
	}
}

//go:noinline
func enterFinalizers() []contestant {
	return []contestant{finalizersC(), finalizersByHand(),
		closingScope(sizeI, func(s scope.Scope) {
			for range million {
				*finalized.New(s) = 1
			}
		}),
		finalizersGoHeap(),
	}
}

// siblingsI is the most regions that a plan has.
const siblingsI = 64

//go:noinline
func enterSiblings() []contestant {
	return []contestant{loading(library, siblingsI), loading(oneRegion, 1)}
}

// loading loads a region with an object, in a plan of so many regions that stand on none.
//
//go:noinline
func loading(who string, regions int) contestant {
	plan := budget.Plan{Pages: budget.Pages{Prefault: budget.Off}}
	for i := range regions {
		plan.Regions = append(plan.Regions, budget.RegionPlan{Name: fmt.Sprint("r", i), Size: budget.KiB,
			On: budget.Root})
	}
	b, end := open(plan)
	r, ctx := b.Region(fmt.Sprint("r", regions/2)), context.Background()
	return contestant{who: who, end: end, run: func(n int) uint64 {
		for range n {
			loaded, err := budget.Load(ctx, r, func(s scope.Scope) (*uint64, error) { return finalized.New(s), nil })
			if err != nil || loaded.Get() == nil {
				panic(err)
			}
		}
		return 0
	}}
}

//go:noinline
func finalizersC() contestant {
	s := cfloor.NewScopes(sizeI)
	var m cfloor.Mark
	return contestant{who: floor, before: func() {
		m = s.Open()
		for range million {
			s.DeferC(1)
		}
	}, run: func(int) uint64 {
		before := cfloor.Count()
		s.Close(m)
		return cfloor.Count() - before
	}}
}

// node is the header of an object with a finalizer in hand-written Go: an intrusive list, newest
// first.
type node struct {
	next     *node
	finalize func(*node) error
}

type counted struct {
	node
	value uint64
}

func finalizeByHand(n *node) error {
	cleaned += (*counted)(unsafe.Pointer(n)).value
	return nil
}

//go:noinline
func finalizersByHand() contestant {
	a := bump.NewGo(sizeI)
	var newest *node
	return contestant{who: byHand, before: func() {
		for range million {
			c := bump.New[counted](a)
			c.next, c.finalize, c.value = newest, finalizeByHand, 1
			newest = &c.node
		}
	}, run: func(int) uint64 {
		cleaned = 0
		var failed []error
		for newest != nil {
			n := newest
			newest = n.next
			if err := n.finalize(n); err != nil {
				failed = append(failed, err)
			}
		}
		a.Reset()
		if err := errors.Join(failed...); err != nil {
			panic(err)
		}
		return cleaned
	}}
}

//go:noinline
func finalizersGoHeap() contestant {
	var list []func() error
	return contestant{who: goHeap, before: func() {
		list = list[:0]
		for range million {
			p := new(uint64)
			*p = 1
			list = append(list, func() error {
				cleaned += *p
				return nil
			})
		}
	}, run: func(int) uint64 {
		cleaned = 0
		for i := len(list) - 1; i >= 0; i-- {
			_ = list[i]()
		}
		clear(list)
		return cleaned
	}}
}
