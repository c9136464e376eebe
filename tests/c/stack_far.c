/* stack_far.c - tests of stack.h's far end: the mirror of the near one, and the two together. */
#include "check.h"

enum { FAR_WORDS = sizeof(upfront_stack_below) };

static void far_arguments(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack zero, *s = upfront_stack_init(w, WINDOW);
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_stack_alloc_far(NULL, 8, 8) == NULL);
    CHECK(upfront_stack_alloc_far(&zero, 0, 1) == NULL);
    CHECK(upfront_stack_alloc_far(s, 8, 3) == NULL);
    CHECK(upfront_stack_alloc_far(s, UINT64_MAX, 1) == NULL);
    CHECK(upfront_stack_alloc_far(s, UINT64_MAX - 15, 16) == NULL);
    CHECK(upfront_stack_alloc_far(s, UPFRONT_OFFSET_MAX - 1, UPFRONT_ALIGN_MAX) == NULL);
    CHECK_EQ(upfront_stack_free_far(NULL, w), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_stack_free_far(s, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_stack_rewind_far(NULL, 0), UPFRONT_BAD_ARGUMENT);
    window_free(w, WINDOW);
}

/* Only marks are marks, at this end as at the other; and the state before each block is one. */
static void far_marks(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 2048);
    uint64_t marks[5], near = 0, offset, i;
    for (i = 0; i < 5; i++) {
        marks[i] = upfront_stack_mark_far(s);
        CHECK(upfront_stack_alloc_far(s, 20 + i, UINT64_C(16) << i) != NULL);
        near = upfront_stack_mark(s);
        CHECK(upfront_stack_alloc(s, 20 + i, 16) != NULL);
    }
    for (offset = 0; offset < 2100; offset++) {
        upfront_stack before = *s;
        int is_mark = offset == s->ends.arena.limit;
        for (i = 0; i < 5; i++)
            is_mark |= offset == marks[i];
        if (!is_mark) {
            CHECK_EQ(upfront_stack_rewind_far(s, offset), UPFRONT_ORDER);
            CHECK(memcmp(&before, s, sizeof before) == 0);
        }
    }
    CHECK_EQ(upfront_stack_rewind_far(s, upfront_stack_mark_far(s)), UPFRONT_OK);
    for (i = 5; i-- > 0;) {
        CHECK_EQ(upfront_stack_rewind_far(s, marks[i]), UPFRONT_OK);
        CHECK_EQ(upfront_stack_mark_far(s), marks[i]);
        if (i < 4)
            CHECK_EQ(upfront_stack_rewind_far(s, marks[i + 1]), UPFRONT_ORDER);
    }
    CHECK_EQ(upfront_stack_rewind_far(s, 0), UPFRONT_ORDER);
    CHECK_EQ(upfront_stack_rewind_far(s, UINT64_MAX), UPFRONT_ORDER);
    CHECK_EQ(upfront_stack_rewind_far(s, near), UPFRONT_ORDER);
    CHECK(upfront_stack_alloc_far(s, 8, 16) != NULL);
    upfront_stack_reset(s);
    CHECK_EQ(s->ends.last + s->ends.far_last, 0);
    CHECK_EQ(upfront_stack_mark(s), s->ends.arena.start);
    CHECK_EQ(upfront_stack_mark_far(s), s->ends.end);
    window_free(w, WINDOW);
}

static void far_of_nothing(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 1024);
    void *a = upfront_stack_alloc_far(s, 0, 1), *b = upfront_stack_alloc_far(s, 0, 1);
    CHECK(a == w + 1024 && b == w + 1024 - FAR_WORDS);
    CHECK_EQ(upfront_stack_free_far(s, a), UPFRONT_ORDER);
    CHECK_EQ(upfront_stack_free_far(s, b), UPFRONT_OK);
    CHECK_EQ(upfront_stack_free_far(s, (char *)b - FAR_WORDS - 1), UPFRONT_FOREIGN); /* nobody has it */
    CHECK_EQ(upfront_stack_free_far(s, a), UPFRONT_OK);
    CHECK_EQ(upfront_stack_free_far(s, a), UPFRONT_ORDER); /* no block is left to be the last */
    window_free(w, WINDOW);
}

/* Someone wrote before his block, or past the block below it. */
static void far_underrun(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 4096);
    uint64_t end = s->ends.end, i;
    uint64_t *a = (uint64_t *)upfront_stack_alloc_far(s, 32, 16), *b = (uint64_t *)upfront_stack_alloc_far(s, 32, 16);
    upfront_stack_below *below = (upfront_stack_below *)b - 1, good = *below;
    const uint64_t bad_cursor[] = {0, s->ends.far_last - 1, good.cursor - 16, good.cursor + 16, end, end + 1, UINT64_MAX};
    const uint64_t bad_last[] = {0, 1, good.last + 16, good.last - 16, s->ends.far_last, UINT64_MAX};
    for (i = 0; i < 7; i++) {
        below->cursor = bad_cursor[i];
        CHECK_EQ(upfront_stack_free_far(s, b), UPFRONT_CORRUPT);
        CHECK_EQ(upfront_stack_rewind_far(s, end), UPFRONT_CORRUPT);
            *below = good;
        below->last = bad_last[i < 6 ? i : 0];
        CHECK_EQ(upfront_stack_free_far(s, b), UPFRONT_CORRUPT);
        CHECK_EQ(upfront_stack_rewind_far(s, end), UPFRONT_CORRUPT);
        *below = good;
    }
    below->cursor = s->ends.arena.limit; /* two words that agree, and lead back to themselves */
    below->last = s->ends.far_last;
    CHECK_EQ(upfront_stack_free_far(s, b), UPFRONT_CORRUPT);
    CHECK_EQ(upfront_stack_rewind_far(s, end), UPFRONT_CORRUPT);
    *below = good;
    CHECK_EQ(upfront_stack_free_far(s, b), UPFRONT_OK);
    CHECK_EQ(upfront_stack_free_far(s, a), UPFRONT_OK);
    window_free(w, WINDOW);
}

void test_stack_far(void) {
    far_arguments();
    far_marks();
    far_of_nothing();
    far_underrun();
}
