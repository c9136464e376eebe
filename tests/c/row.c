/* row.c - tests of row.h: scopes that nest, finalizers' nodes, pools in scopes. */
#include "check.h"

enum { ROW_SLOTS = 4, ROW_POOLS = 3 };

/* A row whose arena is the second window, its tables in the first. */
static upfront_row *row_new(unsigned char *w, uint64_t size) {
    upfront_row *r = (upfront_row *)(void *)(w + 64);
    CHECK(upfront_row_size(ROW_SLOTS, ROW_POOLS) < WINDOW - 64);
    upfront_row_init(r, w, "row", WINDOW, WINDOW + size, ROW_SLOTS, ROW_POOLS);
    return r;
}

static void *alloc_in(upfront_linear *slot, uint64_t tag, uint64_t size) {
    return upfront_linear_bump(slot, tag + size, size, 0);
}

static void row_names(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = row_new(w, 100);
    const char *longest = "0123456789012345678901234567890";
    const char *longer = "01234567890123456789012345678901";
    CHECK(strcmp(r->name, "row") == 0 && holds(r->name + 3, UPFRONT_NAME_SIZE - 3, 0));
    upfront_row_init(r, w, longest, WINDOW, WINDOW, ROW_SLOTS, ROW_POOLS);
    CHECK(strcmp(r->name, longest) == 0);
    upfront_row_init(r, w, longer, WINDOW, WINDOW, ROW_SLOTS, ROW_POOLS);
    CHECK(strcmp(r->name, longest) == 0);
    upfront_row_init(r, w, "", WINDOW, WINDOW, ROW_SLOTS, ROW_POOLS);
    CHECK(holds(r->name, UPFRONT_NAME_SIZE, 0));
    window_free(w, 2 * WINDOW);
}

static void row_nests(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = row_new(w, 1000);
    upfront_linear *s[ROW_SLOTS];
    uint64_t tag[ROW_SLOTS], i, j;
    for (i = 0; i < ROW_SLOTS; i++) {
        s[i] = upfront_row_slot(r, i);
        CHECK(alloc_in(s[i], upfront_tag(s[i]), 0) == NULL); /* before its open: closed */
        tag[i] = upfront_row_open(r);
        CHECK(upfront_row_of(s[i]) == r);
        CHECK_EQ(s[i]->start, WINDOW + i * 100);
        CHECK(alloc_in(s[i], tag[i], 100) == w + WINDOW + i * 100);
        for (j = 0; j < i; j++)
            CHECK(alloc_in(s[j], tag[j], 1) == NULL && alloc_in(s[j], tag[j], 0) == NULL); /* covered */
    }
    CHECK(upfront_row_of(upfront_row_far(r)) == r);
    CHECK(alloc_in(s[3], tag[3], 601) == NULL);
    CHECK_EQ(s[3]->refused, tag[3] + 601);
    CHECK(alloc_in(s[3], tag[3], 600) == w + WINDOW + 400); /* to the last byte */
    w[WINDOW + 999] = 1;
    CHECK(alloc_in(s[3], tag[3], 1) == NULL);
    CHECK_EQ(upfront_row_used(r), 1000);
    for (i = ROW_SLOTS; i-- > 0;) {
        upfront_row_close(r);
        CHECK(alloc_in(s[i], tag[i], 0) == NULL); /* closed */
        CHECK(alloc_in(s[i], upfront_tag(s[i]), 0) == NULL);
        CHECK_EQ(upfront_row_used(r), i * 100);
        if (i > 0)
            CHECK(alloc_in(s[i - 1], tag[i - 1], 0) != NULL); /* uncovered */
    }
    CHECK_EQ(r->peak, 1000);
    CHECK(upfront_row_open(r) == tag[0] + UPFRONT_GENERATION);
    CHECK(alloc_in(s[0], tag[0], 1) == NULL); /* stale: the slot is another's now */
    CHECK(alloc_in(s[0], tag[0] + UPFRONT_GENERATION, 1000) == w + WINDOW);
    upfront_row_close(r);
    window_free(w, 2 * WINDOW);
}

static void row_freezes(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = row_new(w, WINDOW);
    uint64_t tag = upfront_row_open(r);
    upfront_linear *s = upfront_row_slot(r, 0);
    upfront_row_freeze(s);
    CHECK(alloc_in(s, tag, 0) == NULL && upfront_row_node(s, tag) == NULL);
    CHECK_EQ(upfront_row_far_open(r), UPFRONT_GENERATION);
    CHECK_EQ(upfront_row_far_grow(r, 100, 8), UPFRONT_OK);
    CHECK(alloc_in(s, tag, 0) == NULL); /* a new piece does not thaw it */
    upfront_row_far_close(r);
    CHECK(alloc_in(s, tag, 0) == NULL); /* nor does the end of the pieces */
    upfront_row_close(r);
    window_free(w, 2 * WINDOW);
}

/* 2^24 opens later a handle is taken for the new one; one less and it is not. */
static void row_generation_wraps(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = row_new(w, 64);
    upfront_linear *s = upfront_row_slot(r, 0);
    uint64_t tag, i;
    s->limit = ~UPFRONT_OFFSETS - 2 * UPFRONT_GENERATION;
    for (i = 0; i < 6; i++) {
        tag = upfront_row_open(r);
        CHECK_EQ(tag, (i - 3) * UPFRONT_GENERATION);
        CHECK(alloc_in(s, tag - UPFRONT_GENERATION, 0) == NULL && alloc_in(s, tag + UPFRONT_GENERATION, 0) == NULL);
        CHECK(alloc_in(s, tag, 64) != NULL && alloc_in(s, tag, 1) == NULL);
        upfront_row_close(r);
        CHECK(alloc_in(s, tag, 0) == NULL);
    }
    window_free(w, 2 * WINDOW);
}

static void row_finalizers(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = row_new(w, 100);
    uint64_t tag = upfront_row_open(r), i;
    upfront_linear *s = upfront_row_slot(r, 0);
    upfront_linear was;
    upfront_node node;
    CHECK(!upfront_row_unlink(s, &node));
    CHECK(alloc_in(s, tag, 3) != NULL);
    was = *s;
    for (i = 0; i < 5; i++) {
        upfront_node *n = upfront_row_node(s, tag);
        CHECK(n != NULL && (uintptr_t)n % 8 == 0);
        upfront_row_link(s, n, i == 4 ? (1 << 24) - 1 : i, UINT64_MAX - i);
    }
    CHECK_EQ(s->cursor, WINDOW + 88);
    CHECK(upfront_row_node(s, tag) == NULL); /* 12 bytes are left */
    CHECK(upfront_row_node(s, tag + UPFRONT_GENERATION) == NULL);
    for (i = 5; i-- > 0;) {
        CHECK(upfront_row_unlink(s, &node));
        CHECK_EQ(node.what, UINT64_MAX - i);
        CHECK_EQ(node.below / UPFRONT_GENERATION, i == 4 ? (1 << 24) - 1 : i);
    }
    CHECK(!upfront_row_unlink(s, &node));
    upfront_row_rewind(r, &was);
    CHECK_EQ(s->cursor, WINDOW + 3);
    CHECK_EQ(s->count, UPFRONT_OBJECT + 3);
    CHECK_EQ(r->peak, 88);
    CHECK(alloc_in(s, tag, 97) != NULL);
    upfront_row_close(r);
    window_free(w, 2 * WINDOW);
}

static void row_pools(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = row_new(w, 4096);
    uint64_t tag = upfront_row_open(r), i, bytes = upfront_pool_size(10, 4, 20), before;
    upfront_linear *s = upfront_row_slot(r, 0);
    upfront_pool *p[ROW_POOLS + 1];
    static const uint64_t bad[][3] = {{UINT64_MAX, 8, 0}, {UINT64_MAX, 8, 1}, {8, 0, 1}, {8, 3, 0}, {8, 8, UINT64_MAX}, {1, 1 << 17, 1}};
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        p[0] = (upfront_pool *)(void *)w;
        CHECK_EQ(upfront_row_pool_open(s, tag, bad[i][0], bad[i][1], bad[i][2], 7, &p[0]), UPFRONT_BAD_ARGUMENT);
        CHECK(p[0] == NULL && s->cursor == WINDOW);
    }
    CHECK_EQ(upfront_row_pool_open(s, tag, 8, 8, 4096 / 8, 7, &p[0]), UPFRONT_FULL);
    CHECK(p[0] == NULL && s->refused == tag + upfront_pool_size(8, 8, 512));
    CHECK_EQ(upfront_row_pool_open(s, tag + UPFRONT_GENERATION, 8, 8, 1, 7, &p[0]), UPFRONT_FULL); /* stale */
    CHECK(alloc_in(s, tag, 1) != NULL);
    for (i = 0; i < ROW_POOLS; i++) {
        before = s->cursor;
        CHECK_EQ(upfront_row_pool_open(s, tag, 10, 4, i == 0 ? 0 : 20, 7 + i, &p[i]), UPFRONT_OK);
        CHECK(p[i] == upfront_row_pool(r, i) && p[i]->kind == 7 + i);
        CHECK_EQ(s->cursor, ((before + 7) & ~UINT64_C(7)) + (i == 0 ? 0 : bytes));
    }
    CHECK_EQ(upfront_row_pool_open(s, tag, 10, 4, 20, 7, &p[ROW_POOLS]), UPFRONT_TABLE_FULL);
    upfront_pool_close(p[1]);
    CHECK_EQ(upfront_row_pool_open(s, tag, 100, 1 << 10, 2, 7, &p[1]), UPFRONT_OK); /* usable again */
    CHECK((uintptr_t)upfront_pool_chunk(p[1], 0) % (1 << 10) == 0);
    for (i = 0; i < ROW_POOLS; i++)
        upfront_pool_close(p[i]);
    upfront_row_close(r);
    window_free(w, 2 * WINDOW);
}

/* What is handed out is marked live, what is given back dead: by a close, a rewind, the far end, and in a pool from its making on. */
static void row_marks(void) {
    unsigned char *w = window_new(2 * WINDOW), *p, *q, *far_bytes;
    upfront_row *r = row_new(w, 4096);
    upfront_linear *s = upfront_row_slot(r, 0), was;
    uint64_t tag = upfront_row_open(r), far_tag;
    upfront_pool *pool;
    unsigned char *chunk;
    p = (unsigned char *)alloc_in(s, tag, 64);
    was = *s;
    q = (unsigned char *)alloc_in(s, tag, 64);
    CHECK(is_marked(p, 0) && is_marked(q, 0) && is_marked(q + 63, 0));
    upfront_row_rewind(r, &was);
    CHECK(is_marked(p + 63, 0) && is_marked(q, 1) && is_marked(q + 63, 1));
    far_tag = upfront_row_far_open(r);
    CHECK_EQ(upfront_row_far_grow(r, 64, 64), UPFRONT_OK);
    far_bytes = (unsigned char *)alloc_in(upfront_row_far(r), far_tag, 64);
    CHECK(is_marked(far_bytes, 0) && is_marked(far_bytes + 63, 0));
    upfront_row_far_close(r);
    CHECK(is_marked(far_bytes, 1) && is_marked(far_bytes + 63, 1) && is_marked(p, 0));
    CHECK_EQ(upfront_row_pool_open(s, tag, 64, 8, 2, 7, &pool), UPFRONT_OK);
    chunk = (unsigned char *)upfront_pool_chunk(pool, 0);
    CHECK(is_marked(chunk + 8, 1) && is_marked(chunk + 63, 1));
    CHECK(upfront_pool_get(pool, pool->free & ~UPFRONT_OFFSETS) == chunk && is_marked(chunk + 63, 0));
    upfront_pool_close(pool);
    upfront_row_close(r);
    CHECK(is_marked(p, 1) && is_marked(chunk, 1));
    window_free(w, 2 * WINDOW);
}

void test_row(void) {
    row_names();
    row_nests();
    row_freezes();
    row_generation_wraps();
    row_finalizers();
    row_pools();
    row_marks();
}
