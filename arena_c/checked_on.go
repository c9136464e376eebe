//go:build checked

package arena_c

// #cgo CFLAGS: -DUPFRONT_CHECKED
// #include "checked.h"
// static inline void upfront_mark_type_at(uintptr_t position, uint32_t type) { upfront_mark_type((const void *)position, type); }
// static inline uint64_t upfront_row_things(const upfront_row *r, upfront_thing *out, uint64_t room) {
//     const upfront_arena *a = &r->arena.arena;
//     return upfront_mirror_things((const char *)(uintptr_t)a + a->start, r->end - a->start, out, room);
// }
// static inline int upfront_refuses_table(void) UPFRONT_ASK(int, upfront_refuses())
// #cgo noescape upfront_mark_type_at
// #cgo nocallback upfront_mark_type_at
// #cgo noescape upfront_row_things
// #cgo nocallback upfront_row_things
// static void *upfront_describe_address(void) { return (void *)(uintptr_t)upfront_describe; }
// static void *upfront_describe_closed_address(void) { return (void *)(uintptr_t)upfront_describe_closed; }
import "C"

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// Checked says whether this is the checked build. In it the core fills what is fresh and what is dead, and has redzones
// between things that lie in a mirror (mirror.h), call sites are kept (Site), and each request asks upfront_refuses (base.h). A request is
// what a plan can be too small for, and what would be given: bytes, a chunk of a pool, a place in a table. What is refused
// anyway, for want of room or as misuse, is none.
const Checked = true

// reported says whether an error was made of the refusal that FailAt named.
var reported atomic.Bool

// FailAt has the n-th request from now on refused, once, whoever makes it; 0 has no more refused, and Failed stays as it is.
func FailAt(n uint64) {
	if n != 0 {
		reported.Store(false)
	}
	C.upfront_fail_at(C.uint64_t(n))
}

// Failed says whether the request came that FailAt named, and whether an error told of it (Tell): one that got nothing
// but nil or false for an answer has none.
func Failed() (refused, told bool) { return C.upfront_failed() != 0, reported.Load() }

// Refuse is upfront_refuses for a table that the core doesn't know. True: it is to be answered as if it were full.
func Refuse() bool { return C.upfront_refuses_table() != 0 }

// Tell notes that an error was made of the refusal.
func Tell() { reported.Store(true) }

// NoteType keeps what lives at p as a T of that name: for who lists what lives. Elsewhere than in a mirror nothing is kept.
func NoteType(p unsafe.Pointer, name string) {
	C.upfront_mark_type_at(C.uintptr_t(uintptr(p)), C.uint32_t(textOf(name)))
}

// Thing is something that lives: mirror.h. Made and Type are numbers of texts.
type Thing struct {
	Offset, Size uint64 // from the row's first byte
	Made, Type   uint32
	Kind         uint64
}

var _ [unsafe.Sizeof(Thing{})]byte = [unsafe.Sizeof(C.upfront_thing{})]byte{}

// The kinds of a Thing.
const (
	ThingNode  = C.UPFRONT_THING_NODE
	ThingParts = C.UPFRONT_THING_PARTS
)

// things is Things of the row at r.
func things(r unsafe.Pointer, list []Thing) ([]Thing, bool) {
	for {
		list = list[:cap(list)]
		all := uint64(C.upfront_row_things((*C.upfront_row)(r), (*C.upfront_thing)(unsafe.Pointer(unsafe.SliceData(list))),
			C.uint64_t(len(list))))
		if all == math.MaxUint64 {
			return list[:0], false
		}
		if all <= uint64(len(list)) {
			return list[:all], true
		}
		list = make([]Thing, all+all/8)
	}
}

// DescribeFault is the address of upfront_describe, whose argument is a Map: in the words of platform/crash a describing
// function.
func DescribeFault() unsafe.Pointer { return C.upfront_describe_address() }

// DescribeClosed is the address of upfront_describe_closed, whose argument is a number of Here.
func DescribeClosed() unsafe.Pointer { return C.upfront_describe_closed_address() }
