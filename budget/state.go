package budget

import (
	"context"
	"fmt"
	"slices"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

// State is the seam to package save: one load of a region, whose bytes are copied and put back
// while nobody else touches the region.
type State struct {
	region *region
	word   uint64 // of the region, when that load is over
}

// StateOf is the load that is at work in r; s is the scope that its function was given, and the
// proof.
func StateOf(r Region, s scope.Scope) (*State, error) {
	b := r.its().b
	b.mu.Lock()
	defer b.mu.Unlock()
	l := r.busy
	if l == nil || l.scope != s || l.scope == (scope.Scope{}) || l.of != r.region {
		return nil, fmt.Errorf("budget %q: BUG: a state of region %s begins in its load, with the scope that the load's function "+
			"was given", b.plan.Name, r.name)
	}
	if l.state {
		return nil, fmt.Errorf("budget %q: BUG: a load of region %s has one state, which began before", b.plan.Name, r.name)
	}
	l.state = true
	return &State{r.region, r.word.Load() - uint64(loading) + uint64(phases+loaded)}, nil
}

// Name is the region's name, Budget the plan's.
func (s *State) Name() string   { return s.region.name }
func (s *State) Budget() string { return s.region.b.plan.Name }

// Region is its name in the plan, which slots share: for those Slot is the Name, "" for others.
func (s *State) Region() string { return s.region.b.plan.Regions[s.region.level].Name }
func (s *State) Slot() string {
	if s.region.slot < 0 {
		return ""
	}
	return s.region.name
}

// Stack is the region's arena, and IsState whether the plan has it as a state.
func (s *State) Stack() *scope.Stack { return s.region.stack }
func (s *State) IsState() bool       { return s.region.state }

// Tracker tells which pages of the region were written; nil: nobody does. tracked says whether the
// plan asks for it: then who copies the region compares pages instead.
func (s *State) Tracker() (t *platform.Tracker, tracked bool) {
	return s.region.tracker, s.region.track
}

// Check says why what the load made isn't there; nil when it is. Any goroutine may ask.
func (s *State) Check() error {
	began := s.word - uint64(phases+loaded) // the load's step, with no phase
	switch now := s.region.word.Load(); {
	case s.region.b.closed.Load():
		return fmt.Errorf("budget %q: region %s: %w", s.Budget(), s.Name(), ErrClosed)
	case now == s.word:
		return nil
	case now == began+uint64(loading):
		return fmt.Errorf("budget %q: region %s: its load isn't over: %w", s.Budget(), s.Name(), ErrLoading)
	case now == began+uint64(phases+rewinding), now == began+uint64(2*phases+empty):
		return fmt.Errorf("budget %q: region %s: its load failed: %w", s.Budget(), s.Name(), ErrClosed)
	}
	return fmt.Errorf("budget %q: region %s was rewound or loaded again since: %w", s.Budget(), s.Name(), ErrClosed)
}

// Exclusive is who puts states back: meanwhile it is as a load of their regions, but for those
// above.
type Exclusive struct {
	states []*State
	work   load // made once: to put back makes no Go allocation
}

// NewExclusive is for states of one budget, of different regions. Others are a caller's bug and panic.
func NewExclusive(what string, states ...*State) *Exclusive {
	e := &Exclusive{states: states}
	e.work.what, e.work.of = what, states[0].region
	for _, s := range states {
		switch first := states[0].region.b; {
		case s.region.b != first:
			panic(fmt.Sprintf("budget: BUG: %s: a state of budget %q, together with one of budget %q, which "+
				"nobody locks at once", e.work.name(), s.Budget(), first.plan.Name))
		case slices.Contains(e.work.along.from, s.region):
			panic(fmt.Sprintf("budget: BUG: %s: two states of region %s", e.work.name(), s.Name()))
		}
		e.work.along.from = append(e.work.along.from, s.region)
	}
	return e
}

// Begin waits as Load does for workers that have a region pinned, and refuses as it does. No Go
// allocation, but where it waits or refuses.
func (e *Exclusive) Begin(ctx context.Context) error {
	b := e.states[0].region.b
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

// beginAgain is begin of what was made once.
func (b *Budget) beginAgain(e *Exclusive) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range e.states {
		if err := s.Check(); err != nil {
			return err
		}
		if by := s.region.busy; by != nil {
			return fmt.Errorf("budget %q: %s during a %s: %w", b.plan.Name, e.work.name(), by.name(), ErrLoading)
		}
	}
	for _, s := range e.states {
		s.region.busy = &e.work
	}
	return nil
}

// End gives the regions back.
func (e *Exclusive) End() { e.states[0].region.b.end(&e.work) }
