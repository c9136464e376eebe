//go:build checked

package arena_c

// #cgo CFLAGS: -DUPFRONT_CHECKED
// #include "checked.h"
// static void *upfront_describe_address(void) { return (void *)(uintptr_t)upfront_describe; }
// static void *upfront_describe_closed_address(void) { return (void *)(uintptr_t)upfront_describe_closed; }
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Checked says whether this is the checked build. In it the core fills what is fresh and what is dead, and has redzones
// between things that lie in a mirror (mirror.h), call sites are kept (Site), and each request asks Refuse. A request is
// what a plan can be too small for, and what would be given: bytes, a chunk of a pool, a place in a table. What is refused
// anyway, for want of room or as misuse, is none.
const Checked = true

// failing is that of the process: it counts the requests of all goroutines.
var failing struct {
	left    atomic.Int64 // requests until the one to refuse, with it
	refused atomic.Bool
	told    atomic.Bool
}

// FailAt has the n-th request from now on refused, once; 0 has no more refused, and Failed stays as it is.
func FailAt(n uint64) {
	failing.left.Store(0)
	if n != 0 {
		failing.refused.Store(false)
		failing.told.Store(false)
		failing.left.Store(int64(n))
	}
}

// Failed says whether the request came that FailAt named, and whether an error told of it (Tell): one that got nothing
// but nil or false for an answer has none.
func Failed() (refused, told bool) { return failing.refused.Load(), failing.told.Load() }

// Refuse is the one place that each request passes. True: it is to be answered as if there were no room.
func Refuse() bool {
	if failing.left.Load() <= 0 || failing.left.Add(-1) != 0 {
		return false
	}
	failing.refused.Store(true)
	return true
}

// Tell notes that an error was made of the refusal.
func Tell() { failing.told.Store(true) }

// given says whether what a header gave stays given. Else the header is again as it was.
func given[H any](header *H, was H) bool {
	if !Refuse() {
		return true
	}
	*header = was
	return false
}

// DescribeFault is the address of upfront_describe, whose argument is a Map: in the words of platform/crash a describing
// function.
func DescribeFault() unsafe.Pointer { return C.upfront_describe_address() }

// DescribeClosed is the address of upfront_describe_closed, whose argument is a number of Here.
func DescribeClosed() unsafe.Pointer { return C.upfront_describe_closed_address() }
