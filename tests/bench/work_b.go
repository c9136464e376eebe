package main

import (
	"math/rand/v2"
	"unsafe"

	"modernc.org/memory"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
)

const byNumber = "upfront, alignment a number"

var workB = work{
	letter: "B", title: "1000 blocks of 8 to 256 bytes aligned to 8 or 16, zeroed or not, then a rewind",
	absent: "sync.Pool has one size; the arena experiment can't align bytes. The Go heap zeroes, as it always does.",
	loops: []loop{
		{name: "B mixed sizes", unit: "block", units: objectCount, enter: enterMixed},
		{name: "B mixed sizes, zeroed", unit: "block", units: objectCount, enter: enterMixedZeroed},
		{name: "B bytes", unit: "slice", units: objectCount, enter: enterBytes},
	},
}

// mixed has sizes and alignments: 8 to 256 bytes, aligned to 8 or 16 at random.
var mixed = func() (t [objectCount]struct{ size, align uintptr }) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range t {
		t[i].size = uintptr(8 + r.IntN(249))
		t[i].align = 8 << r.IntN(2)
	}
	return
}()

var mixedTyped = func() (t [objectCount]struct {
	size  uint64
	align scope.AlignMask
}) {
	for i, m := range mixed {
		t[i].size, t[i].align = uint64(m.size), scope.AlignMask(m.align-1)
	}
	return
}()

// inspectMixed returns a checksum of the blocks' first bytes, of their misalignment and, if zeroed,
// of the other bytes.
func inspectMixed(zeroed bool) (sum uint64) {
	for i, m := range mixed {
		b := unsafe.Slice((*byte)(keptRaw[i]), m.size)
		sum = sum*31 + uint64(b[0]) + uint64(uintptr(keptRaw[i])&(m.align-1))<<32
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
	hand := bump.NewGo(budget.MiB)
	var heap memory.Allocator
	look := func() uint64 { return inspectMixed(false) }
	return []contestant{
		again(byHand, func() {
			for i, m := range mixed {
				p := hand.AllocRaw(m.size, m.align)
				*(*byte)(p) = byte(i)
				keptRaw[i] = p
			}
		}, look, hand.Reset),
		inScope(library, func(s scope.Scope) {
			for i, m := range mixedTyped {
				p := s.AllocUnzeroedAs(uint64(m.size), m.align)
				*(*byte)(p) = byte(i)
				keptRaw[i] = p
			}
		}, look),
		inScope(byNumber, func(s scope.Scope) {
			for i, m := range mixed {
				p := s.AllocUnzeroed(uint64(m.size), uint64(m.align))
				*(*byte)(p) = byte(i)
				keptRaw[i] = p
			}
		}, look),
		mixedFrom(goHeap, func(size int) []byte { return make([]byte, size) }, func([]byte) {}, nil),
		mixedFrom(modernc, func(size int) []byte {
			b, _ := heap.Malloc(size)
			return b
		}, func(b []byte) { _ = heap.Free(b) }, func() { _ = heap.Close() }),
	}
}

// enterMixedZeroed zeroes blocks of a scope, because Alloc doesn't.
//
//go:noinline
func enterMixedZeroed() []contestant {
	hand := bump.NewGo(budget.MiB)
	look := func() uint64 { return inspectMixed(true) }
	return []contestant{
		again(byHand, func() {
			for i, m := range mixed {
				p := hand.Alloc(m.size, m.align)
				*(*byte)(p) = byte(i)
				keptRaw[i] = p
			}
		}, look, hand.Reset),
		inScope(library, func(s scope.Scope) {
			for i, m := range mixedTyped {
				p := s.AllocUnzeroedAs(uint64(m.size), m.align)
				clear(unsafe.Slice((*byte)(p), m.size))
				*(*byte)(p) = byte(i)
				keptRaw[i] = p
			}
		}, look),
	}
}

// enterBytes uses only the sizes: a slice of bytes needs no alignment.
//
//go:noinline
func enterBytes() []contestant {
	hand := bump.NewGo(budget.MiB)
	look := func() (sum uint64) {
		for i, m := range mixed {
			b := unsafe.Slice((*byte)(keptRaw[i]), m.size)
			sum = sum*31 + uint64(b[0])
			for k := range b[1:] {
				sum += uint64(b[1+k])
				b[1+k] = dirt
			}
		}
		return sum
	}
	return []contestant{
		again(byHand, func() {
			for i, m := range mixed {
				b := unsafe.Slice((*byte)(hand.Alloc(m.size, 1)), m.size)
				b[0] = byte(i)
				keptRaw[i] = unsafe.Pointer(unsafe.SliceData(b))
			}
		}, look, hand.Reset),
		inScope(library, func(s scope.Scope) {
			for i, m := range mixed {
				b := s.Bytes(int(m.size))
				b[0] = byte(i)
				keptRaw[i] = unsafe.Pointer(unsafe.SliceData(b))
			}
		}, look),
		again(goHeap, func() {
			for i, m := range mixed {
				b := make([]byte, m.size)
				b[0] = byte(i)
				keptRaw[i] = unsafe.Pointer(unsafe.SliceData(b))
			}
		}, look, nil),
	}
}

// mixedFrom rounds sizes up to their alignment, for allocators without an alignment.
//
//go:noinline
func mixedFrom(who string, get func(size int) []byte, put func([]byte), end func()) contestant {
	keep := make([][]byte, objectCount)
	return again(who, func() {
		for i, m := range mixed {
			keep[i] = get(int((m.size + m.align - 1) &^ (m.align - 1)))
			p := unsafe.Pointer(unsafe.SliceData(keep[i]))
			*(*byte)(p) = byte(i)
			keptRaw[i] = p
		}
	}, func() uint64 { return inspectMixed(false) }, func() {
		for i := range keep {
			put(keep[i])
		}
	}).ending(end)
}
