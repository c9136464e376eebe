package budget

import (
	"context"
	"fmt"
	"slices"

	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope"
)

func stateOf(r Region, s scope.Scope) (*seam.State, error) {
	b := r.its().b
	b.mu.Lock()
	defer b.mu.Unlock()
	l := r.busy
	if l == nil || l.scope != s || l.scope == (scope.Scope{}) || l.of != r.region {
		return nil, fmt.Errorf("budget %q: BUG: make the state of region %s inside its load, with the load's "+
			"scope", b.plan.Name, r.name)
	}
	if l.state {
		return nil, fmt.Errorf("budget %q: BUG: the load of region %s already has a state; it has only one",
			b.plan.Name, r.name)
	}
	l.state = true
	state := &seam.State{Budget: b.plan.Name, Name: r.name, Region: b.plan.Regions[r.level].Name, Stack: r.stack,
		IsState: r.state, Track: r.track, Tracker: r.tracker, Of: r.region, Word: &r.word,
		Loaded: r.word.Load() - uint64(loading) + uint64(phases+loaded), Closed: &b.closed}
	if r.slot >= 0 {
		state.Slot = r.name
	}
	state.Why = func(word uint64) error { return r.noState(word, state.Loaded) }
	return state, nil
}

// noState returns the reason why a state can't be used. pre: the budget is closed, or the region's
// word isn't that after the state's load.
func (r *region) noState(word, after uint64) error {
	began := after - uint64(phases+loaded) // the load's step, without a phase
	switch {
	case r.b.closed.Load():
		return fmt.Errorf("budget %q: region %s: %w", r.b.plan.Name, r.name, ErrClosed)
	case word == began+uint64(loading):
		return fmt.Errorf("budget %q: region %s: its load isn't over: %w", r.b.plan.Name, r.name, ErrLoading)
	case word == began+uint64(phases+rewinding), word == began+uint64(2*phases+empty):
		return fmt.Errorf("budget %q: region %s: its load failed: %w", r.b.plan.Name, r.name, ErrClosed)
	}
	return fmt.Errorf("budget %q: region %s was rewound or loaded again since: %w", r.b.plan.Name, r.name, ErrClosed)
}

// exclusive is a seam.Exclusive.
type exclusive struct {
	states []*seam.State
	work   load // made once: a restore makes no Go allocation
}

func newExclusive(what string, states ...*seam.State) seam.Exclusive {
	first := states[0].Of.(*region)
	e := &exclusive{states: states}
	e.work.what, e.work.of = what, first
	for _, s := range states {
		r := s.Of.(*region)
		switch {
		case r.b != first.b:
			panic(fmt.Sprintf("budget: BUG: %s: a state of budget %q and one of budget %q; all must be of "+
				"one budget", e.work.name(), s.Budget, first.b.plan.Name))
		case slices.Contains(e.work.along.from, r):
			panic(fmt.Sprintf("budget: BUG: %s: two states of region %s", e.work.name(), s.Name))
		}
		e.work.along.from = append(e.work.along.from, r)
	}
	return e
}

func (e *exclusive) Begin(ctx context.Context) error {
	b := e.work.of.b
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("budget %q: %s: %w", b.plan.Name, e.work.name(), err)
	}
	if err := b.beginAgain(e); err != nil {
		return err
	}
	entered := false
	defer func() { // also when the plan's OnError ends the goroutine
		if !entered {
			b.end(&e.work)
		}
	}()
	if still := b.keepOut(ctx, &e.work, e.work.along); still != nil {
		return b.waited(ctx, &e.work, still)
	}
	entered = true
	return nil
}

// beginAgain begins e.work, as begin does a new load.
func (b *Budget) beginAgain(e *exclusive) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, s := range e.states {
		if err := s.Check(); err != nil {
			return err
		}
		if by := e.work.along.from[i].busy; by != nil {
			return fmt.Errorf("budget %q: %s refused during a %s%s; call it when that has returned: %w", b.plan.Name,
				e.work.name(), by.name(), by.related(e.work.of, e.work.along.from[i]), ErrLoading)
		}
	}
	for _, r := range e.work.along.from {
		r.busy = &e.work
	}
	return nil
}

func (e *exclusive) End() { e.work.of.b.end(&e.work) }
