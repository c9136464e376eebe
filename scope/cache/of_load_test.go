package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/tests/step"
)

type chunkCache = cache.Of[int64, chunk]

func ofChunks(t testing.TB, n int) (*chunkCache, scope.Scope) {
	s := open(t).Scratch(0, 0).Open("world")
	return cache.New(s, places, chunks, n), s
}

// loader returns a loader of the chunk at a place.
func loader(at int64) func(context.Context, *chunk) error {
	return func(_ context.Context, x *chunk) error {
		x.At = at
		return nil
	}
}

func load(t testing.TB, c *chunkCache, at int64) *chunk {
	x, err := c.GetOrLoad(background, at, loader(at))
	require.NoError(t, err)
	return x
}

// waitFor yields until that many goroutines wait.
func waitFor(c *chunkCache, n int) {
	for cache.Waits(c) < n {
		runtime.Gosched()
	}
}

// TestOneLoadAtATime: the goroutines that come meanwhile get the value of the one that loads, each
// with a pin.
func TestOneLoadAtATime(t *testing.T) {
	const others = 7
	c, s := ofChunks(t, 2)
	var group sync.WaitGroup
	var got [others]*chunk
	x, err := c.GetOrLoad(background, 5, func(_ context.Context, x *chunk) error {
		for i := range others {
			group.Go(func() {
				var err error
				got[i], err = c.GetOrLoad(background, 5, func(context.Context, *chunk) error { panic("a second load") })
				assert.NoError(t, err)
			})
		}
		waitFor(c, others)
		assert.Nil(t, c.Get(5), "in load")
		assert.Nil(t, c.At(c.Handle(x)), "in load")
		_, err := c.Add(5)
		assert.ErrorIs(t, err, cache.ErrPresent)
		assert.Equal(t, 0, c.Len())
		x.At = 5
		return nil
	})
	require.NoError(t, err)
	group.Wait()
	for _, other := range got {
		assert.Same(t, x, other)
	}
	for range others + 1 {
		c.Unpin(x)
	}
	assert.Equal(t, 0, c.Stats().Pinned)
	assert.EqualValues(t, 1, c.Stats().Loads)
	require.NoError(t, s.Close())
}

// TestDeleteOfALoad: the callers that came before the Delete get the value of the load, and no
// later one does, during the load or after it.
func TestDeleteOfALoad(t *testing.T) {
	const others = 3
	c, s := ofChunks(t, 2)
	var group sync.WaitGroup
	var got [others]*chunk
	old, err := c.GetOrLoad(background, 5, func(_ context.Context, x *chunk) error {
		*x = chunk{At: 5, Made: 1}
		for i := range others {
			group.Go(func() {
				var err error
				got[i], err = c.GetOrLoad(background, 5, nil2)
				assert.NoError(t, err)
			})
		}
		waitFor(c, others)
		require.NoError(t, c.Delete(5))
		require.NoError(t, c.Delete(5), "nothing is left to delete")
		later, err := c.GetOrLoad(background, 5, func(_ context.Context, x *chunk) error {
			*x = chunk{At: 5, Made: 2}
			return nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 2, later.Made)
		c.Unpin(later)
		return nil
	})
	require.NoError(t, err)
	group.Wait()
	for _, other := range got {
		assert.Same(t, old, other)
	}
	assert.Equal(t, chunk{At: 5, Made: 1}, *old)
	assert.Nil(t, c.At(c.Handle(old)))
	_, err = c.GetOrLoad(background, 6, loader(6)) // evicts the later value: the old one is pinned
	require.NoError(t, err)
	assert.Nil(t, c.Get(5))
	assert.Equal(t, [2]int{2, 2}, [2]int{c.Len(), c.Stats().Pinned})
	for range others + 1 {
		c.Unpin(old)
	}
	assert.Equal(t, [2]int{1, 1}, [2]int{c.Len(), c.Stats().Pinned}, "the last Unpin frees it")

	_, err = c.GetOrLoad(background, 7, func(context.Context, *chunk) error {
		require.NoError(t, c.Delete(7))
		return errLoad
	})
	assert.Equal(t, errLoad, err)
	assert.Equal(t, 1, c.Len())
	c.Unpin(load(t, c, 7))
	require.NoError(t, s.Close())
}

// TestDeleteOfPinned: the value stays for those that pinned it, and no later call finds it.
func TestDeleteOfPinned(t *testing.T) {
	c, s := ofChunks(t, 2)
	old := load(t, c, 5)
	h := c.Handle(old)
	require.NoError(t, c.Delete(5))
	assert.Nil(t, c.Get(5))
	assert.Nil(t, c.At(h))
	x, err := c.Add(5)
	require.NoError(t, err)
	assert.NotSame(t, old, x)
	assert.Equal(t, chunk{At: 5}, *old)
	_, err = c.Add(6)
	require.ErrorIs(t, err, scope.ErrFull, "it takes a place until then")
	c.Unpin(old)
	_, err = c.Add(6)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestDeleteOfObjects: a value with a finalizer stays while it is pinned or in load.
func TestDeleteOfObjects(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("world")
	c := cache.NewObjects(s, places, mortals, 2)
	x, err := c.GetOrLoad(background, 5, func(_ context.Context, x *chunk) error {
		assert.EqualError(t, c.Delete(5), "cache: Delete of cache_test.chunk 5, which is in load")
		x.At = 5
		return nil
	})
	require.NoError(t, err)
	assert.Same(t, x, c.Get(5))
	assert.EqualError(t, c.Delete(5), "cache: Delete of cache_test.chunk 5 with 2 pins; Unpin it first")
	c.Unpin(x)
	c.Unpin(x)
	require.NoError(t, c.Delete(5))
	assert.Equal(t, []chunk{{At: 5}}, ended)
	require.NoError(t, s.Close())
}

// TestDeleteAfterAChange: one goroutine changes the source of a key and deletes the key. No call
// that begins after a Delete returns a value from before the change.
func TestDeleteAfterAChange(t *testing.T) {
	const readers, keys = 3, 4
	rounds := step.Pick(2000, 20_000, 1_000_000)
	c, s := ofChunks(t, keys+2*readers)
	var versions, deleted [keys]atomic.Uint64
	var stop atomic.Bool
	var group sync.WaitGroup
	for r := range uint64(readers) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(r, 3))
			for !stop.Load() {
				k := random.Int64N(keys)
				least := deleted[k].Load()
				x, err := c.GetOrLoad(background, k, func(_ context.Context, x *chunk) error {
					*x = chunk{At: k, Made: versions[k].Load()}
					runtime.Gosched()
					return nil
				})
				if !assert.NoError(t, err) {
					return
				}
				if x.At != k || x.Made < least {
					t.Errorf("version %d of %d for %d, after a Delete at %d", x.Made, x.At, k, least)
				}
				runtime.Gosched()
				c.Unpin(x)
			}
		})
	}
	for i := 0; i < rounds || c.Stats().Loads < uint64(rounds/10); i++ {
		k := int64(i % keys)
		version := versions[k].Add(1)
		assert.NoError(t, c.Delete(k))
		deleted[k].Store(version)
		runtime.Gosched()
	}
	stop.Store(true)
	group.Wait()
	assert.Zero(t, c.Stats().Pinned)
	require.NoError(t, s.Close())
}

// strange is a context whose methods panic, as those of a nil pointer do.
type strange struct {
	context.Context
	in string
}

func (s *strange) Err() error {
	if s.in == "Err" {
		panic("Err")
	}
	return nil
}

func (s *strange) Done() <-chan struct{} {
	if s.in == "Done" {
		panic("Done")
	}
	return nil
}

func (s *strange) Value(any) any {
	if s.in == "Value" {
		panic("Value")
	}
	return nil
}

// loud is a key that uses its cache for its text.
type loud struct{ at int64 }

var loudCache *cache.Of[loud, chunk]

func (l loud) String() string { return fmt.Sprint(l.at, " of ", loudCache.Len()) }

// TestCallersMethods: no method of a ctx or a key that panics or uses the cache leaves the lock.
func TestCallersMethods(t *testing.T) {
	c, s := ofChunks(t, 2)
	for _, in := range []string{"Err", "Value"} {
		assert.PanicsWithValue(t, in, func() { _, _ = c.GetOrLoad(&strange{background, in}, 5, nil2) })
	}
	var group sync.WaitGroup
	_, err := c.GetOrLoad(background, 5, func(context.Context, *chunk) error {
		for _, in := range []string{"Done", "Value"} {
			group.Go(func() {
				assert.PanicsWithValue(t, in, func() { _, _ = c.GetOrLoad(&strange{background, in}, 5, nil2) })
			})
		}
		group.Wait()
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, 1, c.Len())

	loudCache = cache.New(s, scope.Plain[loud](), chunks, 2)
	ctx, cancel := context.WithCancel(background)
	_, err = loudCache.GetOrLoad(background, loud{5}, func(in context.Context, _ *chunk) error {
		_, err := loudCache.GetOrLoad(in, loud{5}, nil2)
		return err
	})
	assert.ErrorIs(t, err, cache.ErrCycle)
	_, err = loudCache.GetOrLoad(background, loud{5}, func(context.Context, *chunk) error {
		cancel()
		_, err := loudCache.GetOrLoad(ctx, loud{5}, nil2)
		return err
	})
	assert.EqualError(t, err, "cache: wait for the load of cache_test.chunk 5 of 0: context canceled")
	require.NoError(t, s.Close())
}

// TestALoadThatFails: an error, a panic and a Goexit free the key. The goroutines that wait go on
// with their own loaders, one at a time.
func TestALoadThatFails(t *testing.T) {
	for name, end := range map[string]func() error{
		"error":  func() error { return errLoad },
		"panic":  func() error { panic("no disk") },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c, s := ofChunks(t, 2)
			var group, others sync.WaitGroup
			var err, second error
			var x, y *chunk
			group.Go(func() {
				defer func() { assert.Equal(t, name == "panic", recover() != nil) }()
				y, err = c.GetOrLoad(background, 5, func(_ context.Context, x *chunk) error {
					x.At = 99
					others.Go(func() { x, second = c.GetOrLoad(background, 5, loader(5)) })
					others.Go(func() {
						got, err := c.GetOrLoad(background, 5, loader(5))
						assert.NoError(t, err)
						assert.EqualValues(t, 5, got.At)
					})
					waitFor(c, 2)
					return end()
				})
			})
			group.Wait()
			others.Wait()
			assert.Nil(t, y)
			if name == "error" {
				assert.Equal(t, errLoad, err, "as the loader returned it")
			}
			require.NoError(t, second)
			x = c.Get(5)
			require.NotNil(t, x)
			assert.Equal(t, chunk{At: 5}, *x, "nothing is left of the first load")
			assert.Equal(t, [3]uint64{2, 1, 1}, [3]uint64{c.Stats().Loads, c.Stats().Failed, uint64(c.Len())})
			require.NoError(t, s.Close())
		})
	}
}

// TestContextsEnd: a ctx ends the wait, and a load doesn't begin with one that has ended. A value
// that is there is returned.
func TestContextsEnd(t *testing.T) {
	c, s := ofChunks(t, 2)
	ctx, cancel := context.WithCancel(background)
	var group sync.WaitGroup
	x, err := c.GetOrLoad(background, 5, func(inner context.Context, x *chunk) error {
		require.NoError(t, inner.Err())
		group.Go(func() {
			_, err := c.GetOrLoad(ctx, 5, loader(5))
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorContains(t, err, "wait for the load of cache_test.chunk 5")
		})
		waitFor(c, 1)
		cancel()
		group.Wait()
		assert.Equal(t, 0, cache.Waits(c))
		return nil
	})
	require.NoError(t, err)
	c.Unpin(x)
	assert.Equal(t, 0, c.Stats().Pinned, "the goroutine that went away has no pin")
	_, err = c.GetOrLoad(ctx, 6, nil2)
	assert.ErrorIs(t, err, context.Canceled)
	y, err := c.GetOrLoad(ctx, 5, nil2)
	require.NoError(t, err)
	assert.Same(t, x, y)
	type key struct{}
	_, err = c.GetOrLoad(context.WithValue(background, key{}, 7), 7, func(ctx context.Context, _ *chunk) error {
		assert.Equal(t, 7, ctx.Value(key{}))
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func nil2(context.Context, *chunk) error { panic("a load") }

// TestALoadOfItself: a loader that wants its own key is refused, directly, by way of other loads
// and other caches, and across goroutines.
func TestALoadOfItself(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("world")
	c, d := cache.New(s, places, chunks, 8), cache.New(s, places, chunks, 8)
	_, err := c.GetOrLoad(background, 5, func(ctx context.Context, _ *chunk) error {
		_, err := c.GetOrLoad(ctx, 5, nil2)
		return err
	})
	require.ErrorIs(t, err, cache.ErrCycle)
	require.EqualError(t, err, "cache: a load would wait for itself: the load of cache_test.chunk 5 waits for the "+
		"load of cache_test.chunk 5; load one of them after the other, not in its loader")

	inner := func(ctx context.Context, _ *chunk) error { _, err := c.GetOrLoad(ctx, 5, nil2); return err }
	_, err = c.GetOrLoad(background, 5, func(ctx context.Context, _ *chunk) error {
		ctx, cancel := context.WithCancel(ctx) // another context around it
		defer cancel()
		_, err := d.GetOrLoad(ctx, 6, inner)
		return err
	})
	require.ErrorIs(t, err, cache.ErrCycle)
	require.ErrorContains(t, err, "the load of cache_test.chunk 6 waits for the load of cache_test.chunk 5, whose "+
		"loader waits for it; load")
	assert.Equal(t, 0, c.Len()+d.Len())

	// Two goroutines: the load of 1 in c wants 2 in d, and the load of 2 in d wants 1 in c.
	started, first := make(chan struct{}), make(chan error)
	go func() {
		_, err := c.GetOrLoad(background, 1, func(ctx context.Context, _ *chunk) error {
			<-started
			_, err := d.GetOrLoad(ctx, 2, nil2)
			return err
		})
		first <- err
	}()
	x, err := d.GetOrLoad(background, 2, func(ctx context.Context, x *chunk) error {
		close(started)
		waitFor(d, 1)
		_, err := c.GetOrLoad(ctx, 1, nil2)
		assert.ErrorIs(t, err, cache.ErrCycle)
		assert.ErrorContains(t, err, "the load of cache_test.chunk 2 waits for the load of cache_test.chunk 1, "+
			"which waits for the load of cache_test.chunk 2; load")
		x.At = 2
		return nil
	})
	require.NoError(t, err)
	assert.EqualValues(t, 2, x.At)
	require.NoError(t, <-first)
	assert.Equal(t, 1, c.Len())
	require.NoError(t, s.Close())
}

// TestAContextOutlivesItsLoad: the load is over then, so its key may be loaded again.
func TestAContextOutlivesItsLoad(t *testing.T) {
	c, s := ofChunks(t, 2)
	var kept context.Context
	x, err := c.GetOrLoad(background, 5, func(ctx context.Context, _ *chunk) error { kept = ctx; return nil })
	require.NoError(t, err)
	c.Unpin(x)
	require.NoError(t, c.Delete(5))
	var group sync.WaitGroup
	_, err = c.GetOrLoad(background, 5, func(context.Context, *chunk) error {
		group.Go(func() {
			_, err := c.GetOrLoad(kept, 5, nil2)
			assert.NoError(t, err)
		})
		waitFor(c, 1)
		return nil
	})
	require.NoError(t, err)
	group.Wait()
	require.NoError(t, s.Close())
}

// TestALoadOfManyThatWait: a search of loads that wait for each other looks at each load once.
func TestALoadOfManyThatWait(t *testing.T) {
	const deep = 30 // two ways at each of 30 steps
	s := open(t).Scratch(0, 0).Open("world")
	c := cache.New(s, places, chunks, 3*deep+2)
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range int64(deep) {
		for _, side := range []int64{0, 1} {
			group.Go(func() {
				_, err := c.GetOrLoad(background, 2*i+side, func(ctx context.Context, _ *chunk) error {
					<-start
					var inner sync.WaitGroup
					for _, next := range []int64{2*i + 2, 2*i + 3} {
						inner.Go(func() {
							_, err := c.GetOrLoad(ctx, next, loader(next))
							assert.NoError(t, err)
						})
					}
					inner.Wait()
					return nil
				})
				assert.NoError(t, err)
			})
		}
	}
	for c.Stats().Loading < 2*deep {
		runtime.Gosched()
	}
	close(start)
	group.Wait()
	require.NoError(t, s.Close())
}

// TestLoadsOfLoads: goroutines whose loaders load other keys at random never wait for ever. The
// keys that no loader holds can be loaded afterwards.
func TestLoadsOfLoads(t *testing.T) {
	const workers, keys, deep = 4, 9, 3
	rounds := step.Pick(500, 2000, 100_000)
	c, s := ofChunks(t, workers*(deep+1)) // a value each for the loads of deleted keys
	var group sync.WaitGroup
	var cycles, loads atomic.Uint64
	for w := range uint64(workers) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(w, 9))
			var get func(ctx context.Context, depth int) error
			get = func(ctx context.Context, depth int) error {
				k := random.Int64N(keys)
				x, err := c.GetOrLoad(ctx, k, func(ctx context.Context, x *chunk) error {
					loads.Add(1)
					x.At = k
					runtime.Gosched()
					if depth == deep {
						return nil
					}
					return get(ctx, depth+1)
				})
				if err == nil {
					if x.At != k {
						t.Errorf("%d for %d", x.At, k)
					}
					c.Unpin(x)
					assert.NoError(t, c.Delete(k))
				} else if assert.ErrorIs(t, err, cache.ErrCycle) {
					cycles.Add(1)
				}
				return err
			}
			for range rounds {
				_ = get(background, 0)
			}
		})
	}
	group.Wait()
	assert.NotZero(t, cycles.Load())
	assert.Greater(t, loads.Load(), cycles.Load())
	for at := range int64(keys) {
		c.Unpin(load(t, c, at))
	}
	assert.Equal(t, cache.OfStats{}, cache.OfStats{Pinned: c.Stats().Pinned, Loading: c.Stats().Loading})
	require.NoError(t, s.Close())
}

// TestNoGarbage: no operation of a cache but a load makes a Go allocation, and a load makes one.
func TestNoGarbage(t *testing.T) {
	if instrumented || arena_c.Checked {
		t.Skip("this build allocates for itself: go test ./scope/cache runs it")
	}
	s := open(t).Scratch(0, 0).Open("world")
	c := cache.NewObjects(s, places, scope.Object(func(*chunk) error { return nil }), 16)
	at := int64(0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		at++
		x, err := c.Add(at)
		if err != nil || c.Get(at) != x || c.At(c.Handle(x)) != x {
			t.Error("no value", err)
		}
		x.At = at
		for range 3 {
			c.Unpin(x)
		}
		_, _ = c.Get(-at), c.Stats()
		if y, err := c.GetOrLoad(background, at, func(context.Context, *chunk) error { return nil }); err != nil ||
			y.At != at {
			t.Error("no value", err)
		} else {
			c.Unpin(y)
		}
	}))
	assert.EqualValues(t, 1, testing.AllocsPerRun(1000, func() {
		at++
		x, _ := c.GetOrLoad(background, at, func(_ context.Context, x *chunk) error { x.At = at; return nil })
		c.Unpin(x)
	}))
	require.NoError(t, s.Close())
}
