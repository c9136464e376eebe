/* base.h - words, limits, codes and the marks that sanitizers read. */
#ifndef UPFRONT_BASE_H
#define UPFRONT_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block, and with it every offset and every size, is below 2^38 bytes (256 GiB). The 24 bits from UPFRONT_GENERATION up hold a
 * generation; the two bits between are the gap that keeps a generation apart from an offset in one subtraction (linear.h). */
#define UPFRONT_OFFSET_MAX (UINT64_C(1) << 38)
#define UPFRONT_GENERATION (UINT64_C(1) << 40)
#define UPFRONT_OFFSETS (UPFRONT_GENERATION - 1)

/* Edges of regions, control tables and guards are multiples of this on every target, whatever the page. It is also the largest
 * alignment, because offsets are counted from a boundary of it. */
#define UPFRONT_EDGE (UINT64_C(1) << 16)
#define UPFRONT_ALIGN_MAX UPFRONT_EDGE

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
    UPFRONT_CORRUPT = -7       /* a table that contradicts itself */
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
#else
#define UPFRONT_POISON(p, n) ((void)(p), (void)(n))
#define UPFRONT_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

/* Checked builds fill what is handed out and what is given back, so that a read of either is seen for what it is. */
#define UPFRONT_FRESH 0xCB
#define UPFRONT_DEAD 0xDB

static inline void upfront_mark_live(void *p, uint64_t size) {
    UPFRONT_UNPOISON(p, size);
#ifdef UPFRONT_MEMDEBUG
    memset(p, UPFRONT_FRESH, (size_t)size);
#endif
}

static inline void upfront_mark_dead(void *p, uint64_t size) {
#ifdef UPFRONT_MEMDEBUG
    UPFRONT_UNPOISON(p, size);
    memset(p, UPFRONT_DEAD, (size_t)size);
#endif
    UPFRONT_POISON(p, size);
}

static inline int upfront_is_align(uint64_t align) {
    return align != 0 && (align & (align - 1)) == 0 && align <= UPFRONT_ALIGN_MAX;
}

#ifdef __cplusplus
}
#endif
#endif
