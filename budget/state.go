package budget

import (
	"context"
	"fmt"
	"slices"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// State gives package save access to one load of a region. Package save copies and restores the
// region's bytes while no other goroutine touches the region.
type State struct {
	region *region
	word   uint64 // the region's word after that load
}

// StateOf returns the state of the load that runs in r. s is the scope of the load's function.
func StateOf(r Region, s scope.Scope) (*State, error) {
	b := r.its().b
	b.mu.Lock()
	defer b.mu.Unlock()
	l := r.busy
	if l == nil || l.scope != s || l.scope == (scope.Scope{}) || l.of != r.region {
		return nil, fmt.Errorf("budget %q: BUG: make the state of region %s inside its load, with the load's "+
			"scope", b.plan.Name, r.name)
	}
	if l.state {
		return nil, fmt.Errorf("budget %q: BUG: the load of region %s already has a state; it has only one", b.plan.Name, r.name)
	}
	l.state = true
	return &State{r.region, r.word.Load() - uint64(loading) + uint64(phases+loaded)}, nil
}

// Name returns the region's name as [Region.Name] does.
func (s *State) Name() string { return s.region.name }

// Budget returns the name of the budget's plan.
func (s *State) Budget() string { return s.region.b.plan.Name }

// Region returns the region's name in the plan, which all slots of a region share.
func (s *State) Region() string { return s.region.b.plan.Regions[s.region.level].Name }

// Slot returns the same as Name for a slot, and "" for a region without slots.
func (s *State) Slot() string {
	if s.region.slot < 0 {
		return ""
	}
	return s.region.name
}

// Stack returns the region's arena.
func (s *State) Stack() *stack.Stack { return s.region.stack }

// IsState reports whether the region has State in the plan ([RegionPlan]).
func (s *State) IsState() bool { return s.region.state }

// Tracker returns the tracker of the region's written pages, or nil. tracked reports whether the
// region has Track in the plan. If tracked is true and t is nil, package save compares pages.
func (s *State) Tracker() (t *platform.Tracker, tracked bool) {
	return s.region.tracker, s.region.track
}

// Check returns nil from the end of the load until the load's objects are rewound. Otherwise it
// returns an error with the reason. Any goroutine may call it.
func (s *State) Check() error {
	began := s.word - uint64(phases+loaded) // the load's step, without a phase
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

// Exclusive locks the regions of some states for a restore. Like a load, it excludes other calls
// that touch these regions. Unlike a load, it doesn't lock the regions above them: one of those may
// be loaded at the same time.
type Exclusive struct {
	states []*State
	work   load // made once: a restore makes no Go allocation
}

// NewExclusive returns an Exclusive for these states, which belong to one budget and to different
// regions. Other states are a caller's bug and panic.
func NewExclusive(what string, states ...*State) *Exclusive {
	e := &Exclusive{states: states}
	e.work.what, e.work.of = what, states[0].region
	for _, s := range states {
		switch first := states[0].region.b; {
		case s.region.b != first:
			panic(fmt.Sprintf("budget: BUG: %s: a state of budget %q and one of budget %q; all must be of "+
				"one budget", e.work.name(), s.Budget(), first.plan.Name))
		case slices.Contains(e.work.along.from, s.region):
			panic(fmt.Sprintf("budget: BUG: %s: two states of region %s", e.work.name(), s.Name()))
		}
		e.work.along.from = append(e.work.along.from, s.region)
	}
	return e
}

// Begin locks the regions. Like Load, it waits for workers that pin them, and fails while another
// load touches them. It also fails if State.Check of a state does. It makes no Go allocation unless
// it waits or fails.
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

// beginAgain begins e.work, as begin does a new load.
func (b *Budget) beginAgain(e *Exclusive) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range e.states {
		if err := s.Check(); err != nil {
			return err
		}
		if by := s.region.busy; by != nil {
			return fmt.Errorf("budget %q: %s refused during a %s; call it when that has returned: %w", b.plan.Name, e.work.name(), by.name(), ErrLoading)
		}
	}
	for _, s := range e.states {
		s.region.busy = &e.work
	}
	return nil
}

// End unlocks the regions.
func (e *Exclusive) End() { e.states[0].region.b.end(&e.work) }
