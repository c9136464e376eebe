// Package clib is a C library that calls back into Go. It also adds finalizers to scopes, which
// call back into Go. It isn't a part of the tests because test files may not import "C".
package clib

// #cgo CFLAGS: -I${SRCDIR}/../../../arena_c -DUPFRONT_PREFIX=github_com_upfront_mem_upfront_
// #cgo checked CFLAGS: -DUPFRONT_CHECKED
// #include "scope.h"
// extern void clibFinalize(int64_t id);
// static void clib_finalize(void *arg) { clibFinalize((int64_t)(intptr_t)arg); }
// static int clib_defer(uintptr_t header, uint64_t generation, int64_t id) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     return upfront_scope_defer(s, clib_finalize, (void *)(intptr_t)id);
// }
//
// static uint64_t clib_open(uintptr_t header) { return upfront_scope_open((upfront_scopes *)header).gen; }
// static int clib_close(uintptr_t header, uint64_t generation) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     return upfront_scope_close(s);
// }
// static int clib_alloc(uintptr_t header, uint64_t generation, uint64_t size) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     return upfront_scope_alloc(s, size, 1) != NULL;
// }
// static uintptr_t clib_temp(uintptr_t header, uint64_t generation, uint64_t size, uint64_t *temp) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     s = upfront_scope_temp(s, size);
//     *temp = s.gen;
//     return (uintptr_t)s.arena;
// }
//
// extern void clibVisit(void);
// static int clib_left;
// static void clib_visit(int n) {
//     while (n-- > 0)
//         clibVisit();
//     clib_left++;
// }
// static int clib_visits_left(void) { return clib_left; }
import "C"

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Finalize is called by the finalizers.
var Finalize func(id int64)

//export clibFinalize
func clibFinalize(id C.int64_t) { Finalize(int64(id)) }

// Defer is upfront_scope_defer.
func Defer(header unsafe.Pointer, generation uint64, id int64) arena_c.Code {
	return arena_c.Code(C.clib_defer(C.uintptr_t(uintptr(header)), C.uint64_t(generation), C.int64_t(id)))
}

// Open is upfront_scope_open. It returns the generation of the new scope, or 0.
func Open(header unsafe.Pointer) (generation uint64) {
	return uint64(C.clib_open(C.uintptr_t(uintptr(header))))
}

// Close is upfront_scope_close.
func Close(header unsafe.Pointer, generation uint64) arena_c.Code {
	return arena_c.Code(C.clib_close(C.uintptr_t(uintptr(header)), C.uint64_t(generation)))
}

// Alloc is upfront_scope_alloc. It reports whether there was room.
func Alloc(header unsafe.Pointer, generation, size uint64) bool {
	return C.clib_alloc(C.uintptr_t(uintptr(header)), C.uint64_t(generation), C.uint64_t(size)) != 0
}

// Temp is upfront_scope_temp. It returns the far end's header and the new scope's generation, or 0.
func Temp(header unsafe.Pointer, generation, size uint64) (far, temp uint64) {
	var gen C.uint64_t
	far = uint64(C.clib_temp(C.uintptr_t(uintptr(header)), C.uint64_t(generation), C.uint64_t(size), &gen))
	return far, uint64(gen)
}

var visit func()

//export clibVisit
func clibVisit() { visit() }

// Visit is a C function that calls fn n times.
func Visit(n int, fn func()) {
	visit = fn
	C.clib_visit(C.int(n))
}

// VisitsLeft returns the number of calls of Visit that returned.
func VisitsLeft() int { return int(C.clib_visits_left()) }
