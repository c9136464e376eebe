package crash

import (
	"errors"
	"fmt"
	"unsafe"
)

// Range is addresses that somebody can describe.
type Range struct {
	Name string // what the text calls it; 63 bytes of it are kept
	Base unsafe.Pointer
	Size uint64

	// Describe is a C function, an upfront_crash_describe of handler.h:
	//
	//	size_t describe(const void *arg, const char *name, uintptr_t address, char *out, size_t room);
	//
	// It writes what the address means into out, at most room bytes, and gives their number; with 0, nothing is said.
	// In Go it is unsafe.Pointer(C.describe), where describe isn't static.
	Describe unsafe.Pointer
	// Arg is its argument: a number, or an address that is no Go memory's and stays until Unwatch returned.
	Arg uintptr
}

// ErrFull is Watch's when as many ranges are watched as the table holds. It is not the budget's.
var ErrFull = errors.New("crash: no room in the table of ranges")

// Watch has faults in the range described from now on. What was watched before in any of its addresses no longer is. An
// error changes nothing: ErrFull, or errors.ErrUnsupported.
func Watch(r Range) error {
	switch {
	case r.Base == nil || r.Size == 0 || r.Describe == nil || r.Size > uint64(^uintptr(0)-uintptr(r.Base)):
		return fmt.Errorf("crash: BUG: watch %d bytes at %p: it takes a base, a size and a function to describe them", r.Size, r.Base)
	case !supported:
		return fmt.Errorf("crash: watch %d bytes at %p: %w", r.Size, r.Base, errors.ErrUnsupported)
	}
	return watch(r)
}

// Unwatch ends the watching of the range that begins at base; nothing when there is none. With a function `after`, faults
// there still are described, by it with the argument arg, until the range is watched anew or its place in the table is
// needed: for one that says who ended the use of the memory.
func Unwatch(base, after unsafe.Pointer, arg uintptr) {
	if supported {
		unwatch(base, after, arg)
	}
}
