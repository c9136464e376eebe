// Package threads is a C library that gets functions for its memory, and calls them from its own
// threads. It isn't a part of the tests because test files may not import "C". It includes the
// header of upfront's heap, so that it can call a heap directly.
package threads

// #cgo CFLAGS: -I${SRCDIR}/../../../arena_c -DUPFRONT_PREFIX=github_com_upfront_mem_upfront_
// #cgo checked CFLAGS: -DUPFRONT_CHECKED
// #include "heap.h"
// #include <pthread.h>
// #include <stdint.h>
// #include <string.h>
//
// typedef struct functions {
//     void *context;
//     void *(*c_malloc)(void *context, size_t size);
//     void *(*c_calloc)(void *context, size_t count, size_t size);
//     void *(*c_realloc)(void *context, void *p, size_t size);
//     void (*c_free)(void *context, void *p);
//     size_t (*c_size)(void *context, void *p);
// } functions;
//
// static functions functions_of(void *context, void *m, void *c, void *r, void *f, void *s) {
//     functions its = {context, (void *(*)(void *, size_t))m, (void *(*)(void *, size_t, size_t))c,
//         (void *(*)(void *, void *, size_t))r, (void (*)(void *, void *))f, (size_t(*)(void *, void *))s};
//     return its;
// }
//
// // A heap without a lock, called the same way.
// static void *bare_malloc(void *heap, size_t size) { return upfront_heap_alloc(heap, size, 16); }
// static void *bare_calloc(void *heap, size_t count, size_t size) {
//     void *p = bare_malloc(heap, count * size);
//     return p == NULL ? p : memset(p, 0, count * size);
// }
// static void *bare_realloc(void *heap, void *p, size_t size) { return upfront_heap_realloc(heap, p, size); }
// static void bare_free(void *heap, void *p) {
//     if (p != NULL)
//         upfront_heap_free(heap, p);
// }
// static size_t bare_size(void *heap, void *p) { return (size_t)upfront_heap_size_of(heap, p); }
// static functions bare(void *heap) {
//     functions its = {heap, bare_malloc, bare_calloc, bare_realloc, bare_free, bare_size};
//     return its;
// }
//
// // A thread keeps some blocks at a time, each filled with its own byte.
// enum { KEPT = 16, THREADS = 4 };
// typedef struct thread {
//     const functions *of;
//     uint64_t seed;
//     int name, rounds, wrong;
// } thread;
//
// static int holds(const unsigned char *p, size_t size, int value) {
//     size_t i;
//     for (i = 0; i < size; i++)
//         if (p[i] != value)
//             return 0;
//     return 1;
// }
//
// static void *work(void *arg) {
//     thread *t = (thread *)arg;
//     const functions *f = t->of;
//     unsigned char *kept[KEPT] = {NULL};
//     size_t sizes[KEPT] = {0};
//     int i;
//     for (i = 0; i < t->rounds + KEPT; i++) {
//         size_t k = t->seed % KEPT, size = (t->seed >> 8) % 500, old;
//         unsigned char *p, *q;
//         int what = t->seed >> 32 & 7;
//         t->seed ^= t->seed << 13;
//         t->seed ^= t->seed >> 7;
//         t->seed ^= t->seed << 17;
//         if (i >= t->rounds) { // frees all
//             k = (size_t)(i - t->rounds);
//             what = 0;
//         }
//         p = kept[k];
//         old = sizes[k];
//         if (p != NULL && (f->c_size(f->context, p) < old || !holds(p, old, t->name)))
//             t->wrong++;
//         if (what < 3) {
//             f->c_free(f->context, p);
//             kept[k] = NULL;
//             continue;
//         }
//         if (p == NULL && what < 5) {
//             q = f->c_calloc(f->context, 1, size);
//             t->wrong += q != NULL && !holds(q, size, 0);
//         } else if (p == NULL) {
//             q = f->c_malloc(f->context, size);
//         } else {
//             q = f->c_realloc(f->context, p, size);
//             t->wrong += q != NULL && !holds(q, old < size ? old : size, t->name);
//         }
//         if (q == NULL)
//             continue; // full, and p is unchanged
//         memset(q, t->name, size);
//         kept[k] = q;
//         sizes[k] = size;
//     }
//     return NULL;
// }
//
// static int hammer(functions of, uint64_t seed, int rounds) {
//     thread threads[THREADS];
//     pthread_t ids[THREADS];
//     int i, wrong = 0;
//     for (i = 0; i < THREADS; i++) {
//         thread t = {&of, seed * 977 + (uint64_t)i * 7919 + 1, i + 1, rounds, 0};
//         threads[i] = t;
//         wrong += pthread_create(&ids[i], NULL, work, &threads[i]) != 0;
//     }
//     for (i = 0; i < THREADS; i++) {
//         pthread_join(ids[i], NULL);
//         wrong += threads[i].wrong;
//     }
//     return wrong;
// }
//
// static void *call_malloc(functions of, size_t size) { return of.c_malloc(of.context, size); }
// static void *call_calloc(functions of, size_t count, size_t size) { return of.c_calloc(of.context, count, size); }
// static void *call_realloc(functions of, void *p, size_t size) { return of.c_realloc(of.context, p, size); }
// static void call_free(functions of, void *p) { of.c_free(of.context, p); }
// static size_t call_size(functions of, void *p) { return of.c_size(of.context, p); }
import "C"

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
)

// Library is a C library with its functions.
type Library struct{ of C.functions }

// New returns a library with these functions.
func New(f arena.CFunctions) Library {
	return Library{C.functions_of(f.Context, f.Malloc, f.Calloc, f.Realloc, f.Free, f.Size)}
}

// Bare returns a library with the functions of a heap without a lock. The heap's header is at the
// front of its block.
func Bare(block []byte) Library { return Library{C.bare(unsafe.Pointer(unsafe.SliceData(block)))} }

// Hammer has four threads allocate and free, each a number of rounds. All blocks are freed at the
// end. It returns the number of blocks with changed contents.
func (l Library) Hammer(seed uint64, rounds int) (wrong int) {
	return int(C.hammer(l.of, C.uint64_t(seed), C.int(rounds)))
}

// Malloc, Calloc, Realloc, Free and Size call one function each.
func (l Library) Malloc(size uint64) unsafe.Pointer { return C.call_malloc(l.of, C.size_t(size)) }

// Calloc is one of Malloc's.
func (l Library) Calloc(count, size uint64) unsafe.Pointer {
	return C.call_calloc(l.of, C.size_t(count), C.size_t(size))
}

// Realloc is one of Malloc's.
func (l Library) Realloc(p unsafe.Pointer, size uint64) unsafe.Pointer {
	return C.call_realloc(l.of, p, C.size_t(size))
}

// Free is one of Malloc's.
func (l Library) Free(p unsafe.Pointer) { C.call_free(l.of, p) }

// Size is one of Malloc's.
func (l Library) Size(p unsafe.Pointer) uint64 { return uint64(C.call_size(l.of, p)) }
