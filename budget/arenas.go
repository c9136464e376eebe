package budget

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
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

// Plan is theirs, with its defaults filled in.
func (a Arenas) Plan() Plan { return a.b.Plan() }

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

// Dry are the arenas of a budget of the plan without its memory: the core lays out their tables, on the Go heap. Of
// each Play alone works ([scope.Stack.Play]). The error is that of a plan with a fault, or of one that can't be laid out.
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
	b.makeStacks((*scope.Stack).StartDry)
	b.published.begin(b.stacks, len(b.regions), len(b.frame))
	return b, nil
}

// Report has the figures of dry arenas.
func (a Arenas) Report() Report {
	r := a.b.report(func(int) bool { return true })
	r.GoHeap = GoHeap{} // of the process that asks
	return r
}

// dryMemory is the memory of a dry budget: its tables, on the Go heap. Size is that of the plan.
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
