//go:build checked

package budget

import (
	"errors"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget/internal/crash"
	"github.com/upfront-mem/upfront/platform"
)

// watchFaults adds the object or arena at the address to the report of a crash in the budget or its
// mirror.
func (b *Budget) watchFaults() {
	if platform.GoBacked { // it keeps all access
		return
	}
	if r, ok := b.memory.(*platform.Reservation); ok {
		b.watch(r.Base(), b.Size())
	}
	if b.mirror != nil {
		b.watch(b.mirror.Base(), b.mirror.Size())
	}
}

func (b *Budget) watch(base unsafe.Pointer, size uint64) {
	err := crash.Watch(crash.Range{Name: b.plan.Name, Base: base, Size: size, Describe: arena_c.DescribeFault(),
		Arg: uintptr(unsafe.Pointer(b.table))})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // as off Linux
		b.refused = append(b.refused, "crash reports: "+err.Error())
	}
}

// unwatchFaults adds the line of Close to the report of a crash on these addresses, until they are
// reused.
func (b *Budget) unwatchFaults() {
	closed := uintptr(arena_c.Here(1))
	crash.Unwatch(b.memory.Base(), arena_c.DescribeClosed(), closed)
	if b.mirror != nil {
		crash.Unwatch(b.mirror.Base(), arena_c.DescribeClosed(), closed)
	}
}
