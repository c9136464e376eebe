package budget_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Programs that a hostile reader of this package wrote. Each broke a promise once.

// TestConstructorDoesntThawAFrame whose time is over when it fails.
func TestConstructorDoesntThawAFrame(t *testing.T) {
	b := open(t, small())
	f := b.Frame()
	_, err := frogs.Make(f, func(*frog) error { require.NoError(t, b.NextFrame()); return errLoader })
	assert.ErrorIs(t, err, errLoader)
	assert.Nil(t, frogs.TryNew(f))
	assert.Contains(t, panics(t, func() { f.Open("x") }), "frozen since its frame ended")
	assert.NotNil(t, frogs.TryNew(b.Frame()))
}

// TestOnErrorThatEndsTheGoroutine while a load waits: the next load finds the way free.
func TestOnErrorThatEndsTheGoroutine(t *testing.T) {
	if testing.Short() {
		t.Skip("a load tells OnError after a second")
	}
	plan := small()
	plan.OnError = func(error) { runtime.Goexit() }
	b := open(t, plan)
	reader := b.Region("level").Reader("worker")
	require.True(t, reader.Pin())
	o := attempt(func() error { return b.Region("level").Rewind(background) })
	assert.True(t, o.exited)
	reader.Unpin()
	mustLoad(t, b, "level", nil)
	assert.True(t, reader.Pin())
	reader.Unpin()
}

func TestGiveInsideALabelIsRefused(t *testing.T) {
	b := open(t, small())
	scratches, err := b.Lease(background)
	require.NoError(t, err)
	s := scratches.Scratch(0).Open("s")
	require.NoError(t, scope.Label(s, "a", func() error {
		assert.ErrorContains(t, scratches.Release(), "at work")
		return nil
	}))
	require.NoError(t, s.Close())
	require.NoError(t, scratches.Release())
}

// TestReleasedSlotTellsNothing of its next owner.
func TestReleasedSlotTellsNothing(t *testing.T) {
	b := open(t, rooms(false))
	room := acquire(t, b)
	require.NoError(t, room.Release(background))
	again := acquire(t, b)
	mustFill(t, again, 1)
	assert.Zero(t, room.Report().Used)
	assert.NotZero(t, again.Report().Used)
}

// TestScratchAfterCloseTellsNothing of a newer budget.
func TestScratchAfterCloseTellsNothing(t *testing.T) {
	first := open(t, small())
	scratch := first.Scratch(0, 0)
	require.NoError(t, first.Close())
	second := open(t, small())
	s := second.Scratch(0, 0).Open("s")
	s.Bytes(100)
	assert.Zero(t, scratch.Depth())
	assert.Zero(t, scratch.Stats())
	require.NoError(t, s.Close())
}

// TestPlanIsACopy: who edits it for Reconfigure edits nothing else.
func TestPlanIsACopy(t *testing.T) {
	b := open(t, worlds(256, 64, 512))
	plan := b.Plan()
	plan.Regions[1].Size, plan.Regions[3].Size = 64*budget.KiB, 704*budget.KiB
	assert.EqualValues(t, 256*budget.KiB, b.Plan().Regions[1].Size)
	require.NoError(t, b.Reconfigure(background, plan))
	assert.EqualValues(t, 704*budget.KiB, regionReport(b, "level").Size)
}

// TestLoadedBesideRewinds: a rewind of a region below, between the end of a load and its Get, leaves nothing to get.
func TestLoadedBesideRewinds(t *testing.T) {
	b := open(t, rooms(false))
	room := acquire(t, b)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = b.Region("systems").Rewind(background)
				runtime.Gosched()
			}
		}
	}()
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		l, err := budget.Load(background, room, func(s scope.Scope) (*frog, error) {
			f := frogs.New(s)
			f.X = 1
			return f, nil
		})
		if err == nil {
			reader := room.Reader("reader")
			if reader.Pin() {
				if f := l.Get(); f != nil {
					require.EqualValues(t, 1, f.X)
				}
				reader.Unpin()
			}
		}
	}
	close(stop)
	<-done
}

// TestNextFrameWhenAFinalizerEndsTheGoroutine: the next frame is there all the same.
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

// TestMisuseOfAFrameIsToldOnce, and a new one is told too.
func TestMisuseOfAFrameIsToldOnce(t *testing.T) {
	b := open(t, small())
	f := b.Frame()
	child := f.Open("child")
	assert.Nil(t, frogs.TryNew(f))
	require.NoError(t, child.Close())
	assert.ErrorContains(t, b.NextFrame(), `allocation in scope "frame" of frame 0 while scope "child", opened in it, is open`)
	assert.Nil(t, f.TryAllocUnzeroed(33, 1))
	assert.ErrorContains(t, b.NextFrame(), `allocation in scope "frame" of frame 0, which is frozen since its frame ended`)
	require.NoError(t, b.NextFrame())
}
