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
// // (D) nested scopes, each with 8 objects and 2 finalizers.
// static void nothing(void *object) { (void)object; }
// static void (*volatile finalizer)(void *) = nothing;
//
// static void floor_nest(void *row, int depth) {
//     upfront_row *r = (upfront_row *)row;
//     upfront_linear *s = upfront_row_slot(r, r->open);
//     uint64_t tag = upfront_row_open(r);
//     upfront_node node;
//     int i;
//     for (i = 0; i < 10; i++) {
//         uint64_t *p = (uint64_t *)upfront_linear_bump(s, tag + 64, 64, 7);
//         if (p == NULL)
//             return;
//         memset(p, 0, 64);
//         if (i >= 8) {
//             upfront_node *n = upfront_row_node(s, tag);
//             if (n == NULL)
//                 return;
//             upfront_row_link(s, n, 1, upfront_offset(s, p));
//         }
//     }
//     if (depth > 1)
//         floor_nest(row, depth - 1);
//     upfront_row_freeze(s);
//     while (upfront_row_unlink(s, &node))
//         finalizer(upfront_at(s, node.what));
//     upfront_row_close(r);
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
// #cgo noescape floor_nest
// #cgo nocallback floor_nest
// #cgo noescape one_object
// #cgo nocallback one_object
import "C"

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

func floorObjects(l *arena_c.Linear, n int) { C.floor_objects(unsafe.Pointer(l), C.uint64_t(n)) }

func floorPool(p *arena_c.Pool, n int) { C.floor_pool(unsafe.Pointer(p), C.uint64_t(n)) }

func floorNest(r *arena_c.Row, depth int) { C.floor_nest(unsafe.Pointer(r), C.int(depth)) }

func cgoObject(l *arena_c.Linear) unsafe.Pointer { return C.one_object(unsafe.Pointer(l)) }
