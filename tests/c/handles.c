/* handles.c - tests of pools with handles: a handle is valid from its get to its put. */
#include "check.h"

static uint64_t pool_live(const upfront_pool *p) { return p->count - p->retired - p->free; }

static const uint64_t handles_alone = UINT64_C(0xffffffff) << 32 | 1;

static upfront_pool *handles_make(void *block, uint64_t block_size, uint64_t size, uint64_t align) {
    return upfront_pool_make(block, block_size, size, align, upfront_pool_handles(0, 1));
}

/* Pools of one arena share no handle. */
static void handles_of_pools(void) {
    uint64_t pools, i;
    CHECK_EQ(upfront_pool_handles(0, 1), handles_alone);
    CHECK_EQ(upfront_pool_handles(5, 64), UINT64_C(0x3ffffff) << 32 | (5u << 26 | 1));
    for (pools = 1; pools < 5000; pools += pools / 3 + 1)
        for (i = 0; i < pools; i++) {
            uint64_t h = upfront_pool_handles(i, pools), bits = h >> 32, first = h & UINT32_MAX;
            CHECK((bits & (bits + 1)) == 0 && bits != 0 && (first & bits) == 1);
            CHECK((first & ~bits) == i * (bits + 1) && first + bits - 1 <= UINT32_MAX);
        }
}

static void handles_arguments(void) {
    unsigned char *w = window_new(WINDOW);
    CHECK(handles_make(NULL, 4096, 8, 8) == NULL);
    CHECK(handles_make(w + 8, 4096, 8, 8) == NULL);
    CHECK(handles_make(w, UPFRONT_OFFSET_MAX, 8, 8) == NULL);
    CHECK(handles_make(w, 4096, 8, 3) == NULL);
    CHECK(handles_make(w, 4096, UINT64_MAX, 8) == NULL);
    CHECK(handles_make(w, 4096, 4096, 8) == NULL);
    CHECK(handles_make(w, 0, 8, 8) == NULL);
    CHECK(holds(w, WINDOW, 0));
    window_free(w, WINDOW);
}

static void handles_go_stale(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_pool *h = handles_make(w, 1024, 24, 8);
    uint64_t tag = h->gen, a, b, first, i;
    void *p = upfront_pool_get_handle(h, tag, &a), *q = upfront_pool_get_handle(h, tag, &b);
    CHECK(p != NULL && q != NULL && a != b && a != 0);
    CHECK(upfront_pool_at(h, tag, a) == p && upfront_pool_at(h, tag, b) == q);
    CHECK(upfront_pool_at(h, tag, 0) == NULL);
    CHECK(upfront_pool_at(h, tag + 1, a) == NULL);
    /* the next generation, which isn't in use so far */
    CHECK(upfront_pool_at(h, tag, b + (UINT64_C(1) << 32)) == NULL);
    /* a chunk that was never taken */
    CHECK(upfront_pool_at(h, tag, (UINT64_C(1) << 32) | 2) == NULL);
    CHECK(upfront_pool_at(h, tag, UINT64_MAX) == NULL);
    CHECK_EQ(upfront_pool_put_handle(h, tag, UINT64_MAX), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put_handle(h, tag, 0), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put_handle(h, tag + 1, a), UPFRONT_STALE);
    CHECK_EQ(pool_live(h), 2);
    first = a;
    for (i = 0; i < 300; i++) { /* more than a byte could count */
        CHECK_EQ(upfront_pool_put_handle(h, tag, a), UPFRONT_OK);
        CHECK_EQ(upfront_pool_put_handle(h, tag, a), UPFRONT_DOUBLE);
        CHECK(upfront_pool_at(h, tag, a) == NULL);
        CHECK(upfront_pool_get_handle(h, tag, &a) == p);
        CHECK(a != first && upfront_pool_at(h, tag, first) == NULL && upfront_pool_at(h, tag, a) == p);
    }
    CHECK_EQ(upfront_pool_next(h, 0), 0); /* the walk over live chunks */
    CHECK_EQ(upfront_pool_handle(h, 0), a);
    CHECK_EQ(upfront_pool_next(h, 1), 1);
    CHECK_EQ(upfront_pool_next(h, 2), h->count);
    *upfront_pool_generation(h, 0) = UINT32_MAX; /* its last generation: the chunk retires */
    a = upfront_pool_handle(h, 0);
    CHECK_EQ(upfront_pool_put_handle(h, tag, a), UPFRONT_OK);
    CHECK(upfront_pool_at(h, tag, a) == NULL && h->retired == 1 && pool_live(h) == 1);
    CHECK_EQ(upfront_pool_put_handle(h, tag, a), UPFRONT_DOUBLE);
    CHECK_EQ(upfront_pool_put(h, tag, p), UPFRONT_DOUBLE);
    for (i = 2; i < h->count; i++)
        CHECK(upfront_pool_get_handle(h, tag, &a) == upfront_pool_chunk(h, i));
    CHECK(upfront_pool_get_handle(h, tag, &a) == NULL && a == 0 && pool_live(h) == h->count - 1);
    upfront_pool_close(h);
    CHECK(upfront_pool_at(h, tag, b) == NULL);
    CHECK_EQ(upfront_pool_put_handle(h, tag, b), UPFRONT_STALE);
    CHECK(upfront_pool_get_handle(h, tag, &b) == NULL);
    window_free(w, WINDOW);
}

/* A value that isn't a live chunk's handle of this pool is refused with the right code. */
static void handles_of_others(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_pool red, blue;
    uint64_t a, b;
    memset(&red, 0, sizeof red);
    memset(&blue, 0, sizeof blue);
    CHECK_EQ(upfront_pool_init(&red, w, 1, 24, 8, 4, upfront_pool_handles(0, 2)), UPFRONT_OK);
    CHECK_EQ(upfront_pool_init(&blue, w + WINDOW, 2, 24, 8, 4, upfront_pool_handles(1, 2)), UPFRONT_OK);
    CHECK(upfront_pool_get_handle(&red, 1, &a) != NULL && upfront_pool_get_handle(&blue, 2, &b) != NULL);
    CHECK_EQ(a, UINT64_C(1) << 32);
    CHECK_EQ(b, UINT64_C(0x80000001) << 32);
    CHECK(upfront_pool_at(&red, 1, b) == NULL && upfront_pool_at(&blue, 2, a) == NULL);
    CHECK_EQ(upfront_pool_put_handle(&red, 1, b), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put_handle(&red, 1, a | 4), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put_handle(&red, 1, 0), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put_handle(&red, 2, a), UPFRONT_STALE);
    CHECK_EQ(upfront_pool_put_handle(&red, 1, a), UPFRONT_OK);
    CHECK_EQ(upfront_pool_put_handle(&red, 1, a), UPFRONT_DOUBLE);
    upfront_pool_close(&red);
    CHECK_EQ(upfront_pool_put_handle(&red, 0, a), UPFRONT_STALE);
    window_free(w, 2 * WINDOW);
}

void test_handles(void) {
    handles_of_pools();
    handles_of_others();
    handles_arguments();
    handles_go_stale();
}
