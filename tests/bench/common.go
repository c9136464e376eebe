package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type object [8]uint64 // 64 bytes

const (
	objectCount = 1000 // of a time, works A and B
	million     = 1_000_000
)

var objects = scope.Plain[object]()

// The contestants keep the memory that they wrote here, for its inspection.
var (
	kept     [objectCount]*object
	keptRaw  [chunkCount]unsafe.Pointer
	keptInts []int64
)

// dirt is the byte that an inspection leaves in memory, to detect a contestant that doesn't zero.
const dirt = 0xDB

const dirtyWord = 0xDBDBDBDBDBDBDBDB

// inspect sums up the first word of each object, and the bytes that must be zero: its other words,
// and the low bits of its address.
func inspect(list []unsafe.Pointer) (sum uint64) {
	for _, at := range list {
		p := (*object)(at)
		sum = sum*31 + p[0] + uint64(uintptr(at)&7)
		for i := 1; i < len(p); i++ {
			sum += p[i]
			p[i] = dirtyWord
		}
	}
	return sum
}

func pointers[T any](list []*T) []unsafe.Pointer {
	return unsafe.Slice((*unsafe.Pointer)(unsafe.Pointer(unsafe.SliceData(list))), len(list))
}

// open opens a budget with a plan without a name. It returns a function that closes it.
func open(plan budget.Plan) (*budget.Budget, func()) {
	plan.Name = "bench"
	if plan.Regions == nil {
		plan.Regions = []budget.RegionPlan{{Name: "level", Size: budget.KiB}}
	}
	b, err := budget.Open(plan)
	if err != nil {
		panic(err)
	}
	return b, func() { _ = b.Close() }
}

func scratches(workers int, size uint64) (*budget.Budget, func()) {
	return open(budget.Plan{Scratch: budget.ScratchPlan{Workers: workers, Size: size},
		Pages: budget.Pages{Prefault: budget.Off}})
}

// again returns a contestant that repeats fill and, if needed, drop. look returns a checksum of the
// last fill.
//
//go:noinline
func again(who string, fill func(), look func() uint64, drop func()) contestant {
	return contestant{who: who, run: func(n int) (sum uint64) {
		for round := range n {
			fill()
			if round == n-1 {
				sum = look()
			}
			if drop != nil {
				drop()
			}
		}
		return sum
	}}
}

// inScope is again, in a scope that closes each time.
//
//go:noinline
func inScope(who string, fill func(s scope.Scope), look func() uint64) contestant {
	b, end := scratches(1, budget.MiB)
	scratch := b.Scratch(0, 0)
	return contestant{who: who, end: end, run: func(n int) (sum uint64) {
		for round := range n {
			s := scratch.Open("again")
			fill(s)
			if round == n-1 {
				sum = look()
			}
			_ = s.Close()
		}
		return sum
	}}
}
