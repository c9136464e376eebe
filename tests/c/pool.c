/* pool.c - tests of pool.h: chunks in any order, and every wrong put. */
#include "check.h"

static void pool_sizes(void) {
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 6, UINT64_MAX - 7, UINT64_C(1) << 63, UPFRONT_OFFSET_MAX};
    uint64_t i, align;
    CHECK_EQ(upfront_pool_size(0, 1, 0, 0), 0);
    CHECK_EQ(upfront_pool_size(0, 1, 1, 0), 8 + 8); /* a chunk has at least 8 bytes */
    CHECK_EQ(upfront_pool_size(1, 1, 9, 0), 48 + 9 * 8); /* 9 numbers of 4 bytes, 9 states */
    CHECK_EQ(upfront_pool_size(1, 1, 9, 1), 88 + 9 * 8); /* and 9 generations */
    CHECK_EQ(upfront_pool_size(24, 16, 3, 0), 16 + 3 * 32);
    CHECK_EQ(upfront_pool_size(24, 16, 4, 0), 32 + 4 * 32);
    for (align = 1; align <= UPFRONT_ALIGN_MAX; align *= 2) {
        CHECK(upfront_pool_size(8, align, 1, 0) >= 2 * 8);
        for (i = 0; i < 5; i++) {
            /* not 0, of a size that wrapped */
            CHECK_EQ(upfront_pool_size(huge[i], align, 1, 0), 0);
            CHECK_EQ(upfront_pool_size(huge[i], align, 0, 0), 0);
            CHECK_EQ(upfront_pool_size(8, align, huge[i], 0), 0);
        }
    }
    CHECK_EQ(upfront_pool_size(8, 0, 1, 0), 0);
    CHECK_EQ(upfront_pool_size(8, 24, 1, 0), 0);
    CHECK_EQ(upfront_pool_size(8, 2 * UPFRONT_ALIGN_MAX, 1, 0), 0);
    CHECK_EQ(upfront_pool_size(8, 8, UINT64_C(1) << 32, 0), 0); /* a number has 32 bits */
    CHECK(upfront_pool_size(8, 8, UINT32_MAX, 0) != 0);
    CHECK_EQ(upfront_pool_size(128, 8, UPFRONT_OFFSET_MAX / 128 + 1, 0), 0);
    CHECK(upfront_pool_size(128, 8, UPFRONT_OFFSET_MAX / 128, 0) > UPFRONT_OFFSET_MAX);
    /* beyond this count the reciprocal is inexact */
    CHECK(upfront_pool_size(UINT64_C(1) << 30, 8, 15, 0) != 0);
    CHECK_EQ(upfront_pool_size(UINT64_C(1) << 30, 8, 16, 0), 0);
    CHECK_EQ(upfront_pool_size(UPFRONT_OFFSET_MAX, 8, 1, 0), 0);
}

static void pool_init_refuses(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_pool p, before;
    memset(&p, 0, sizeof p);
    before = p;
    CHECK_EQ(upfront_pool_init(NULL, w, 1, 8, 8, 1, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_pool_init(&p, NULL, 1, 8, 8, 1, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_pool_init(&p, w + 4, 1, 8, 1, 1, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_pool_init(&p, w + 8, 1, 8, 16, 1, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_pool_init(&p, w, 1, 8, 3, 1, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_pool_init(&p, w, 1, 8, 3, 0, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_pool_init(&p, w, 1, 8, 8, UINT64_MAX, 0), UPFRONT_BAD_ARGUMENT);
    /* a size that rounds up to 0 once divided by it */
    CHECK_EQ(upfront_pool_init(&p, w, 1, UINT64_MAX, 8, 0, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_pool_init(&p, w, 1, UINT64_MAX - 3, 8, 1, 0), UPFRONT_BAD_ARGUMENT);
    /* generation 0 isn't valid */
    CHECK_EQ(upfront_pool_init(&p, w, 0, 8, 8, 1, 0), UPFRONT_BAD_ARGUMENT);
    CHECK(memcmp(&p, &before, sizeof p) == 0);
    CHECK_EQ(upfront_pool_init(&p, w, 1, 8, 8, 0, 0), UPFRONT_OK); /* no chunks: always full */
    CHECK(upfront_pool_get(&p, 1) == NULL);
    CHECK_EQ(upfront_pool_put(&p, 1, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_peak(&p), 0);
    CHECK_EQ(upfront_pool_next(&p, 0), 0);
    window_free(w, WINDOW);
}

static void pool_make_refuses(void) {
    unsigned char *w = window_new(WINDOW);
    uint64_t i;
    CHECK(upfront_pool_make(NULL, 4096, 8, 8, 0) == NULL);
    CHECK(upfront_pool_make(w + 32, 4096, 8, 8, 0) == NULL);
    CHECK(upfront_pool_make(w, UPFRONT_OFFSET_MAX, 8, 8, 0) == NULL);
    CHECK(upfront_pool_make(w, UINT64_MAX, 8, 8, 0) == NULL);
    CHECK(upfront_pool_make(w, 4096, UINT64_MAX, 8, 0) == NULL);
    CHECK(upfront_pool_make(w, 4096, 8, 0, 0) == NULL);
    /* smaller than a chunk, once 4 billion chunks */
    for (i = 0; i < 64 + 8 + 8; i++) /* header, number and state, chunk */
        CHECK(upfront_pool_make(w, i, 8, 8, 0) == NULL);
    CHECK(upfront_pool_make(w, 64 + 8 + 99, 100, 1, 0) == NULL);
    CHECK(upfront_pool_make(w, 4096, 8192, 8, 0) == NULL);
    CHECK(holds(w, WINDOW, 0));
    CHECK_EQ(upfront_pool_make(w, 64 + 16, 8, 8, 0)->count, 1);
    UPFRONT_UNPOISON(w, WINDOW);
    window_free(w, WINDOW);
}

static void pool_misuse(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_pool zero, *p = upfront_pool_make(w, 4096, 24, 8, 0);
    uint64_t tag = p->gen, i;
    unsigned char *a = (unsigned char *)upfront_pool_get(p, tag), *b = (unsigned char *)upfront_pool_get(p, tag);
    upfront_pool before = *p;
    uint8_t then[WINDOW];
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_pool_get(&zero, 0) == NULL);
    CHECK_EQ(upfront_pool_put(&zero, 0, w), UPFRONT_STALE);
    for (i = 1; i < 24; i++)
        CHECK_EQ(upfront_pool_put(p, tag, a + i), UPFRONT_MISALIGNED);
    CHECK_EQ(upfront_pool_put(p, tag, a - 1), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put(p, tag, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put(p, tag, NULL), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put(p, tag, upfront_pool_chunk(p, p->count)), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put(p, tag, upfront_pool_chunk(p, 5)), UPFRONT_DOUBLE); /* never taken */
    CHECK_EQ(upfront_pool_put(p, tag + 1, a), UPFRONT_STALE);
    CHECK_EQ(upfront_pool_put(p, tag - 1, a), UPFRONT_STALE);
    CHECK(upfront_pool_get(p, tag + 1) == NULL && upfront_pool_get(p, tag - 1) == NULL);
    CHECK(memcmp(&before, p, sizeof before) == 0);
    CHECK_EQ(upfront_pool_find(p, tag, b), 1);
    CHECK_EQ(upfront_pool_put(p, tag, a), UPFRONT_OK);
    CHECK_EQ(upfront_pool_put(p, tag, a), UPFRONT_DOUBLE);
    CHECK_EQ(upfront_pool_next(p, 0), 1);
    CHECK_EQ(upfront_pool_next(p, 2), p->count);
    CHECK_EQ(upfront_pool_peak(p), 2);
    memset(then, UPFRONT_CHUNK_FREE, sizeof then);
    then[p->count - 1] = UPFRONT_CHUNK_LIVE; /* earlier, chunk 0 was live and chunk 1 wasn't */
    upfront_pool_remark(p, then);
    CHECK_EQ(upfront_pool_next(p, 0), 1); /* upfront_pool_remark changes only marks */
    upfront_pool_close(p);
    CHECK_EQ(upfront_pool_put(p, tag, b), UPFRONT_STALE);
    CHECK(upfront_pool_get(p, tag) == NULL && p->free == p->count);
    window_free(w, WINDOW);
}

/* The reciprocal is exact at both ends of every chunk of the largest pool. */
/* upfront_pool_next in pools of 20 chunks, with each number of them taken, and half of those put or
 * all but one. */
static void pool_walk(void) {
    enum { CHUNKS = 20 };
    unsigned char *w = window_new(WINDOW);
    uint64_t seed = 20, taken, round, i, next;
    for (round = 0; round < 40; round++)
        for (taken = 1; taken <= CHUNKS; taken++) {
            upfront_pool *p = upfront_pool_make(w, 64 + upfront_pool_size(8, 8, CHUNKS, 0), 8, 8, 0);
            uint64_t keeps = round % 2 ? UINT64_C(1) << next_random(&seed) % taken : next_random(&seed);
            CHECK_EQ(p->count, CHUNKS);
            for (i = 0; i < taken; i++)
                CHECK(upfront_pool_get(p, p->gen) != NULL);
            for (i = 0; i < taken; i++)
                if ((keeps >> i & 1) == 0)
                    CHECK_EQ(upfront_pool_put(p, p->gen, upfront_pool_chunk(p, i)), UPFRONT_OK);
            for (i = next = CHUNKS; i-- != 0;) {
                if (i < taken && (keeps >> i & 1))
                    next = i;
                CHECK_EQ(upfront_pool_next(p, i), next);
            }
            upfront_pool_close(p);
        }
    window_free(w, WINDOW);
}

static void pool_reciprocal(void) {
    static const uint64_t strides[] = {8, 16, 24, 40, 56, 1000, 4096, 65528, 1 << 20, (1 << 26) + 8,
        (UINT64_C(1) << 30) + 8};
    uint64_t i, k, seed = 88172645463325252u;
    for (i = 0; i < sizeof strides / sizeof strides[0]; i++) {
        uint64_t stride = strides[i], inverse = UINT64_MAX / stride + 1, most = UINT64_MAX / stride / stride;
        if (most > UPFRONT_OFFSET_MAX / stride)
            most = UPFRONT_OFFSET_MAX / stride;
        if (most > UINT32_MAX)
            most = UINT32_MAX;
        CHECK(upfront_pool_size(stride, 8, most, 0) != 0 && upfront_pool_size(stride, 8, most + 1, 0) == 0);
        for (k = 0; k < 2000; k++) {
            uint64_t index = k < 4 ? most - 1 - k % most : next_random(&seed) % most;
            CHECK_EQ(upfront_high64(index * stride, inverse), index);
            CHECK_EQ(upfront_high64(index * stride + stride - 1, inverse), index);
        }
    }
}

void test_pool(void) {
    pool_sizes();
    pool_init_refuses();
    pool_make_refuses();
    pool_misuse();
    pool_walk();
    pool_reciprocal();
}
