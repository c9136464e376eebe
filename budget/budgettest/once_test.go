//go:build checked

package budgettest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

func once(t *testing.T, fn func(b *budget.Budget) error) *recorder {
	return watch(t, func(tb testing.TB) { budgettest.FailOnce(tb, failing(), fn) })
}

func each(t *testing.T, fn func(b *budget.Budget) error) *recorder {
	return watch(t, func(tb testing.TB) { budgettest.FailEach(tb, failing(), fn) })
}

const wentOn = "fn returned nil though it got a full error; return that error at the end, even if fn goes on " +
	"without the memory"

func TestFailOnceFailsEach(t *testing.T) {
	failed := map[string]int{}
	r := once(t, func(b *budget.Budget) error {
		err := program(b, failed)
		var full *scope.FullError
		if errors.As(err, &full) && full.Arena == "frame 0" {
			_ = b.NextFrame()
		}
		return err
	})
	assert.Empty(t, r.said)
	assert.Equal(t, map[string]int{"first": 1, "odd": 1, "even": 1, "aligned": 1, "owned": 2, "pool": 1,
		"label": 2, "temp": 2,
		"last": 1, "slot 0": 1, "slot 1": 1, "room 0": 1, "room 1": 1, "scratch": 1, "nested": 2, "frame": 1}, failed)
	assert.Equal(t, []string{"budgettest: FailEach: 20 requests failed once, and none after them"}, r.logged)
}

// leaks opens a scope on a scratch arena. It leaves the scope open if its second request is
// refused, but not if the first is.
//
//upfront:keeps FailEach reports it
func leaks(b *budget.Budget) (err error) {
	s := b.Scratch(0, 0).Open("s")
	if ponds.TryNew(s) == nil {
		return s.Close()
	}
	if ponds.TryNew(s) == nil {
		return s.Err()
	}
	return s.Close()
}

// retries takes a later success for the first: it forgets the scope that it opened.
//
//upfront:keeps FailEach reports it
func retries(b *budget.Budget) error {
	s := b.Scratch(0, 0).Open("s")
	if ponds.TryNew(s) != nil {
		return s.Close()
	}
	err := s.Err()
	if ponds.TryNew(s) != nil {
		return err
	}
	return s.Close()
}

// cleans needs its scratch arena again after a failure.
func cleans(b *budget.Budget) error {
	err := onScratch(b)
	if err != nil && onScratch(b) != nil {
		return errors.New("no log")
	}
	return err
}

// swallows continues after a failed load, and returns nil.
func swallows(b *budget.Budget) error {
	_ = onLevel(b, newPond)
	return nil
}

func TestOnceAndFromThenOnFindDifferentBugs(t *testing.T) {
	for name, c := range map[string]struct {
		fn         func(b *budget.Budget) error
		once, each string // in the output; "" for no output
	}{
		"leaks": {leaks, "with request 2 refused once: ", "with scratch.size = 16: "},
		"retries": {retries, "with request 1 refused once: budget \"failing\": scratch 0.0: left open",
			// if all later requests fail too, the run is fine
			"with request 1 refused once: budget \"failing\": scratch 0.0: left open"},
		"cleans":   {cleans, "", "with scratch.size = 1: no log"},
		"swallows": {swallows, "with request 1 refused once: " + wentOn, "with request 1 refused once: " + wentOn},
	} {
		check := func(said []string, want string) {
			if want == "" {
				assert.Empty(t, said, name)
				return
			}
			require.Len(t, said, 1, name)
			assert.Contains(t, said[0], "budgettest: FailEach: "+want, name)
		}
		check(once(t, c.fn).said, c.once)
		check(each(t, c.fn).said, c.each)
	}
}

func TestFailOnceSees(t *testing.T) {
	for want, fn := range map[string]func(b *budget.Budget) error{
		"with request 1 refused once: " + wentOn: func(b *budget.Budget) error {
			_ = ponds.TryNew(b.Frame()) // the frame's full is ignored
			return nil
		},
		"with request 1 refused once: it panicked": panicking,
		"with request 1 refused once: another request ran out of room: ": func(b *budget.Budget) error {
			err := onScratch(b)
			if err != nil {
				err = b.Scratch(0, 0).Do("s", func(s scope.Scope) error { s.Bytes(budget.MiB); return nil })
			}
			return err
		},
		"with request 1 refused once: the FullError is lost: upfront: full": func(b *budget.Budget) error {
			if onScratch(b) != nil {
				return budget.ErrFull
			}
			return nil
		},
		"with request 1 refused once: swallowed": swallowing,
		"with request 1 refused once: nothing was refused: upfront: full": func(*budget.Budget) error {
			return budget.ErrFull
		},
		"with request 2 refused once: no frog": func(b *budget.Budget) error {
			return b.Scratch(0, 0).Do("s", func(s scope.Scope) error {
				if ponds.Pool(s, 1).Get() == nil {
					return errors.New("no frog")
				}
				return nil
			})
		},
	} {
		r := once(t, fn)
		require.Len(t, r.said, 1, want)
		assert.Contains(t, r.said[0], "budgettest: FailEach: "+want)
	}
}

// TestNilIsTheWholeAnswer: after nil from a pool or an arena, fn may continue without the chunk or
// block, or return an error.
func TestNilIsTheWholeAnswer(t *testing.T) {
	goesOn, says := 0, 0
	r := once(t, func(b *budget.Budget) error {
		return b.Scratch(0, 0).Do("s", func(s scope.Scope) error {
			if ponds.Pool(s, 1).Get() == nil {
				goesOn++
			}
			ring, err := arena.NewRing(s.BytesUnzeroed(256, 64))
			if err == nil && ring.Alloc(16, 8) == nil {
				says++
				return fmt.Errorf("no room for the message: %w", scope.ErrFull)
			}
			return err
		})
	})
	assert.Empty(t, r.said)
	assert.Equal(t, []string{"budgettest: FailEach: 4 requests failed once, and none after them"}, r.logged)
	assert.Equal(t, 1, goesOn)
	assert.Equal(t, 1, says)
}
