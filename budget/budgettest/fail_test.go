package budgettest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

type pond struct{ Frogs, Flies int64 }

var (
	ponds   = scope.Plain[pond]()
	letters = scope.Plain[byte]()
)

func failing() budget.Plan {
	return budget.Plan{Name: "failing", Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB},
		{Name: "room", Size: 4096, Slots: 2}, {Name: "level", Size: 64 * budget.KiB}},
		Frame: budget.FramePlan{Buffers: 2, Size: 4096}, Scratch: budget.ScratchPlan{Workers: 1, Size: 4096}}
}

func onePond(s scope.Scope) (*pond, error) { return ponds.New(s), nil }

// program uses each part of the plan, and returns every full. It counts the places of the first
// failure.
func program(b *budget.Budget, failed map[string]int) error {
	at := "boot"
	err := func() error {
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*pond, error) {
			at = "first"
			p := ponds.New(s)
			at = "odd"
			letters.Slice(s, 13)
			at = "even"
			ponds.Slice(s, 3)
			at = "aligned"
			s.BytesUnzeroed(10, 256)
			at = "owned"
			s.Keep(b)
			at = "pool"
			ponds.Pool(s, 4)
			at = "label"
			return p, scope.Label(s, "sound", func() error {
				at = "temp"
				letters.Slice(s.Temp(100), 100)
				at = "last"
				letters.Slice(s, 64) // more than the padding before temporaries
				return nil
			})
		})
		if err != nil {
			return err
		}
		for i := range 2 {
			at = fmt.Sprint("slot ", i)
			room, err := b.Slots("room").Acquire()
			if err != nil {
				return err
			}
			defer func() { _ = room.Release(context.Background()) }()
			at = fmt.Sprint("room ", i)
			if _, err = budget.Load(context.Background(), room, onePond); err != nil {
				return err
			}
		}
		at = "scratch"
		err = b.Scratch(0, 0).Do("query", func(s scope.Scope) error {
			ponds.New(s)
			at = "nested"
			return s.Do("inner", func(s scope.Scope) error { ponds.New(s); return nil })
		})
		if err != nil {
			return err
		}
		at = "frame"
		if ponds.TryNew(b.Frame()) == nil {
			return b.Frame().Err()
		}
		return nil
	}()
	if err != nil {
		failed[at]++
	}
	return err
}

func TestFailEachFailsEach(t *testing.T) {
	failed := map[string]int{}
	budgettest.FailEach(t, failing(), func(b *budget.Budget) error {
		err := program(b, failed)
		var full *scope.FullError
		// returned here: NextFrame needn't report it
		if errors.As(err, &full) && full.Arena == "frame 0" {
			_ = b.NextFrame()
		}
		return err
	})
	for _, at := range []string{"first", "odd", "even", "aligned", "owned", "pool", "temp", "last", "slot 1", "room 0",
		"scratch", "nested", "frame"} {
		assert.Positive(t, failed[at], "%s never failed", at)
	}
}

func onLevel(b *budget.Budget, fn func(s scope.Scope)) error {
	_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*pond, error) {
		fn(s)
		return nil, nil
	})
	return err
}

func onScratch(b *budget.Budget) error {
	return b.Scratch(0, 0).Do("s", func(s scope.Scope) error { ponds.New(s); return nil })
}

func newPond(s scope.Scope) { ponds.New(s) }

// swallowing returns another error for a full error.
func swallowing(b *budget.Budget) error {
	if onScratch(b) != nil {
		return errors.New("swallowed")
	}
	return nil
}

// panicking lets the full's panic through.
func panicking(b *budget.Budget) error {
	s := b.Scratch(0, 0).Open("s")
	defer s.Close()
	ponds.New(s)
	return nil
}

// TestFailEachSees: each of these handles a full error wrongly, and FailEach reports it.
func TestFailEachSees(t *testing.T) {
	for want, fn := range map[string]func(b *budget.Budget) error{
		"with scratch.size = 1: swallowed":   swallowing,
		"with scratch.size = 1: it panicked": panicking,
		`with regions\[2\].size = 1: it panicked in .*TestFailEachSees.* \(fail_test.go:\d+\): ` +
			`at sea$`: func(b *budget.Budget) error {
			if err := onLevel(b, newPond); err != nil {
				panic("at sea")
			}
			return nil
		},
		"left open": func(b *budget.Budget) error {
			s := b.Scratch(0, 0).Open("s") //upfront:keeps it is left open, and reported
			if ponds.TryNew(s) == nil {
				return s.Err()
			}
			return s.Close()
		},
		"another key": func(b *budget.Budget) error {
			if onLevel(b, newPond) != nil {
				return b.Scratch(0, 0).Do("x", func(s scope.Scope) error { s.Bytes(budget.MiB); return nil })
			}
			return nil
		},
		"in the plan as it is": func(b *budget.Budget) error {
			return onLevel(b, func(s scope.Scope) { s.Bytes(budget.MiB) })
		},
	} {
		r := watch(t, func(tb testing.TB) { budgettest.FailEach(tb, failing(), fn) })
		require.Len(t, r.said, 1, want)
		assert.Regexp(t, "^budgettest: FailEach: .*"+want, r.said[0])
	}
}

// A region with the Rest can be too small, as any other region can.
func TestFailEachOfTheRest(t *testing.T) {
	plan := budget.Plan{Name: "rest", Size: budget.MiB,
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.Rest}}}
	r := watch(t, func(t testing.TB) {
		budgettest.FailEach(t, plan, func(b *budget.Budget) error {
			if onLevel(b, newPond) != nil {
				return errors.New("lost")
			}
			return nil
		})
	})
	assert.Equal(t, []string{"budgettest: FailEach: with regions[0].size = 1: lost"}, r.said)
}
