/* scope_temp.c - the two ends of an arena, with temporary scopes at the far end. */
#include "check.h"

enum { TEMP_SLOTS = 4, TEMP_SIZE = 4 * 65536 };

static unsigned char *temp_block;
static upfront_row *temp_row;
static upfront_scope near_scope;
static int temp_order[8], temp_count;

static void temp_note(void *arg) { temp_order[temp_count++] = (int)(intptr_t)arg; }

static void temp_open(uint64_t size) {
    temp_block = window_new(WINDOW + TEMP_SIZE);
    temp_row = (upfront_row *)(void *)temp_block;
    row_here(temp_row, temp_block, "ends", WINDOW, WINDOW + size, TEMP_SLOTS, 2);
    near_scope = upfront_scope_open(&temp_row->arena);
    temp_count = 0;
}

static uint64_t temp_free(void) { return temp_row->arena.arena.limit - temp_row->arena.arena.cursor; }

static void temp_close(void) {
    CHECK_EQ(upfront_scope_close(near_scope), UPFRONT_OK);
    CHECK(temp_row->temp.depth == 0 && temp_row->temp.arena.gen == 0);
    CHECK_EQ(temp_row->arena.arena.limit, temp_row->end);
    CHECK_EQ(upfront_row_used(temp_row), 0);
    window_free(temp_block, WINDOW + TEMP_SIZE);
}

/* The highest number of bytes in use at once. */
static uint64_t temp_peak(void) {
    const upfront_arena *a = &temp_row->arena.arena;
    uint64_t free = temp_free();
    return temp_row->end - a->start - (free < a->least ? free : a->least);
}

/* A temporary scope has exactly its bytes, and the near end all others. */
static void temp_meets(void) {
    upfront_scope t;
    unsigned char *a, *b;
    uint64_t left;
    temp_open(TEMP_SIZE);
    t = upfront_scope_temp(near_scope, 1000);
    CHECK(t.arena == &temp_row->temp && t.gen == 1 && upfront_row_of(t.arena) == temp_row);
    CHECK_EQ(upfront_row_used(temp_row), 16 + 1024);
    CHECK(upfront_scope_alloc(t, 1001, 1) == NULL);
    CHECK_EQ(t.arena->arena.asked, UPFRONT_ASKED | 1001);
    a = (unsigned char *)upfront_scope_alloc(t, 1000, 64); /* it begins at a line */
    CHECK(a == temp_block + WINDOW + TEMP_SIZE - 1024 && upfront_scope_alloc(t, 1, 1) == NULL);
    fill(a, 1000, 1);
    left = temp_free();
    CHECK_EQ(left, TEMP_SIZE - 16 - 1024);
    /* a temporary scope doesn't cover */
    CHECK(upfront_scope_alloc(near_scope, left + 1, 1) == NULL);
    b = (unsigned char *)upfront_scope_alloc(near_scope, left, 1);
    CHECK(b + left == a);
    fill(b, left, 2);
    CHECK(holds(a, 1000, 1));
    CHECK_EQ(temp_peak(), TEMP_SIZE);
    CHECK_EQ(upfront_scope_close(t), UPFRONT_OK);
    CHECK(is_marked(a, 1) && is_marked(a + 999, 1) && is_marked(b + left - 1, 0));
    CHECK_EQ(upfront_scope_close(t), UPFRONT_STALE);
    CHECK(upfront_scope_alloc(t, 0, 1) == NULL && !upfront_scope_is_alive(t));
    CHECK(upfront_scope_alloc(near_scope, 1024, 1) == a); /* the near end's again */
    CHECK_EQ(temp_peak(), TEMP_SIZE);
    temp_close(); /* the node of a closed scope does nothing */
}

/* Temporary scopes nest in their own chain. The newest allocates, older ones keep their bytes. */
static void temp_nests(void) {
    upfront_scope t[3], inner;
    unsigned char *p[3];
    int i;
    temp_open(TEMP_SIZE);
    CHECK_EQ(upfront_scope_defer(near_scope, temp_note, (void *)1), UPFRONT_OK);
    for (i = 0; i < 3; i++) {
        t[i] = upfront_scope_temp(near_scope, 100 + 100 * (uint64_t)i);
        CHECK(t[i].arena != NULL && upfront_scope_is_alive(t[0]));
        p[i] = (unsigned char *)upfront_scope_alloc(t[i], 60, 1);
        fill(p[i], 60, i);
        CHECK_EQ(upfront_scope_defer(t[i], temp_note, (void *)(intptr_t)(i + 2)), UPFRONT_OK);
        CHECK(i == 0 || (p[i] + 60 <= p[i - 1] && upfront_scope_alloc(t[i - 1], 0, 1) == NULL));
    }
    CHECK_EQ(upfront_scope_close(t[1]), UPFRONT_ORDER);
    CHECK_EQ(upfront_scope_close(t[2]), UPFRONT_OK);
    CHECK(temp_count == 1 && temp_order[0] == 4 && upfront_scope_is_open(t[1]));
    CHECK(upfront_scope_alloc(t[1], 200 - 64 - 24, 1) == p[1] + 64 + 24); /* at its old cursor */
    CHECK(upfront_scope_alloc(t[1], 1, 1) == NULL && holds(p[1], 60, 1) && holds(p[0], 60, 0));
    inner = upfront_scope_open(&temp_row->arena);
    CHECK(upfront_scope_temp(near_scope, 1).arena == NULL); /* covered */
    t[2] = upfront_scope_temp(inner, 24);
    CHECK_EQ(upfront_scope_defer(t[2], temp_note, (void *)5), UPFRONT_OK);
    CHECK_EQ(upfront_scope_defer(inner, temp_note, (void *)6), UPFRONT_OK);
    CHECK_EQ(upfront_scope_close(inner), UPFRONT_OK); /* closes only its own temporary scope */
    CHECK(temp_count == 3 && temp_order[1] == 6 && temp_order[2] == 5 && upfront_scope_is_open(t[1]));
    temp_close();
    CHECK(temp_count == 6 && temp_order[3] == 3 && temp_order[4] == 2 && temp_order[5] == 1);
}

/* If a temporary scope is opened from another, its node is in the older one's chain. Each closes
 * once, by itself or with the older one. */
static void temp_of_temp(void) {
    upfront_scope t[3];
    int ended, i;
    for (ended = 0; ended <= 3; ended++) {
        temp_open(TEMP_SIZE);
        for (i = 0; i < 3; i++) {
            t[i] = upfront_scope_temp(i == 0 ? near_scope : t[i - 1], 1000 - 300 * (uint64_t)i);
            CHECK(t[i].arena == &temp_row->temp && t[i].gen == (uint64_t)i + 1);
            CHECK_EQ(upfront_scope_defer(t[i], temp_note, (void *)(intptr_t)i), UPFRONT_OK);
        }
        /* the newest scope, even if older ones nest */
        CHECK(upfront_scope_temp(near_scope, 8).arena != NULL);
        CHECK_EQ(upfront_scope_close(t[2]), UPFRONT_ORDER);
        t[0].gen = 4;
        CHECK_EQ(upfront_scope_close(t[0]), UPFRONT_OK);
        t[0].gen = 1;
        for (i = 0; i < ended; i++) {
            CHECK(upfront_scope_is_open(t[2 - i]));
            CHECK_EQ(upfront_scope_close(t[2 - i]), UPFRONT_OK);
            CHECK(temp_count == i + 1 && temp_row->temp.depth == 2 - (uint64_t)i);
        }
        temp_close();
        CHECK(temp_count == 3 && temp_order[0] == 2 && temp_order[1] == 1 && temp_order[2] == 0);
    }
}

/* A refused temporary scope changes nothing but records its size: with that many free bytes it
 * succeeds, with one less it doesn't. */
static void temp_needs(void) {
    static unsigned char before[WINDOW];
    static const uint64_t sizes[] = {0, 1, 63, 64, 65, 1000, TEMP_SIZE - WINDOW};
    uint64_t i, used, need, room;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (used = 0; used < 70; used += 23) {
            upfront_scope t;
            upfront_arena *a;
            temp_open(TEMP_SIZE);
            a = &temp_row->arena.arena;
            CHECK(upfront_scope_alloc(near_scope, used, 1) != NULL);
            a->limit = a->cursor;
            CHECK(upfront_scope_temp(near_scope, sizes[i]).arena == NULL); /* not even its node */
            need = a->asked & ~UPFRONT_ASKED;
            CHECK(need >= sizes[i] + 16 && need <= sizes[i] + 24 + UPFRONT_LINE);
            for (room = 0; room < need; room += room + 200 < need && room > 40 ? 31 : 1) {
                a->limit = a->cursor + room;
                memcpy(before, temp_block, sizeof before);
                CHECK(upfront_scope_temp(near_scope, sizes[i]).arena == NULL);
                CHECK(memcmp(before, temp_block, sizeof before) == 0);
            }
            a->limit = a->cursor + need;
            t = upfront_scope_temp(near_scope, sizes[i]);
            CHECK(t.gen == 1 && upfront_scope_alloc(t, sizes[i], UPFRONT_LINE) != NULL);
            CHECK_EQ(upfront_scope_close(t), UPFRONT_OK);
            a->limit = temp_row->end;
            temp_close();
        }
}

static void temp_refusals(void) {
    upfront_scope t = {NULL, 0}, older = t, s;
    uint64_t i, class_;
    temp_open(TEMP_SIZE);
    /* only upfront_scope_temp opens scopes at the far end */
    CHECK(upfront_scope_open(&temp_row->temp).arena == NULL);
    for (i = 0; i < TEMP_SLOTS; i++) {
        older = t;
        t = upfront_scope_temp(near_scope, 100);
        CHECK(t.arena != NULL);
    }
    CHECK(upfront_scope_open(&temp_row->temp).arena == NULL);
    CHECK(upfront_scope_temp(near_scope, 1).arena == NULL && upfront_scope_temp(t, 1).arena == NULL);
    /* the refusal isn't for want of bytes */
    CHECK_EQ(temp_row->arena.arena.asked | temp_row->temp.arena.asked, 0);
    CHECK(upfront_scope_close(t) == UPFRONT_OK && upfront_scope_close(older) == UPFRONT_OK);
    t = upfront_scope_temp(near_scope, 10);
    CHECK(upfront_scope_temp(t, 1).arena == NULL); /* no room for the node in t */
    CHECK(t.arena->arena.asked != 0 && temp_row->arena.arena.asked == 0 && upfront_scope_alloc(t, 10, 1) != NULL);
    CHECK_EQ(upfront_scope_close(t), UPFRONT_OK);
    t = upfront_scope_temp(near_scope, 100);
    /* room for the node, but not for the scope's bytes */
    CHECK(upfront_scope_temp(t, TEMP_SIZE).arena == NULL);
    CHECK_EQ(t.arena->arena.asked, UPFRONT_ASKED | (TEMP_SIZE + UPFRONT_LINE));
    CHECK_EQ(upfront_scope_close(t), UPFRONT_OK);
    s = upfront_scope_open(&temp_row->arena);
    t = upfront_scope_temp(s, 100);
    upfront_scopes_link(t.arena, upfront_scopes_node(t.arena, t.gen, 8, 7), OTHER_CLASS);
    CHECK_EQ(upfront_scope_close(t), UPFRONT_ORDER);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_ORDER);
    CHECK(upfront_scopes_run(s.arena, upfront_scopes_top(s.arena)->chain) == 0 && upfront_scope_is_open(t));
    CHECK(upfront_scopes_unlink(t.arena, &class_) != NULL && class_ == OTHER_CLASS);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK);
    CHECK(!upfront_scope_is_alive(t));
    temp_close();
}

/* While a temporary scope's finalizers run, neither it nor its maker closes, and no other one
 * opens. The near end still allocates. */
static upfront_scope temp_closing;

static void temp_meddle(void *arg) {
    CHECK(upfront_scope_alloc(temp_closing, 0, 1) == NULL && upfront_scope_is_alive(temp_closing));
    CHECK_EQ(upfront_scope_close(temp_closing), UPFRONT_ORDER);
    CHECK(upfront_scope_temp(near_scope, 1).arena == NULL);
    CHECK(upfront_scope_is_open(near_scope) == (arg == NULL));
    CHECK_EQ(upfront_scope_close(near_scope), UPFRONT_ORDER);
    temp_note((void *)1);
}

static void temp_meddling(void) {
    int by_near;
    for (by_near = 0; by_near < 2; by_near++) {
        temp_open(TEMP_SIZE);
        temp_closing = upfront_scope_temp(near_scope, 100);
        CHECK_EQ(upfront_scope_defer(temp_closing, temp_meddle, by_near ? &temp_closing : NULL), UPFRONT_OK);
        if (!by_near) {
            CHECK_EQ(upfront_scope_close(temp_closing), UPFRONT_OK);
            CHECK(temp_count == 1 && temp_row->temp.odd == 0);
        }
        temp_close();
        CHECK_EQ(temp_count, 1);
    }
}

/* Pools of a temporary scope have headers in the same table. */
static void temp_pools(void) {
    upfront_scope t;
    upfront_pool *p, *q;
    uint64_t used;
    temp_open(TEMP_SIZE);
    p = upfront_scope_pool(near_scope, 8, 8, 3);
    t = upfront_scope_temp(near_scope, 16 + upfront_pool_size(8, 8, 3, 0));
    q = upfront_scope_pool(t, 8, 8, 3);
    CHECK(p == upfront_row_pool(temp_row, 0) && q == upfront_row_pool(temp_row, 1));
    CHECK(upfront_pool_get(q, q->gen) != NULL && upfront_scope_alloc(t, 1, 1) == NULL);
    used = upfront_row_used(temp_row);
    CHECK_EQ(upfront_scope_close(t), UPFRONT_OK);
    CHECK(p->gen != 0 && q->gen == 0 && upfront_row_used(temp_row) < used);
    CHECK_EQ(temp_peak(), used); /* its bytes count as used */
    temp_close();
}

void test_scope_temp(void) {
    temp_meets();
    temp_nests();
    temp_of_temp();
    temp_needs();
    temp_refusals();
    temp_meddling();
    temp_pools();
}
