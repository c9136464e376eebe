package container_test

import (
	"container/list"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/container"
)

// TestDequeIsAList plays at random with a deque and with a list of the standard library.
func TestDequeIsAList(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for seed := range int64(40) {
		random := rand.New(rand.NewSource(seed))
		s := scratch.Open("a")
		n := random.Intn(12)
		d, model := container.NewDeque(s, points, n), list.New()
		for step := range 500 {
			x := point{int32(step), random.Int31()}
			fits := model.Len() < n
			switch op := random.Intn(50); {
			case op < 14:
				require.Equal(t, fits, d.PushBack(x))
				if fits {
					model.PushBack(x)
				}
			case op < 28:
				require.Equal(t, fits, d.PushFront(x))
				if fits {
					model.PushFront(x)
				}
			case op < 38:
				popped(t, model, model.Back(), d.PopBack)
			case op < 48:
				popped(t, model, model.Front(), d.PopFront)
			case op < 49:
				d.Clear()
				model.Init()
			default:
				require.Equal(t, n, d.Cap())
			}
			require.Equal(t, model.Len(), d.Len(), "seed %d", seed)
			i, e := 0, model.Front()
			for at, p := range d.All() {
				require.Equal(t, i, at)
				require.Equal(t, e.Value, *p, "seed %d", seed)
				require.Same(t, p, d.At(i))
				i, e = i+1, e.Next()
			}
			require.Nil(t, e)
		}
		require.NoError(t, s.Close())
	}
}

func popped(t *testing.T, model *list.List, want *list.Element, pop func() (point, bool)) {
	t.Helper()
	got, ok := pop()
	require.Equal(t, want != nil, ok)
	if want == nil {
		require.Zero(t, got)
		return
	}
	require.Equal(t, model.Remove(want), got)
}

func TestDequePanicsAsASliceDoes(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	d := container.NewDeque(s, points, 4)
	assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", func() { d.At(0) })
	for range 3 {
		d.PushFront(point{})
	}
	d.PopBack()
	assert.PanicsWithError(t, "runtime error: index out of range [2] with length 2", func() { d.At(2) })
	assert.Panics(t, func() { d.At(-1) }) // the number in the text differs between processors
	require.NoError(t, s.Close())
	assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", func() { d.At(0) })
	for _, pop := range []func() (point, bool){d.PopFront, d.PopBack} {
		got, ok := pop()
		assert.False(t, ok)
		assert.Zero(t, got)
	}
	assert.PanicsWithError(t, "PushFront to a Deque: scope: BUG: use of a scope of scratch 0.0 that is closed",
		func() { d.PushFront(point{}) })
}

func TestDequeWhileRanging(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	d := container.NewDeque(s, points, 4)
	d.PushBack(point{})
	seen := 0
	for i, p := range d.All() {
		p.X = int32(i)
		d.PushBack(point{})
		if seen++; seen == 3 {
			break
		}
	}
	assert.Equal(t, []int{3, 4}, []int{seen, d.Len()})
	for range d.All() {
		require.NoError(t, s.Close())
	}
}
