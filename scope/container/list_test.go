package container_test

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/container"
)

// TestListIsASlice plays at random with a list and with a slice.
func TestListIsASlice(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for seed := range int64(40) {
		random := rand.New(rand.NewSource(seed))
		s := scratch.Open("a")
		n := random.Intn(20)
		list, model := container.NewList(s, points, n), []point{}
		for step := range 400 {
			x, some := point{int32(step), random.Int31()}, len(model) > 0
			switch op := random.Intn(60); {
			case op < 35:
				require.Equal(t, len(model) < n, list.Push(x))
				if len(model) < n {
					model = append(model, x)
				}
			case op < 50:
				last, ok := list.Pop()
				require.Equal(t, some, ok)
				if some {
					require.Equal(t, model[len(model)-1], last)
					model = model[:len(model)-1]
				} else {
					require.Zero(t, last)
				}
			case op < 54 && some:
				i := random.Intn(len(model))
				list.RemoveSwap(i)
				model[i] = model[len(model)-1]
				model = model[:len(model)-1]
			case op < 59 && some:
				i := random.Intn(len(model))
				list.At(i).Y++
				model[i].Y++
			case op == 59:
				list.Clear()
				model = model[:0]
			}
			require.Equal(t, len(model), list.Len(), "seed %d", seed)
			require.True(t, slices.Equal(model, list.Slice()), "seed %d", seed)
			i := 0
			for at, p := range list.All() {
				require.Equal(t, i, at)
				require.Equal(t, model[i], *p)
				i++
			}
			require.Equal(t, len(model), i)
		}
		require.NoError(t, s.Close())
	}
}

func TestListPanicsAsASliceDoes(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	list := container.NewList(s, points, 4)
	const empty = "runtime error: index out of range [0] with length 0"
	assert.PanicsWithError(t, empty, func() { list.At(0) })
	assert.PanicsWithError(t, empty, func() { list.RemoveSwap(0) })
	list.Push(point{1, 1})
	list.Push(point{2, 2})
	assert.PanicsWithError(t, "runtime error: index out of range [2] with length 2", func() { list.At(2) })
	assert.PanicsWithError(t, "runtime error: index out of range [-1]", func() { list.RemoveSwap(-1) })
	assert.Equal(t, 2, cap(list.Slice()), "append can't run into what Push gives")
	require.NoError(t, s.Close())
	assert.PanicsWithError(t, empty, func() { list.At(0) })
	assert.PanicsWithError(t, empty, func() { list.RemoveSwap(0) })
	assert.Nil(t, list.Slice())
}

func TestListWhileRanging(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	list := container.NewList(s, points, 5)
	list.Push(point{})
	for i, p := range list.All() {
		p.X = int32(i)
		list.Push(point{})
	}
	assert.Equal(t, []point{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}}, list.Slice(), "what Push adds comes along")
	for i := range list.All() {
		if i == 2 {
			break
		}
		list.Pop()
	}
	assert.Equal(t, 3, list.Len())
	for range list.All() {
		require.NoError(t, s.Close()) // and there is nothing more
	}
}
