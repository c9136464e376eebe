//go:build linux && cgo

package crash

// #cgo CFLAGS: -D_GNU_SOURCE
// #include "handler.h"
// static inline int upfront_crash_watch_at(uintptr_t base, uint64_t size, const char *name,
//                                          size_t length, uintptr_t describe, uintptr_t arg) {
//     return upfront_crash_watch(base, size, name, length, (upfront_crash_describe)describe, arg);
// }
// static inline void upfront_crash_unwatch_at(uintptr_t base, uintptr_t after, uintptr_t arg) {
//     upfront_crash_unwatch(base, (upfront_crash_describe)after, arg);
// }
import "C"

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"
)

const supported = true

// table is the lock for changes of the C table; the handler takes no lock.
var table struct {
	sync.Mutex
	installed bool
}

func watch(r Range) error {
	table.Lock()
	defer table.Unlock()
	if !table.installed {
		if refused := C.upfront_crash_install(); refused != 0 {
			return fmt.Errorf("crash: set a handler: %w", syscall.Errno(refused))
		}
		table.installed = true
	}
	ok := C.upfront_crash_watch_at(number(r.Base), C.uint64_t(r.Size),
		(*C.char)(unsafe.Pointer(unsafe.StringData(r.Name))), C.size_t(len(r.Name)), number(r.Describe),
		C.uintptr_t(r.Arg))
	if ok == 0 {
		return fmt.Errorf("crash: watch %d bytes at %p: the table of ranges is full: unwatch one of %d before",
			r.Size, r.Base, C.UPFRONT_CRASH_RANGES)
	}
	return nil
}

func unwatch(base, after unsafe.Pointer, arg uintptr) {
	table.Lock()
	defer table.Unlock()
	C.upfront_crash_unwatch_at(number(base), number(after), C.uintptr_t(arg))
}

// number hides an address, which C keeps, from Go's pointer checks.
func number(p unsafe.Pointer) C.uintptr_t { return C.uintptr_t(uintptr(p)) }
