package scope_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

func TestObjectSlices(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	assert.Len(t, marks.Slice(s, 3), 3)
	two := marks.Slice(s, 2)
	two[0].ID, two[1].ID = 1, 2
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{2, 1, 0, 0, 0}, closed)
}

func TestPools(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	pool := points.Pool(s, 3)
	x, y, z := pool.Get(), pool.Get(), pool.Get()
	assert.Nil(t, pool.Get())
	y.X = 5
	pool.Put(y)
	assert.Nil(t, pool.At(1))
	assert.Nil(t, pool.At(-1))
	assert.Nil(t, pool.At(3))
	y = pool.Get()
	assert.Equal(t, 1, pool.Index(y), "the chunk that was put last")
	assert.Zero(t, y.X)
	assert.Equal(t, []int{0, 1, 2}, []int{pool.Index(x), pool.Index(y), pool.Index(z)})
	pool.Put(x)
	assert.PanicsWithError(t, "scope: BUG: Put of a scope_test.point: put twice", func() { pool.Put(x) })
	assert.PanicsWithError(t, "scope: BUG: Put of a scope_test.point: not from here", func() { pool.Put(&point{}) })
	assert.PanicsWithError(t, "scope: BUG: Put of nil, pool of scope_test.point", func() { pool.Put(nil) })
	assert.Equal(t, []int{3, 2, 3}, []int{pool.Cap(), pool.Live(), pool.Peak()})
	points.Pool(s, 0)
	assert.PanicsWithError(t, `budget "test": scratch 0.0 is full: scope "a" asked for one more of 2 pools; `+
		`raise limits.pools in the plan to 3 or more`,
		func() { points.Pool(s, 1) })
	require.NoError(t, s.Close())
	assert.Nil(t, pool.Get(), "a pool dies with its scope")
	assert.Nil(t, pool.At(0))
	assert.Zero(t, pool.Cap()+pool.Live()+pool.Peak())
	assert.PanicsWithError(t, "scope: BUG: Put of a scope_test.point: closed already", func() { pool.Put(z) })
}

// TestBadPutIsTold when the pool has closed meanwhile: what was wrong doesn't change.
func TestBadPutIsTold(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	pool := points.Pool(s, 3)
	x, y := pool.Get(), pool.Get()
	pool.Put(y)
	inside := (*point)(unsafe.Add(unsafe.Pointer(x), 4))
	for text, bad := range map[string]*point{"put twice": y, "not from here": new(point), "inside a chunk, not at its start": inside} {
		err := panicsWith(func() { pool.Put(bad) })
		assert.EqualError(t, err, "scope: BUG: Put of a scope_test.point: "+text)
		defer func() { assert.EqualError(t, err, "scope: BUG: Put of a scope_test.point: "+text) }()
		misuse := new(scope.Misuse)
		assert.ErrorAs(t, err, &misuse)
	}
	assert.Equal(t, 1, pool.Live(), "nothing changed")
	require.NoError(t, s.Close())
}

func TestGetUnzeroed(t *testing.T) {
	pool := points.Pool(open(t).Scratch(0, 0).Open("a"), 1)
	x := pool.GetUnzeroed()
	x.X = 5
	assert.Nil(t, pool.GetUnzeroed())
	pool.Put(x)
	x = pool.GetUnzeroed()
	if !arena_c.Crossing && !arena_c.Race { // those overwrite what is put
		assert.EqualValues(t, 5, x.X)
	}
}

// greedy is put and taken by the finalizer of another one of its pool, while the scope closes.
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

// TestPoolsWithoutBytes have handles, or nothing that tells their values apart.
func TestPoolsWithoutBytes(t *testing.T) {
	nothing := scope.Plain[struct{}]()
	s := open(t).Scratch(0, 0).Open("a")
	assert.PanicsWithError(t, "scope: BUG: a pool of struct {}, which has no bytes: an address doesn't "+
		"tell such from another; use a HandlePool",
		func() { nothing.Pool(s, 1) })
	pool := nothing.HandlePool(s, 2)
	_, a := pool.Get()
	_, b := pool.Get()
	pool.Put(a)
	assert.Equal(t, []int{-1, 1}, []int{pool.Index(a), pool.Index(b)})
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

func TestPutOfAnAddressInAGoObject(t *testing.T) {
	pool := points.Pool(open(t).Scratch(0, 0).Open("a"), 2)
	other := &struct {
		inside point
		name   *string
	}{name: new(string)}
	assert.PanicsWithError(t, "scope: BUG: Put of a scope_test.point: not from here", func() { pool.Put(&other.inside) })
	assert.PanicsWithError(t, "scope: BUG: Index of a scope_test.point: not from here", func() { pool.Index(&other.inside) })
}
