package scope_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Spark is in a pool that all workers share.
type Spark struct{ Heat int32 }

var sparks = scope.Plain[Spark]()

// ExamplePool takes chunks and puts them in any order.
func ExamplePool() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("forge")
	defer s.Close()

	pool := sparks.Pool(s, 3)
	first, second := pool.Get(), pool.GetUnzeroed() // unzeroed: the caller writes all of it
	first.Heat, second.Heat = 10, 20
	for i, spark := range pool.All() {
		fmt.Println(i, spark.Heat)
	}
	pool.Put(first)
	fmt.Println(pool.Live(), pool.Peak(), pool.Cap(), pool.At(0) == nil, pool.Index(second))
	// Output:
	// 0 10
	// 1 20
	// 1 2 3 true 1
}

// Four workers light sparks from one pool. Each keeps the level open meanwhile, so that no rewind
// ends the pool.
func ExampleSharedPool() {
	b, _ := openExample()
	defer b.Close()
	ctx, level := context.Background(), b.Region("level")
	loaded, err := budget.Load(ctx, level, func(s scope.Scope) (*scope.SharedPool[Spark], error) {
		return sparks.SharedPool(s, 100), nil
	})
	if err != nil {
		panic(err)
	}
	pool := loaded.Get()

	var missed atomic.Int32
	var workers sync.WaitGroup
	for i := range 4 {
		reader := level.Reader(fmt.Sprint("worker ", i))
		workers.Go(func() {
			if !reader.Pin() {
				return // the level is being rewound
			}
			defer reader.Unpin()
			for range 30 {
				spark := pool.Get()
				if spark == nil { // all are lit, which is normal
					missed.Add(1)
					continue
				}
				spark.Heat = 1000 // the worker that took it is its only writer
			}
		})
	}
	workers.Wait()
	fmt.Println(pool.Live(), "are lit,", missed.Load(), "are not")

	fmt.Println(level.Rewind(ctx), pool.Live(), pool.Get() == nil)
	// Output:
	// 100 are lit, 20 are not
	// <nil> 0 true
}

// ExampleHandlePool names frogs by handles: a stale handle is detected, even if another frog is in
// its chunk.
func ExampleHandlePool() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("pond")
	defer s.Close()

	pool := herons.HandlePool(s, 2)
	heron, target := pool.Get()
	heron.X = 7
	fmt.Println("at", pool.At(target).X)

	pool.Put(target)
	other, another := pool.Get()
	other.X = 8
	fmt.Println("gone:", pool.At(target) == nil, "same chunk:", pool.Index(another) == 0)

	pool.Get()
	none, _ := pool.Get()
	fmt.Println("full:", none == nil, pool.Live(), "of", pool.Cap())

	defer func() { fmt.Println(recover()) }()
	pool.Put(target) // NOT OKAY: it was put
	// Output:
	// at 7
	// gone: true same chunk: true
	// full: true 2 of 2
	// scope: BUG: Put of a handle of a scope_test.Heron: put already
}
