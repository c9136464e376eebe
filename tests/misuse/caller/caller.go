// Package caller is a C library that gets memory of a budget, or makes an arena of its own, and
// commits the usual faults of C. It is a package of its own because test files of other packages
// call it, and test files may not import "C".
//
// The C headers are outside of this folder, so the build cache doesn't notice their changes. After
// a change, run go clean -cache.
package caller

// #cgo CFLAGS: -I${SRCDIR}/../../../arena_c -DUPFRONT_PREFIX=github_com_upfront_mem_upfront_
// #cgo checked CFLAGS: -DUPFRONT_CHECKED
// #include <stdlib.h>
// #include "upfront.h"
//
// static uint64_t *caller_kept;
// static void caller_keep(void *p) { caller_kept = (uint64_t *)p; }
// static uint64_t caller_read(void) { return *caller_kept; }
// static void caller_write(uint64_t value) { *caller_kept = value; }
// static void caller_fill(void *p, uint8_t byte, uint64_t size) {
//     // Without volatile, the compiler calls memset, whose line would be reported.
//     volatile uint8_t *bytes = (volatile uint8_t *)p;
//     uint64_t i;
//     for (i = 0; i < size; i++)
//         bytes[i] = byte;
// }
//
// static void *caller_alloc(void *header, uint64_t generation, uint64_t size, uint64_t align) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     return upfront_scope_alloc(s, size, align);
// }
//
// // In each of these `wrong` is the misuse.
// static _Alignas(64) char caller_block[1024];
// static upfront_linear *caller_make(int wrong) { return upfront_linear_init(caller_block + (wrong ? 8 : 0), 512); }
// static void *caller_alloc_in_null(int wrong) {
//     upfront_linear *l = caller_make(0);
//     return upfront_linear_alloc(wrong ? NULL : l, 8, 8);
// }
// static void *caller_alloc_in_zeros(int wrong) {
//     upfront_linear zeros, *l = caller_make(0);
//     memset(&zeros, 0, sizeof zeros);
//     return upfront_linear_alloc(wrong ? &zeros : l, 8, 8);
// }
// static int caller_take_from_pool(int wrong) {
//     upfront_pool *p = upfront_pool_make(caller_block, sizeof caller_block, 8, 8, 0);
//     return upfront_pool_get(wrong ? NULL : p, 1) != NULL;
// }
// static int caller_close_pool(int wrong) {
//     upfront_pool *p = upfront_pool_make(caller_block, sizeof caller_block, 8, 8, 0), *closed = wrong ? NULL : p;
//     void *chunk = upfront_pool_get(p, 1);
//     int found = upfront_pool_find(closed, 1, chunk) == 0;
//     upfront_pool_close(closed);
//     return found;
// }
// static int caller_walk_heap(int wrong) {
//     upfront_heap zeros, *h = upfront_heap_init(caller_block, sizeof caller_block, 0);
//     memset(&zeros, 0, sizeof zeros);
//     upfront_heap_reset(wrong ? &zeros : h);
//     return upfront_heap_walk(wrong ? &zeros : h, NULL, 0, NULL) == UPFRONT_OK;
// }
// // A header's offsets count from its own address.
// static struct { _Alignas(64) upfront_linear header; uint64_t beside[8]; } caller_copy;
// static uint64_t caller_alloc_in_copy(int wrong) {
//     upfront_linear *l = caller_make(0);
//     caller_copy.header = *l;
//     memset(upfront_linear_alloc(wrong ? &caller_copy.header : l, 8, 8), 7, 8);
//     return caller_copy.beside[0];
// }
//
// static void caller_leak(void *arg) {
//     void *volatile lost = malloc(100);
//     (void)arg;
//     lost = NULL;
//     (void)lost;
// }
// static int caller_defer_leak(void *header, uint64_t generation) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     return upfront_scope_defer(s, caller_leak, NULL);
// }
// static int caller_close(void *header, uint64_t generation) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     return upfront_scope_close(s);
// }
//
// // Calls of a library that has functions for its memory.
// static void caller_free_by(void *f, void *context, void *p) { ((void (*)(void *, void *))f)(context, p); }
// static void caller_free_own(void *f, void *context) { caller_free_by(f, context, caller_block); }
// static void *caller_realloc_by(void *f, void *context, void *p) {
//     return ((void *(*)(void *, void *, size_t))f)(context, p, 8);
// }
// static size_t caller_size_by(void *f, void *context, void *p) { return ((size_t(*)(void *, void *))f)(context, p); }
import "C"

import "unsafe"

// Keep keeps an address; Read and Write follow it.
func Keep(p unsafe.Pointer) { C.caller_keep(p) }

func Read() uint64 { return uint64(C.caller_read()) }

func Write(value uint64) { C.caller_write(C.uint64_t(value)) }

// Fill writes size bytes of one value.
func Fill(p unsafe.Pointer, value byte, size uintptr) {
	C.caller_fill(p, C.uint8_t(value), C.uint64_t(size))
}

// AllocInScope reports whether a Go scope allocated memory for C.
func AllocInScope(header unsafe.Pointer, generation, size, align uint64) bool {
	return C.caller_alloc(header, C.uint64_t(generation), C.uint64_t(size), C.uint64_t(align)) != nil
}

// MakeArena reports whether the core made an arena, from an unaligned block when wrong.
func MakeArena(wrong bool) bool { return C.caller_make(flag(wrong)) != nil }

// AllocInNull reports whether the core allocated memory, from no arena when wrong.
func AllocInNull(wrong bool) bool { return C.caller_alloc_in_null(flag(wrong)) != nil }

// AllocInZeros reports whether the core allocated memory, with a zero header when wrong.
func AllocInZeros(wrong bool) bool { return C.caller_alloc_in_zeros(flag(wrong)) != nil }

// TakeFromPool reports whether a pool returned a chunk, from no pool when wrong.
func TakeFromPool(wrong bool) bool { return C.caller_take_from_pool(flag(wrong)) != 0 }

// ClosePool reports whether a pool found its chunk before it was closed, no pool when wrong.
func ClosePool(wrong bool) bool { return C.caller_close_pool(flag(wrong)) != 0 }

// WalkHeap reports whether a heap, a zero header when wrong, listed its blocks.
func WalkHeap(wrong bool) bool { return C.caller_walk_heap(flag(wrong)) != 0 }

// AllocInCopy allocates, with a copy of the header when wrong, and returns the word after the copy.
func AllocInCopy(wrong bool) uint64 { return uint64(C.caller_alloc_in_copy(flag(wrong))) }

// DeferLeak has a scope run a C finalizer that leaks memory of malloc.
func DeferLeak(header unsafe.Pointer, generation uint64) {
	C.caller_defer_leak(header, C.uint64_t(generation))
}

// CloseScope returns C's result of closing a scope.
func CloseScope(header unsafe.Pointer, generation uint64) int {
	return int(C.caller_close(header, C.uint64_t(generation)))
}

// FreeBy, ReallocBy and SizeBy call a function for C's memory with its context. FreeOwn frees a
// static block of C.
func FreeBy(f, context, p unsafe.Pointer) { C.caller_free_by(f, context, p) }

func FreeOwn(f, context unsafe.Pointer) { C.caller_free_own(f, context) }

func ReallocBy(f, context, p unsafe.Pointer) { C.caller_realloc_by(f, context, p) }

func SizeBy(f, context, p unsafe.Pointer) { C.caller_size_by(f, context, p) }

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
