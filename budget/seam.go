package budget

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope/stack"
)

func init() {
	seam.Stacks = func(b *Budget) []*stack.Stack { return b.stacks }
	seam.AtSetUp = (*Budget).atSetUp
	seam.TableBytes, seam.Widen = Plan.allTables, (*Plan).widen
	seam.Dry, seam.DryReport, seam.MeasureDry = openDry, (*Budget).dryReport, measureDry
	seam.StateOf, seam.NewExclusive = stateOf, newExclusive
	seam.Watch = (*Budget).watched
	seam.Look, seam.LookRegion = (*Budget).look, Region.look
}

// allTables is seam.TableBytes.
func (p Plan) allTables() (uint64, error) {
	l, err := p.resolved().layout()
	return l.bottom + p.goTables(), err
}

func (b *Budget) atSetUp(what string) error {
	switch {
	case b.closed.Load():
		return fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	case b.sealed.Load():
		return fmt.Errorf("budget %q: BUG: %s after Seal: call it at set-up", b.plan.Name, what)
	}
	return nil
}

func (r Region) look() (*stack.Stack, error) {
	if r.released() {
		return nil, fmt.Errorf("budget %q: inside of region %s, which was released: %w", r.b.plan.Name, r.name,
			ErrClosed)
	}
	return r.b.lookAt(r.index)
}

func (b *Budget) look(name string) (*stack.Stack, error) {
	for i := range b.stacks {
		if arenaName(b.stacks[i]) != name {
			continue
		}
		if !b.isOurs(i) {
			return nil, fmt.Errorf("budget %q: inside of %s: it is for leases; package inside works on scratch "+
				"that a worker takes by number", b.plan.Name, name)
		}
		return b.lookAt(i)
	}
	return nil, fmt.Errorf("budget %q: inside of %q: there is no such arena", b.plan.Name, name)
}

func (b *Budget) lookAt(index int) (*stack.Stack, error) {
	st := b.stacks[index]
	if b.closed.Load() {
		return nil, fmt.Errorf("budget %q: inside of %s: %w", b.plan.Name, arenaName(st), ErrClosed)
	}
	return st, nil
}
