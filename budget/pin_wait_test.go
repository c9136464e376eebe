package budget_test

import (
	"context"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestPinContext: workers wait for the end of a load, and have their pins before the next load.
func TestPinContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, small())
		region := b.Region("level")
		anna, bob := region.Reader("anna"), region.Reader("bob")

		ctx, cancel := soon()
		defer cancel()
		err := anna.PinContext(ctx)
		assert.EqualError(t, err, `budget "small": "anna" waited 5ms to pin region level: it isn't loaded: `+
			`context deadline exceeded`)
		assert.ErrorIs(t, err, context.DeadlineExceeded)

		var pinned sync.WaitGroup
		for _, d := range []*budget.Reader{anna, bob} {
			pinned.Go(func() { assert.NoError(t, d.PinContext(background)) })
		}
		synctest.Wait()
		_, err = budget.Load(background, region, func(scope.Scope) (*frog, error) { return nil, errLoader })
		require.ErrorIs(t, err, errLoader)
		synctest.Wait()
		require.Equal(t, 2, budget.Waiting(region), "the load failed, so they wait on")
		first := mustLoad(t, b, "level", func(scope.Scope) {
			ctx, cancel := soon()
			defer cancel()
			carl := region.Reader("carl")
			err := carl.PinContext(ctx)
			assert.ErrorContains(t, err, `to pin region level: Load of region level is at work: context deadline`)
		})
		ctx, cancel = soon()
		defer cancel()
		_, err = budget.Load(ctx, region, func(scope.Scope) (*frog, error) { panic("two workers pin it") })
		assert.ErrorContains(t, err, `worker "anna" has pinned region level, worker "bob" has pinned region level`)
		pinned.Wait()
		assert.NotNil(t, first.Get())
		anna.Unpin()
		bob.Unpin()
		require.NoError(t, anna.PinContext(background), "at once")
		pinned.Go(func() { mustLoad(t, b, "level", func(scope.Scope) {}) })
		synctest.Wait()
		ctx, cancel = soon()
		defer cancel()
		assert.ErrorContains(t, bob.PinContext(ctx), `Load of region level waits: worker "anna" has pinned region level: `)
		anna.Unpin()
		pinned.Wait()

		require.NoError(t, region.Rewind(background))
		var closed error
		pinned.Go(func() { closed = anna.PinContext(background) })
		synctest.Wait()
		require.NoError(t, b.Close())
		pinned.Wait()
		assert.ErrorIs(t, closed, budget.ErrClosed)
		assert.ErrorIs(t, anna.PinContext(background), budget.ErrClosed)
	})
}

// TestPinContextOfASlot: a wait for a slot ends with the slot's release.
func TestPinContextOfASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, budget.Plan{Name: "rooms", Regions: []budget.RegionPlan{
			{Name: "room", Size: 64 * budget.KiB, Slots: 1}}})
		room, err := b.Slots("room").Acquire()
		require.NoError(t, err)
		anna := room.Reader("anna")
		var wait sync.WaitGroup
		wait.Go(func() { err = anna.PinContext(background) })
		synctest.Wait()
		require.NoError(t, room.Release(background))
		wait.Wait()
		assert.ErrorIs(t, err, budget.ErrClosed)
		_, acquired := b.Slots("room").Acquire()
		require.NoError(t, acquired)
		assert.ErrorIs(t, anna.PinContext(background), budget.ErrClosed, "another owner's slot")
	})
}

// TestPinContextInTurns: a load begins although workers pin all the time, and between two loads
// each worker that waited has a pin.
func TestPinContextInTurns(t *testing.T) {
	const workers, loads = 6, 50
	b := open(t, small())
	region := b.Region("level")
	var all sync.WaitGroup
	var turns [workers]int
	for i := range workers {
		d := region.Reader("worker")
		all.Go(func() {
			for {
				if err := d.PinContext(background); err != nil {
					assert.ErrorIs(t, err, budget.ErrClosed)
					return
				}
				turns[i]++
				runtime.Gosched()
				d.Unpin()
			}
		})
	}
	for range loads {
		mustLoad(t, b, "level", func(scope.Scope) {
			for budget.Waiting(region) < workers {
				runtime.Gosched()
			}
		})
	}
	require.NoError(t, region.Rewind(background)) // so that all wait
	require.NoError(t, b.Close())
	all.Wait()
	for _, n := range turns {
		assert.GreaterOrEqual(t, n, loads)
	}
}

// TestPinContextMakesNoGarbage: a wait makes no Go allocation.
func TestPinContextMakesNoGarbage(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate: go test ./budget runs it")
	}
	b := open(t, small())
	region := b.Region("level")
	anna := region.Reader("anna")
	load, loads := make(chan bool), 0
	var loader sync.WaitGroup
	loader.Go(func() {
		for range load {
			for waits := false; !waits; { // until anna waits
				runtime.Gosched()
				waits = budget.Waiting(region) == 1
			}
			_, err := budget.Load(background, region, func(scope.Scope) (*frog, error) { return nil, nil })
			loads++
			assert.NoError(t, err)
		}
	})
	allocs := testing.AllocsPerRun(100, func() {
		load <- true
		err := anna.PinContext(background)
		if err == nil {
			anna.Unpin()
			err = region.Rewind(background)
		}
		if err != nil {
			panic(err)
		}
	})
	close(load)
	loader.Wait()
	assert.Zero(t, allocs)
	assert.Equal(t, 101, loads)
}

// TestGet: a pinned reader gets the value of the newest load, and nothing of a region that isn't
// loaded.
func TestGet(t *testing.T) {
	b := open(t, small())
	region := b.Region("level")
	reader := region.Reader("worker")
	get := func() *frog {
		require.True(t, reader.Pin())
		defer reader.Unpin()
		return budget.Get[frog](reader)
	}
	assert.Nil(t, get())
	for range 2 {
		mustLoad(t, b, "systems", func(scope.Scope) {})
		assert.Nil(t, get(), "a load of a region below empties it")
		loaded, err := budget.Load(background, region, func(s scope.Scope) (*frog, error) { return frogs.New(s), nil })
		require.NoError(t, err)
		assert.Same(t, loaded.Get(), get())
	}
	_, err := budget.Load(background, region, func(s scope.Scope) (*frog, error) { return frogs.New(s), io.EOF })
	require.ErrorIs(t, err, io.EOF)
	assert.Nil(t, get())
	_, err = budget.Load(background, region, func(scope.Scope) (*frog, error) { return nil, nil })
	require.NoError(t, err)
	assert.Nil(t, get())
	assert.Contains(t, panics(t, func() { budget.Get[frog](reader) }), `"worker" reads region level, which it has not pinned`)
	assert.Contains(t, panics(t, func() { budget.Get[frog](new(budget.Reader)) }), "a zero Reader")
	_, err = budget.Load(background, region, func(scope.Scope) (*int, error) { return nil, nil })
	require.NoError(t, err)
	assert.Contains(t, panics(t, func() { get() }),
		`"worker" reads a *budget_test.frog of region level, whose load returned a *int`)
}

// TestTwoWaitsOfAReader: a reader that waits belongs to one goroutine.
func TestTwoWaitsOfAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, small())
		reader := b.Region("level").Reader("anna")
		var first sync.WaitGroup
		first.Go(func() { assert.NoError(t, reader.PinContext(background)) })
		synctest.Wait()
		assert.Contains(t, panics(t, func() { _ = reader.PinContext(background) }), `"anna" waits for region level twice`)
		mustLoad(t, b, "level", func(scope.Scope) {})
		first.Wait()
		reader.Unpin()
	})
}
