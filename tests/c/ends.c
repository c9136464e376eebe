/* ends.c - tests of ends.h: two ends that share the room, their marks, and the resize of the last
 * block. */
#include "check.h"

static void two_arguments(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_ends *e, zero, before;
    uint64_t i;
    memset(&zero, 0, sizeof zero);
    for (i = 0; i < 3 * UPFRONT_LINE; i++)
        CHECK(upfront_ends_init(w, i) == NULL);
    CHECK(upfront_ends_init(NULL, 4096) == NULL);
    CHECK(upfront_ends_init(w + 8, 4096) == NULL);
    CHECK(upfront_ends_init(w, UINT64_MAX) == NULL);
    CHECK(holds(w, WINDOW, 0));
    CHECK(upfront_ends_alloc(NULL, 8, 8) == NULL);
    CHECK(upfront_ends_alloc_far(NULL, 8, 8) == NULL);
    CHECK(upfront_ends_alloc(&zero, 0, 1) == NULL);
    CHECK(upfront_ends_alloc_far(&zero, 0, 1) == NULL);
    e = upfront_ends_init(w, WINDOW);
    before = *e;
    CHECK(upfront_ends_alloc_far(e, 8, 0) == NULL);
    CHECK(upfront_ends_alloc_far(e, 8, 3) == NULL);
    CHECK(upfront_ends_alloc_far(e, 8, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK(memcmp(&before, e, sizeof before) == 0);
    for (i = 1; i <= UPFRONT_ALIGN_MAX; i *= 2) {
        CHECK(upfront_ends_alloc_far(e, UPFRONT_OFFSET_MAX - 1, i) == NULL);
        CHECK_EQ(e->arena.asked, UPFRONT_ASKED | (UPFRONT_OFFSET_MAX - 1));
        CHECK(upfront_ends_alloc_far(e, UPFRONT_OFFSET_MAX, i) == NULL);
        CHECK(upfront_ends_alloc_far(e, UINT64_MAX, i) == NULL); /* a full like any other */
        CHECK_EQ(e->arena.asked, UPFRONT_ASKED | UPFRONT_OFFSET_MAX);
    }
    CHECK_EQ(upfront_ends_rewind(NULL, 0, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ends_rewind_far(NULL, 0, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ends_resize(NULL, 0, w, 0, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ends_rewind(e, 0, e->arena.start), UPFRONT_STALE);
    CHECK_EQ(upfront_ends_rewind_far(e, 0, e->end), UPFRONT_STALE);
    window_free(w, WINDOW);
}

static void two_marks(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_ends *e = upfront_ends_init(w, 4096);
    uint64_t gen = e->arena.gen, a, b, far_a, far_b, start = e->arena.start, end = e->end;
    a = upfront_ends_mark(e);
    far_a = upfront_ends_mark_far(e);
    CHECK(upfront_ends_alloc(e, 100, 1) != NULL && upfront_ends_alloc_far(e, 100, 1) != NULL);
    CHECK_EQ(upfront_ends_rewind(e, gen, a + 1), UPFRONT_ORDER); /* newer than the newest mark */
    CHECK_EQ(upfront_ends_rewind_far(e, gen, far_a - 1), UPFRONT_ORDER);
    b = upfront_ends_mark(e);
    far_b = upfront_ends_mark_far(e);
    CHECK_EQ(upfront_ends_rewind(e, gen, far_b), UPFRONT_ORDER); /* a mark of the other end */
    CHECK_EQ(upfront_ends_rewind_far(e, gen, b), UPFRONT_ORDER);
    CHECK(upfront_ends_alloc(e, 100, 1) != NULL && upfront_ends_alloc_far(e, 100, 1) != NULL);
    CHECK_EQ(upfront_ends_rewind(e, gen, b), UPFRONT_OK);
    CHECK_EQ(upfront_ends_rewind(e, gen, b), UPFRONT_OK);
    CHECK_EQ(upfront_ends_rewind_far(e, gen, far_b), UPFRONT_OK);
    CHECK_EQ(upfront_ends_rewind(e, gen, a), UPFRONT_OK);
    CHECK_EQ(upfront_ends_rewind_far(e, gen, far_a), UPFRONT_OK);
    CHECK(upfront_ends_alloc(e, 300, 1) != NULL && upfront_ends_alloc_far(e, 300, 1) != NULL);
    /* a rewind passed the mark, which is inside a block now */
    CHECK_EQ(upfront_ends_rewind(e, gen, b), UPFRONT_ORDER);
    CHECK_EQ(upfront_ends_rewind_far(e, gen, far_b), UPFRONT_ORDER);
    CHECK_EQ(upfront_ends_rewind(e, gen, start - 1), UPFRONT_ORDER);
    CHECK_EQ(upfront_ends_rewind_far(e, gen, end + 1), UPFRONT_ORDER);
    CHECK_EQ(e->arena.cursor, start + 300);
    CHECK_EQ(e->arena.limit, end - 300);
    CHECK_EQ(e->low, end - 200);
    CHECK_EQ(e->high, start + 200);
    upfront_ends_reset(e);
    CHECK(e->arena.cursor == start && e->arena.limit == end);
    CHECK(upfront_ends_rewind(e, gen, a + 1) == UPFRONT_ORDER &&
        upfront_ends_rewind_far(e, gen, far_a - 1) == UPFRONT_ORDER);
    window_free(w, WINDOW);
}

static void two_resize(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_ends *e = upfront_ends_init(w, 1024);
    uint64_t gen = e->arena.gen, room;
    unsigned char *a = (unsigned char *)upfront_ends_alloc(e, 64, 8), *b = (unsigned char *)upfront_ends_alloc(e, 64,
        8);
    fill(b, 64, 5);
    CHECK_EQ(upfront_ends_resize(e, gen, NULL, 64, 8), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ends_resize(e, gen, b, UPFRONT_OFFSET_MAX, 8), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ends_resize(e, gen, b, 64, UINT64_MAX), UPFRONT_FULL);
    CHECK_EQ(upfront_ends_resize(e, gen, b, 64, UPFRONT_OFFSET_MAX), UPFRONT_FULL);
    CHECK_EQ(upfront_ends_resize(e, gen + 1, b, 64, 8), UPFRONT_STALE);
    CHECK_EQ(upfront_ends_resize(e, gen, a, 64, 8), UPFRONT_ORDER);
    CHECK_EQ(upfront_ends_resize(e, gen, b, 63, 8), UPFRONT_ORDER);
    CHECK_EQ(upfront_ends_resize(e, gen, w, 64, 8), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_ends_resize(e, gen, b + 65, 0, 8), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_ends_resize(e, gen, b, 64, 200), UPFRONT_OK);
    CHECK(holds(b, 64, 5) && is_marked(b + 199, 0) && is_marked(b + 200, 1));
    CHECK_EQ(upfront_ends_resize(e, gen, b, 200, 32), UPFRONT_OK);
    CHECK(holds(b, 32, 5) && is_marked(b + 31, 0) && is_marked(b + 32, 1));
    CHECK_EQ(upfront_ends_resize(e, gen, b, 32, 24), UPFRONT_OK); /* the peak stays */
    CHECK_EQ(e->high, e->arena.start + 264);
    CHECK(upfront_ends_alloc_far(e, 16, 8) == w + 1008);
    room = e->arena.limit - upfront_arena_offset(&e->arena, b);
    CHECK_EQ(upfront_ends_resize(e, gen, b, 24, room + 1), UPFRONT_FULL);
    CHECK_EQ(e->arena.asked, UPFRONT_ASKED | (room + 1 - 24));
    CHECK_EQ(upfront_ends_resize(e, gen, b, 24, UPFRONT_OFFSET_MAX - 1), UPFRONT_FULL);
    CHECK_EQ(upfront_ends_resize(e, gen, b, 24, room), UPFRONT_OK);
    fill(b, room, 6);
    CHECK(upfront_ends_alloc(e, 1, 1) == NULL);
    CHECK_EQ(upfront_ends_resize(e, gen, b, room, 0), UPFRONT_OK);
    CHECK_EQ(upfront_ends_resize(e, gen, b, 0, 40), UPFRONT_OK);
    upfront_ends_mark(e);
    CHECK_EQ(upfront_ends_resize(e, gen, b, 40, 48), UPFRONT_ORDER); /* below the mark */
    CHECK_EQ(upfront_ends_resize(e, gen, b, 40, 32), UPFRONT_ORDER);
    a = (unsigned char *)upfront_ends_alloc(e, 8, 8);
    CHECK_EQ(upfront_ends_resize(e, gen, a, 8, 16), UPFRONT_OK);
    window_free(w, WINDOW);
}

/* Both ends refuse another generation. */
static void two_generations(void) {
    static const uint64_t others[] = {0, 2, UINT64_C(1) << 40, UINT64_MAX};
    unsigned char *w = window_new(WINDOW);
    upfront_stack *s = upfront_stack_init(w, WINDOW), before;
    uint64_t i;
    for (i = 0; i < 4; i++) {
        before = *s;
        before.ends.arena.misused = others[i];
        CHECK(upfront_ends_bump_far(&s->ends, others[i], 8, 7) == NULL);
        CHECK(upfront_stack_push(s, others[i], 8, 15) == NULL && upfront_stack_push_far(s, others[i], 8, 15) == NULL);
        CHECK(memcmp(&before, s, sizeof before) == 0);
    }
    window_free(w, WINDOW);
}

static void two_dead_and_live(void) {
    unsigned char *w = window_new(WINDOW), *q;
    upfront_ends *e = upfront_ends_init(w, 1024);
    uint64_t mark;
    CHECK(is_marked(w + 127, 0) && is_marked(w + 128, 1) && is_marked(w + 1023, 1) && is_marked(w + 1024, 0));
    q = (unsigned char *)upfront_ends_alloc_far(e, 64, 8);
    mark = upfront_ends_mark_far(e);
    CHECK(upfront_ends_alloc_far(e, 64, 8) == q - 64);
    CHECK(is_marked(q - 64, 0) && is_marked(q - 65, 1) && is_marked(q + 63, 0));
    CHECK_EQ(upfront_ends_rewind_far(e, e->arena.gen, mark), UPFRONT_OK);
    CHECK(is_marked(q - 1, 1) && is_marked(q, 0) && is_marked(w + 1024, 0));
    window_free(w, WINDOW);
}

void test_ends(void) {
    two_arguments();
    two_marks();
    two_resize();
    two_generations();
    two_dead_and_live();
}
