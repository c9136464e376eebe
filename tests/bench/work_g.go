package main

import (
	"container/list"
	"context"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

const (
	inCache   = chunkCount // values of 256 bytes
	hashicorp = "hashicorp golang-lru"
)

var workG = work{
	letter: "G", title: "a cache of 1024 values of 256 bytes, shared by goroutines, used by one: get a value that " +
		"is there, in another order; add one, or load one, in place of another",
	absent: "upfront also pins the value and unpins it. The others are a lock, a map and a list in the order of " +
		"use. They make each value on the Go heap, because a caller may still use an evicted one. On the Go heap at " +
		"most one load of a key runs, as in upfront.",
	columns: []string{library, goHeap, hashicorp},
	loops: []loop{
		{name: "G get", unit: "get", units: inCache, enter: enterGet},
		{name: "G add", unit: "value", units: inCache, enter: enterAdd},
		{name: "G load", unit: "value", units: inCache, enter: enterLoad},
	},
}

// values returns a cache of this library with the keys below inCache, and a function that ends it.
func values() (*cache.Of[int64, large], func()) {
	b, end := scratches(1, budget.MiB)
	c := cache.New(b.Scratch(0, 0).Open("values"), scope.Plain[int64](), larges, inCache)
	for k := range int64(inCache) {
		c.Unpin(added(c.Add(k)))
	}
	return c, end
}

func added[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// lruOf is a cache of the n values used last.
type lruOf struct {
	mu    sync.Mutex
	of    map[int64]*list.Element
	order list.List // of *used, the newest first
	n     int
	loads map[int64]*loadOf
}

type used struct {
	key int64
	x   *large
}

type loadOf struct {
	over sync.WaitGroup
	x    *large
	err  error
}

func newLRU(n int) *lruOf {
	return &lruOf{of: map[int64]*list.Element{}, n: n, loads: map[int64]*loadOf{}}
}

func (c *lruOf) get(k int64) *large {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of[k]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*used).x
}

func (c *lruOf) add(k int64) *large {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := new(large)
	c.insert(k, x)
	return x
}

func (c *lruOf) insert(k int64, x *large) {
	if len(c.of) == c.n {
		delete(c.of, c.order.Remove(c.order.Back()).(*used).key)
	}
	c.of[k] = c.order.PushFront(&used{k, x})
}

func (c *lruOf) getOrLoad(ctx context.Context, k int64, fn func(context.Context, *large) error) (*large, error) {
	if x := c.get(k); x != nil {
		return x, nil
	}
	c.mu.Lock()
	if l := c.loads[k]; l != nil {
		c.mu.Unlock()
		l.over.Wait()
		return l.x, l.err
	}
	l := &loadOf{x: new(large)}
	l.over.Add(1)
	c.loads[k] = l
	c.mu.Unlock()
	l.err = fn(ctx, l.x)
	c.mu.Lock()
	delete(c.loads, k)
	if l.err == nil {
		c.insert(k, l.x)
	}
	c.mu.Unlock()
	l.over.Done()
	return l.x, l.err
}

func keep(*large) {}

//go:noinline
func enterGet() []contestant {
	c, end := values()
	own, peer := newLRU(inCache), added(lru.New[int64, *large](inCache))
	for k := range int64(inCache) {
		own.add(k)
		peer.Add(k, new(large))
	}
	return []contestant{
		gets(library, c.Get, c.Unpin).ending(end),
		gets(goHeap, own.get, keep),
		gets(hashicorp, func(k int64) *large { x, _ := peer.Get(k); return x }, keep),
	}
}

// gets calls functions through variables, which costs 1 or 2 ns a call: little compared with the
// functions.
//
//go:noinline
func gets(who string, get func(int64) *large, done func(*large)) contestant {
	return contestant{who: who, run: func(n int) (sum uint64) {
		for range n {
			sum = 0
			for _, k := range order {
				x := get(int64(k))
				x[0] = uint64(k)
				sum = sum*31 + x[0]
				done(x)
			}
		}
		return sum
	}}
}

//go:noinline
func enterAdd() []contestant {
	c, end := values()
	own, peer := newLRU(inCache), added(lru.New[int64, *large](inCache))
	return []contestant{
		adds(library, func(k int64) *large { return added(c.Add(k)) }, c.Unpin).ending(end),
		adds(goHeap, own.add, keep),
		adds(hashicorp, func(k int64) *large {
			x := new(large)
			peer.Add(k, x)
			return x
		}, keep),
	}
}

//go:noinline
func enterLoad() []contestant {
	c, end := values()
	own, ctx := newLRU(inCache), context.Background()
	loader := func(_ context.Context, x *large) error {
		x[2] = 2
		return nil
	}
	return []contestant{
		adds(library, func(k int64) *large { return added(c.GetOrLoad(ctx, k, loader)) }, c.Unpin).ending(end),
		adds(goHeap, func(k int64) *large { return added(own.getOrLoad(ctx, k, loader)) }, keep),
	}
}

// adds adds values of new keys. A value that isn't zero changes the sum.
//
//go:noinline
func adds(who string, add func(int64) *large, done func(*large)) contestant {
	next := int64(inCache)
	return contestant{who: who, run: func(n int) (sum uint64) {
		for range n {
			sum = 0
			for i := range uint64(inCache) {
				x := add(next)
				next++
				sum = sum*31 + i + x[1] + x[2]
				x[1], x[2] = dirtyWord, dirtyWord
				done(x)
			}
		}
		return sum
	}}
}
