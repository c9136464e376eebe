package scope_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Spark lies in a pool that all workers share.
type Spark struct{ Heat int32 }

var sparks = scope.Plain[Spark]()

// Four workers light sparks from one pool. Each is inside the level meanwhile, so that no rewind takes the pool away.
func ExampleSharedPool() {
	b, err := budget.Open(budget.Plan{Name: "forge", Regions: []budget.Region{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
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
				if spark == nil { // all are lit: a state of play
					missed.Add(1)
					continue
				}
				spark.Heat = 1000 // which worker has it, it alone writes it
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
