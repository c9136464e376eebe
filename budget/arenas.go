package budget

import (
	"fmt"

	"github.com/upfront-mem/upfront/scope"
)

// Arenas is the seam to package record: the arenas of a budget.
type Arenas struct{ b *Budget }

// ArenasOf are those of a budget that is open.
func ArenasOf(b *Budget) Arenas { return Arenas{b} }

// List has them as they lie in the map: regions with their slots, frame, scratch arenas.
func (a Arenas) List() []*scope.Stack { return a.b.stacks }

// Sealed says whether set-up is over.
func (a Arenas) Sealed() bool { return a.b.sealed.Load() }

// Forgive begins what a program asks for rarely: until end its Go allocations are none of play's.
func (a Arenas) Forgive() (end func()) { return forgive() }

// Drive lets fn do with the arenas what it wants, and empties them afterwards. It is refused unless all are empty, but for
// the frame's own scope, which is closed meanwhile.
func (a Arenas) Drive(what string, fn func() error) (err error) {
	b := a.b
	l, err := b.begin(nil, what)
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
