//go:build checked

package budget

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/platform/crash"
)

// watchFaults has a crash on an address of the budget say where in it that is.
func (b *Budget) watchFaults() {
	r, ok := b.memory.(*platform.Reservation)
	if !ok || platform.GoBacked { // no access is taken from it
		return
	}
	err := crash.Watch(crash.Range{Name: b.plan.Name, Base: r.Base(), Size: b.Size(), Describe: arena_c.DescribeFault(),
		Arg: uintptr(unsafe.Pointer(b.table))})
	if err != nil {
		b.refused = append(b.refused, "crash reports: "+err.Error())
	}
}

// unwatchFaults has it say who closed the budget, until somebody else has the addresses.
func (b *Budget) unwatchFaults() {
	crash.Unwatch(b.memory.Base(), arena_c.DescribeClosed(), uintptr(arena_c.Here(1)))
}
