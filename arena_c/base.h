/* base.h - words, limits, codes and the marks that sanitizers read. */
#ifndef UPFRONT_BASE_H
#define UPFRONT_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "names.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A block, and with it every offset, is below 2^38 bytes (256 GiB). So a request of that much or more is a full like any other, of every
 * arena. */
#define UPFRONT_OFFSET_MAX (UINT64_C(1) << 38)

/* One allocation, in a word that counts both: below it the sum of the sizes that were asked for, which fits because each fitted; above
 * it allocations modulo 2^26. The carry leaves the word at the top, so the bytes stay exact. */
#define UPFRONT_OBJECT UPFRONT_OFFSET_MAX

/* Edges of regions, control tables and guards are multiples of this on every target, whatever the page. */
#define UPFRONT_EDGE (UINT64_C(1) << 16)

/* The largest alignment. What one above UPFRONT_EDGE costs depends on the address, unless the map begins at a multiple of it, too. */
#define UPFRONT_ALIGN_MAX (UINT64_C(1) << 20)

#define UPFRONT_LINE 64

enum {
    UPFRONT_OK = 0,
    UPFRONT_FULL = 1,          /* no room; expected */
    UPFRONT_TABLE_FULL = 2,    /* no free header in a control table of planned size; expected */
    UPFRONT_BAD_ARGUMENT = -1, /* null, not a power of two, beyond a bound */
    UPFRONT_STALE = -2,        /* a handle of something closed */
    UPFRONT_ORDER = -3,        /* covered by a newer one, or newer than what is there */
    UPFRONT_DOUBLE = -4,       /* put twice */
    UPFRONT_FOREIGN = -5,      /* not of this arena */
    UPFRONT_MISALIGNED = -6,   /* inside a chunk, not at its start */
    UPFRONT_CORRUPT = -7,      /* a table that contradicts itself */
    UPFRONT_RACED = -8         /* somebody else is inside: there is no lock; only the checked build looks */
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
#define UPFRONT_UNCHECKED __attribute__((no_sanitize_address)) /* a function that may read and write what is poisoned */
#else
#define UPFRONT_POISON(p, n) ((void)(p), (void)(n))
#define UPFRONT_UNPOISON(p, n) ((void)(p), (void)(n))
#define UPFRONT_UNCHECKED
#endif

#define UPFRONT_COLD __attribute__((noinline, cold)) /* what a fast path calls when something is wrong */

#if defined(UPFRONT_ASAN) && defined(UPFRONT_CHECKED)
#error "upfront: UPFRONT_CHECKED doesn't go with AddressSanitizer"
#endif

/* The inline functions of one build don't fit another's core. build.c has a name for each; with UPFRONT_CHECK_BUILD, which pkg-config's
 * flags have, each file that is compiled refers to the one that it needs, so that a program of two builds doesn't link. In a Go package of
 * your own the core is another package's, and the flag would ask for it too early. */
#if defined(UPFRONT_ASAN)
#define UPFRONT_BUILD upfront_build_asan
#elif defined(UPFRONT_CHECKED)
#define UPFRONT_BUILD upfront_build_checked
#else
#define UPFRONT_BUILD upfront_build_release
#endif
extern const char UPFRONT_BUILD[]; /* the core's version, in words */
#if defined(UPFRONT_CHECK_BUILD) && defined(__GNUC__)
__attribute__((used)) static const char *const upfront_build = UPFRONT_BUILD;
#endif

/* The checked build fills what is handed out and what is given back, so that a read of either is seen for what it is. */
#define UPFRONT_FRESH 0xCB
#define UPFRONT_DEAD 0xDB

/* How far `to` lies behind `from`, modulo 2^64 on every target: a word that keeps a distance to what lies before it has 64 bits also where
 * an address has 32. */
static inline uint64_t upfront_distance(const void *to, const void *from) {
    return (uint64_t)(uintptr_t)to - (uint64_t)(uintptr_t)from;
}

/* Around each call of an arena that C libraries use on threads: the checked build sees that there is no lock, counts who comes while
 * another is inside, and refuses it. */
#ifdef UPFRONT_CHECKED
static inline int upfront_enter(const uint64_t *busy, const uint64_t *raced) { /* who only asks has a const arena */
    if (__atomic_exchange_n((uint64_t *)(uintptr_t)busy, 1, __ATOMIC_ACQUIRE) == 0)
        return 1;
    __atomic_fetch_add((uint64_t *)(uintptr_t)raced, 1, __ATOMIC_RELAXED);
    return 0;
}

static inline void upfront_leave(const uint64_t *busy) { __atomic_store_n((uint64_t *)(uintptr_t)busy, 0, __ATOMIC_RELEASE); }
#else
#define upfront_enter(busy, raced) 1
#define upfront_leave(busy) ((void)0)
#endif

/* Refusing on purpose: the checked build answers the n-th request as if there were no room
 * (checked.h). Each function that gives memory asks upfront_refuses where it has found room, before
 * anything changes. Only a call that UPFRONT_REQUEST announces is a request, and one: the bindings'
 * are, and what C code takes by itself isn't. */
#ifdef UPFRONT_CHECKED
extern __thread int upfront_request;
int upfront_refuses(void);
#define UPFRONT_REQUEST(is) (upfront_request = (is))
#else
#define upfront_refuses() 0
#define UPFRONT_REQUEST(is) ((void)0)
#endif

/* The two halves of a count. */
static inline uint64_t upfront_asked(uint64_t count) { return count & (UPFRONT_OBJECT - 1); }

static inline uint64_t upfront_objects(uint64_t count) { return count / UPFRONT_OBJECT; }

static inline int upfront_is_align(uint64_t align) {
    return align != 0 && (align & (align - 1)) == 0 && align <= UPFRONT_ALIGN_MAX;
}

/* A size that was asked for, as far as it matters: what no block has is full, and no sum with it wraps. */
static inline uint64_t upfront_size(uint64_t size) { return size < UPFRONT_OFFSET_MAX ? size : UPFRONT_OFFSET_MAX; }

static inline uint64_t upfront_round_up(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

/* Whether an arena may be made of the block: it begins at a line, has `least` bytes, and its offsets stay below UPFRONT_OFFSET_MAX. */
static inline int upfront_is_block(const void *block, uint64_t size, uint64_t least) {
    return block != NULL && (uintptr_t)block % UPFRONT_LINE == 0 && size >= least && size < UPFRONT_OFFSET_MAX - UPFRONT_ALIGN_MAX;
}

#ifdef __cplusplus
}
#endif
#endif
