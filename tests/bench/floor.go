// Package bench measures what a hit costs, beside the same work as a loop in C (the floor), one cgo call for each operation, and the Go
// heap. `make bench` runs it. It is a module of its own so that what it compares with never enters the library's go.mod.
package bench

// #cgo CFLAGS: -O2 -I${SRCDIR}/../../arena_c
// #include "upfront.h"
//
// // (A) n zeroed objects of 64 bytes, then one rewind.
// static void floor_objects(void *header, uint64_t n) {
//     upfront_linear *l = (upfront_linear *)header;
//     uint64_t i, start = l->cursor, tag = upfront_tag(l);
//     for (i = 0; i < n; i++) {
//         uint64_t *p = (uint64_t *)upfront_linear_bump(l, tag + 64, 64, 7);
//         if (p == NULL)
//             return;
//         memset(p, 0, 64);
//         p[0] = i;
//     }
//     l->cursor = start;
// }
//
// // (C) n times get and put of the same chunk of 64 bytes.
// static void floor_pool(void *header, uint64_t n) {
//     upfront_pool *p = (upfront_pool *)header;
//     uint64_t i, tag = p->free & ~UPFRONT_OFFSETS;
//     for (i = 0; i < n; i++) {
//         uint64_t *chunk = (uint64_t *)upfront_pool_get(p, tag);
//         if (chunk == NULL)
//             return;
//         memset(chunk, 0, 64);
//         chunk[0] = i;
//         upfront_pool_put(p, tag, chunk);
//     }
// }
//
// static void *one_object(void *header) {
//     upfront_linear *l = (upfront_linear *)header;
//     return upfront_linear_bump(l, upfront_tag(l) + 64, 64, 7);
// }
// #cgo noescape floor_objects
// #cgo nocallback floor_objects
// #cgo noescape floor_pool
// #cgo nocallback floor_pool
// #cgo noescape one_object
// #cgo nocallback one_object
import "C"

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

func floorObjects(l *arena_c.Linear, n int) { C.floor_objects(unsafe.Pointer(l), C.uint64_t(n)) }

func floorPool(p *arena_c.Pool, n int) { C.floor_pool(unsafe.Pointer(p), C.uint64_t(n)) }

func cgoObject(l *arena_c.Linear) unsafe.Pointer { return C.one_object(unsafe.Pointer(l)) }
