package scope_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var addrs = scope.Plain[scope.Addr[point]]()

// TestAddr: a list on scratch has the addresses of objects of the level, also in a pool and at the
// far end.
func TestAddr(t *testing.T) {
	b := open(t)
	var level scope.Scope
	var pool scope.Pool[point]
	loaded, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*[]point, error) {
		level = s
		list := points.Slice(s, 100)
		pool = points.Pool(s, 1)
		far := points.New(s.Temp(64))
		assert.Same(t, far, scope.AddrOf(s, far).Get())
		for i := range list {
			list[i].X = int32(i)
		}
		return &list, nil
	})
	require.NoError(t, err)
	list, s := *loaded.Get(), b.Scratch(0, 0).Open("query")
	near := addrs.SliceCap(s, 0, 102)
	for i := range list {
		near = append(near, scope.AddrOf(level, &list[i]))
	}
	near = append(near, scope.AddrOf(level, pool.Get()), scope.AddrOf[point](level, nil))
	runtime.GC()
	for i, a := range near[:100] {
		assert.Same(t, &list[i], a.Get())
		a.Get().Y = 7
	}
	assert.EqualValues(t, 99, near[99].Get().X)
	assert.EqualValues(t, 7, list[99].Y)
	assert.NotNil(t, near[100].Get())
	assert.True(t, near[101].Get() == nil, "the compiler doesn't know better")
	assert.Nil(t, scope.Addr[point]{}.Get())
	assert.Equal(t, near[5], scope.AddrOf(level, &list[5]), "== is that of pointers")
	assert.Zero(t, testing.AllocsPerRun(100, func() { near[0] = scope.AddrOf(level, near[0].Get()) }))
	require.NoError(t, s.Close())
}

func TestAddrRefusesWhatLiesElsewhere(t *testing.T) {
	b := open(t)
	outer := b.Scratch(0, 0).Open("outer")
	inOuter := points.New(outer)
	s := outer.Open("s")
	inS := points.New(s)
	assert.Same(t, inS, scope.AddrOf(outer, inS).Get(), "in the arena of s is enough")
	assert.Same(t, inOuter, scope.AddrOf(s, inOuter).Get())
	elsewhere := points.New(b.Scratch(1, 0).Open("elsewhere"))
	const wrong = "scope: BUG: AddrOf of a scope_test.point that is not in scratch 0.0"
	for _, x := range []*point{elsewhere, new(point)} {
		assert.PanicsWithError(t, wrong, func() { scope.AddrOf(s, x) })
	}
	require.NoError(t, s.Close())
	if !arena_c.Crossing { // there its bytes are in a mirror
		assert.PanicsWithError(t, wrong, func() { scope.AddrOf(outer, inS) }, "what is behind the cursor")
	}
	assert.ErrorIs(t, panicked(func() { scope.AddrOf(s, inOuter) }), budget.ErrClosed)
	require.NoError(t, outer.Close())
}

func panicked(fn func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}
