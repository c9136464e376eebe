package scope_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

const notOfProxy = "not of this proxy: another's, or given back already"

func TestPoolProxy(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.Pool(s, 4)
	a, b := pool.Proxy("a"), pool.Proxy("b")
	x, y, z := a.Get(), b.Get(), pool.Get()
	for _, other := range []*point{y, z, {}, nil} {
		assert.EqualError(t, a.Put(other), `arena: BUG: proxy "a": Put: `+notOfProxy)
	}
	assert.Equal(t, 3, pool.Live())
	require.NoError(t, a.Put(x))
	assert.EqualError(t, a.Put(x), `arena: BUG: proxy "a": Put: `+notOfProxy)
	require.NoError(t, a.Close())
	require.Equal(t, 0, pool.Index(b.Get()), "the chunk that a had")
	pool.Put(y)
	assert.EqualError(t, b.Put(y), `scope: BUG: Put of a scope_test.point: put twice`, "behind its back")
	assert.ErrorContains(t, b.Close(), `arena: proxy "b": 1 of 2 never freed: 8 bytes at 0x`)

	late := pool.Proxy("late")
	x = late.Get()
	require.NoError(t, s.Close())
	assert.ErrorIs(t, late.Put(x), scope.ErrClosed)
	assert.Nil(t, late.Get())
	assert.NoError(t, late.Close())
}

func TestObjectPoolProxy(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := marks.Pool(s, 4)
	x := pool.Proxy("x")
	s.Own(x)
	good, bad, panics, lost := x.Get(), x.Get(), x.Get(), x.Get()
	bad.ID, bad.Do, panics.ID, panics.Do, good.ID, lost.ID = 1, doFail, 2, doPanic, 3, 4
	assert.ErrorIs(t, x.Put(bad), errMark)
	assert.Panics(t, func() { _ = x.Put(panics) })
	require.NoError(t, x.Put(good))
	assert.EqualValues(t, []uint64{1, 4}, []uint64{x.Stats().Live, x.Stats().Total}, "put, whatever their finalizers say")
	assert.Error(t, x.Put(bad))
	assert.Equal(t, []int64{1, 2, 3}, closed, "and finalized once")
	assert.ErrorContains(t, s.Close(), `arena: proxy "x": 1 of 4 never freed: `, "the scope closes it before the pool")
	assert.Equal(t, []int64{1, 2, 3, 4}, closed)
}

func TestHandlePoolProxyInAScope(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.HandlePool(s, 4)
	a, b := pool.Proxy("a"), pool.Proxy("b")
	_, x := a.Get()
	_, y := b.Get()
	for _, other := range []arena.Handle[point]{y, 0} {
		assert.EqualError(t, a.Put(other), `arena: BUG: proxy "a": Put: `+notOfProxy)
	}
	require.NoError(t, a.Put(x))
	assert.ErrorContains(t, a.Put(x), notOfProxy)
	require.NoError(t, a.Close())
	pool.Put(y)
	assert.ErrorContains(t, b.Put(y), "put twice", "behind its back")
	require.NoError(t, b.Close())
}

// Two systems share a pool of the level; the one that forgets is named when the level goes.
func ExamplePool_Proxy() {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	ctx, level := context.Background(), b.Region("level")
	_, err = budget.Load(ctx, level, func(s scope.Scope) (*point, error) {
		pool := points.Pool(s, 64)
		hunters, spawner := pool.Proxy("hunters"), pool.Proxy("spawner")
		s.Own(hunters) // after the pool: they close before it
		s.Own(spawner)
		prey := spawner.Get()
		spawner.Get()
		fmt.Println(hunters.Put(prey))
		return nil, spawner.Put(prey)
	})
	fmt.Println(err)
	_, leaked, _ := strings.Cut(level.Rewind(ctx).Error(), "]: ")
	leaked, _, _ = strings.Cut(leaked, " at ") // its address; in checked builds also who asked for it
	fmt.Println(leaked)
	// Output:
	// arena: BUG: proxy "hunters": Put: not of this proxy: another's, or given back already
	// <nil>
	// arena: proxy "spawner": 1 of 2 never freed: 8 bytes
}
