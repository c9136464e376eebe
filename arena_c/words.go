package arena_c

// #include "base.h"
// #cgo noescape upfront_asan_unpoison
// #cgo nocallback upfront_asan_unpoison
// static inline void upfront_asan_unpoison(void *p, uint64_t size) { UPFRONT_UNPOISON(p, size); }
import "C"

import "unsafe"

// The limits of base.h.
const (
	OffsetMax = C.UPFRONT_OFFSET_MAX // a block, an offset and a size are below it
	Object    = C.UPFRONT_OBJECT     // one allocation, in a word that counts them above the bytes that were asked for
	Edge      = C.UPFRONT_EDGE       // edges of regions and tables
	AlignMax  = C.UPFRONT_ALIGN_MAX  // the largest alignment
	LineSize  = C.UPFRONT_LINE
)

// Code is the answer of an operation that can refuse: OK, a kind of full (above zero), or a caller's bug (below).
type Code int

const (
	OK          Code = C.UPFRONT_OK
	Full        Code = C.UPFRONT_FULL
	TableFull   Code = C.UPFRONT_TABLE_FULL
	BadArgument Code = C.UPFRONT_BAD_ARGUMENT
	Stale       Code = C.UPFRONT_STALE
	Order       Code = C.UPFRONT_ORDER
	Double      Code = C.UPFRONT_DOUBLE
	Foreign     Code = C.UPFRONT_FOREIGN
	Misaligned  Code = C.UPFRONT_MISALIGNED
	Corrupt     Code = C.UPFRONT_CORRUPT
	Raced       Code = C.UPFRONT_RACED
)

var codes = map[Code]string{
	OK:          "ok",
	Full:        "full",
	TableFull:   "no free header in a control table",
	BadArgument: "bad argument",
	Stale:       "closed already",
	Order:       "out of order",
	Double:      "put twice",
	Foreign:     "not from here",
	Misaligned:  "inside a chunk, not at its start",
	Corrupt:     "corrupt table",
	Raced:       "another call is inside: put one lock around all of them",
}

// String gives the code in a few words, for messages.
func (c Code) String() string { return codes[c] }

// Unpoison makes a block ordinary memory again in asan builds, before it goes back to where it came from.
func Unpoison(block unsafe.Pointer, size uint64) { C.upfront_asan_unpoison(block, C.uint64_t(size)) }

// checked is the address of a header on its way to C. A nil one panics here, as any nil does, instead of in C.
func checked[T any](header *T) unsafe.Pointer {
	_ = *header
	return unsafe.Pointer(header)
}
