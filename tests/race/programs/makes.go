package main

import (
	"context"
	"errors"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

var (
	background = context.Background()
	errFails   = errors.New("a constructor fails")
	numbers    = scope.Plain[int32]()
)

func good(*frog) error          { return nil }
func bad(*frog) error           { return errFails }
func nothing() error            { return nil }
func noScope(scope.Scope) error { return nil }

// Each arena of package arena has its own scope, and its block is a part of the budget.

func blockOf(p *play, worker int) []byte {
	return p.budget.Scratch(worker, 1).Open("block").BytesUnzeroed(4096, 64)
}

func newLinear(p *play, worker int) arena.Linear {
	l, err := arena.NewLinear(blockOf(p, worker))
	must(err)
	return l
}

func newStack(p *play, worker int) arena.Stack {
	s, err := arena.NewStack(blockOf(p, worker))
	must(err)
	return s
}

func newBuffers(p *play, worker int) arena.Frame {
	f, err := arena.NewFrame(blockOf(p, worker), 2)
	must(err)
	return f
}

func newRing(p *play, worker int) arena.Ring {
	r, err := arena.NewRing(blockOf(p, worker))
	must(err)
	return r
}

func newHeap(p *play, worker int) arena.Heap {
	h, err := arena.NewHeap(blockOf(p, worker), 0)
	must(err)
	return h
}

func newShared(p *play, worker int) arena.Shared {
	h, err := newHeap(p, worker).Shared()
	must(err)
	return h
}

func newBuddy(p *play, worker int) arena.Buddy {
	b, err := arena.NewBuddy(blockOf(p, worker), 64)
	must(err)
	return b
}

func newChunks(p *play, worker int) arena.BlockPool[frog] {
	pool, err := arena.NewBlockPool[frog](blockOf(p, worker))
	must(err)
	return pool
}

func newList(s scope.Scope) *container.List[frog] {
	l := container.NewList(s, frogs, 8)
	return &l
}

func newDeque(s scope.Scope) *container.Deque[frog] {
	d := container.NewDeque(s, frogs, 8)
	return &d
}

func newMap(s scope.Scope) *container.Map[int32, frog] {
	m := container.NewMap(s, numbers, frogs, 8)
	return &m
}

func newStringMap(s scope.Scope) *container.StringMap[frog] {
	m := container.NewStringMap(s, frogs, 8, 8)
	return &m
}
