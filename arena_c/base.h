/* base.h - words, limits and codes of all arenas, and the marks that sanitizers read. */
#ifndef UPFRONT_BASE_H
#define UPFRONT_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "names.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A block, and so every offset, is below 2^38 bytes (256 GiB). Every arena refuses a larger request
 * as full. */
#define UPFRONT_OFFSET_MAX (UINT64_C(1) << 38)

/* One allocation, in a word that holds two sums. The lower 38 bits are the sum of the asked sizes,
 * which fits because all allocations are in one block. The upper 26 bits count allocations. Their
 * carry leaves the word, so the sum stays exact. Example: three allocations of 8 bytes are 3 *
 * UPFRONT_OBJECT + 24. */
#define UPFRONT_OBJECT UPFRONT_OFFSET_MAX

/* An edge is a multiple of this. The arenas and guards of a map begin at edges, so no page has
 * bytes of two arenas. */
#define UPFRONT_EDGE (UINT64_C(1) << 16)

/* The largest alignment. The padding for an alignment above UPFRONT_EDGE depends on the address,
 * unless the map begins at a multiple of the alignment. */
#define UPFRONT_ALIGN_MAX (UINT64_C(1) << 20)

#define UPFRONT_LINE 64

enum {
    UPFRONT_OK = 0,
    UPFRONT_FULL = 1,          /* no room; expected */
    UPFRONT_TABLE_FULL = 2,    /* no free entry in a table of fixed size; expected */
    UPFRONT_BAD_ARGUMENT = -1, /* null, not a power of two, out of bounds */
    UPFRONT_STALE = -2,        /* a handle of a closed scope or pool, or of an old frame */
    UPFRONT_ORDER = -3,        /* out of order: covered by a newer one, or passed by a rewind */
    UPFRONT_DOUBLE = -4,       /* put or freed twice */
    UPFRONT_FOREIGN = -5,      /* no address or handle of this arena */
    UPFRONT_MISALIGNED = -6,   /* inside a chunk or block, not at its start */
    UPFRONT_CORRUPT = -7,      /* words that contradict each other, or overwritten ones */
    UPFRONT_RACED = -8         /* another call is running; only the checked build detects it */
};

#if defined(__SANITIZE_ADDRESS__)
#define UPFRONT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UPFRONT_ASAN 1
#endif
#endif

#ifdef UPFRONT_ASAN
void __asan_poison_memory_region(void const volatile *addr, size_t size);
void __asan_unpoison_memory_region(void const volatile *addr, size_t size);
#define UPFRONT_POISON(p, n) __asan_poison_memory_region((p), (size_t)(n))
#define UPFRONT_UNPOISON(p, n) __asan_unpoison_memory_region((p), (size_t)(n))
/* a function that may read and write poisoned bytes */
#define UPFRONT_UNCHECKED __attribute__((no_sanitize_address))
#else
#define UPFRONT_POISON(p, n) ((void)(p), (void)(n))
#define UPFRONT_UNPOISON(p, n) ((void)(p), (void)(n))
#define UPFRONT_UNCHECKED
#endif

#define UPFRONT_COLD __attribute__((noinline, cold)) /* the error path of an inline function */

#if defined(UPFRONT_ASAN) && defined(UPFRONT_CHECKED)
#error "upfront: UPFRONT_CHECKED doesn't go with AddressSanitizer"
#endif

/* Inline functions of one build don't fit the core of another. build.c defines a name for its
 * build. With UPFRONT_CHECK_BUILD, which pkg-config's flags set, each compiled file refers to the
 * name that it needs, so a mix of two builds doesn't link. A Go package must not set the flag: the
 * core is in another package, which is linked later. */
#if defined(UPFRONT_ASAN)
#define UPFRONT_BUILD upfront_build_asan
#elif defined(UPFRONT_CHECKED)
#define UPFRONT_BUILD upfront_build_checked
#else
#define UPFRONT_BUILD upfront_build_release
#endif
extern const char UPFRONT_BUILD[]; /* the core's version, as text */
#if defined(UPFRONT_CHECK_BUILD) && defined(__GNUC__)
__attribute__((used)) static const char *const upfront_build = UPFRONT_BUILD;
#endif

/* Fills of fresh and dead memory in the checked build, so that a read of either is recognized. */
#define UPFRONT_FRESH 0xCB
#define UPFRONT_DEAD 0xDB

/* Returns how far `to` is after `from`, modulo 2^64 on every target. So a word that holds a
 * negative distance has 64 bits even if an address has 32. */
static inline uint64_t upfront_distance(const void *to, const void *from) {
    return (uint64_t)(uintptr_t)to - (uint64_t)(uintptr_t)from;
}

/* Enclose each call of an arena that C libraries use on threads. While another call is running,
 * upfront_enter of a checked build counts the new call in `raced` and returns 0, so that the call
 * is refused. Release builds do nothing. */
#ifdef UPFRONT_CHECKED
/* const, for calls that only read */
static inline int upfront_enter(const uint64_t *busy, const uint64_t *raced) {
    if (__atomic_exchange_n((uint64_t *)(uintptr_t)busy, 1, __ATOMIC_ACQUIRE) == 0)
        return 1;
    __atomic_fetch_add((uint64_t *)(uintptr_t)raced, 1, __ATOMIC_RELAXED);
    return 0;
}

static inline void upfront_leave(const uint64_t *busy) {
    __atomic_store_n((uint64_t *)(uintptr_t)busy, 0, __ATOMIC_RELEASE);
}
#else
#define upfront_enter(busy, raced) 1
#define upfront_leave(busy) ((void)0)
#endif

/* Failure injection: the checked build refuses the n-th request although it fits (checked.h). Each
 * allocating function calls upfront_refuses when it knows that the request fits and before anything
 * changes. Only a call announced by UPFRONT_REQUEST is a request, and it counts once. The bindings
 * announce their calls; calls of C code don't count. */
#ifdef UPFRONT_CHECKED
extern __thread int upfront_request;
int upfront_refuses(void);
#define UPFRONT_REQUEST(is) (upfront_request = (is))
#else
#define upfront_refuses() 0
#define UPFRONT_REQUEST(is) ((void)0)
#endif

static inline int upfront_is_align(uint64_t align) {
    return align != 0 && (align & (align - 1)) == 0 && align <= UPFRONT_ALIGN_MAX;
}

/* Limits a requested size, so that sums with it don't wrap. No block is as large, so the request is
 * still refused as full. */
static inline uint64_t upfront_size(uint64_t size) { return size < UPFRONT_OFFSET_MAX ? size : UPFRONT_OFFSET_MAX; }

static inline uint64_t upfront_round_up(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

/* Reports whether a block is good for an arena: aligned to a cache line, of at least `least` bytes,
 * and small enough that all offsets stay below UPFRONT_OFFSET_MAX. */
static inline int upfront_is_block(const void *block, uint64_t size, uint64_t least) {
    return block != NULL && (uintptr_t)block % UPFRONT_LINE == 0 && size >= least &&
           size < UPFRONT_OFFSET_MAX - UPFRONT_ALIGN_MAX;
}

/* One block in the output of a walk over a heap, a buddy or a ring. Offsets count from the arena's
 * header. */
typedef struct upfront_block {
    uint64_t offset; /* of its first byte: of its header, where it has one */
    uint64_t size;   /* with its header and its padding */
    uint64_t asked;  /* the asked size; 0 unless live, and in a buddy */
    uint64_t align;  /* in a heap the asked alignment, at least 16; else 0 */
    uint64_t live;   /* 0: free; 1: live; UPFRONT_HEAP_PARKED, _LOST; UPFRONT_RING_SKIPPED */
} upfront_block;

#ifdef __cplusplus
}
#endif
#endif
