package budget

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope/stack"
)

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

func (b *Budget) dryReport() Report {
	r := b.report(func(int) bool { return true })
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
