package budget_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

func TestNextFrameKeepsAFrameUntilTheEndOfTheNext(t *testing.T) {
	for _, buffers := range []int{1, 2, 3, 8} {
		plan := small()
		plan.Frame.Buffers = buffers
		b := open(t, plan)
		var alive []*mark
		var want []int64
		for n := int64(1); n <= 30; n++ {
			first := newMark(b.Frame(), 2*n, 0)
			alive = append(alive, first)
			inner := b.Frame().Open("inner") //upfront:keeps every second is left open
			newMark(inner, 2*n+1, 0)
			if n%2 == 0 {
				require.NoError(t, inner.Close())
				want = append(want, 2*n+1)
			}
			for i, m := range alive {
				assert.Equal(t, 2*(n-int64(len(alive)-1-i)), m.ID, "frame %d, %d buffers", n, buffers)
			}
			err := b.NextFrame()
			if n%2 == 0 {
				require.NoError(t, err)
			} else { // inner was left open: NextFrame closed and reported it
				require.ErrorContains(t, err, `scope "inner" of frame`)
				want = append(want, 2*n+1)
			}
			if len(alive) == buffers { // the oldest buffer is the current one now
				dead := n - int64(buffers) + 1
				want = append(want, 2*dead)
				alive = alive[1:]
			}
			require.Equal(t, want, ran, "frame %d, %d buffers", n, buffers)
			requireWalk(t, b)
		}
	}
}

// TestFramesWithoutFinalizersAreCounted: NextFrame ends such a frame in a shorter way, but its
// bytes and peaks count as in other frames, also by the names of scopes.
func TestFramesWithoutFinalizersAreCounted(t *testing.T) {
	for name, finalizer := range map[string]bool{"short": false, "long": true} {
		b := open(t, small())
		for _, size := range []int{16, 1000, 3000, 504, 2000} {
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
		for i, want := range []struct{ used, own, peak, all uint64 }{{2000, 3000, 4500, 5016}, {0, 1000, 1500, 1504}} {
			f := beside(b.Published())[i]
			assert.Equal(t, want.used, f.Used, "%s, buffer %d", name, i)
			assert.Equal(t, want.own, f.Scopes[0].Peak, "%s, buffer %d", name, i)
			assert.Equal(t, want.peak, f.Peak, "%s, buffer %d", name, i)
			assert.Equal(t, want.all, f.Scopes[0].Allocated, "%s, buffer %d", name, i)
			assert.Equal(t, beside(b.Report())[i], f, "%s, buffer %d", name, i)
			assert.Equal(t, 2, f.MostOpen.Scopes)
		}
	}
}

func TestNextFrameTells(t *testing.T) {
	b := open(t, small())
	require.Nil(t, frogs.TrySlice(b.Frame(), 1<<20))
	err := b.NextFrame()
	assert.ErrorIs(t, err, budget.ErrFull)
	assert.ErrorContains(t, err,
		`frame 0 is full: scope "frame" asked for 25165824 bytes, 65536 of 65536 are free; raise frame.size`)
	assert.NoError(t, b.NextFrame(), "once")

	frogs.TrySlice(b.Frame(), 1<<20)
	b.Frame().Open("left open")
	assert.ErrorIs(t, b.NextFrame(), budget.ErrFull, "whatever lies on top of it")
	inner := b.Frame().Open("inner")
	frogs.TrySlice(inner, 1<<20)
	assert.ErrorIs(t, inner.Close(), budget.ErrFull)
	assert.NoError(t, b.NextFrame(), "Close told of it")

	newMark(b.Frame(), 1, doFail)
	newMark(b.Frame(), 2, doPanic)
	require.NoError(t, b.NextFrame())
	frogs.TrySlice(b.Frame(), 1<<20)
	err = b.NextFrame()
	assert.ErrorIs(t, err, errMark)
	assert.ErrorIs(t, err, budget.ErrFull)
	assert.ErrorContains(t, err, "mark panics")
	assert.Equal(t, []int64{2, 1}, ran)
	frogs.New(b.Frame())
}

// TestEndedFrameIsFrozen: each misuse of an ended frame is reported once, at the next NextFrame.
func TestEndedFrameIsFrozen(t *testing.T) {
	const frozen = `allocation in scope "frame" of frame 0, which is frozen since its frame ended`
	b := open(t, small())
	old := b.Frame()
	f := frogs.New(old)
	f.X = 7
	child := old.Open("child")
	assert.Nil(t, frogs.TryNew(old))
	require.NoError(t, child.Close())
	newMark(old.Open("inner"), 1, 0)
	assert.EqualError(t, b.NextFrame(),
		`scope: BUG: scope "inner" of frame 0 was left open; close it in the function that opens it`+"\n"+
			`scope: BUG: allocation in scope "frame" of frame 0 while scope "child", opened in it, is open; close "child" first`)
	assert.Equal(t, []int64{1}, ran)
	assert.Nil(t, frogs.TryNew(old))
	assert.Equal(t, "scope: BUG: "+frozen, panics(t, func() { frogs.New(old) }))
	assert.ErrorContains(t, b.Frame().Close(), "which only its Load, Rewind or NextFrame closes")
	assert.EqualValues(t, 7, f.X)
	assert.EqualError(t, b.NextFrame(), "scope: BUG: "+frozen,
		"what was refused then is no full of this frame, but misuse")
	assert.Contains(t, panics(t, func() { frogs.New(old) }), "a closed scope of frame 0")
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.NextFrame())

	old = b.Frame()
	_, err := frogs.Make(old, func(*frog) error { require.NoError(t, b.NextFrame()); return errLoader })
	assert.ErrorIs(t, err, errLoader)
	assert.Nil(t, frogs.TryNew(old), "a constructor that fails doesn't thaw it")
	assert.Contains(t, panics(t, func() { old.Open("x") }), "frozen since its frame ended")
	assert.NotNil(t, frogs.TryNew(b.Frame()))
}

func TestNextFrameAndCloseFromAFinalizer(t *testing.T) {
	b := open(t, small())
	var turned, closed, closedInScratch error
	b.Frame().Defer(func() { turned, closed = b.NextFrame(), b.Close() })
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.NextFrame())
	assert.EqualError(t, turned, `budget "small": BUG: NextFrame from a finalizer of frame 0`)
	assert.EqualError(t, closed,
		`budget "small": Close from a finalizer of frame 0: upfront: a load, rewind or close is at work`)
	scratch := b.Scratch(1, 1).Open("scratch")
	scratch.Defer(func() { closedInScratch = b.Close() })
	require.NoError(t, scratch.Close())
	assert.ErrorContains(t, closedInScratch, "Close from a finalizer of scratch 1.1")
	require.NoError(t, b.NextFrame(), "nothing was closed")
}

func TestLeaksAreCountedOncePerScope(t *testing.T) {
	b := open(t, small())
	scopes := func() int { return b.Report().Leaks.Scopes }
	first := b.Scratch(0, 0).Open("a")
	inner := first.Open("b")
	for range 3 {
		require.NoError(t, b.NextFrame())
		assert.Equal(t, 2, scopes())
	}
	require.NoError(t, inner.Close())
	require.NoError(t, first.Close())
	require.NoError(t, b.NextFrame())
	assert.Equal(t, 2, scopes(), "what leaked, leaked")

	again := b.Scratch(0, 0).Open("c")
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.NextFrame())
	assert.Equal(t, 3, scopes(), "another scope in the same place")
	require.NoError(t, again.Close())
	require.NoError(t, b.Scratch(1, 1).Open("d").Close())
	b.Frame().Open("frame's")
	assert.ErrorContains(t, b.NextFrame(), `scope "frame's" of frame 0 was left open`)
	require.NoError(t, b.NextFrame())
	assert.Equal(t, budget.Leaks{Scopes: 4}, b.Report().Leaks)
	b.Scratch(1, 0).Open("at Close")
	b.Frame().Open("at the end").Open("inside")
	assert.Equal(t,
		`budget "small": frame 0: left open at NextFrame, Release or Close: scope "frame's", "at the end", "inside"; `+
			`close each where it is opened
budget "small": scratch 0.0: left open at NextFrame, Release or Close: scope "a", "b", "c"; `+
			`close each where it is opened
budget "small": scratch 1.0: left open at NextFrame, Release or Close: scope "at Close"; close each where it is opened`, unsited(b.Close()))
	assert.Equal(t, budget.Leaks{Scopes: 7}, b.Report().Leaks)
}

// BenchmarkNextFrame has two buffers, and no finalizers.
func BenchmarkNextFrame(t *testing.B) {
	plan := small()
	for name, work := range map[string]func(*budget.Budget){
		"empty":   func(*budget.Budget) {},
		"a frog":  func(b *budget.Budget) { frogs.New(b.Frame()) },
		"a scope": func(b *budget.Budget) { s := b.Frame().Open("x"); frogs.New(s); _ = s.Close() },
	} {
		t.Run(name, func(t *testing.B) {
			b := open(t, plan)
			b.Scratch(0, 0)
			for t.Loop() {
				work(b)
				_ = b.NextFrame()
			}
		})
	}
}

// TestNextFrameWhenAFinalizerEndsTheGoroutine: the next frame begins all the same.
func TestNextFrameWhenAFinalizerEndsTheGoroutine(t *testing.T) {
	b := open(t, small())
	require.NoError(t, b.NextFrame())
	b.Frame().Open("left open").Defer(runtime.Goexit)
	o := attempt(b.NextFrame)
	assert.True(t, o.exited)
	assert.NotNil(t, frogs.TryNew(b.Frame()))
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.NextFrame())
}
