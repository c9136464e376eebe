package crash

import (
	"errors"
	"fmt"
	"unsafe"
)

// Range is a range of addresses with a function that describes them.
type Range struct {
	Name string // for the text; 63 bytes of it are kept
	Base unsafe.Pointer
	Size uint64

	// Describe is a C function, an upfront_crash_describe of handler.h:
	//
	//	size_t describe(const void *arg, const char *name, uintptr_t address,
	//	                char *out, size_t room);
	//
	// The function writes the meaning of the address into out, at most room bytes, and returns
	// their number; for 0 the handler prints nothing. In Go pass unsafe.Pointer(C.describe), where
	// describe isn't static.
	Describe unsafe.Pointer
	// Arg is the function's argument: a number, or an address outside of Go memory that stays valid
	// until Unwatch returns.
	Arg uintptr
}

// Watch starts to describe faults in the range. It ends the watching of every range that overlaps
// r. It fails, and changes nothing, if the table is full, if the build can't watch
// (errors.ErrUnsupported), if the system refuses a handler, or if Base, Size or Describe is
// missing.
func Watch(r Range) error {
	switch {
	case r.Base == nil || r.Size == 0 || r.Describe == nil || r.Size > uint64(^uintptr(0)-uintptr(r.Base)):
		return fmt.Errorf("crash: BUG: watch %d bytes at %p: Range needs Base, Size and Describe", r.Size, r.Base)
	case !supported:
		return fmt.Errorf("crash: watch %d bytes at %p: %w", r.Size, r.Base, errors.ErrUnsupported)
	}
	return watch(r)
}

// Unwatch ends the watching of the range that begins at base, if there is one. If after isn't nil,
// it is a C function like [Range.Describe]. The handler calls it with arg to describe later faults
// in the range, until the range is watched again or Watch needs the range's entry in the table. The
// text of after can name the line that ended the use of the memory.
func Unwatch(base, after unsafe.Pointer, arg uintptr) {
	if supported {
		unwatch(base, after, arg)
	}
}
