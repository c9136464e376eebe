/* stack.c - tests of stack.h: last in, first out, and the words before the blocks. */
#include "check.h"

enum { BELOW = sizeof(upfront_stack_below) };

static void stack_arguments(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack zero, *s = upfront_stack_init(w, WINDOW);
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_stack_init(NULL, WINDOW) == NULL);
    CHECK(upfront_stack_init(w + 8, 4096) == NULL);
    CHECK(upfront_stack_alloc(NULL, 8, 8) == NULL);
    CHECK(upfront_stack_alloc(&zero, 0, 1) == NULL);
    CHECK(upfront_stack_alloc(s, 8, 0) == NULL);
    CHECK(upfront_stack_alloc(s, 8, 3) == NULL);
    CHECK(upfront_stack_alloc(s, 8, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_stack_alloc(s, UINT64_MAX, 1) == NULL);
    CHECK(upfront_stack_alloc(s, UINT64_MAX - 15, 16) == NULL);
    CHECK(upfront_stack_alloc(s, UPFRONT_OFFSET_MAX - 1, UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_stack_alloc(s, UPFRONT_OFFSET_MAX, 1) == NULL);
    CHECK_EQ(upfront_stack_free(NULL, w), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_stack_free(s, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_stack_rewind(NULL, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_stack_free(&zero, &zero), UPFRONT_ORDER);
    CHECK_EQ(upfront_stack_free(&zero, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_stack_rewind(&zero, 1), UPFRONT_ORDER);
    CHECK_EQ(s->ends.arena.cursor, s->ends.arena.start);
    window_free(w, WINDOW);
}

/* Only marks are marks: of every offset, those that the stack gave and whose blocks are live. */
static void stack_marks(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 1024);
    uint64_t marks[5], offset, i;
    for (i = 0; i < 5; i++) {
        marks[i] = upfront_stack_mark(s);
        CHECK(upfront_stack_alloc(s, 20 + i, UINT64_C(16) << i) != NULL);
    }
    for (offset = 0; offset < 1100; offset++) {
        upfront_stack before = *s;
        int is_mark = offset == before.ends.arena.cursor;
        for (i = 0; i < 5; i++)
            is_mark |= offset == marks[i];
        if (!is_mark) {
            CHECK_EQ(upfront_stack_rewind(s, offset), UPFRONT_ORDER);
            CHECK(memcmp(&before, s, sizeof before) == 0);
        }
    }
    CHECK_EQ(upfront_stack_rewind(s, upfront_stack_mark(s)), UPFRONT_OK);
    for (i = 5; i-- > 0;) {
        CHECK_EQ(upfront_stack_rewind(s, marks[i]), UPFRONT_OK);
        CHECK_EQ(upfront_stack_mark(s), marks[i]);
        if (i < 4)
            CHECK_EQ(upfront_stack_rewind(s, marks[i + 1]), UPFRONT_ORDER); /* newer than the stack */
    }
    CHECK_EQ(s->ends.last, 0);
    CHECK_EQ(upfront_stack_rewind(s, UINT64_MAX), UPFRONT_ORDER);
    window_free(w, WINDOW);
}

/* A block of no bytes is a block: it begins where the stack ends, and so does what it was below. */
static void stack_of_nothing(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 1024);
    void *a = upfront_stack_alloc(s, 0, 1), *b = upfront_stack_alloc(s, 0, 1), *c = upfront_stack_alloc(s, 0, 1);
    CHECK(a != b && b != c);
    CHECK(upfront_stack_alloc(s, 2000, 1) == NULL);
    CHECK_EQ(s->ends.arena.asked, UPFRONT_ASKED | (2000));
    CHECK_EQ(upfront_stack_free(s, c), UPFRONT_OK);
    CHECK_EQ(upfront_stack_free(s, a), UPFRONT_ORDER);
    CHECK_EQ(upfront_stack_free(s, b), UPFRONT_OK);
    CHECK_EQ(upfront_stack_free(s, a), UPFRONT_OK);
    window_free(w, WINDOW);
}

/* Someone wrote before his block. What can't be is told, and nothing wild is read. */
static void stack_underrun(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 4096);
    uint64_t start = s->ends.arena.start, i;
    uint64_t *a = (uint64_t *)upfront_stack_alloc(s, 32, 16), *b = (uint64_t *)upfront_stack_alloc(s, 32, 16);
    upfront_stack_below *below = (upfront_stack_below *)b - 1, good = *below;
    const uint64_t bad_cursor[] = {0, start - 1, s->ends.arena.cursor, upfront_arena_offset(&s->ends.arena, b),
                                   UINT64_MAX, s->ends.last - 15};
    const uint64_t bad_last[] = {1, start, start + 15, good.cursor + 1, s->ends.last, UINT64_MAX};
    for (i = 0; i < 6; i++) {
        below->cursor = bad_cursor[i];
        CHECK_EQ(upfront_stack_free(s, b), UPFRONT_CORRUPT);
        CHECK_EQ(upfront_stack_rewind(s, start), UPFRONT_CORRUPT);
        *below = good;
        below->last = bad_last[i];
        CHECK_EQ(upfront_stack_free(s, b), UPFRONT_CORRUPT);
        CHECK_EQ(upfront_stack_rewind(s, start), UPFRONT_CORRUPT);
        *below = good;
    }
    CHECK_EQ(upfront_stack_free(s, b), UPFRONT_OK);
    CHECK_EQ(upfront_stack_free(s, a), UPFRONT_OK);
    window_free(w, WINDOW);
}

void test_stack(void) {
    stack_arguments();
    stack_marks();
    stack_of_nothing();
    stack_underrun();
}
