/* check.h - the test framework: CHECK ends the program with file and line. */
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

/* CHECK for two 64-bit words, with their values. */
#define CHECK_EQ(got, want)                                                                                            \
    do {                                                                                                               \
        unsigned long long got_ = (unsigned long long)(got), want_ = (unsigned long long)(want);                       \
        if (got_ != want_) {                                                                                           \
            fprintf(stderr, "%s:%d: CHECK failed: %s is %#llx, want %#llx\n", __FILE__, __LINE__, #got, got_, want_); \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define WINDOW UPFRONT_EDGE

/* A class of nodes that C can't end. */
#define OTHER_CLASS 7

/* strict C11 hides posix_memalign; aligned_alloc needs a size that is a multiple of align */
int posix_memalign(void **out, size_t align, size_t size);

/* Zeroed memory at a multiple of UPFRONT_ALIGN_MAX, so that offsets of an arena at its front begin
 * at 0. The size is rounded up to a window. Each window is malloc's, so that sanitizers and
 * valgrind see a write past its ends. */
static inline unsigned char *window_new(uint64_t size) {
    size_t bytes = (size_t)((size + WINDOW - 1) & ~(WINDOW - 1));
    void *window;
    CHECK(posix_memalign(&window, UPFRONT_ALIGN_MAX, bytes) == 0);
    memset(window, 0, bytes);
    return (unsigned char *)window;
}

/* Removes poison before the memory gets another owner. */
static inline void window_free(unsigned char *window, uint64_t size) {
    void (*const give_back)(void *) = free;
    UPFRONT_UNPOISON(window, size);
    give_back(window);
}

/* The size for a test of an alignment at each place of a window: three times the alignment, and at
 * least three windows. Alignments above a window are tested only at the first places, to save
 * minutes. */
static inline uint64_t everywhere_size(uint64_t align) { return 3 * (align < WINDOW ? WINDOW : align); }

static inline uint64_t everywhere_align(uint64_t place) { return place > 8192 ? WINDOW : UPFRONT_ALIGN_MAX; }

/* A heap with a release build's offsets in every build. */
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

/* xorshift64: the same numbers on every target. */
static inline uint64_t next_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Writes all bytes, so that a sanitizer or valgrind finds bytes outside of the block. */
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

/* Reports whether a checked or asan build marks the byte as dead, or as live. Other builds return
 * true. */
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
void test_sizes(void);
void test_linear(void);
void test_count(void);
void test_ends(void);
void test_stack(void);
void test_pool(void);
void test_handles(void);
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

/* Closes all scopes of a row, the owner's too. */
static inline void row_close(upfront_row *r) {
    upfront_scopes *h = &r->arena;
    for (; h->depth != 0; upfront_scopes_close(h)) {
        h->arena.gen = 0;
        (void)upfront_scopes_run(h, upfront_scopes_top(h)->chain);
    }
}

/* A row followed by its tables. */
static inline void row_here(upfront_row *r, const void *origin, const char *name, uint64_t start, uint64_t end,
    uint64_t slots,
                            uint64_t pools) {
    uint64_t headers = sizeof *r + 2 * (slots + 1) * sizeof(upfront_record);
    upfront_row_init(r, origin, name, start, end, slots, pools, sizeof *r, headers);
}

#endif
