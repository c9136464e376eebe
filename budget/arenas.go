package budget

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Arenas is package record's access to the arenas of a budget.
type Arenas struct{ b *Budget }

// ArenasOf returns the arenas of an open budget.
func ArenasOf(b *Budget) Arenas { return Arenas{b} }

// TableBytes returns the bytes that the tables of an open plan take in the budget, and an estimate
// of those on the Go heap. The result doesn't depend on the budget's use. The plan must be valid.
func TableBytes(plan Plan) (uint64, error) {
	l, err := plan.resolved().layout()
	return l.bottom + plan.goTables(), err
}

// Plan is [Budget.Plan].
func (a Arenas) Plan() Plan { return a.b.Plan() }

// List returns the arenas in map order: regions with their slots, frame, scratch arenas.
func (a Arenas) List() []*stack.Stack { return a.b.stacks }

// AtSetUp returns an error after Close or Seal, when it is too late to record the arenas.
func (a Arenas) AtSetUp(what string) error {
	switch b := a.b; {
	case b.closed.Load():
		return fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	case b.sealed.Load():
		return fmt.Errorf("budget %q: BUG: %s after Seal: call it at set-up", b.plan.Name, what)
	}
	return nil
}

// Dry returns the arenas of a budget that has tables, on the Go heap, but no memory for its arenas.
// Of the arenas' methods that allocate, only [stack.Stack.Play] works. Dry fails if the plan is
// invalid or can't be laid out.
func Dry(plan Plan) (Arenas, error) {
	b, err := openDry(plan)
	return Arenas{b}, err
}

func openDry(plan Plan) (*Budget, error) {
	if err := plan.check(); err != nil {
		return nil, err
	}
	b := &Budget{plan: plan.resolved(), left: newLeftOpen()}
	l, err := b.plan.layout()
	if err != nil {
		return nil, fmt.Errorf("budget %q: %w", plan.Name, err)
	}
	b.grant.memory = newDryMemory(l)
	b.makeTable(l)
	b.makeStacks(stack.StartDry)
	b.published.begin(b.stacks, len(b.regions), len(b.frame))
	return b, nil
}

// Report returns the report of dry arenas.
func (a Arenas) Report() Report {
	r := a.b.report(func(int) bool { return true })
	r.GoHeap, r.CHeap = GoHeap{}, CHeapReport{} // they would be this process's
	return r
}

// dryMemory is the memory of a dry budget: tables on the Go heap. Its size is the plan's.
type dryMemory struct {
	*platform.Reservation // nil: a dry budget makes no system call
	tables                []byte
	size                  uint64
}

func newDryMemory(l layout) dryMemory {
	tables := make([]byte, l.bottom+arena_c.Edge)
	return dryMemory{tables: tables[-uintptr(unsafe.Pointer(unsafe.SliceData(tables)))%arena_c.Edge:], size: l.size}
}

func (m dryMemory) Base() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(m.tables)) }
func (m dryMemory) Size() uint64         { return m.size }
func (m dryMemory) Addresses() uint64    { return m.size }
