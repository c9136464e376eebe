package scope_test

import (
	"iter"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/model/clib"
)

// These tests hold the package doc's promises for iter.Pull, callbacks of C, and goroutines of a
// load.

// pulled is a sequence with an open scope, whose values are in that scope. end is called at its
// end.
func pulled(scratch scope.Scratch, end func(s scope.Scope)) iter.Seq[*point] {
	return func(yield func(*point) bool) {
		s := scratch.Open("sequence")
		defer func() { _ = s.Close() }()
		for range 3 {
			if !yield(points.New(s)) {
				return
			}
		}
		end(s)
	}
}

func fillUp(s scope.Scope) { points.Slice(s, scratchSize) }

// TestPull: the two sides take turns, so they may use one arena. The sequence's scope, while it is
// topmost, covers the other side's scope.
func TestPull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	outer := scratch.Open("outer")
	next, stop := iter.Pull(pulled(scratch, func(scope.Scope) {}))
	x, ok := next()
	require.True(t, ok)
	x.X = 7
	assert.Nil(t, points.TryNew(outer), "covered by the sequence's")
	assert.ErrorContains(t, outer.Err(), `"sequence"`)
	inner := scratch.Open("inner") // covers the sequence's scope
	points.New(inner).X = 1
	require.NoError(t, inner.Close())
	y, ok := next()
	require.True(t, ok && x != y && x.X == 7, "in the sequence's scope still")
	assert.Equal(t, 2, scratch.Depth())
	stop()
	assert.Equal(t, 1, scratch.Depth(), "stop ends the sequence, whose defers run")
	assert.Error(t, outer.Close(), "the misuse")
}

// TestPullUnwinds: a full or a Goexit in a sequence comes out of next. The Do around it returns the
// full.
func TestPullUnwinds(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	err := scratch.Do("pull", func(scope.Scope) error {
		next, stop := iter.Pull(pulled(scratch, fillUp))
		defer stop()
		for range 4 {
			next()
		}
		t.Error("not reached")
		return nil
	})
	var full *scope.FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, "sequence", full.Scope)
	assert.Zero(t, scratch.Depth())

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = scratch.Do("pull", func(scope.Scope) error {
			next, stop := iter.Pull(pulled(scratch, func(scope.Scope) { runtime.Goexit() }))
			defer stop()
			for range 4 {
				next()
			}
			t.Error("not reached")
			return nil
		})
	}()
	<-ended
	assert.Zero(t, scratch.Depth())
}

// TestPullWithoutStop: without stop a sequence keeps its scope open; Do reports that, closes it and
// goes on. When the sequence is stopped at last, its own Close is refused.
func TestPullWithoutStop(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	var stop func()
	err := scratch.Do("pull", func(scope.Scope) error {
		var next func() (*point, bool)
		next, stop = iter.Pull(pulled(scratch, fillUp))
		next()
		return nil
	})
	assert.ErrorContains(t, err, `scope "sequence" of scratch 0.0 was left open`)
	assert.Zero(t, scratch.Depth())
	s := scratch.Open("next")
	points.New(s)
	stop()
	assert.Equal(t, 1, scratch.Depth(), "the stale Close changed nothing")
	require.NoError(t, s.Close())
}

// TestCallbackOfC: a callback may use the scope of C's caller. A full skips the frames of C, but
// runs Go's defers.
func TestCallbackOfC(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	before := clib.VisitsLeft()
	require.NoError(t, scratch.Do("visit", func(s scope.Scope) error {
		clib.Visit(3, func() { points.New(s).X = 7 })
		assert.EqualValues(t, scratchSize-3*8, s.Free())
		return nil
	}))
	assert.Equal(t, before+1, clib.VisitsLeft())
	if arena_c.Asan {
		t.Skip("AddressSanitizer doesn't bear a panic through frames of C: go test ./scope runs it")
	}
	deferred := 0
	for range 100 { // the stack doesn't grow
		err := scratch.Do("visit", func(s scope.Scope) error {
			clib.Visit(3, func() {
				defer func() { deferred++ }()
				fillUp(s)
			})
			return nil
		})
		require.ErrorIs(t, err, budget.ErrFull)
	}
	assert.Equal(t, 100, deferred)
	assert.Equal(t, before+1, clib.VisitsLeft(), "C's end didn't run")
	require.ErrorIs(t, scratch.Do("visit", func(s scope.Scope) error {
		clib.Visit(3, func() { points.TrySlice(s, scratchSize) }) // for C that must return
		return nil
	}), budget.ErrFull)
	assert.Equal(t, before+2, clib.VisitsLeft())
}

// TestGoroutineInsideALoad: a goroutine that the load waits for may use the load's scope. A full
// there unwinds to a Do there; a Try returns nil. After the load the scope refuses.
func TestGoroutineInsideALoad(t *testing.T) {
	b := open(t)
	var after scope.Scope
	err := inLevel(t, b, func(s scope.Scope) (err error) {
		after = s
		var part sync.WaitGroup
		part.Go(func() {
			points.New(s).X = 7
			err = s.Do("part", func(s scope.Scope) error {
				points.Slice(s, 256<<10)
				return nil
			})
		})
		part.Wait()
		return err
	})
	var full *scope.FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, "part", full.Scope)

	err = inLevel(t, b, func(s scope.Scope) error {
		var part sync.WaitGroup
		part.Go(func() { points.TrySlice(s, 256<<10) })
		part.Wait()
		return nil // Load itself looks
	})
	require.ErrorIs(t, err, budget.ErrFull)

	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		after = s
		return nil
	}))
	late := make(chan error)
	go func() {
		assert.Nil(t, points.TryNew(after))
		late <- panicked(func() { points.New(after) })
	}()
	assert.ErrorContains(t, <-late, "frozen since its load returned")
}
