package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestFullAfterAnIgnoredTryIsStillAFull: a deferred Close of a scope that remembers another full must not take its place.
func TestFullAfterAnIgnoredTryIsStillAFull(t *testing.T) {
	pad := open(t).Pad(0, 0)
	err := pad.Do("do", func(s scope.Scope) error {
		a := s.Open("a")
		defer a.Close()
		points.TrySlice(a, 1<<20) // nil, which nobody minds
		b := a.Open("b")
		defer b.Close()
		b.Alloc(1<<30, 8)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
}

// TestTryInAScopeThatAConstructorLeftOpen: what was met there is remembered by the scope of the constructor.
func TestTryInAScopeThatAConstructorLeftOpen(t *testing.T) {
	pad := open(t).Pad(0, 0)
	err := pad.Do("do", func(s scope.Scope) error {
		_, err := marks.Make(s, func(*mark) error {
			x := points.TrySlice(s.Open("left open"), 1<<20)
			x[0].X = 1
			return nil
		})
		return err
	})
	assert.ErrorIs(t, err, scope.ErrFull)
}

// TestObjectsOfAPoolAreFinalizedOnce: a parent puts its children while the pool closes, and one whose turn is over.
func TestObjectsOfAPoolAreFinalizedOnce(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("s")
	times := map[int32]int{}
	var pool scope.ObjectPool[point]
	nodes := scope.Object(func(x *point) error {
		times[x.X]++
		if x.X == 2 {
			return pool.Put(pool.At(0)) // its child
		}
		return nil
	})
	pool = nodes.Pool(s, 2)
	pool.Get().X = 1
	pool.Get().X = 2
	_ = s.Close()
	assert.Equal(t, map[int32]int{1: 1, 2: 1}, times)
}

// TestPutWhoseFinalizerClosesTheScope: the chunk counts as put while its finalizer runs.
func TestPutWhoseFinalizerClosesTheScope(t *testing.T) {
	s := open(t).Pad(0, 0).Open("s")
	times := 0
	once := scope.Object(func(*point) error {
		times++
		if times == 1 {
			return s.Close()
		}
		return nil
	})
	pool := once.Pool(s, 1)
	assert.NotPanics(t, func() { _ = pool.Put(pool.Get()) })
	assert.Equal(t, 1, times)
}

// TestNeedIsTheLeastSize: with the alignment that most have.
func TestNeedIsTheLeastSize(t *testing.T) {
	for _, size := range []uint64{18, 20} {
		b, err := budget.Open(budget.Plan{Name: "need", Regions: []budget.Region{{Name: "level", Size: 1}},
			Pads: budget.Pads{Workers: 1, Size: size}})
		require.NoError(t, err)
		err = b.Pad(0, 0).Do("a", func(s scope.Scope) error {
			s.Alloc(3, 1)
			s.Alloc(16, 8)
			return nil
		})
		require.ErrorIs(t, err, scope.ErrFull)
		assert.EqualValues(t, 24, isFull(err).Need, "size %d", size) // 19 is too few, 65556 too many
		require.NoError(t, b.Close())
	}
}

// TestTheLastKiBOfTemporaries: the message is one that helps.
func TestTheLastKiBOfTemporaries(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "piece", Regions: []budget.Region{{Name: "level", Size: 1}},
		Pads: budget.Pads{Workers: 1, Size: 500}})
	require.NoError(t, err)
	defer b.Close()
	s := b.Pad(0, 0).Open("s")
	if points.TryNew(s.Temp()) == nil {
		assert.NotContains(t, s.Temp().Err().Error(), "call Temp again", "that never helps: Temp takes 1 KiB or nothing")
	}
	_ = s.Close()
}

// TestErrorsOfPartsWhenAConstructorUnwinds: who closes the scope gets them.
func TestErrorsOfPartsWhenAConstructorUnwinds(t *testing.T) {
	pad := open(t).Pad(0, 0)
	err := pad.Do("do", func(s scope.Scope) error {
		_, err := marks.Make(s, func(*mark) error {
			newMark(s, 1, doFail)
			s.Alloc(1<<30, 8)
			return nil
		})
		return err
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorIs(t, err, errMark)
}

// TestFinalizerOfATemporaryMayNotOpenAScopeInALoadThatEnds: what is loaded is frozen before temporaries close.
func TestFinalizerOfATemporaryMayNotOpenAScopeInALoadThatEnds(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		s.Temp().Defer(func() { s.Open("from a finalizer").Bytes(1000) })
		return nil
	}))
	assert.Zero(t, b.Region("level").Report().Used)
}

// TestFinalizersOfPutAreCounted, and those of what Own and Defer had no room for.
func TestFinalizersOfPutAreCounted(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("s")
	pool := marks.Pool(s, 1)
	require.NoError(t, pool.Put(pool.Get()))
	assert.EqualValues(t, 1, pad.Stats().Finalizers)
	s.Alloc(s.Free(), 1)
	assert.Panics(t, func() { s.Own(&closer{}) })
	assert.EqualValues(t, 2, pad.Stats().Finalizers)
	require.NoError(t, s.Close())
}
