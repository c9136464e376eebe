package main

import (
	"unsafe"

	"modernc.org/memory"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

const (
	countF = 4096

	built   = "upfront, Builder"
	inList  = "upfront, List"
	inDeque = "upfront, Deque"
)

var workF = work{
	letter: "F", title: "4096 ints pushed one by one to what starts empty, then a rewind",
	absent: "sync.Pool would give a slice that has grown already; the arena experiment doesn't grow one.",
	loops:  []loop{{name: "F push", unit: "int", units: countF, enter: enterF}},
}

var ints = scope.Plain[int64]()

//go:noinline
func enterF() []contestant {
	return []contestant{pushedInC(), pushedByHand(), pushedUpfront(library, appended), pushedUpfront(built, buildInts),
		pushedUpfront(inList, listed), pushedUpfront(inDeque, dequed), pushedGoHeap(), pushedModernc()}
}

// sumInts has the last of the ints, which is all that C tells, and whether the others are right.
func sumInts(list []int64) uint64 {
	for i, x := range list {
		if x != int64(i) {
			return 0
		}
	}
	return uint64(list[len(list)-1])
}

//go:noinline
func pushedInC() contestant {
	a := cfloor.NewArena(budget.MiB)
	return contestant{who: floor, run: func(n int) (sum uint64) {
		for range n {
			sum = uint64(a.Grow(countF))
		}
		return sum
	}}
}

//go:noinline
func pushedByHand() contestant {
	a := bump.NewGo(budget.MiB)
	return contestant{who: byHand, run: func(n int) uint64 {
		for range n {
			v := bump.Vec{A: a}
			for i := range int64(countF) {
				v.PushInPlace(i)
			}
			keptInts = v.S
			a.Reset()
		}
		return sumInts(keptInts)
	}}
}

// pushedUpfront has push push into a scope over and over; with look it sums up what it pushed.
//
//go:noinline
func pushedUpfront(who string, push func(s scope.Scope, look bool) uint64) contestant {
	b, end := scratches(1, budget.MiB)
	scratch := b.Scratch(0, 0)
	return contestant{who: who, end: end, run: func(n int) (sum uint64) {
		for round := range n {
			s := scratch.Open("pushed")
			sum = push(s, round == n-1)
			_ = s.Close()
		}
		return sum
	}}
}

func appended(s scope.Scope, look bool) uint64 {
	var list []int64
	for i := range int64(countF) {
		list = ints.Append(s, list, i)
	}
	if keptInts = list; !look {
		return 0
	}
	return sumInts(keptInts)
}

func buildInts(s scope.Scope, look bool) uint64 {
	list := ints.Build(s)
	for i := range int64(countF) {
		list.Push(i)
	}
	if keptInts = list.Done(); !look {
		return 0
	}
	return sumInts(keptInts)
}

func listed(s scope.Scope, look bool) uint64 {
	list := container.NewList(s, ints, countF)
	for i := range int64(countF) {
		list.Push(i)
	}
	if keptInts = list.Slice(); !look {
		return 0
	}
	return sumInts(keptInts)
}

func dequed(s scope.Scope, look bool) uint64 {
	deque := container.NewDeque(s, ints, countF)
	for i := range int64(countF) {
		deque.PushBack(i)
	}
	if !look {
		return 0
	}
	list := make([]int64, 0, countF)
	for _, x := range deque.All() {
		list = append(list, *x)
	}
	return sumInts(list)
}

//go:noinline
func pushedGoHeap() contestant {
	return contestant{who: goHeap, run: func(n int) uint64 {
		for range n {
			var list []int64
			for i := range int64(countF) {
				list = append(list, i)
			}
			keptInts = list
		}
		return sumInts(keptInts)
	}}
}

// pushedModernc doubles the bytes when they are full, as append does.
//
//go:noinline
func pushedModernc() contestant {
	var heap memory.Allocator
	return contestant{who: modernc, end: func() { _ = heap.Close() }, run: func(n int) (sum uint64) {
		for round := range n {
			var bytes []byte
			var list []int64
			for i := range int64(countF) {
				if len(list) == cap(list) {
					bytes, _ = heap.Realloc(bytes, max(8, 16*len(list)))
					list = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/8)[:len(list)]
				}
				list = append(list, i)
			}
			if round == n-1 {
				sum = sumInts(list)
			}
			_ = heap.Free(bytes)
		}
		return sum
	}}
}
