//go:build !asan

package arena_c

import "unsafe"

// Asan says whether AddressSanitizer is on.
const Asan = false

// Word is the word at an offset of the heap, also one that is hidden. The race detector doesn't see it read: it is there
// to judge blocks whose bytes may be anybody's.
//
//go:norace
func (h *Heap) Word(offset uint64) uint64 { return *(*uint64)(unsafe.Add(unsafe.Pointer(h), offset)) }

// Hide makes the last bytes of a live block those of who keeps words there: in asan builds a touch by anybody else is
// reported. Show takes it back. They do nothing in other builds.
func (h *Heap) Hide(p unsafe.Pointer, size uint64) {}
func (h *Heap) Show(p unsafe.Pointer, size uint64) {}
