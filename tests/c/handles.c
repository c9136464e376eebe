/* handles.c - tests of handles.h: a handle is good from its get to its put, and never again. */
#include "check.h"

static void handles_arguments(void) {
    unsigned char *w = window_new(WINDOW);
    CHECK(upfront_handles_make(NULL, 4096, 8, 8) == NULL);
    CHECK(upfront_handles_make(w + 8, 4096, 8, 8) == NULL);
    CHECK(upfront_handles_make(w, UPFRONT_OFFSET_MAX, 8, 8) == NULL);
    CHECK(upfront_handles_make(w, 4096, 8, 3) == NULL);
    CHECK(upfront_handles_make(w, 4096, UINT64_MAX, 8) == NULL);
    CHECK(upfront_handles_make(w, 4096, 4096, 8) == NULL);
    CHECK(upfront_handles_make(w, 0, 8, 8) == NULL);
    CHECK(holds(w, WINDOW, 0));
    window_free(w, WINDOW);
}

/* As many as fit: the last chunk ends inside the block, and one more would not. */
static void handles_fill(void) {
    static const uint64_t sizes[] = {0, 1, 8, 24, 100, 4096};
    unsigned char *w = window_new(2 * WINDOW);
    uint64_t i, align, block_size;
    for (i = 0; i < 6; i++)
        for (align = 1; align <= 4096; align *= 4)
            for (block_size = 64; block_size < WINDOW; block_size += 997) {
                unsigned char *at = w + 640;
                upfront_handles *h = upfront_handles_make(at, block_size, sizes[i], align);
                uint64_t tag, handle = 1, count, got = 0;
                unsigned char *p;
                if (h == NULL)
                    continue;
                tag = h->pool.free & ~UPFRONT_OFFSETS;
                count = upfront_pool_count(&h->pool);
                CHECK((unsigned char *)upfront_pool_chunk(&h->pool, count) <= at + block_size);
                CHECK((unsigned char *)upfront_pool_chunk(&h->pool, count) + h->pool.stride + 5 + 4096 + align > at + block_size);
                CHECK((void *)upfront_handles_generation(h, count) <= (void *)upfront_pool_state(&h->pool, count - 1));
                while ((p = (unsigned char *)upfront_handles_get(h, tag, &handle)) != NULL) {
                    CHECK((uintptr_t)p % align == 0 && handle == (UINT64_C(1) << 32 | got++));
                    CHECK(upfront_handles_at(h, tag, handle) == p);
                    fill(p, sizes[i], 7);
                }
                CHECK_EQ(got, count);
                CHECK_EQ(handle, 0);
            }
    window_free(w, 2 * WINDOW);
}

static void handles_go_stale(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_handles *h = upfront_handles_make(w, 1024, 24, 8);
    uint64_t tag = h->pool.free & ~UPFRONT_OFFSETS, a, b, first, i;
    void *p = upfront_handles_get(h, tag, &a), *q = upfront_handles_get(h, tag, &b);
    CHECK(p != NULL && q != NULL && a != b && a != 0);
    CHECK(upfront_handles_at(h, tag, a) == p && upfront_handles_at(h, tag, b) == q);
    CHECK(upfront_handles_at(h, tag, 0) == NULL);
    CHECK(upfront_handles_at(h, tag + UPFRONT_GENERATION, a) == NULL);
    CHECK(upfront_handles_at(h, tag, b + (UINT64_C(1) << 32)) == NULL); /* the next generation, which nobody was given */
    CHECK(upfront_handles_at(h, tag, (UINT64_C(1) << 32) | 2) == NULL); /* a chunk that was never taken */
    CHECK(upfront_handles_at(h, tag, UINT64_MAX) == NULL);
    CHECK_EQ(upfront_handles_put(h, tag, UINT64_MAX), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_handles_put(h, tag, 0), UPFRONT_STALE);
    CHECK_EQ(upfront_handles_put(h, tag + UPFRONT_GENERATION, a), UPFRONT_STALE);
    CHECK_EQ(h->pool.live, 2);
    first = a;
    for (i = 0; i < 300; i++) { /* far beyond what a byte could tell */
        CHECK_EQ(upfront_handles_put(h, tag, a), UPFRONT_OK);
        CHECK_EQ(upfront_handles_put(h, tag, a), UPFRONT_STALE);
        CHECK(upfront_handles_at(h, tag, a) == NULL);
        CHECK(upfront_handles_get(h, tag, &a) == p);
        CHECK(a != first && upfront_handles_at(h, tag, first) == NULL && upfront_handles_at(h, tag, a) == p);
    }
    CHECK_EQ(upfront_pool_next(&h->pool, 0), 0); /* the walk over what is live */
    CHECK_EQ(upfront_handles_name(h, 0), a);
    CHECK_EQ(upfront_pool_next(&h->pool, 1), 1);
    CHECK_EQ(upfront_pool_next(&h->pool, 2), upfront_pool_count(&h->pool));
    *upfront_handles_generation(h, 0) = UINT32_MAX; /* after the last generation comes 1: a handle is never 0 */
    CHECK_EQ(upfront_handles_put(h, tag, upfront_handles_name(h, 0)), UPFRONT_OK);
    CHECK_EQ(*upfront_handles_generation(h, 0), 1);
    upfront_pool_close(&h->pool);
    CHECK(upfront_handles_at(h, tag, b) == NULL);
    CHECK_EQ(upfront_handles_put(h, tag, b), UPFRONT_STALE);
    CHECK(upfront_handles_get(h, tag, &b) == NULL);
    window_free(w, WINDOW);
}

void test_handles(void) {
    handles_arguments();
    handles_fill();
    handles_go_stale();
}
