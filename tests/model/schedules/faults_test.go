package schedules_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// fault is a control: a library that breaks a rule, or a model with another rule. The checker finds
// it, by the shortest schedule that shows it.
type fault struct {
	name     string
	verbs    func(v *verbs)
	model    func(m *model, s step) // before the step
	shortest string
}

var faults = []fault{
	{name: "a pin keeps none out",
		shortest: "empty: g1 pin level, g2 load level",
		verbs: func(v *verbs) {
			v.pin = func(d *budget.Reader) bool {
				ok := d.Pin()
				if ok {
					d.Unpin()
				}
				return ok
			}
			v.unpin = func(*budget.Reader) {}
		}},
	{name: "an Unpin does nothing",
		shortest: "empty: g1 pin level, g1 goes on",
		verbs:    func(v *verbs) { v.unpin = func(*budget.Reader) {} }},
	{name: "what is being loaded can be pinned",
		shortest: "empty: g1 load level, g2 pin level",
		verbs: func(v *verbs) {
			in := map[*budget.Reader]bool{}
			v.pin = func(d *budget.Reader) bool { in[d] = d.Pin(); return true }
			v.unpin = func(d *budget.Reader) {
				if in[d] {
					d.Unpin()
				}
			}
		}},
	{name: "a region has two owners",
		shortest: "empty: g1 load level, g2 rewind level",
		verbs: func(v *verbs) {
			v.rewind = func(r budget.Region, ctx context.Context) error {
				return unless(budget.ErrLoading, r.Rewind(ctx))
			}
		}},
	{name: "a slot has two owners",
		shortest: "empty: g1 acquire, g1 acquire, g1 acquire",
		verbs: func(v *verbs) {
			var last budget.Region
			v.acquire = func(s *budget.Slots) (budget.Region, error) {
				r, err := s.Acquire()
				if errors.Is(err, budget.ErrFull) {
					return last, nil
				}
				last = r
				return r, err
			}
		}},
	{name: "a slot is released and stays taken",
		shortest: "empty: g1 acquire, g1 release",
		verbs:    func(v *verbs) { v.release = budget.Region.Rewind }},
	{name: "who released a slot may still touch it",
		shortest: "empty: g1 acquire, g1 release, g1 rewind room",
		verbs: func(v *verbs) {
			v.rewind = func(r budget.Region, ctx context.Context) error {
				err := r.Rewind(ctx)
				if err != nil && strings.Contains(err.Error(), "which was released") {
					return nil
				}
				return err
			}
		}},
	{name: "a closed budget may be rewound",
		shortest: "empty: g1 close, g1 load level, g1 rewind level",
		verbs: func(v *verbs) {
			v.rewind = func(r budget.Region, ctx context.Context) error {
				return unless(budget.ErrClosed, r.Rewind(ctx))
			}
		}},
	{name: "a finalizer runs twice",
		shortest: "empty: g1 load level, g1 fails, g1 goes on",
		verbs: func(v *verbs) {
			v.later = func(s scope.Scope, finalizer func()) scope.Owned {
				s.Defer(finalizer)
				return s.Defer(finalizer)
			}
		}},
	{name: "a finalizer never runs",
		shortest: "empty: g1 load level, g1 fails",
		verbs:    func(v *verbs) { v.later = func(scope.Scope, func()) scope.Owned { return scope.Owned{} } }},
	{name: "Get gives what was rewound",
		shortest: "empty: g1 load level, g1 goes on, g1 load level",
		verbs: func(v *verbs) {
			given := map[budget.Loaded[frog]]*frog{}
			v.get = func(l budget.Loaded[frog]) *frog {
				if f := l.Get(); f != nil {
					given[l] = f
				}
				return given[l]
			}
		}},
	{name: "a load that is refused leaves its mark",
		shortest: "empty: g1 load level, g1 goes on, g1 acquire, g1 load room inside",
		verbs: func(v *verbs) {
			var last budget.Loaded[frog]
			v.load = func(ctx context.Context, r budget.Region,
				fn func(scope.Scope) (*frog, error)) (budget.Loaded[frog], error) {
				l, err := budget.Load(ctx, r, fn)
				if err == nil {
					last = l
				} else if f := last.Get(); f != nil {
					f.ID = 0
				}
				return l, err
			}
		}},
	{name: "a load that fails says that it succeeded",
		shortest: "empty: g1 load level, g1 fails, g1 goes on",
		verbs: func(v *verbs) {
			v.load = func(ctx context.Context, r budget.Region,
				fn func(scope.Scope) (*frog, error)) (budget.Loaded[frog], error) {
				l, err := budget.Load(ctx, r, fn)
				return l, unless(errFails, err)
			}
		}},
	{name: "a Close that waited in vain says that it succeeded",
		shortest: "empty: g1 pin level, g2 close, g2 gives up",
		verbs: func(v *verbs) {
			v.close = func(b *budget.Budget) error {
				err := b.Close()
				if resultOf(err) == waited {
					return nil
				}
				return err
			}
		}},
	{name: "a Close that leaks doesn't tell",
		shortest: "empty: g1 acquire, g1 close",
		verbs: func(v *verbs) {
			v.close = func(b *budget.Budget) error {
				err := b.Close()
				if resultOf(err) == leaks {
					return nil
				}
				return err
			}
		}},
	{name: "a closed budget has slots",
		shortest: "empty: g1 close, g1 load level, g1 rewind level, g1 pin level, g1 acquire",
		verbs: func(v *verbs) {
			v.acquire = func(s *budget.Slots) (budget.Region, error) {
				r, err := s.Acquire()
				return r, unless(budget.ErrClosed, err)
			}
		}},
	{name: "the model lets a load end before what is inside",
		shortest: "empty: g1 load level, g2 acquire, g2 load room inside, g1 goes on",
		model: func(m *model, s step) {
			if r := &m.routines[s.who]; r.at == within && r.inner != none {
				m.routines[r.inner].outer, r.inner = none, none
			}
		}},
	{name: "the model lets two be inside of a load",
		shortest: "full: g1 load level, g1 goes on, g1 goes on, g2 load room inside, g3 load room inside",
		model: func(m *model, s step) {
			for i := range m.routines {
				if m.routines[i].at == within && s.do.inside() {
					m.routines[i].inner = none
				}
			}
		}},
	{name: "the model has none wait for pins of what lies above",
		shortest: "empty: g1 acquire, g1 pin room, g2 rewind level",
		model: func(m *model, s step) {
			if s.do == rewindLevel {
				m.parts[1].pins, m.parts[2].pins = 0, 0
			}
		}},
}

// unless returns err, or nil if it is of one kind.
func unless(kind, err error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

// TestSchedulesFindFaults: each fault is found by its shortest schedule.
func TestSchedulesFindFaults(t *testing.T) {
	if instrumented {
		t.Skip("some of the faults are races: go test ./tests/model/schedules runs it")
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			found := shortest(t, false, 3, f)
			if found == nil {
				found = shortest(t, true, 3, f)
			}
			require.NotNil(t, found)
			t.Log(found)
			assert.Equal(t, f.shortest, name(found.full, found.path))
		})
	}
}
