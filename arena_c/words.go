package arena_c

// #include "base.h"
// #cgo noescape upfront_asan_unpoison
// #cgo nocallback upfront_asan_unpoison
// static inline void upfront_asan_unpoison(void *p, uint64_t size) { UPFRONT_UNPOISON(p, size); }
// #cgo noescape upfront_word_now
// #cgo nocallback upfront_word_now
// static inline uint64_t upfront_word_now(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
import "C"

import "unsafe"

// Limits of base.h.
const (
	OffsetMax = C.UPFRONT_OFFSET_MAX // bound of blocks, offsets and sizes
	Object    = C.UPFRONT_OBJECT     // one allocation in a word that counts them above their bytes
	Edge      = C.UPFRONT_EDGE       // the arenas of a map begin at its multiples
	AlignMax  = C.UPFRONT_ALIGN_MAX  // the largest alignment
	LineSize  = C.UPFRONT_LINE
)

// Now returns a word of a header while other threads may change it. It is read in C, where the race
// detector doesn't look.
func Now(word *uint64) uint64 { return uint64(C.upfront_word_now((*C.uint64_t)(word))) }

// Code is the result of a call that may be refused: OK, a full arena or table above zero, or a
// caller's bug below zero.
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
	Double:      "freed already",
	Foreign:     "not a block of this arena",
	Misaligned:  "inside a block, not at its start",
	Corrupt:     "overwritten words: a write past a block or into freed memory",
	Raced:       "another goroutine or thread is in a call: put one lock around every call",
}

// String returns the code in a few words, for messages.
func (c Code) String() string { return codes[c] }

// found returns the number that C found, or the code that C returned in place of it.
func found(answer C.int64_t) (number uint64, code Code) {
	if answer < 0 {
		return 0, Code(answer)
	}
	return uint64(answer), OK
}

// OfPool is String for the code of a pool.
func (c Code) OfPool() string {
	switch c {
	case Double:
		return "put already"
	case Foreign:
		return "not a chunk of this pool"
	case Misaligned:
		return "inside a chunk, not at its start"
	}
	return c.String()
}

// Unpoison makes a block ordinary memory in asan builds, before it is returned to its owner.
func Unpoison(block unsafe.Pointer, size uint64) { C.upfront_asan_unpoison(block, C.uint64_t(size)) }

// checked returns the address of a header for C. A nil header panics here, not in C.
func checked[T any](header *T) unsafe.Pointer {
	_ = *header
	return unsafe.Pointer(header)
}
