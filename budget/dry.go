package budget

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

func openDry(plan Plan) (*Budget, error) {
	b, l, err := newBudget(plan)
	if err != nil {
		return nil, err
	}
	// only tables; a dry budget makes no system call
	block := make([]byte, l.bottom+arena_c.Edge)
	start := unsafe.Pointer(unsafe.SliceData(block))
	b.grant.memory = given{block, unsafe.Add(start, -uintptr(start)%arena_c.Edge), l.size}
	b.makeTable(l)
	b.makeStacks(stack.StartDry)
	b.published.begin(b.stacks, len(b.regions), len(b.frame))
	return b, nil
}

func (b *Budget) dryReport() Report {
	r := b.report(func(int) bool { return true })
	// they would be this process's
	r.GoHeap, r.CHeap, r.Outside = GoHeap{}, CHeapReport{}, Outside{}
	return r
}
