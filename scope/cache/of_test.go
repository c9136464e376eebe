package cache_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

// TestAScanPasses: the values of a scan pass through the small queue, and those that are read stay.
func TestAScanPasses(t *testing.T) {
	c, s := ofChunks(t, 20)
	for round := range 2 {
		for at := range int64(16) {
			c.Unpin(load(t, c, at))
			if round == 0 {
				c.Unpin(c.Get(at))
			}
		}
	}
	for at := range int64(1000) {
		c.Unpin(load(t, c, 100+at))
	}
	for at := range int64(16) {
		require.NotNil(t, c.Get(at), "a read value")
	}
	// the key of a new value is remembered for a while: it comes back into the main queue
	assert.Nil(t, c.Get(1090))
	c.Unpin(load(t, c, 1090))
	for at := range int64(100) {
		c.Unpin(load(t, c, 2000+at))
	}
	assert.NotNil(t, c.Get(1090))
	require.NoError(t, s.Close())
}

// TestBoundedExaminations: an eviction gives at most 32 second chances, however many values were
// read.
func TestBoundedExaminations(t *testing.T) {
	c, s := ofChunks(t, 400)
	for range 5 {
		for at := range int64(400) {
			c.Unpin(load(t, c, at))
		}
	}
	c.Unpin(load(t, c, 1000))
	assert.EqualValues(t, 33, c.Stats().MaxExamined)
	assert.EqualValues(t, 33, c.Stats().Examined)
	require.NoError(t, c.Clear())
	for at := range int64(400) { // all but the newest are pinned
		load(t, c, at)
	}
	x := c.Get(399)
	c.Unpin(x)
	c.Unpin(x)
	before := c.Stats().Examined
	c.Unpin(load(t, c, 1001))
	assert.LessOrEqual(t, c.Stats().Examined-before, uint64(32+400))
	before = c.Stats().Examined
	c.Unpin(load(t, c, 1002))
	assert.EqualValues(t, 1, c.Stats().Examined-before, "the pinned ones aren't looked at again")
	require.NoError(t, s.Close())
}

// TestAllPinned: the error says how many are pinned, and the parameter to change. The loader isn't
// called.
func TestAllPinned(t *testing.T) {
	c, s := ofChunks(t, 3)
	a, b := load(t, c, 1), load(t, c, 2)
	_, err := c.GetOrLoad(background, 3, func(context.Context, *chunk) error {
		_, err := c.Add(4)
		require.ErrorIs(t, err, scope.ErrFull)
		require.ErrorContains(t, err, `budget "test": scratch 0.0: scope "world": a cache has 2 of 3 values of `+
			`cache_test.chunk pinned, and 1 in load; Unpin some, or make it with an n above 3`)
		if arena_c.Checked {
			require.ErrorContains(t, err, "2 pinned at github.com/upfront-mem/upfront/scope/cache_test.load ")
		}
		err = c.Resize(2)
		require.ErrorIs(t, err, scope.ErrFull)
		require.ErrorContains(t, err, "1 in load; Unpin some, or Resize it to 3 or more")
		return errLoad
	})
	require.Equal(t, errLoad, err)
	require.NoError(t, c.Resize(2))
	_, err = c.GetOrLoad(background, 3, nil2)
	require.ErrorContains(t, err, "has 2 of 2 values of cache_test.chunk pinned, and 0 in load; Unpin some, or "+
		"Resize it to more than 2, up to 3")
	err = c.Clear()
	require.ErrorIs(t, err, scope.ErrFull)
	require.ErrorContains(t, err, "0 in load; they stay; Unpin them first")
	require.Equal(t, 2, c.Len())
	c.Unpin(load(t, c, 2))
	pinAgain := c.Get(2)
	if c.Unpin(pinAgain); arena_c.Checked {
		require.ErrorContains(t, c.Clear(), "2 pinned at github.com/upfront-mem/upfront/scope/cache_test.load ",
			"the last pins were taken back")
	}
	c.Unpin(a)
	c.Unpin(load(t, c, 3))
	assert.Nil(t, c.Get(1))
	assert.Same(t, b, c.Get(2))
	require.NoError(t, s.Close())
}

// TestAFinalizerThatFails: an error, a panic and a Goexit reach the goroutine whose call evicted
// the value. The value's place is free in any case.
func TestAFinalizerThatFails(t *testing.T) {
	end := func() error { return nil }
	runs := 0
	maker := scope.Object(func(*chunk) error { runs++; return end() })
	for name, ending := range map[string]func() error{
		"error":  func() error { return errLoad },
		"panic":  func() error { panic("no disk") },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			s := b.Scratch(0, 0).Open("world")
			c := cache.NewObjects(s, places, maker, 1)
			for _, evicts := range []func(*testing.T, *chunkCache) error{
				func(_ *testing.T, c *chunkCache) error { _, err := c.Add(8); return err },
				func(_ *testing.T, c *chunkCache) error { _, err := c.GetOrLoad(background, 8, nil2); return err },
				func(_ *testing.T, c *chunkCache) error { return c.Delete(5) },
				func(_ *testing.T, c *chunkCache) error { return c.Clear() },
			} {
				end = func() error { return nil }
				c.Unpin(load(t, c, 5))
				end, runs = ending, 0
				var err error
				var group sync.WaitGroup
				group.Go(func() {
					defer func() { assert.Equal(t, name == "panic", recover() != nil) }()
					err = evicts(t, c)
				})
				group.Wait()
				if name == "error" {
					require.ErrorIs(t, err, errLoad)
				}
				assert.Equal(t, 1, runs)
				assert.Equal(t, 0, c.Len())
				assert.Nil(t, c.Get(5))
				require.NoError(t, walk(b))
			}
			end = func() error { return nil }
			c.Unpin(load(t, c, 5))
			require.NoError(t, s.Close())
			assert.Equal(t, 2, runs)
		})
	}
}

// TestALoadWaitsForTheFinalizer of the value before: it may read the bytes that the finalizer
// writes.
func TestALoadWaitsForTheFinalizer(t *testing.T) {
	var c *chunkCache
	var group sync.WaitGroup
	written := false
	maker := scope.Object(func(x *chunk) error {
		if x.At == 5 {
			group.Go(func() {
				x, err := c.GetOrLoad(background, 5, func(_ context.Context, x *chunk) error {
					assert.True(t, written)
					x.At = 7
					return nil
				})
				assert.NoError(t, err)
				assert.EqualValues(t, 7, x.At)
			})
			waitFor(c, 1)
			assert.Nil(t, c.Get(5))
			assert.NoError(t, c.Delete(5))
			written = true
		}
		return nil
	})
	s := open(t).Scratch(0, 0).Open("world")
	c = cache.NewObjects(s, places, maker, 2)
	c.Unpin(load(t, c, 5))
	require.NoError(t, c.Delete(5))
	group.Wait()
	assert.True(t, written)
	require.NoError(t, s.Close())
}

// TestTheScopeFinalizes the values that are there when it closes, and none in load.
func TestTheScopeFinalizes(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("world")
	c := cache.NewObjects(s, places, mortals, 4)
	c.Unpin(load(t, c, 1))
	load(t, c, 2) // pinned
	x, err := c.GetOrLoad(background, 3, func(_ context.Context, x *chunk) error {
		x.At = 3
		return s.Close()
	})
	assert.Nil(t, x)
	assert.ErrorIs(t, err, scope.ErrClosed)
	require.Len(t, ended, 2)
	assert.EqualValues(t, 3, ended[0].At+ended[1].At)
}

// TestTheScopeCloses while a finalizer runs: it runs once.
func TestTheScopeCloses(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("world")
	runs := 0
	c := cache.NewObjects(s, places, scope.Object(func(*chunk) error { runs++; return s.Close() }), 1)
	c.Unpin(load(t, c, 1))
	require.NoError(t, c.Delete(1))
	assert.Equal(t, 1, runs)
}

// TestAfterTheScope: a cache is empty, and using its values is a misuse.
func TestAfterTheScope(t *testing.T) {
	c, s := ofChunks(t, 3)
	x := load(t, c, 1)
	h := c.Handle(x)
	require.NoError(t, s.Close())
	assert.Nil(t, c.Get(1))
	assert.Nil(t, c.At(h))
	assert.Equal(t, 0, c.Len())
	assert.Equal(t, cache.OfStats{}, c.Stats())
	assert.NoError(t, errors.Join(c.Delete(1), c.Clear()))
	for what, use := range map[string]func(){
		"GetOrLoad": func() { _, _ = c.GetOrLoad(background, 1, nil2) },
		"Add":       func() { _, _ = c.Add(1) },
		"Unpin":     func() { c.Unpin(x) },
		"Handle":    func() { c.Handle(x) },
		"Resize":    func() { _ = c.Resize(1) },
	} {
		err := misuse(t, use)
		assert.ErrorIs(t, err, scope.ErrClosed, what)
		assert.ErrorContains(t, err, "scope: BUG: "+what+" of a cache in a closed scope of scratch 0.0")
	}
}

// misuse returns the error that fn panics with.
func misuse(t testing.TB, fn func()) (err error) {
	t.Helper()
	defer func() {
		t.Helper()
		err, _ = recover().(error)
		var bug *scope.Misuse
		require.ErrorAs(t, err, &bug)
	}()
	fn()
	return nil
}

func walk(b *budget.Budget) error { _, err := b.Walk(); return err }

func TestMisuse(t *testing.T) {
	c, s := ofChunks(t, 3)
	d := cache.New(s, places, chunks, 3)
	x := load(t, c, 1)
	c.Unpin(x)
	own := load(t, c, 2)
	var zero chunkCache
	var none context.Context
	floats := cache.New(s, scope.Plain[float64](), chunks, 1)
	for _, m := range []struct {
		says string
		use  func()
	}{
		{"Unpin of a cache_test.chunk that isn't pinned: Get, At, Add and GetOrLoad pin a value once each",
			func() { c.Unpin(x) }},
		{"Unpin of a cache_test.chunk that isn't a value of this cache", func() { d.Unpin(own) }},
		{"isn't a value of this cache", func() { c.Unpin(nil) }},
		{"isn't a value of this cache", func() { c.Unpin(new(chunk)) }},
		{"isn't a value of this cache", func() { c.Unpin((*chunk)(unsafe.Add(unsafe.Pointer(own), 8))) }},
		{"Handle of a cache_test.chunk that isn't pinned", func() { c.Handle(x) }},
		{"Handle of a cache_test.chunk that isn't a value of this cache", func() { c.Handle(new(chunk)) }},
		{"GetOrLoad without a function that loads", func() { _, _ = c.GetOrLoad(background, 1, nil) }},
		{"GetOrLoad without a context", func() { _, _ = c.GetOrLoad(none, 1, nil2) }},
		{"Resize of a cache to 4 values: from 1 to the 3 that it was made for", func() { _ = c.Resize(4) }},
		{"Resize of a cache to 0 values", func() { _ = c.Resize(0) }},
		{"a cache of 0 values: from 1 to 134217728", func() { cache.New(s, places, chunks, 0) }},
		{"a cache of -1 values", func() { cache.NewObjects(s, places, mortals, -1) }},
		{"a cache of 134217729 values", func() { cache.New(s, places, chunks, 1<<27+1) }},
		{"a cache of struct {}, which has no bytes", func() { cache.New(s, places, scope.Plain[struct{}](), 1) }},
		{"a Maker that was never declared", func() { cache.New(s, places, scope.Maker[chunk]{}, 1) }},
		{"a Maker that was never declared", func() { cache.New(s, scope.Maker[int64]{}, chunks, 1) }},
		{"a zero cache: cache.New makes one in a scope", func() { zero.Get(1) }},
		{"a zero cache", func() { _, _ = zero.Add(1) }},
		{"a float64 that isn't equal to itself, as the key of a cache", func() { _, _ = floats.Add(math.NaN()) }},
		{"compares by offset", func() { cache.New(s, scope.Plain[arena.String](), chunks, 1) }},
	} {
		assert.ErrorContains(t, misuse(t, m.use), m.says)
	}
	assert.Equal(t, [2]int{2, 1}, [2]int{c.Len(), c.Stats().Pinned}, "nothing changed")
	c.Unpin(own)
	c.Unpin(c.Get(1))
	assert.Nil(t, floats.Get(math.NaN()))
	require.NoError(t, s.Close())
}

// TestHandles: a handle finds its value until it is evicted, also after its chunk was used again.
func TestHandles(t *testing.T) {
	c, s := ofChunks(t, 1)
	x := load(t, c, 1)
	h := c.Handle(x)
	assert.Same(t, x, c.At(h))
	c.Unpin(x)
	c.Unpin(x)
	c.Unpin(load(t, c, 2))
	assert.Nil(t, c.At(h))
	c.Unpin(load(t, c, 1))
	assert.Nil(t, c.At(h), "another value of the same key")
	assert.Nil(t, c.At(0))
	assert.Nil(t, c.At(math.MaxUint64))
	require.NoError(t, s.Close())
}

// TestMaking: each of the requests of a cache fails in turn, and the budget is whole afterwards.
func TestMaking(t *testing.T) {
	budgettest.FailEach(t, plan, func(b *budget.Budget) error {
		_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*chunkCache, error) {
			c := cache.NewObjects(s, places, scope.Object(func(*chunk) error { return nil }), 20)
			if _, err := c.GetOrLoad(background, 1, loader(1)); err != nil {
				return nil, err
			}
			d := cache.New(s, places, chunks, 20)
			_, err := d.Add(1)
			return c, err
		})
		if err == nil {
			err = walk(b)
		}
		return err
	})
}

// TestNeverAByteMore: the bytes of a cache are its plan's, before and after many values.
func TestNeverAByteMore(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	s := scratch.Open("world")
	c := cache.NewObjects(s, places, mortals, 100)
	used := scratch.Stats().Used
	assert.Less(t, used, uint64(100*(40+25+67+4*8))+300)
	for at := range int64(2000) {
		c.Unpin(load(t, c, at))
	}
	assert.Len(t, ended, 1900)
	assert.Equal(t, used, scratch.Stats().Used)
	assert.EqualValues(t, 1900, scratch.Stats().Finalizers)
	require.NoError(t, walk(b))
	require.NoError(t, c.Clear())
	assert.Len(t, ended, 2000)
	require.NoError(t, s.Close())
}
