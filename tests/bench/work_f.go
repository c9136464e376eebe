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
	letter: "F", title: "4096 ints pushed one by one to an empty list, then a rewind",
	absent: "sync.Pool would return a slice that has grown already; the arena experiment doesn't grow one.",
	loops:  []loop{{name: "F push", unit: "int", units: countF, enter: enterF}},
}

var ints = scope.Plain[int64]()

// sumInts returns the last of the ints, because C returns only that one. It returns 0 if another
// int is wrong.
func sumInts(list []int64) uint64 {
	for i, x := range list {
		if x != int64(i) {
			return 0
		}
	}
	return uint64(list[len(list)-1])
}

//go:noinline
func pushByHand(a *bump.Arena) []int64 {
	v := bump.Vec{A: a}
	for i := range int64(countF) {
		v.PushInPlace(i)
	}
	return v.S
}

//go:noinline
func enterF() []contestant {
	a, hand := cfloor.NewArena(budget.MiB), bump.NewGo(budget.MiB)
	last := uint64(0)
	look := func() uint64 { return sumInts(keptInts) }
	return []contestant{
		again(floor, func() { last = uint64(a.Grow(countF)) }, func() uint64 { return last }, nil),
		again(byHand, func() { keptInts = pushByHand(hand) }, look, hand.Reset),
		inScope(library, func(s scope.Scope) {
			var list []int64
			for i := range int64(countF) {
				list = ints.Append(s, list, i)
			}
			keptInts = list
		}, look),
		inScope(built, func(s scope.Scope) {
			list := ints.Build(s)
			for i := range int64(countF) {
				list.Push(i)
			}
			keptInts = list.Done()
		}, look),
		inScope(inList, func(s scope.Scope) {
			list := container.NewList(s, ints, countF)
			for i := range int64(countF) {
				list.Push(i)
			}
			keptInts = list.Slice()
		}, look),
		inScope(inDeque, func(s scope.Scope) {
			deque := container.NewDeque(s, ints, countF)
			for i := range int64(countF) {
				deque.PushBack(i)
			}
			keptInts = unsafe.Slice(deque.At(0), countF) // it hasn't wrapped
		}, look),
		again(goHeap, func() {
			var list []int64
			for i := range int64(countF) {
				list = append(list, i)
			}
			keptInts = list
		}, look, nil),
		pushedModernc(look),
	}
}

// pushedModernc doubles the bytes when they are full, as append does.
//
//go:noinline
func pushedModernc(look func() uint64) contestant {
	var heap memory.Allocator
	var filled []byte
	return again(modernc, func() {
		var bytes []byte
		var list []int64
		for i := range int64(countF) {
			if len(list) == cap(list) {
				bytes, _ = heap.Realloc(bytes, max(8, 16*len(list)))
				list = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/8)[:len(list)]
			}
			list = append(list, i)
		}
		filled, keptInts = bytes, list
	}, look, func() { _ = heap.Free(filled) }).ending(func() { _ = heap.Close() })
}
