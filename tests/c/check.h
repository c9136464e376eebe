/* check.h - the whole test framework: CHECK ends the program with the place, FRESH_BLOCK gives memory to break. */
#ifndef UPFRONT_CHECK_H
#define UPFRONT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "upfront.h"

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

/* A bare `if (a == b)` on two 64-bit words says too little when it fails. */
#define CHECK_EQ(got, want)                                                                                            \
    do {                                                                                                               \
        unsigned long long got_ = (unsigned long long)(got), want_ = (unsigned long long)(want);                       \
        if (got_ != want_) {                                                                                           \
            fprintf(stderr, "%s:%d: CHECK failed: %s is %#llx, want %#llx\n", __FILE__, __LINE__, #got, got_, want_); \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define WINDOW UPFRONT_EDGE

/* The class of nodes that aren't C's. */
#define OTHER_CLASS 7

int posix_memalign(void **out, size_t align, size_t size); /* strict C11 hides it; aligned_alloc wants a size that is a multiple */

/* Zeroed memory that begins at a boundary of UPFRONT_ALIGN_MAX, so that the offsets of what is made at its front begin at 0; size is
 * rounded up to a window. It has its own place on the heap, so that the sanitizers and valgrind see what runs over its ends. */
static inline unsigned char *window_new(uint64_t size) {
    size_t bytes = (size_t)((size + WINDOW - 1) & ~(WINDOW - 1));
    void *window;
    CHECK(posix_memalign(&window, UPFRONT_ALIGN_MAX, bytes) == 0);
    memset(window, 0, bytes);
    return (unsigned char *)window;
}

/* Sanitizers keep what the core said of the memory; the next owner must not inherit it. */
static inline void window_free(unsigned char *window, uint64_t size) {
    void (*const give_back)(void *) = free;
    UPFRONT_UNPOISON(window, size);
    give_back(window);
}

/* Tests of each alignment at each place of a window: the block has three times the alignment, and three windows at least. Alignments of
 * more than a window are seen at the first places alone, or it would take minutes. */
static inline uint64_t everywhere_size(uint64_t align) { return 3 * (align < WINDOW ? WINDOW : align); }

static inline uint64_t everywhere_align(uint64_t place) { return place > 8192 ? WINDOW : UPFRONT_ALIGN_MAX; }

/* A heap whose blocks lie in every build where they lie in a release build. */
static inline upfront_heap *heap_of(void *block, uint64_t size, uint64_t parked) {
    upfront_heap *h = upfront_heap_init(block, size, parked);
    upfront_heap_plain(h);
    return h;
}

static inline upfront_buddy *buddy_of_plain(void *block, uint64_t size, uint64_t smallest) {
    upfront_buddy *b = upfront_buddy_init(block, size, smallest);
    upfront_buddy_plain(b);
    return b;
}

/* xorshift64: the same numbers everywhere. */
static inline uint64_t next_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* A writer over the whole of what was handed out: with a sanitizer or valgrind, memory that isn't ours is found here. */
static inline void fill(void *p, uint64_t size, int value) {
    unsigned char *bytes = (unsigned char *)p;
    uint64_t i;
    for (i = 0; i < size; i++)
        bytes[i] = (unsigned char)value;
}

static inline int holds(const void *p, uint64_t size, int value) {
    const unsigned char *bytes = (const unsigned char *)p;
    uint64_t i;
    for (i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)value)
            return 0;
    return 1;
}

/* Whether the checked builds hold the byte for dead or for live; the others can't say, and agree with whatever is asked. */
#if defined(UPFRONT_ASAN)
int __asan_address_is_poisoned(void const volatile *addr);
#define UPFRONT_SANITIZED 1
static inline int is_marked(const unsigned char *p, int dead) { return !__asan_address_is_poisoned(p) == !dead; }
#elif defined(UPFRONT_CHECKED)
#define UPFRONT_FILLS 1
static inline int is_marked(const unsigned char *p, int dead) { return (*p == UPFRONT_DEAD) == dead; }
#else
static inline int is_marked(const unsigned char *p, int dead) { return p != NULL || dead; }
#endif
#ifndef UPFRONT_SANITIZED
#define UPFRONT_SANITIZED 0
#endif
#ifndef UPFRONT_FILLS
#define UPFRONT_FILLS 0
#endif

void test_everywhere(void);
void test_nothing(void);
void test_linear(void);
void test_count(void);
void test_ends(void);
void test_stack(void);
void test_pool(void);
void test_handles(void);
void test_intrusive(void);
void test_pool_large(void);
void test_scope(void);
void test_scope_temp(void);
void test_heap(void);
void test_heap_misuse(void);
void test_damage(void);
void test_security(void);
void test_shows(void);
void test_buddy(void);
void test_buddy_misuse(void);
void test_callbacks(void);
void test_map(void);
void test_room(void);
void test_mirror(void);
void test_walk(void);
void test_reconfigure(void);
void test_ring(void);
void test_frame(void);
void test_checked(void);

/* A row with its tables behind it. */
static inline void row_here(upfront_row *r, const void *origin, const char *name, uint64_t start, uint64_t end, uint64_t slots,
                            uint64_t pools) {
    uint64_t headers = sizeof *r + 2 * (slots + 1) * sizeof(upfront_record);
    upfront_row_init(r, origin, name, start, end, slots, pools, sizeof *r, headers);
}

#endif
