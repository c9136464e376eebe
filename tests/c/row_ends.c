/* row_ends.c - the two ends of an arena: pieces from above, scopes from below, and the byte where they meet. */
#include "check.h"

enum { ENDS_SLOTS = 3, ENDS_SIZE = 5 * 65536 };

static unsigned char *w;
static upfront_row *r;
static upfront_linear *near_slot, *far_slot;
static uint64_t near_tag, far_tag;

static void ends_open(uint64_t size) {
    w = window_new(WINDOW + ENDS_SIZE);
    r = (upfront_row *)(void *)w;
    upfront_row_init(r, w, "ends", WINDOW, WINDOW + size, ENDS_SLOTS, 0);
    CHECK_EQ(upfront_row_far_grow(r, 8, 8), UPFRONT_ORDER); /* no scope, no far end */
    near_tag = upfront_row_open(r);
    near_slot = upfront_row_slot(r, 0);
    far_slot = upfront_row_far(r);
    CHECK_EQ(upfront_row_far_grow(r, 8, 8), UPFRONT_ORDER); /* a scope, but no far end */
    far_tag = upfront_row_far_open(r);
    CHECK_EQ(r->far_of, 1);
    CHECK(upfront_linear_bump(far_slot, far_tag, 0, 0) == NULL); /* no piece yet */
}

static void ends_close(void) {
    uint64_t limit;
    upfront_row_far_close(r);
    limit = far_slot->limit;
    upfront_row_far_close(r); /* twice is once */
    CHECK_EQ(far_slot->limit, limit);
    CHECK(upfront_linear_bump(far_slot, far_tag, 0, 0) == NULL);
    CHECK_EQ(r->edge, r->end);
    upfront_row_close(r);
    window_free(w, WINDOW + ENDS_SIZE);
}

static void *take(upfront_linear *slot, uint64_t tag, uint64_t size, uint64_t align) {
    return upfront_linear_bump(slot, tag + size, size, align - 1);
}

static void ends_meet(void) {
    unsigned char *a, *b;
    ends_open(ENDS_SIZE);
    CHECK_EQ(upfront_row_far_grow(r, 8, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_row_far_grow(r, 8, 12), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_row_far_grow(r, ENDS_SIZE + 1, 1), UPFRONT_FULL);
    CHECK_EQ(upfront_row_far_grow(r, UINT64_MAX, 1), UPFRONT_FULL);
    CHECK_EQ(r->edge, r->end);
    CHECK_EQ(upfront_row_far_grow(r, 100, 64), UPFRONT_OK);
    CHECK_EQ(r->end - r->edge, UPFRONT_PIECE); /* a small wish takes a whole piece */
    a = (unsigned char *)take(far_slot, far_tag, UPFRONT_PIECE, 1);
    CHECK(a == w + r->edge && take(far_slot, far_tag, 1, 1) == NULL);
    fill(a, UPFRONT_PIECE, 1);
    b = (unsigned char *)take(near_slot, near_tag, ENDS_SIZE - UPFRONT_PIECE, 1);
    CHECK(b != NULL && b + (ENDS_SIZE - UPFRONT_PIECE) == a); /* they meet, and do not overlap */
    fill(b, ENDS_SIZE - UPFRONT_PIECE, 2);
    CHECK(holds(a, UPFRONT_PIECE, 1));
    CHECK(take(near_slot, near_tag, 1, 1) == NULL);
    CHECK_EQ(upfront_row_far_grow(r, 1, 1), UPFRONT_FULL);
    CHECK_EQ(upfront_row_far_grow(r, 0, 1), UPFRONT_OK);
    CHECK_EQ(r->peak, ENDS_SIZE);
    upfront_row_far_close(r);
    CHECK(take(near_slot, near_tag, UPFRONT_PIECE, 1) == a); /* the room is the near end's again */
    CHECK_EQ(upfront_row_far_open(r), far_tag + UPFRONT_GENERATION);
    CHECK_EQ(upfront_row_far_grow(r, 1, 1), UPFRONT_FULL);
    ends_close();
}

/* A small wish takes a quarter of what is free, at most a piece; a large one what it asked for, and so does one that else had no room. */
static void ends_last_piece(void) {
    ends_open(4 * UPFRONT_PIECE);
    CHECK_EQ(upfront_row_far_grow(r, 10, UPFRONT_ALIGN_MAX), UPFRONT_OK);
    CHECK_EQ(r->edge, r->end - UPFRONT_PIECE);
#ifdef UPFRONT_ASAN /* what nobody has had yet is poisoned; only what was given back is filled */
    CHECK(is_marked(w + r->end - 1, 1) && is_marked(w + r->end, 0));
#endif
    CHECK(take(far_slot, far_tag, 10, 1) == w + r->edge && is_marked(w + r->edge, 0));
    CHECK_EQ(upfront_row_far_grow(r, 10, 1), UPFRONT_OK);
    CHECK_EQ(r->edge, r->end - UPFRONT_PIECE - 3 * UPFRONT_PIECE / 4);
    upfront_row_far_close(r);
    CHECK(is_marked(w + r->end - UPFRONT_PIECE - 3 * UPFRONT_PIECE / 4, 1) && is_marked(w + r->end - 1, 1) && is_marked(w + r->end, 0));
    ends_close();
    ends_open(4 * UPFRONT_PIECE - 1);
    CHECK_EQ(upfront_row_far_grow(r, 10, 1), UPFRONT_OK);
    CHECK_EQ(r->end - r->edge, UPFRONT_PIECE - 1);
    CHECK_EQ(upfront_row_far_grow(r, 4 * UPFRONT_PIECE, 1), UPFRONT_FULL);
    ends_close();
    ends_open(UPFRONT_PIECE + 100);
    CHECK(take(near_slot, near_tag, 50, 1) != NULL);
    CHECK_EQ(upfront_row_far_grow(r, 1000, UPFRONT_ALIGN_MAX), UPFRONT_FULL); /* no boundary above the cursor has the room */
    CHECK_EQ(upfront_row_far_grow(r, 100, UPFRONT_ALIGN_MAX), UPFRONT_OK);    /* this one has */
    CHECK_EQ(r->edge, 2 * WINDOW);
    CHECK(take(far_slot, far_tag, 100, UPFRONT_ALIGN_MAX) == w + 2 * WINDOW);
    CHECK_EQ(upfront_row_far_grow(r, UPFRONT_PIECE - 50, 1), UPFRONT_OK);
    CHECK(take(far_slot, far_tag, UPFRONT_PIECE - 50, 1) == w + WINDOW + 50);
    CHECK_EQ(upfront_row_used(r), r->end - r->start);
    ends_close();
}

/* Pieces taken while a child is on top lower the child's limit now and the parent's when it is uncovered. */
static void ends_nested(void) {
    upfront_linear *child;
    uint64_t tag;
    ends_open(ENDS_SIZE);
    tag = upfront_row_open(r);
    child = upfront_row_slot(r, 1);
    CHECK_EQ(upfront_row_far_grow(r, ENDS_SIZE / 2, 1), UPFRONT_OK);
    CHECK(take(child, tag, ENDS_SIZE / 2 + 1, 1) == NULL && take(child, tag, ENDS_SIZE / 2, 1) != NULL);
    upfront_row_close(r);
    CHECK(take(near_slot, near_tag, ENDS_SIZE / 2 + 1, 1) == NULL && take(near_slot, near_tag, ENDS_SIZE / 2, 1) != NULL);
    ends_close();
}

static void ends_everywhere(void) {
    uint64_t align, size, near_size;
    for (align = 1; align <= UPFRONT_ALIGN_MAX; align *= 4)
        for (size = 0; size < ENDS_SIZE; size = size * 2 + 1)
            for (near_size = 0; near_size < ENDS_SIZE; near_size = near_size * 8 + 3) {
                uint64_t edge;
                ends_open(ENDS_SIZE - 17);
                CHECK(take(near_slot, near_tag, near_size, 1) != NULL);
                edge = r->edge;
                if (upfront_row_far_grow(r, size, align) == UPFRONT_OK) {
                    unsigned char *p = (unsigned char *)take(far_slot, far_tag, size, align);
                    CHECK(p != NULL && (uintptr_t)p % align == 0 && p >= w + near_slot->cursor && p + size <= w + edge);
                    CHECK(take(near_slot, near_tag, r->edge - near_slot->cursor + 1, 1) == NULL);
                } else {
                    CHECK_EQ(r->edge, edge);
                    CHECK(((edge - size) & ~(align - 1)) < near_slot->cursor || size > edge - near_slot->cursor);
                }
                ends_close();
            }
}

void test_row_ends(void) {
    ends_meet();
    ends_last_piece();
    ends_nested();
    ends_everywhere();
}
