package main

import (
	"math/bits"
	"unsafe"

	"modernc.org/memory"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

const byNumber = "upfront, alignment a number"

var workB = work{
	letter: "B", title: "1000 things of 8 to 256 bytes aligned to 8 or 16, zeroed or not, then a rewind",
	absent: "sync.Pool has one size; the arena experiment can't align bytes. The Go heap zeroes, as it always does.",
	loops: []loop{
		{name: "B mixed sizes", unit: "thing", units: objectCount, enter: enterMixed},
		{name: "B mixed sizes, zeroed", unit: "thing", units: objectCount, enter: enterMixedZeroed},
	},
}

// mixedC is the table for C: the size, and from bit 16 up the alignment.
var mixedC = func() (t [objectCount]uint32) {
	for i, m := range mixed {
		t[i] = uint32(m.size) | uint32(m.align)<<16
	}
	return
}()

func alignOf(align uintptr) scope.Align { return scope.Align(bits.TrailingZeros(uint(align))) }

var mixedTyped = func() (t [objectCount]struct {
	size  uint64
	align scope.Align
}) {
	for i, m := range mixed {
		t[i].size, t[i].align = uint64(m.size), alignOf(m.align)
	}
	return
}()

// inspectMixed sums up the first bytes of the things, those that lie wrong, and, if they are to be
// zero, the others.
func inspectMixed(list []unsafe.Pointer, zeroed bool) (sum uint64) {
	for i, m := range mixed {
		b := unsafe.Slice((*byte)(list[i]), m.size)
		sum = sum*31 + uint64(b[0]) + uint64(uintptr(list[i])&(m.align-1))<<32
		if zeroed {
			for k := range b[1:] {
				sum += uint64(b[1+k])
				b[1+k] = dirt
			}
		}
	}
	return sum
}

//go:noinline
func enterMixed() []contestant {
	var heap memory.Allocator
	return []contestant{
		mixedByHand(), mixedUpfront(), mixedUpfrontByNumber(),
		mixedFrom(goHeap, false, func(size int) []byte { return make([]byte, size) }, nil, nil),
		mixedFrom(modernc, false, func(size int) []byte {
			b, _ := heap.Malloc(size)
			return b
		}, func(b []byte) { _ = heap.Free(b) }, func() { _ = heap.Close() }),
	}
}

//go:noinline
func enterMixedZeroed() []contestant {
	a, out := cfloor.NewArena(budget.MiB), listInC(objectCount)
	return []contestant{
		{who: floor, run: func(n int) uint64 {
			for range n {
				a.Mixed(unsafe.SliceData(out), mixedC[:])
			}
			return inspectMixed(out, true)
		}},
		mixedByHandZeroed(), mixedUpfrontZeroed(),
		mixedFrom(goHeap, true, func(size int) []byte { return make([]byte, size) }, nil, nil),
	}
}

//go:noinline
func mixedByHand() contestant {
	a := bump.NewGo(budget.MiB)
	return contestant{who: byHand, run: func(n int) uint64 {
		for range n {
			for i, m := range mixed {
				p := a.AllocRaw(m.size, m.align)
				*(*byte)(p) = byte(i)
				keptRaw[i] = p
			}
			a.Reset()
		}
		return inspectMixed(keptRaw[:], false)
	}}
}

//go:noinline
func mixedByHandZeroed() contestant {
	a := bump.NewGo(budget.MiB)
	return contestant{who: byHand, run: func(n int) uint64 {
		for range n {
			for i, m := range mixed {
				p := a.Alloc(m.size, m.align)
				*(*byte)(p) = byte(i)
				keptRaw[i] = p
			}
			a.Reset()
		}
		return inspectMixed(keptRaw[:], true)
	}}
}

// mixedIn has fill fill a scope over and over.
//
//go:noinline
func mixedIn(who string, zeroed bool, fill func(s scope.Scope)) contestant {
	b, end := scratches(1, budget.MiB)
	scratch := b.Scratch(0, 0)
	return contestant{who: who, end: end, run: func(n int) (sum uint64) {
		for round := range n {
			s := scratch.Open("mixed")
			fill(s)
			if round == n-1 {
				sum = inspectMixed(keptRaw[:], zeroed)
			}
			_ = s.Close()
		}
		return sum
	}}
}

//go:noinline
func mixedUpfront() contestant {
	return mixedIn(library, false, func(s scope.Scope) {
		for i, m := range mixedTyped {
			p := s.AllocUnzeroedAs(uint64(m.size), m.align)
			*(*byte)(p) = byte(i)
			keptRaw[i] = p
		}
	})
}

//go:noinline
func mixedUpfrontByNumber() contestant {
	return mixedIn(byNumber, false, func(s scope.Scope) {
		for i, m := range mixed {
			p := s.AllocUnzeroed(uint64(m.size), uint64(m.align))
			*(*byte)(p) = byte(i)
			keptRaw[i] = p
		}
	})
}

// mixedUpfrontZeroed zeroes itself: Alloc doesn't.
//
//go:noinline
func mixedUpfrontZeroed() contestant {
	return mixedIn(library, true, func(s scope.Scope) {
		for i, m := range mixedTyped {
			p := s.AllocUnzeroedAs(uint64(m.size), m.align)
			clear(unsafe.Slice((*byte)(p), m.size))
			*(*byte)(p) = byte(i)
			keptRaw[i] = p
		}
	})
}

// mixedFrom rounds sizes up to their alignment: sizes are all that these allocators are told.
//
//go:noinline
func mixedFrom(who string, zeroed bool, get func(size int) []byte, put func([]byte), end func()) contestant {
	keep := make([][]byte, objectCount)
	return contestant{who: who, end: end, run: func(n int) (sum uint64) {
		for round := range n {
			for i, m := range mixed {
				keep[i] = get(int((m.size + m.align - 1) &^ (m.align - 1)))
				p := unsafe.Pointer(unsafe.SliceData(keep[i]))
				*(*byte)(p) = byte(i)
				keptRaw[i] = p
			}
			if round == n-1 {
				sum = inspectMixed(keptRaw[:], zeroed)
			}
			for i := range keep {
				if put != nil {
					put(keep[i])
				}
			}
		}
		return sum
	}}
}
