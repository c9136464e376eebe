/* count.c - tests of the counts of each arena: asked bytes, allocations and padding. */
#include "check.h"

#define CHECK_COUNT(count, bytes, allocations)             \
    do {                                                   \
        CHECK_EQ((count) & (UPFRONT_OBJECT - 1), (bytes));           \
        CHECK_EQ((count) / UPFRONT_OBJECT, (allocations));   \
    } while (0)

static void count_words(void) {
    CHECK_COUNT(0, 0, 0);
    CHECK_COUNT(3 * UPFRONT_OBJECT + 7, 7, 3);
    CHECK_COUNT(UINT64_MAX, UPFRONT_OFFSET_MAX - 1, (1 << 26) - 1);
    /* the carry leaves the word, and the bytes stay right */
    CHECK_COUNT(((UINT64_C(1) << 26) - 1) * UPFRONT_OBJECT + 9 + (UPFRONT_OBJECT + 4), 13, 0);
}

/* After any free, the padding is that of the live blocks. */
static void count_stack(void) {
    static const uint64_t sizes[] = {0, 1, 16, 40, 3, 77, 0, 200};
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, 8192);
    const upfront_arena *a = &s->ends.arena;
    void *block[8];
    uint64_t mark[8], asked = 0, i;
    CHECK_EQ(upfront_stack_padding(s), 0);
    for (i = 0; i < 8; i++) {
        mark[i] = upfront_stack_mark(s);
        block[i] = upfront_stack_alloc(s, sizes[i], UINT64_C(1) << i);
        asked += sizes[i];
        CHECK(upfront_stack_alloc_far(s, sizes[i], 16) != NULL); /* the other end isn't counted */
        CHECK_EQ(upfront_stack_padding(s), a->cursor - a->start - asked);
    }
    CHECK_EQ(upfront_stack_free(s, block[6]), UPFRONT_ORDER);
    CHECK_EQ(upfront_stack_padding(s), a->cursor - a->start - 337);
    CHECK_EQ(upfront_stack_free(s, block[7]), UPFRONT_OK);
    CHECK_EQ(upfront_stack_padding(s), a->cursor - a->start - 137);
    CHECK_EQ(upfront_stack_rewind(s, mark[2]), UPFRONT_OK);
    CHECK_EQ(upfront_stack_padding(s), 16 + 16); /* the words before two blocks */
    /* the count ends at an overwritten word */
    ((upfront_stack_below *)block[1] - 1)->cursor = 0;
    CHECK_EQ(upfront_stack_padding(s), 0);
    upfront_stack_reset(s);
    CHECK_EQ(upfront_stack_padding(s), 0);
    window_free(w, WINDOW);
}

#ifdef UPFRONT_CHECKED
enum { COUNTED = 1 };
#else
enum { COUNTED = 0 };
#endif

static uint64_t frame_padding(const upfront_frame *f) {
    return COUNTED * (f->arena.cursor - f->arena.start - f->count);
}

/* Counted in checked builds only. */
static void count_frame(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_frame *f = upfront_frame_init(w, 4096, 2);
    CHECK(upfront_frame_alloc(f, 1, 1) != NULL && upfront_frame_alloc(f, 8, 8) != NULL);
    CHECK_EQ(frame_padding(f), COUNTED * 7);
    CHECK(upfront_frame_alloc(f, 5000, 1) == NULL); /* a refused one isn't counted */
    CHECK_EQ(frame_padding(f), COUNTED * 7);
    upfront_frame_next(f);
    CHECK_EQ(frame_padding(f), 0);
    CHECK(upfront_frame_alloc(f, 2, 1) != NULL && upfront_frame_alloc(f, 4, 4) != NULL);
    CHECK_EQ(frame_padding(f), COUNTED * 2);
    upfront_frame_next(f);
    CHECK_EQ(frame_padding(f), 0);
    window_free(w, WINDOW);
}

/* Each scope has its own count, in checked builds only. */
static void count_scopes(void) {
    const uint64_t counted = COUNTED;
    unsigned char *w = window_new(4 * WINDOW);
    upfront_row *r = (upfront_row *)(void *)w;
    upfront_scope outer, inner, temp;
    const uint64_t *of_outer, *of_inner;
    row_here(r, w, "row", WINDOW, 4 * WINDOW, 3, 1);
    outer = upfront_scope_open(&r->arena);
    of_outer = &upfront_scopes_top(&r->arena)->count;
    CHECK(upfront_scope_alloc(outer, 3, 1) != NULL && upfront_scopes_node(&r->arena, outer.gen, 8, 7) != NULL);
    CHECK_COUNT(*of_outer, counted * 19, counted * 2);
    /* a grown object still counts once */
    CHECK(upfront_scopes_grow(&r->arena, outer.gen, r->arena.arena.cursor, 10) != NULL);
    CHECK_COUNT(*of_outer, counted * 29, counted * 2);
    CHECK(upfront_scopes_grow(&r->arena, outer.gen, r->arena.arena.cursor, 4 * WINDOW) == NULL);
    CHECK(upfront_scope_alloc(outer, 4 * WINDOW, 1) == NULL);
    CHECK(upfront_scope_pool(outer, 8, 8, WINDOW) == NULL && upfront_scope_temp(outer, 4 * WINDOW).arena == NULL);
    CHECK_COUNT(*of_outer, counted * 29, counted * 2); /* a refused one isn't counted */
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
    /* a pool took the generation between the two scopes' */
    CHECK_EQ(upfront_scope_open(&r->arena).gen, inner.gen + 2);
    CHECK_EQ(*of_inner, 0);
    window_free(w, 4 * WINDOW);
}

void test_count(void) {
    count_words();
    count_stack();
    count_frame();
    count_scopes();
}
