//go:build checked

package arena_c

// #cgo CFLAGS: -DUPFRONT_CHECKED
// #include "checked.h"
// static inline void upfront_mark_type_at(uintptr_t position, uint32_t type) {
//     upfront_mark_type((const void *)position, type);
// }
// static inline uint64_t upfront_row_objects(const upfront_row *r, upfront_live_object *out, uint64_t room) {
//     const upfront_arena *a = &r->arena.arena;
//     return upfront_mirror_objects((const char *)(uintptr_t)a + a->start, r->end - a->start, out, room);
// }
// static inline int upfront_refuses_table(void) UPFRONT_ASK(int, upfront_refuses())
// #cgo noescape upfront_mark_type_at
// #cgo nocallback upfront_mark_type_at
// #cgo noescape upfront_row_objects
// #cgo nocallback upfront_row_objects
// static void *upfront_describe_address(void) { return (void *)(uintptr_t)upfront_describe; }
// static void *upfront_describe_closed_address(void) { return (void *)(uintptr_t)upfront_describe_closed; }
import "C"

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Checked reports whether this is the checked build. In it the core fills fresh and dead memory and
// puts redzones between objects in a mirror (mirror.h), call sites are kept (Site), and each
// request may be refused by upfront_refuses (base.h). A request is a call whose bytes fit, in a
// table or an arena whose size the plan sets: for bytes, a pool chunk or a table entry.
const Checked = true

// reported is true once an error was made for the refusal of FailAt.
var reported atomic.Bool

// FailAt refuses the n-th request of all goroutines from now on, once. 0 refuses none, and leaves
// Failed as it is.
func FailAt(n uint64) {
	if n != 0 {
		reported.Store(false)
	}
	C.upfront_fail_at(C.uint64_t(n))
}

// Failed reports whether FailAt's request was refused, and whether an error was made for it (Tell).
// A call that returns only nil or false makes no error.
func Failed() (refused, told bool) { return C.upfront_failed() != 0, reported.Load() }

// Refuse is upfront_refuses for a table outside of the core. If it returns true, the caller acts as
// if the table were full.
func Refuse() bool { return C.upfront_refuses_table() != 0 }

// Tell notes that an error was made for the refusal.
func Tell() { reported.Store(true) }

// NoteType keeps the name of the type of the object at p, for LiveObjects. Outside of mirrors it
// does nothing.
func NoteType(p unsafe.Pointer, name string) {
	C.upfront_mark_type_at(C.uintptr_t(uintptr(p)), C.uint32_t(textOf(name)))
}

// Kinds of a live object.
const (
	LiveNode  = C.UPFRONT_LIVE_NODE
	LiveParts = C.UPFRONT_LIVE_PARTS
)

// live is the list of the last call of liveObjects, kept for its memory.
var live struct {
	sync.Mutex
	list []C.upfront_live_object
}

// liveObjects is Row.LiveObjects for the row at r.
func liveObjects(r unsafe.Pointer, each func(offset, size uint64, made, typed uint32, kind uint64)) (known bool) {
	live.Lock()
	defer live.Unlock()
	for {
		all := uint64(C.upfront_row_objects((*C.upfront_row)(r), unsafe.SliceData(live.list),
			C.uint64_t(len(live.list))))
		if all == math.MaxUint64 {
			return false
		}
		if all <= uint64(len(live.list)) {
			for _, o := range live.list[:all] {
				each(uint64(o.offset), uint64(o.size), uint32(o.made), uint32(o._type), uint64(o.kind))
			}
			return true
		}
		live.list = make([]C.upfront_live_object, all+all/8)
	}
}

// DescribeFault returns the address of upfront_describe, for budget/internal/crash. Its argument is
// a Map.
func DescribeFault() unsafe.Pointer { return C.upfront_describe_address() }

// DescribeClosed returns the address of upfront_describe_closed. Its argument is a number from
// Here.
func DescribeClosed() unsafe.Pointer { return C.upfront_describe_closed_address() }
