//go:build asan

package arena_c

// #include "heap.h"
// #cgo noescape upfront_heap_word
// #cgo nocallback upfront_heap_word
// #cgo noescape upfront_heap_hide
// #cgo nocallback upfront_heap_hide
// static inline void upfront_heap_hide(void *p, uint64_t size) { UPFRONT_POISON(p, size); }
import "C"

import "unsafe"

// Asan says whether AddressSanitizer is on.
const Asan = true

// Word is upfront_heap_word, which reads what is hidden too.
func (h *Heap) Word(offset uint64) uint64 {
	return uint64(C.upfront_heap_word(h.c(), C.uint64_t(offset)))
}

// Hide makes the last bytes of a live block those of who keeps words there: a touch by anybody else is reported. Show
// takes it back.
func (h *Heap) Hide(p unsafe.Pointer, size uint64) { C.upfront_heap_hide(p, C.uint64_t(size)) }
func (h *Heap) Show(p unsafe.Pointer, size uint64) { Unpoison(p, size) }
