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

const anotherProxys = "a chunk of another proxy, or of the pool itself"

func TestPoolProxy(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.Pool(s, 4)
	a, b := pool.Proxy("a"), pool.Proxy("b")
	x, y, z := a.Get(), b.Get(), pool.Get()
	assert.EqualError(t, a.Put(y), `arena: BUG: proxy "a": Put: `+anotherProxys)
	assert.EqualError(t, a.Put(z), `arena: BUG: proxy "a": Put: `+anotherProxys)
	assert.EqualError(t, a.Put(&point{}), `arena: proxy "a": Put: scope: BUG: Index of a scope_test.point: not from here`)
	assert.EqualError(t, a.Put(nil), `arena: proxy "a": Put: scope: BUG: Index of a scope_test.point: not from here`)
	assert.Equal(t, 3, pool.Live())
	require.NoError(t, a.Put(x))
	assert.EqualError(t, a.Put(x), `arena: proxy "a": Put: scope: BUG: Index of a scope_test.point: put twice`)
	require.NoError(t, a.Close())
	require.Equal(t, 0, pool.Index(b.Get()), "the chunk that a had")
	pool.Put(y)
	assert.EqualError(t, b.Close(), `arena: proxy "b": 1 chunk was never put back: 0; `+
		`1 chunk was not found: put to the pool itself, or gone with it`)

	late := pool.Proxy("late")
	x = late.Get()
	require.NoError(t, s.Close())
	assert.ErrorIs(t, late.Put(x), scope.ErrClosed)
	assert.Nil(t, late.Get())
	assert.Nil(t, late.At(0))
	assert.EqualError(t, late.Close(), `arena: proxy "late": 1 chunk was not found: put to the pool itself, or gone with it`)
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
	assert.Equal(t, arena.PoolProxyStats{Live: 1, Peak: 4, Total: 4}, x.Stats(), "put, whatever their finalizers say")
	assert.Error(t, x.Put(bad))
	assert.Equal(t, []int64{1, 2, 3}, closed, "and finalized once")
	assert.ErrorContains(t, s.Close(), `arena: proxy "x": 1 chunk was never put back: 3`, "the scope closes it before the pool")
	assert.Equal(t, []int64{1, 2, 3, 4}, closed)
}

func TestHandlePoolProxyInAScope(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.HandlePool(s, 4)
	a, b := pool.Proxy("a"), pool.Proxy("b")
	v, x := a.Get()
	_, y := b.Get()
	assert.Same(t, v, a.At(x))
	assert.EqualError(t, a.Put(y), `arena: BUG: proxy "a": Put: `+anotherProxys)
	require.NoError(t, a.Put(x))
	assert.EqualError(t, a.Put(x), `arena: proxy "a": Put: scope: BUG: Put of a handle of a scope_test.point: put twice`)
	assert.EqualError(t, a.Put(0), `arena: proxy "a": Put: scope: BUG: Put of a handle of a scope_test.point: not from here`)
	require.NoError(t, a.Close())
	assert.EqualError(t, b.Close(), `arena: proxy "b": 1 chunk was never put back: 1`)
	assert.Equal(t, 1, pool.Live())
}

func TestPoolProxiesMakeNoGoAllocations(t *testing.T) {
	if instrumented {
		t.Skip("the instrumented build allocates on its own")
	}
	s := open(t).Scratch(0, 0).Open("a")
	x, h := points.Pool(s, 4).Proxy("x"), points.HandlePool(s, 4).Proxy("h")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = x.Put(x.Get())
		_, name := h.Get()
		_ = h.Put(name)
	}))
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
	leaked, _, _ = strings.Cut(leaked, "\n") // checked builds add where it was owned
	fmt.Println(leaked)
	// Output:
	// arena: BUG: proxy "hunters": Put: a chunk of another proxy, or of the pool itself
	// <nil>
	// arena: proxy "spawner": 1 chunk was never put back: 1
}
