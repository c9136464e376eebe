package scope_test

import (
	"math"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

func TestPools(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.Pool(s, 3)
	x, y, z := pool.Get(), pool.Get(), pool.Get()
	assert.Nil(t, pool.Get())
	y.X = 5
	pool.Put(y)
	for _, i := range []int{-1, 1, 3} {
		assert.Nil(t, pool.At(i))
	}
	y = pool.Get()
	assert.Equal(t, 1, pool.Index(y), "the chunk that was put last")
	assert.Zero(t, y.X)
	assert.Equal(t, []int{0, 1, 2}, []int{pool.Index(x), pool.Index(y), pool.Index(z)})
	pool.Put(x)
	assert.Equal(t, []int{3, 2, 3}, []int{pool.Cap(), pool.Live(), pool.Peak()})
	require.NoError(t, s.Close())
	assert.Nil(t, pool.Get(), "a pool dies with its scope")
	assert.Nil(t, pool.At(0))
	assert.Zero(t, pool.Cap()+pool.Live()+pool.Peak())
}

// TestBadPuts: they panic and change nothing. The reason is reported even if the pool has closed
// meanwhile.
func TestBadPuts(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.SharedPool(s, 3)
	x, y := pool.Get(), pool.Get()
	pool.Put(y)
	inside := (*point)(unsafe.Add(unsafe.Pointer(x), 4))
	other := &struct {
		inside point
		name   *string
	}{name: new(string)}
	for want, bad := range map[string]*point{
		"Put of a scope_test.point: put already":                      y,
		"Put of a scope_test.point: not a chunk of this pool":         &other.inside,
		"Put of a scope_test.point: inside a chunk, not at its start": inside,
		"Put of nil, pool of scope_test.point":                        nil,
	} {
		err := recovered(func() { pool.Put(bad) })
		assert.EqualError(t, err, "scope: BUG: "+want)
		defer func() { assert.EqualError(t, err, "scope: BUG: "+want) }()
		misuse := new(scope.Misuse)
		assert.ErrorAs(t, err, &misuse)
	}
	assert.Equal(t, []int{1, 2}, []int{pool.Live(), pool.Peak()}, "and a SharedPool's lock was given back")
	assert.EqualError(t, recovered(func() { points.Pool(s, 2).Index(&other.inside) }),
		"scope: BUG: Index of a scope_test.point: not a chunk of this pool")
	require.NoError(t, s.Close())
	assert.Nil(t, pool.Get())
	assert.Zero(t, pool.Live()+pool.Peak())
	err := recovered(func() { pool.Put(x) })
	assert.EqualError(t, err, "scope: BUG: Put of a scope_test.point: closed already")
	assert.ErrorIs(t, err, scope.ErrClosed)
}

func TestPoolsThatCannotBe(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	const no = "scope: BUG: "
	refused := func(want string, do func()) {
		t.Helper()
		assert.PanicsWithError(t, want, do)
	}
	refused(no+"a pool of -1 chunks: give 0 or more", func() { points.Pool(s, -1) })
	refused(no+"a pool of -1 chunks: give 0 or more", func() { points.SharedPool(s, -1) })
	refused(no+"a pool of -1 chunks: give 0 or more", func() { points.HandlePool(s, -1) })
	if count := uint64(1) << 32; count <= math.MaxInt {
		refused(no+"a pool of 4294967296 chunks: handles name fewer than 2^32", func() {
			points.HandlePool(s, int(count))
		})
	}
	full := recovered(func() { points.HandlePool(s, min(1<<32-1, math.MaxInt)) })
	assert.ErrorIs(t, full, scope.ErrFull)
	refused(no+"a pool of struct {}, which has no bytes, so an address can't identify a value; use a HandlePool",
		func() { empties.Pool(s, 1) })
	inner := s.Open("inner")
	refused(no+`Pool in scope "a" of scratch 0.0 while scope "inner", opened in it, is open; close "inner" first`,
		func() { points.HandlePool(s, 1) })
	require.NoError(t, inner.Close())

	nothing := empties.HandlePool(s, 2)
	_, a := nothing.Get()
	_, b := nothing.Get()
	nothing.Put(a)
	assert.Equal(t, []int{-1, 1}, []int{nothing.Index(a), nothing.Index(b)}, "a handle tells them apart")
	empty := points.HandlePool(s, 0)
	x, h := empty.Get()
	assert.Nil(t, x)
	assert.Zero(t, h)
	refused(putOf+"not a chunk of this pool", func() { empty.Put(1 << 32) })
	refused(`budget "test": scratch 0.0: all 2 places for pools are taken: scope "a" asked for one more; raise limits.pools in the plan to 3 or more`,
		func() { points.Pool(s, 1) })
}

func TestGetUnzeroed(t *testing.T) {
	pool := points.Pool(open(t).Scratch(0, 0).Open("a"), 1)
	x := pool.GetUnzeroed()
	x.X = 5
	assert.Nil(t, pool.GetUnzeroed())
	pool.Put(x)
	x = pool.GetUnzeroed()
	if !arena_c.Crossing && !arena_c.Race { // those overwrite a chunk that was put
		assert.EqualValues(t, 5, x.X)
	}
}

// greedy objects are put and taken by the finalizer of another one of their pool, while the scope
// closes.
type greedy struct{ Other, _ int64 }

var (
	greedyPool scope.ObjectPool[greedy]
	greedyRuns []int
	greedyGot  []*greedy
	greedies   = scope.Object[greedy](func(g *greedy) error {
		greedyRuns = append(greedyRuns, greedyPool.Cap()-int(g.Other))
		greedyGot = append(greedyGot, greedyPool.Get())
		if other := greedyPool.At(int(g.Other)); other != nil {
			_ = greedyPool.Put(other)
			greedyGot = append(greedyGot, greedyPool.At(int(g.Other)))
		}
		return nil
	})
)

func TestClosingPoolsGiveNothing(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	greedyRuns, greedyGot, greedyPool = nil, nil, greedies.Pool(s, 4)
	for _, other := range []int64{1, 2, 3} {
		greedyPool.Get().Other = other
	}
	require.NoError(t, s.Close())
	assert.Equal(t, []int{3, 2, 1}, greedyRuns, "each once, by whom it was put")
	assert.Equal(t, make([]*greedy, 5), greedyGot)
}

func TestObjectPools(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := marks.Pool(s, 8)
	for id := range int64(8) {
		m := pool.Get()
		m.ID = id
		if id == 4 {
			m.Do = doPanic
		}
	}
	ids := []int64{}
	for i, m := range pool.All() {
		assert.EqualValues(t, i, m.ID)
		if ids = append(ids, m.ID); i == 5 {
			break
		}
	}
	assert.Equal(t, []int64{0, 1, 2, 3, 4, 5}, ids)
	assert.Equal(t, []int{8, 8, 8}, []int{pool.Cap(), pool.Live(), pool.Peak()})
	third := pool.At(3)
	assert.Equal(t, 3, pool.Index(third))
	require.NoError(t, pool.Put(third))
	assert.Panics(t, func() { _ = pool.Put(third) })
	assert.Equal(t, []int64{3}, closed)
	err := s.Close()
	assert.ErrorContains(t, err, "mark panics")
	assert.Equal(t, []int64{3, 0, 1, 2, 4, 5, 6, 7}, closed, "each live one exactly once")
}

// TestPutWhileItsFinalizerRuns: the chunk counts as put. So the finalizer can't put it again, and
// it may close the scope, which doesn't finalize the chunk again.
func TestPutWhileItsFinalizerRuns(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	var pool scope.ObjectPool[point]
	runs, closes := 0, false
	finalized := scope.Object[point](func(x *point) error {
		if runs++; runs > 2 {
			return nil
		}
		assert.Nil(t, pool.At(0))
		assert.EqualError(t, recovered(func() { _ = pool.Put(x) }),
			"scope: BUG: Put of a scope_test.point: put already")
		if closes {
			return s.Close()
		}
		return nil
	})
	pool = finalized.Pool(s, 1)
	require.NoError(t, pool.Put(pool.Get()))
	assert.Equal(t, 1, runs)

	closes = true
	x := pool.Get()
	require.NotPanics(t, func() { assert.NoError(t, pool.Put(x)) })
	assert.Equal(t, 2, runs)
	assert.Zero(t, pool.Cap())
}

// TestPutThatEndsWhileItsPoolCloses: a Put begins before the pool's scope closes, and frees its
// chunk meanwhile. A finalizer of a later chunk takes it, so it is finalized again.
func TestPutThatEndsWhileItsPoolCloses(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	var pool scope.ObjectPool[mark]
	var runs []int64
	began, goOn, put := make(chan bool), make(chan bool), make(chan bool)
	finalized := scope.Object[mark](func(m *mark) error {
		runs = append(runs, m.ID)
		switch m.ID {
		case 1:
			close(began)
			<-goOn
		case 2:
			close(goOn)
			<-put
			pool.Get().ID = 3
		}
		return nil
	})
	pool = finalized.Pool(s, 2)
	first := pool.Get()
	first.ID, pool.Get().ID = 1, 2
	go func() {
		_ = pool.Put(first)
		close(put)
	}()
	<-began
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{1, 2, 3}, runs)
}

const putOf = "scope: BUG: Put of a handle of a scope_test.point: "

func TestHandlePool(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.HandlePool(s, 3)
	x, hx := pool.Get()
	_, hy := pool.Get()
	_, hz := pool.Get()
	none, h := pool.Get()
	assert.Nil(t, none)
	assert.Zero(t, h)
	assert.Nil(t, pool.At(0), "the zero handle names nothing")
	assert.Same(t, x, pool.At(hx))
	pool.Put(hy)
	again, hAgain := pool.Get()
	assert.Equal(t, 1, pool.Index(hAgain), "the chunk that was put last")
	assert.Nil(t, pool.At(hy), "its chunk was taken again")
	assert.Same(t, again, pool.At(hAgain))
	assert.Equal(t, []int{3, 3, 3}, []int{pool.Cap(), pool.Live(), pool.Peak()})

	pool.Put(hz)
	for text, h := range map[string]arena.Handle[point]{"put already": hz, "not a chunk of this pool": 0} {
		assert.PanicsWithError(t, putOf+text, func() { pool.Put(h) })
	}
	for _, far := range []arena.Handle[point]{hx + 3, hx | 1<<32 - 1, 1<<64 - 1} {
		assert.Nil(t, pool.At(far))
		assert.PanicsWithError(t, putOf+"not a chunk of this pool", func() { pool.Put(far) })
	}
	assert.PanicsWithError(t, putOf+"put already", func() { pool.Put(hy) }, "a stale handle doesn't put the new value")
	assert.Equal(t, 2, pool.Live(), "nothing changed")

	require.NoError(t, s.Close())
	none, h = pool.Get()
	assert.Nil(t, none)
	assert.Zero(t, h)
	assert.Nil(t, pool.At(hx))
	assert.Zero(t, pool.Cap()+pool.Live()+pool.Peak())
	for range pool.All() {
		assert.Fail(t, "a closed pool has values")
	}
	err := recovered(func() { pool.Put(hx) })
	assert.EqualError(t, err, putOf+"closed already")
	assert.ErrorIs(t, err, scope.ErrClosed)
}

// TestHandlesRetire: a chunk with its last generation isn't returned by Get any more.
func TestHandlesRetire(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	first, pool := points.HandlePool(s, 1), points.HandlePool(s, 2)
	x, h := pool.Get()
	generation := (*uint32)(unsafe.Add(accounted(s, unsafe.Pointer(x)), -24+8)) // after two numbers
	assert.Equal(t, arena.Handle[point](1<<63+1<<32), h, "the second of 2 pools")
	pool.Put(h)
	require.EqualValues(t, uint64(1<<31+2), *generation)
	*generation = 1<<32 - 1
	_, h = pool.Get()
	assert.Equal(t, arena.Handle[point](1<<64-1<<32), h)
	pool.Put(h)
	assert.PanicsWithError(t, putOf+"put already", func() { pool.Put(h) })
	assert.Nil(t, pool.At(h))
	assert.Equal(t, []int{2, 0, 1}, []int{pool.Cap(), pool.Live(), pool.Peak()})
	_, other := pool.Get()
	assert.Equal(t, 1, pool.Index(other))
	last, h := pool.Get()
	assert.Nil(t, last, "one chunk less")
	assert.Zero(t, h)
	assert.Equal(t, 1, pool.Live())
	_, h = first.Get()
	assert.Equal(t, arena.Handle[point](1<<32), h)
	assert.Equal(t, -1, pool.Index(h), "another pool's, which names nothing here")
	assert.PanicsWithError(t, putOf+"not a chunk of this pool", func() { pool.Put(h) })
}

// TestSharedPool: goroutines get, write and put; the race detector would find two with the same
// value.
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
