package scope_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// TestSharedPool lets goroutines get, write and put: the race detector sees two that have the same value.
func TestSharedPool(t *testing.T) {
	const goroutines, chunks = 8, 5
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.SharedPool(s, chunks)
	var all sync.WaitGroup
	for me := range int32(goroutines) {
		all.Go(func() {
			for round := range int32(300) {
				x := pool.Get()
				if x == nil { // more goroutines than chunks
					runtime.Gosched()
					continue
				}
				if !assert.Zero(t, *x) {
					return
				}
				x.X, x.Y = me, round
				runtime.Gosched()
				if !assert.Equal(t, point{me, round}, *x) || !assert.LessOrEqual(t, pool.Live(), chunks) {
					return
				}
				pool.Put(x)
			}
		})
	}
	all.Wait()
	assert.Zero(t, pool.Live())
	assert.Positive(t, pool.Peak())
	assert.LessOrEqual(t, pool.Peak(), chunks)
}

func TestSharedPoolIsGoodAfterMisuse(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.SharedPool(s, 2)
	x := pool.Get()
	pool.Put(x)
	assert.PanicsWithError(t, "scope: BUG: Put of a scope_test.point: put twice", func() { pool.Put(x) })
	assert.PanicsWithError(t, "scope: BUG: Put of nil, pool of scope_test.point", func() { pool.Put(nil) })
	assert.NotNil(t, pool.Get(), "the lock was given back")
	assert.NotNil(t, pool.Get())
	assert.Nil(t, pool.Get())
	assert.Equal(t, []int{2, 2}, []int{pool.Live(), pool.Peak()})
	assert.PanicsWithError(t, "scope: BUG: a pool of -1 chunks", func() { points.SharedPool(s, -1) })
	require.NoError(t, s.Close())
	assert.Nil(t, pool.Get())
	assert.Zero(t, pool.Live()+pool.Peak())
	assert.ErrorIs(t, panicsWith(func() { pool.Put(x) }), scope.ErrClosed)
}

func TestSharedPoolAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate")
	}
	pool := points.SharedPool(open(t).Scratch(0, 0).Open("a"), 2)
	assert.Zero(t, testing.AllocsPerRun(100, func() { pool.Put(pool.Get()); pool.Live() }))
}
