package budget_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func oneFrame() budget.Plan {
	plan := small()
	plan.Frame.Buffers = 1
	return plan
}

// TestAFrameOfOneBuffer: a frame's objects end with the next NextFrame, finalizers newest first,
// even inside open scopes.
func TestAFrameOfOneBuffer(t *testing.T) {
	for seed := range uint64(50) {
		b := open(t, oneFrame())
		random := rand.New(rand.NewPCG(seed, 1))
		first := placeOf(b, frogs.New(b.Frame()))
		for range 12 {
			require.NoError(t, b.NextFrame())
			old, peak := b.Frame(), beside(b.Report())[0].Peak
			assert.Equal(t, first, placeOf(b, frogs.New(old)), "the same bytes again")
			var want []int64
			open, top := 0, old
			for range random.IntN(6) {
				switch random.IntN(3) {
				case 0:
					newMark(top, int64(len(want)), 0)
					want = append(want, int64(len(want)))
				case 1:
					top.Bytes(random.IntN(3000))
				case 2:
					top = top.Open("inner")
					open++
				}
			}
			used := beside(b.Report())[0].Used
			err := b.NextFrame()
			assert.Equal(t, open > 0, err != nil, "%v", err)
			slices.Reverse(want)
			assert.Equal(t, want, append([]int64(nil), ran...))
			ran = nil
			for _, s := range []scope.Scope{old, top} {
				assert.Nil(t, frogs.TryNew(s))
				assert.Contains(t, panics(t, func() { s.Open("late") }), "a closed scope")
			}
			now := beside(b.Published())[0]
			assert.Zero(t, now.Used)
			assert.Equal(t, max(peak, used), now.Peak)
			assert.Equal(t, beside(b.Report())[0], now)
			requireWalk(t, b)
		}
		_ = b.Close()
		ran = nil
	}
}

// TestAFrameOfOneIsCounted: the figures of a frame with one buffer equal those of a frame with two,
// and NextFrame makes no Go allocation.
func TestAFrameOfOneIsCounted(t *testing.T) {
	for name, finalizer := range map[string]bool{"short": false, "long": true} {
		b := open(t, oneFrame())
		for _, size := range []int{16, 1000, 3000, 504} {
			node := 0
			if finalizer {
				b.Frame().Defer(func() {})
				node = 16
			}
			b.Frame().Bytes(size - node)
			x := b.Frame().Open("x")
			x.Bytes(size / 2)
			require.NoError(t, x.Close())
			require.NoError(t, b.NextFrame())
		}
		f := beside(b.Published())[0]
		assert.Zero(t, f.Used)
		assert.EqualValues(t, 3000, f.Scopes[0].Peak, name)
		assert.EqualValues(t, 4500, f.Peak, name)
		assert.EqualValues(t, 4520, f.Scopes[0].Allocated, name)
		assert.Equal(t, beside(b.Report())[0], f, name)
		if !instrumented {
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				frogs.TryNew(b.Frame())
				marks.TryNew(b.Frame())
				ran = ran[:0]
				_ = b.NextFrame()
			}))
		}
		ran = nil
	}
}

// TestAFrameOfOneTells: a frame with one buffer reports as one with two does, each fact once: a
// full, an error, scopes that were left open.
func TestAFrameOfOneTells(t *testing.T) {
	b := open(t, oneFrame())
	require.Nil(t, frogs.TrySlice(b.Frame(), 1<<20))
	assert.ErrorIs(t, b.NextFrame(), budget.ErrFull)
	assert.NoError(t, b.NextFrame(), "once")
	newMark(b.Frame(), 1, doFail)
	frogs.TrySlice(b.Frame(), 1<<20)
	err := b.NextFrame()
	assert.ErrorIs(t, err, errMark)
	assert.ErrorIs(t, err, budget.ErrFull)
	assert.NoError(t, b.NextFrame(), "once")

	var made *frog
	b.Frame().Defer(func() { made = frogs.TryNew(b.Frame()) })
	assert.ErrorContains(t, b.NextFrame(), "while its finalizers run", "it is told like each misuse")
	assert.Nil(t, made, "a finalizer may make nothing in a frame that ends")
	assert.NoError(t, b.NextFrame(), "once")

	b.Frame().Defer(runtime.Goexit)
	newMark(b.Frame().Open("left open"), 2, 0) //upfront:keeps NextFrame reports it
	assert.True(t, attempt(b.NextFrame).exited)
	assert.NotNil(t, frogs.TryNew(b.Frame()), "the next frame begins all the same")
	require.NoError(t, b.NextFrame())
	assert.Equal(t, []int64{1, 2}, ran)

	old := b.Frame()
	_, err = frogs.Make(old, func(*frog) error { require.NoError(t, b.NextFrame()); return errLoader })
	assert.ErrorIs(t, err, errLoader)
	at := placeOf(b, frogs.New(b.Frame()))
	require.NoError(t, b.NextFrame())
	assert.Equal(t, at, placeOf(b, frogs.New(b.Frame())), "a constructor that outlived its frame leaves nothing")
}
