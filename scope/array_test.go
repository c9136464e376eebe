package scope_test

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestArrayIsASlice plays at random with an array and with a slice.
func TestArrayIsASlice(t *testing.T) {
	pad := open(t).Pad(0, 0)
	for seed := range int64(40) {
		random := rand.New(rand.NewSource(seed))
		s := pad.Open("a")
		n := random.Intn(20)
		a, model := points.Array(s, n), []point{}
		for step := range 400 {
			x := point{int32(step), random.Int31()}
			switch random.Intn(12) {
			default:
				ok := a.Push(x)
				require.Equal(t, len(model) < n, ok)
				if ok {
					model = append(model, x)
				}
			case 0, 1, 2:
				last, ok := a.Pop()
				require.Equal(t, len(model) > 0, ok)
				if ok {
					require.Equal(t, model[len(model)-1], last)
					model = model[:len(model)-1]
				} else {
					require.Zero(t, last)
				}
			case 3:
				if len(model) > 0 {
					i := random.Intn(len(model))
					a.RemoveSwap(i)
					model[i] = model[len(model)-1]
					model = model[:len(model)-1]
				}
			case 4:
				if random.Intn(20) == 0 {
					a.Clear()
					model = model[:0]
				}
			case 5:
				if len(model) > 0 {
					i := random.Intn(len(model))
					a.At(i).Y++
					model[i].Y++
				}
			}
			require.Equal(t, len(model), a.Len(), "seed %d", seed)
			require.True(t, slices.Equal(model, a.Slice()), "seed %d", seed)
			i := 0
			for at, p := range a.All() {
				require.Equal(t, i, at)
				require.Equal(t, model[i], *p)
				i++
			}
			require.Equal(t, len(model), i)
		}
		require.NoError(t, s.Close())
	}
}

func TestArrayPanicsAsASliceDoes(t *testing.T) {
	s := open(t).Pad(0, 0).Open("a")
	a := points.Array(s, 4)
	assert.Nil(t, a.Slice())
	assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", func() { a.At(0) })
	assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", func() { a.RemoveSwap(0) })
	a.Push(point{1, 1})
	a.Push(point{2, 2})
	assert.PanicsWithError(t, "runtime error: index out of range [2] with length 2", func() { a.At(2) })
	assert.PanicsWithError(t, "runtime error: index out of range [-1]", func() { a.RemoveSwap(-1) })
	assert.Equal(t, 2, cap(a.Slice()), "append can't run into what Push gives")
	a.RemoveSwap(1)
	assert.Equal(t, []point{{1, 1}}, a.Slice())
	a.Clear()
	assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", func() { a.At(0) })
	require.NoError(t, s.Close())
	assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", func() { a.At(0) })
	assert.Panics(t, func() { a.RemoveSwap(0) })
	assert.Empty(t, a.Slice())
}

func TestArrayWhileRanging(t *testing.T) {
	s := open(t).Pad(0, 0).Open("a")
	a := points.Array(s, 5)
	a.Push(point{})
	for i, p := range a.All() {
		p.X = int32(i)
		a.Push(point{})
	}
	assert.Equal(t, []point{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}}, a.Slice(), "what Push adds comes along")
	for i := range a.All() {
		if i == 2 {
			break
		}
		a.Pop()
	}
	assert.Equal(t, 3, a.Len())
	for range a.All() {
		require.NoError(t, s.Close()) // and there is nothing more
	}
}
