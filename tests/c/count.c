/* count.c - tests of what each arena counts: bytes asked for, allocations, and what padding is left over. */
#include "check.h"

#define CHECK_COUNT(count, bytes, allocations)             \
    do {                                                   \
        CHECK_EQ(upfront_asked(count), (bytes));           \
        CHECK_EQ(upfront_objects(count), (allocations));   \
    } while (0)

static void count_words(void) {
    CHECK_COUNT(0, 0, 0);
    CHECK_COUNT(3 * UPFRONT_OBJECT + 7, 7, 3);
    CHECK_COUNT(UINT64_MAX, UPFRONT_OFFSET_MAX - 1, (1 << 26) - 1);
    CHECK_COUNT(((UINT64_C(1) << 26) - 1) * UPFRONT_OBJECT + 9 + (UPFRONT_OBJECT + 4), 13, 0); /* the carry leaves; the bytes stay */
    CHECK_EQ(upfront_count_within(2 * UPFRONT_OBJECT + 10, 11), 2 * UPFRONT_OBJECT + 10);
    CHECK_EQ(upfront_count_within(2 * UPFRONT_OBJECT + 10, 10), 2 * UPFRONT_OBJECT + 10);
    CHECK_EQ(upfront_count_within(2 * UPFRONT_OBJECT + 10, 9), 2 * UPFRONT_OBJECT + 9);
}

static void count_linear(void) {
    unsigned char *w = window_new(WINDOW), *a, *b;
    upfront_ends *e = upfront_ends_init(w, 4096);
    upfront_linear *l = &e->linear;
    uint64_t tag = upfront_tag(l), mark;
    a = (unsigned char *)upfront_ends_alloc(e, 1, 1);
    b = (unsigned char *)upfront_ends_alloc(e, 8, 64);
    CHECK(a != NULL && b == a + 64);
    CHECK_COUNT(l->count, 9, 2);
    CHECK_EQ(upfront_linear_padding(l), 63);
    CHECK(upfront_ends_alloc(e, 5000, 1) == NULL); /* what is refused isn't counted */
    CHECK_COUNT(l->count, 9, 2);
    CHECK_EQ(upfront_ends_resize(e, tag, b, 8, 100), UPFRONT_OK);
    CHECK_COUNT(l->count, 101, 2);
    CHECK_EQ(upfront_ends_resize(e, tag, b, 100, 4), UPFRONT_OK);
    CHECK_COUNT(l->count, 5, 2);
    CHECK_EQ(upfront_linear_padding(l), 63);
    CHECK_EQ(upfront_ends_resize(e, tag, a, 68, 10), UPFRONT_OK); /* two blocks and their padding as one */
    CHECK_COUNT(l->count, 10, 2);
    CHECK_EQ(upfront_linear_padding(l), 0);
    mark = upfront_ends_mark(e);
    CHECK(upfront_ends_alloc(e, 30, 1) != NULL);
    CHECK_EQ(upfront_ends_rewind(e, tag, mark), UPFRONT_OK); /* never more asked than used */
    CHECK_COUNT(l->count, 10, 3);
    CHECK_EQ(upfront_ends_rewind(e, tag, l->start), UPFRONT_OK);
    CHECK_COUNT(l->count, 0, 3);
    CHECK_EQ(upfront_linear_padding(l), 0);
    mark = upfront_ends_mark_far(e);
    CHECK(upfront_ends_alloc_far(e, 3, 64) != NULL && upfront_ends_alloc_far(e, 2, 64) != NULL);
    CHECK_COUNT(e->far_end.count, 5, 2);
    CHECK_EQ(upfront_ends_rewind_far(e, tag, mark), UPFRONT_OK);
    CHECK_COUNT(e->far_end.count, 0, 2);
    CHECK_COUNT(l->count, 0, 3); /* each end has its own */
    window_free(w, WINDOW);
}

/* What grows is one thing still. */
static void count_grows(void) {
    unsigned char *w = window_new(WINDOW), *a;
    upfront_linear *l = upfront_linear_init(w, 1024);
    uint64_t tag = upfront_tag(l);
    a = (unsigned char *)upfront_linear_alloc(l, 10, 1);
    CHECK(upfront_linear_grow(l, tag + 5, 5) == a + 10);
    CHECK_COUNT(l->count, 15, 1);
    CHECK(is_marked(a + 14, 0) && is_marked(a + 24, 1));
    CHECK(upfront_linear_grow(l, tag + 1000, 1000) == NULL);
    CHECK_EQ(l->refused, tag + 1000);
    CHECK(upfront_linear_grow(l, tag + UPFRONT_GENERATION, 0) == NULL); /* stale */
    CHECK_COUNT(l->count, 15, 1);
    CHECK(upfront_linear_grow(l, tag + 1024 - 64 - 15, 1024 - 64 - 15) == a + 15); /* to the last byte */
    CHECK(upfront_linear_grow(l, tag, 0) == w + 1024 && upfront_linear_grow(l, tag + 1, 1) == NULL);
    CHECK_EQ(upfront_linear_padding(l), 0);
    window_free(w, WINDOW);
}

/* Whatever is freed, by whatever way: the count is that of the blocks that are live. */
static void count_stack(void) {
    static const uint64_t sizes[] = {0, 1, 16, 40, 3, 77, 0, 200};
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 8192);
    void *block[8];
    uint64_t mark[8], counts[9], i, far_mark = 0, far_count = 0;
    for (i = 0; i < 8; i++) {
        mark[i] = upfront_stack_mark(s);
        counts[i] = s->linear.count;
        if (i == 4) {
            far_mark = upfront_stack_mark_far(s);
            far_count = s->far_end.count;
        }
        block[i] = upfront_stack_alloc(s, sizes[i], UINT64_C(1) << i);
        CHECK_EQ(s->linear.count, counts[i] + UPFRONT_OBJECT + sizes[i]);
        CHECK_EQ(upfront_stack_padding(s), s->linear.cursor - s->linear.start - upfront_asked(s->linear.count));
        CHECK(upfront_stack_alloc_far(s, sizes[i], 16) != NULL);
        CHECK_EQ(upfront_objects(s->far_end.count), i + 1);
    }
    counts[8] = s->linear.count;
    CHECK_COUNT(counts[8], 337, 8);
    CHECK_EQ(s->far_end.count, counts[8]);
    CHECK_EQ(upfront_stack_free(s, block[6]), UPFRONT_ORDER);
    CHECK_EQ(s->linear.count, counts[8]);
    CHECK_EQ(upfront_stack_free(s, block[7]), UPFRONT_OK);
    CHECK_EQ(s->linear.count, counts[7]);
    CHECK_EQ(upfront_stack_free(s, block[6]), UPFRONT_OK);
    CHECK_EQ(s->linear.count, counts[6]);
    CHECK_EQ(upfront_stack_rewind(s, mark[2]), UPFRONT_OK);
    CHECK_COUNT(s->linear.count, 1, 2);
    CHECK_EQ(s->linear.count, counts[2]);
    CHECK_EQ(upfront_stack_padding(s), 16 + 16); /* the words before two blocks */
    CHECK_EQ(upfront_stack_rewind_far(s, far_mark), UPFRONT_OK);
    CHECK_EQ(upfront_objects(s->far_end.count), upfront_objects(far_count));
    CHECK(upfront_asked(s->far_end.count) <= s->far_end.end - far_mark);
    upfront_stack_reset_far(s);
    CHECK_COUNT(s->far_end.count, 0, 0);
    CHECK_COUNT(s->linear.count, 1, 2);
    upfront_stack_reset(s);
    CHECK_COUNT(s->linear.count, 0, 0);
    CHECK_EQ(upfront_stack_padding(s), 0);
    window_free(w, WINDOW);
}

static void count_frame(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_frame *f = upfront_frame_init(w, 4096, 2);
    CHECK(upfront_frame_alloc(f, 1, 1) != NULL && upfront_frame_alloc(f, 8, 8) != NULL);
    CHECK_EQ(upfront_frame_padding(f), 7);
    upfront_frame_turn(f);
    CHECK_EQ(upfront_frame_padding(f), 0);
    CHECK(upfront_frame_alloc(f, 2, 1) != NULL && upfront_frame_alloc(f, 4, 4) != NULL);
    CHECK_EQ(upfront_frame_padding(f), 2);
    upfront_frame_turn(f);
    CHECK_EQ(upfront_frame_padding(f), 0);
    window_free(w, WINDOW);
}

/* Of scopes in checked builds, each by itself; in release nobody counts. */
static void count_scopes(void) {
#ifdef UPFRONT_CHECKED
    const uint64_t counted = 1;
#else
    const uint64_t counted = 0;
#endif
    unsigned char *w = window_new(4 * WINDOW);
    upfront_row *r = (upfront_row *)(void *)w;
    upfront_scope outer, inner, temp;
    const uint64_t *of_outer, *of_inner;
    upfront_row_init(r, w, "row", WINDOW, 4 * WINDOW, 3, 1);
    outer = upfront_scope_open(&r->arena);
    of_outer = &upfront_scopes_top(&r->arena)->count;
    CHECK(upfront_scope_alloc(outer, 3, 1) != NULL && upfront_scopes_node(&r->arena, outer.gen, 8, 7) != NULL);
    CHECK_COUNT(*of_outer, counted * 19, counted * 2);
    CHECK(upfront_scopes_grow(&r->arena, outer.gen, 10) != NULL); /* what grows is one thing still */
    CHECK_COUNT(*of_outer, counted * 29, counted * 2);
    CHECK(upfront_scopes_grow(&r->arena, outer.gen, 4 * WINDOW) == NULL && upfront_scope_alloc(outer, 4 * WINDOW, 1) == NULL);
    CHECK(upfront_scope_pool(outer, 8, 8, WINDOW) == NULL && upfront_scope_temp(outer, 4 * WINDOW).arena == NULL);
    CHECK_COUNT(*of_outer, counted * 29, counted * 2); /* what is refused isn't counted */
    inner = upfront_scope_open(&r->arena);
    of_inner = &upfront_scopes_top(&r->arena)->count;
    CHECK(upfront_scope_alloc(inner, 8, 64) != NULL);
    CHECK(upfront_scope_pool(inner, 10, 64, 5) != NULL);
    CHECK_COUNT(*of_inner, counted * (8 + 16 + upfront_pool_size(10, 64, 5, 0)), counted * 3);
    temp = upfront_scope_temp(inner, 100);
    CHECK_COUNT(*of_inner, counted * (24 + 16 + upfront_pool_size(10, 64, 5, 0)), counted * 4);
    CHECK(upfront_scope_alloc(temp, 50, 1) != NULL);
    CHECK_COUNT(upfront_scopes_top(temp.arena)->count, counted * 50, counted);
    CHECK_EQ(upfront_scope_close(inner), UPFRONT_OK);
    CHECK_COUNT(*of_outer, counted * 29, counted * 2);
    CHECK_EQ(upfront_scope_open(&r->arena).gen, inner.gen + 2); /* a pool had the one between */
    CHECK_EQ(*of_inner, 0);
    window_free(w, 4 * WINDOW);
}

void test_count(void) {
    count_words();
    count_linear();
    count_grows();
    count_stack();
    count_frame();
    count_scopes();
}
