/* stack.c - tests of stack.h: order and the words before blocks, at both ends. */
#include "check.h"

enum { BELOW = sizeof(upfront_stack_below) };

/* One end of a stack: both have the same tests. */
typedef struct stack_end {
    void *(*alloc)(upfront_stack *s, uint64_t size, uint64_t align);
    int (*give)(upfront_stack *s, const void *p);
    uint64_t (*mark)(const upfront_stack *s);
    int (*rewind)(upfront_stack *s, uint64_t mark);
    int is_far;
} stack_end;

static const stack_end stack_near = {upfront_stack_alloc, upfront_stack_free, upfront_stack_mark, upfront_stack_rewind,
    0};
static const stack_end stack_far = {upfront_stack_alloc_far, upfront_stack_free_far, upfront_stack_mark_far,
    upfront_stack_rewind_far, 1};

static void stack_arguments(const stack_end *e) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack zero, *s = upfront_stack_init(w, WINDOW);
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_stack_init(NULL, WINDOW) == NULL);
    CHECK(upfront_stack_init(w + 8, 4096) == NULL);
    CHECK(e->alloc(NULL, 8, 8) == NULL);
    CHECK(e->alloc(&zero, 0, 1) == NULL);
    CHECK(e->alloc(s, 8, 0) == NULL);
    CHECK(e->alloc(s, 8, 3) == NULL);
    CHECK(e->alloc(s, 8, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK(e->alloc(s, UINT64_MAX, 1) == NULL);
    CHECK(e->alloc(s, UINT64_MAX - 15, 16) == NULL);
    CHECK(e->alloc(s, UPFRONT_OFFSET_MAX - 1, UPFRONT_ALIGN_MAX) == NULL);
    CHECK(e->alloc(s, UPFRONT_OFFSET_MAX, 1) == NULL);
    CHECK_EQ(e->give(NULL, w), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(e->give(s, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(e->rewind(NULL, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(e->give(&zero, &zero), UPFRONT_ORDER);
    CHECK_EQ(e->give(&zero, w), UPFRONT_FOREIGN);
    CHECK_EQ(e->rewind(&zero, 1), UPFRONT_ORDER);
    CHECK_EQ(s->ends.arena.cursor, s->ends.arena.start);
    CHECK_EQ(s->ends.arena.limit, s->ends.end);
    window_free(w, WINDOW);
}

/* Of all offsets, only this end's marks with live blocks are marks. */
static void stack_marks(const stack_end *e, const stack_end *other) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 2048);
    uint64_t marks[5], others = 0, offset, i;
    for (i = 0; i < 5; i++) {
        marks[i] = e->mark(s);
        CHECK(e->alloc(s, 20 + i, UINT64_C(16) << i) != NULL);
        others = other->mark(s);
        CHECK(other->alloc(s, 20 + i, 16) != NULL);
    }
    for (offset = 0; offset < 2100; offset++) {
        upfront_stack before = *s;
        int is_mark = offset == e->mark(s);
        for (i = 0; i < 5; i++)
            is_mark |= offset == marks[i];
        if (!is_mark) {
            CHECK_EQ(e->rewind(s, offset), UPFRONT_ORDER);
            CHECK(memcmp(&before, s, sizeof before) == 0);
        }
    }
    CHECK_EQ(e->rewind(s, e->mark(s)), UPFRONT_OK);
    for (i = 5; i-- > 0;) {
        CHECK_EQ(e->rewind(s, marks[i]), UPFRONT_OK);
        CHECK_EQ(e->mark(s), marks[i]);
        if (i < 4)
            CHECK_EQ(e->rewind(s, marks[i + 1]), UPFRONT_ORDER); /* above its position */
    }
    CHECK_EQ(e->is_far ? s->ends.far_last : s->ends.last, 0);
    CHECK_EQ(e->rewind(s, 0), UPFRONT_ORDER);
    CHECK_EQ(e->rewind(s, UINT64_MAX), UPFRONT_ORDER);
    CHECK_EQ(e->rewind(s, others), UPFRONT_ORDER);
    CHECK(e->alloc(s, 8, 16) != NULL);
    upfront_stack_reset(s);
    CHECK_EQ(s->ends.last + s->ends.far_last, 0);
    CHECK_EQ(upfront_stack_mark(s), s->ends.arena.start);
    CHECK_EQ(upfront_stack_mark_far(s), s->ends.end);
    window_free(w, WINDOW);
}

/* A block of no bytes begins at the end's position, and so does the next one. */
static void stack_of_nothing(const stack_end *e) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 1024);
    char *a = (char *)e->alloc(s, 0, 1), *b = (char *)e->alloc(s, 0, 1), *c = (char *)e->alloc(s, 0, 1);
    CHECK(e->is_far ? a == (char *)w + 1024 && b == a - BELOW && c == b - BELOW : b == a + BELOW && c == b + BELOW);
    CHECK(e->alloc(s, 2000, 1) == NULL);
    CHECK_EQ(s->ends.arena.asked, UPFRONT_ASKED | 2000);
    CHECK_EQ(e->give(s, c), UPFRONT_OK);
    CHECK_EQ(e->give(s, a), UPFRONT_ORDER);
    CHECK_EQ(e->give(s, e->is_far ? b - BELOW - 1 : b + 1), UPFRONT_FOREIGN); /* not allocated */
    CHECK_EQ(e->give(s, b), UPFRONT_OK);
    CHECK_EQ(e->give(s, a), UPFRONT_OK);
    CHECK_EQ(e->give(s, e->is_far ? a : a - BELOW), UPFRONT_ORDER); /* no block is left */
    window_free(w, WINDOW);
}

/* A write before a block, or past the one below. Impossible words are refused, and no stray address
 * is read. */
static void stack_underrun(const stack_end *e) {
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 4096);
    uint64_t bottom = e->mark(s), i;
    uint64_t *a = (uint64_t *)e->alloc(s, 32, 16), *b = (uint64_t *)e->alloc(s, 32, 16);
    upfront_stack_below *below = (upfront_stack_below *)b - 1, good = *below;
    uint64_t last = e->is_far ? s->ends.far_last : s->ends.last;
    const uint64_t near_bad[][2] = {{0, 1}, {bottom - 1, bottom}, {s->ends.arena.cursor, bottom + 15},
        {last, good.cursor + 1},
                                    {UINT64_MAX, last}, {last - 15, UINT64_MAX}};
    const uint64_t far_bad[][2] = {{0, 0}, {last - 1, 1}, {good.cursor - 16, good.last + 16},
        {good.cursor + 16, good.last - 16},
                                   {bottom, last}, {bottom + 1, UINT64_MAX}, {UINT64_MAX, 0}};
    for (i = 0; i < (e->is_far ? 7 : 6); i++) {
        const uint64_t *bad = e->is_far ? far_bad[i] : near_bad[i];
        below->cursor = bad[0];
        CHECK_EQ(e->give(s, b), UPFRONT_CORRUPT);
        CHECK_EQ(e->rewind(s, bottom), UPFRONT_CORRUPT);
        *below = good;
        below->last = bad[1];
        CHECK_EQ(e->give(s, b), UPFRONT_CORRUPT);
        CHECK_EQ(e->rewind(s, bottom), UPFRONT_CORRUPT);
        *below = good;
    }
    /* words that agree, and lead back to themselves */
    below->cursor = e->is_far ? s->ends.arena.limit : s->ends.arena.cursor;
    below->last = last;
    CHECK_EQ(e->give(s, b), UPFRONT_CORRUPT);
    CHECK_EQ(e->rewind(s, bottom), UPFRONT_CORRUPT);
    *below = good;
    if (!e->is_far) { /* words that lead to padding */
        uint64_t *c = (uint64_t *)e->alloc(s, 16, 512), *d = (uint64_t *)e->alloc(s, 16, 16);
        ((upfront_stack_below *)d - 1)->last = upfront_arena_offset(&s->ends.arena, c) - 64;
        CHECK_EQ(e->rewind(s, bottom), UPFRONT_CORRUPT);
        ((upfront_stack_below *)d - 1)->last = upfront_arena_offset(&s->ends.arena, c);
        CHECK(e->give(s, d) == UPFRONT_OK && e->give(s, c) == UPFRONT_OK);
    }
    /* words that lead to an unaligned address, which some processors can't read */
    below->cursor = good.cursor + (e->is_far ? 8 : 0);
    below->last = good.last + 8;
    CHECK_EQ(e->give(s, b), UPFRONT_CORRUPT);
    CHECK_EQ(e->rewind(s, bottom), UPFRONT_CORRUPT);
    *below = good;
    CHECK_EQ(e->give(s, b), UPFRONT_OK);
    CHECK_EQ(e->give(s, a), UPFRONT_OK);
    window_free(w, WINDOW);
}

static void stack_at(const stack_end *e, const stack_end *other) {
    stack_arguments(e);
    stack_marks(e, other);
    stack_of_nothing(e);
    stack_underrun(e);
}

void test_stack(void) {
    stack_at(&stack_near, &stack_far);
    stack_at(&stack_far, &stack_near);
}
