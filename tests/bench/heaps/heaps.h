/* heaps.h - the contestants of works H and T, and the random program that they run.
 *
 * It is a C program with one thread, because in a Go process glibc's malloc locks each time.
 * Libraries are opened on demand: if one isn't installed, its row is missing. */
#ifndef HEAPS_H
#define HEAPS_H

#include <stdint.h>
#include <stdlib.h>

#include "tlsf.h"
#include "upfront.h"

typedef struct library {
    void *(*malloc)(size_t size);
    void (*free)(void *p);
    void *(*realloc)(void *p, size_t size);
} library;

enum { PARKED = 256 };

extern upfront_heap *heap;
extern uint64_t parked; /* by upfront's heap, PARKED by default */
extern upfront_buddy *pages;
extern tlsf_t two_level;
extern library jemalloc, mimalloc;

int library_open(library *l, const char *file, const char *prefix);

/* A contestant that starts in a block of `size` bytes; allocates n bytes; frees p; resizes it to
 * n bytes. */
#define IN_BLOCK(X)                                               \
    X(parking, "upfront",                                         \
      (heap = upfront_heap_init(block, size, parked)) != NULL,    \
      upfront_heap_alloc(heap, n, 16),                            \
      upfront_heap_free(heap, p),                                 \
      upfront_heap_realloc(heap, p, n))                           \
    X(plain, "upfront, no front lists",                           \
      (heap = upfront_heap_init(block, size, 0)) != NULL,         \
      upfront_heap_alloc(heap, n, 16),                            \
      upfront_heap_free(heap, p),                                 \
      upfront_heap_realloc(heap, p, n))                           \
    X(buddy, "upfront buddy",                                     \
      (pages = upfront_buddy_init(block, size, 64)) != NULL,      \
      upfront_buddy_alloc(pages, n, 1),                           \
      upfront_buddy_free(pages, p),                               \
      upfront_buddy_realloc(pages, p, n))                         \
    X(tlsf, "TLSF",                                               \
      (two_level = tlsf_create_with_pool(block, size)) != NULL,   \
      tlsf_malloc(two_level, n),                                  \
      tlsf_free(two_level, p),                                    \
      tlsf_realloc(two_level, p, n))

/* Contestants that take memory from the system. */
#define OUTSIDE(X)                                                \
    X(glibc, "glibc malloc", 1, malloc(n), free(p), realloc(p, n)) \
    X(je, "jemalloc",                                             \
      library_open(&jemalloc, "libjemalloc.so.2", ""),            \
      jemalloc.malloc(n), jemalloc.free(p), jemalloc.realloc(p, n)) \
    X(mi, "mimalloc",                                             \
      library_open(&mimalloc, "libmimalloc.so", "mi_"),         \
      mimalloc.malloc(n), mimalloc.free(p), mimalloc.realloc(p, n))

/* A contestant's functions are inlined, so that only its own code is called. */
#define FUNCTIONS(id, name, begin, take, give, resize)                 \
    static inline int id##_begin(void *block, size_t size) {           \
        (void)block, (void)size;                                       \
        return begin;                                                  \
    }                                                                  \
    static inline void *id##_take(size_t n) { return take; }           \
    static inline void id##_give(void *p) { (void)(give); }            \
    static inline void *id##_resize(void *p, size_t n) { return resize; }

enum { STEPS = 200000, LIVE_MOST = 100000 };

/* The random program: each step frees one block and allocates another, of so many bytes. */
extern uint32_t victims[STEPS], sizes[STEPS];
extern void *things[LIVE_MOST];

void program_make(uint32_t live, uint32_t most);

/* A block that the contestants use in turn. */
enum { ROOM = 768 << 20 };
void *room(void);

_Noreturn void fail(const char *who, const char *what);

void pairs(int rounds, uint32_t live, uint32_t most, char **who);
void flush(int rounds);
void memory(char **who);
void unflushed(void);
void times(void);
void shapes(int rounds, int factors, char **who);

int wanted(const char *name, char **who);

double now(void); /* in nanoseconds */

/* Labels the counts of callgrind since the last zero: n pairs or blocks of `who`. */
void counted(const char *who, int n);

#endif
