/* buddy_misuse.c - tests of buddy.h: every address at which no live block begins, and every bit of the bytes that is another. */
#include "check.h"

static void misuse_addresses(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_buddy *b = upfront_buddy_init(w, 8192, 64);
    unsigned char *a = (unsigned char *)upfront_buddy_alloc(b, 1024, 1), *c = (unsigned char *)upfront_buddy_alloc(b, 64, 1);
    uint64_t i;
    CHECK_EQ(upfront_buddy_free(b, NULL), UPFRONT_OK);
    CHECK_EQ(upfront_buddy_size_of(b, NULL), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_buddy_free(b, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_buddy_free(b, w + b->first - 1), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_buddy_free(b, w + b->end), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_buddy_free(b, &i), UPFRONT_FOREIGN);
    for (i = 1; i < 1024; i++) {
        CHECK_EQ(upfront_buddy_free(b, a + i), UPFRONT_MISALIGNED);
        CHECK(upfront_buddy_realloc(b, a + i, 8) == NULL && b->failed == 0);
    }
    CHECK_EQ(upfront_buddy_free(b, c + 1), UPFRONT_MISALIGNED);
    CHECK(upfront_buddy_free(b, a) == UPFRONT_OK && upfront_buddy_free(b, c) == UPFRONT_OK);
    for (i = b->first; i < b->end; i++)
        CHECK_EQ(upfront_buddy_free(b, w + i), UPFRONT_DOUBLE);
    CHECK(upfront_buddy_realloc(b, a, 8) == NULL && b->failed == 0 && b->live == 0);
    CHECK_EQ(upfront_buddy_walk(b, NULL, 0, NULL), UPFRONT_OK);
    window_free(w, WINDOW);
}

void test_buddy_misuse(void) { misuse_addresses(); }
