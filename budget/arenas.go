package budget

import (
	"fmt"

	"github.com/upfront-mem/upfront/scope"
)

// Arenas is the seam to package record: the arenas of a budget.
type Arenas struct{ b *Budget }

// ArenasOf are those of a budget that is open.
func ArenasOf(b *Budget) Arenas { return Arenas{b} }

// TableBytes is what the tables of a budget of the plan take, on the Go heap and of its own memory: what opening it costs,
// however little of it is used. The plan is one without a fault.
func TableBytes(plan Plan) (uint64, error) {
	l, err := plan.resolved().layout()
	return l.bottom + plan.goTables(), err
}

// List has them as they lie in the map: regions with their slots, frame, scratch arenas.
func (a Arenas) List() []*scope.Stack { return a.b.stacks }

// AtSetUp says why it is too late for what follows the arenas from set-up on.
func (a Arenas) AtSetUp(what string) error {
	switch b := a.b; {
	case b.closed.Load():
		return fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	case b.sealed.Load():
		return fmt.Errorf("budget %q: BUG: %s after Seal: call it at set-up", b.plan.Name, what)
	}
	return nil
}

// Forgive begins what a program asks for rarely: until end its Go allocations are none of play's.
func (a Arenas) Forgive() (end func()) { return forgive() }

// Drive lets fn do with the arenas what it wants, and empties them afterwards. It is refused unless all are empty, but for
// the frame's own scope, which is closed meanwhile.
func (a Arenas) Drive(what string, fn func() error) (err error) {
	b := a.b
	l, err := b.begin(Region{}, what)
	if err != nil {
		return err
	}
	defer b.end(l)
	for _, st := range b.stacks {
		if own := len(b.frame) > 0 && st == b.frame[b.buffer]; st.Depth() > 1 || st.Depth() > 0 && !own {
			return fmt.Errorf("budget %q: BUG: %s: %s isn't empty", b.plan.Name, what, st.Arena)
		}
	}
	defer func() {
		for _, st := range b.stacks {
			_ = st.CloseTo(0) // nothing is there that could fail
		}
		if len(b.frame) > 0 {
			b.buffer, b.current = 0, b.frame[0].Open(frameScope)
		}
		b.published.all()
	}()
	for _, st := range b.frame {
		_ = st.CloseTo(0)
	}
	return fn()
}
