/* scope.c - tests of scope.h: C's own view of scopes, and chains that it shares. */
#include "check.h"

enum { SCOPE_SLOTS = 3, SCOPE_POOLS = 2, SCOPE_SIZE = 4096 };

static int closed[16], closed_count;

static void note(void *arg) { closed[closed_count++] = (int)(intptr_t)arg; }

static upfront_row *scope_row(unsigned char *w) {
    upfront_row *r = (upfront_row *)(void *)w;
    upfront_row_init(r, w, "scope", WINDOW, WINDOW + SCOPE_SIZE, SCOPE_SLOTS, SCOPE_POOLS);
    closed_count = 0;
    return r;
}

/* The scope of temporaries, whose slot is the far end's. */
static upfront_scope temp_of(upfront_row *r, upfront_scope s) {
    upfront_scope temp;
    CHECK(upfront_scope_temp(s, 100, 16) == upfront_at(s.slot, r->edge));
    CHECK(upfront_row_far(r)->refused == 0);
    CHECK(upfront_scope_temp(s, 100, 16) == upfront_at(s.slot, r->edge + 112)); /* in the same piece */
    temp.slot = upfront_row_far(r);
    temp.tag = upfront_tag(temp.slot);
    return temp;
}

static void scope_order(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope a = upfront_scope_open(r), b, temp;
    upfront_pool *p, *q;
    CHECK(upfront_scope_alloc(a, 100, 16) == w + WINDOW);
    CHECK_EQ(upfront_scope_defer(a, note, (void *)1), UPFRONT_OK);
    p = upfront_scope_pool(a, 24, 8, 3);
    CHECK(p != NULL && upfront_pool_count(p) == 3);
    CHECK_EQ(upfront_scope_defer(a, note, (void *)2), UPFRONT_OK);
    b = upfront_scope_open(r);
    CHECK_EQ(upfront_scope_defer(b, note, (void *)3), UPFRONT_OK);
    temp = temp_of(r, b);
    CHECK_EQ(upfront_scope_defer(temp, note, (void *)4), UPFRONT_OK);
    q = upfront_scope_pool(temp, 8, 8, 1);
    CHECK(q != NULL && q != p);
    CHECK_EQ(upfront_scope_close(a), UPFRONT_ORDER);
    CHECK_EQ(upfront_scope_close(temp), UPFRONT_ORDER);
    CHECK_EQ(closed_count, 0);
    CHECK_EQ(upfront_scope_close(b), UPFRONT_OK); /* its temporaries first */
    CHECK(closed_count == 2 && closed[0] == 4 && closed[1] == 3);
    CHECK_EQ(upfront_scope_close(b), UPFRONT_STALE);
    CHECK_EQ(upfront_scope_defer(temp, note, NULL), UPFRONT_ORDER);
    CHECK_EQ(r->open, 1);
    CHECK(p->open == 1 && q->open == 0);
    CHECK_EQ(upfront_scope_close(a), UPFRONT_OK);
    CHECK(closed_count == 4 && closed[2] == 2 && closed[3] == 1);
    CHECK(p->open == 0 && r->open == 0);
    CHECK_EQ(upfront_row_used(r), 0);
    window_free(w, 2 * WINDOW);
}

static void scope_refusals(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope none = upfront_scope_open(NULL), s[SCOPE_SLOTS];
    int i;
    CHECK(none.slot == NULL && upfront_scope_alloc(none, 1, 1) == NULL && upfront_scope_pool(none, 8, 8, 1) == NULL);
    CHECK_EQ(upfront_scope_defer(none, note, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_scope_close(none), UPFRONT_BAD_ARGUMENT);
    CHECK(upfront_scope_temp(none, 1, 1) == NULL);
    for (i = 0; i < SCOPE_SLOTS; i++) {
        s[i] = upfront_scope_open(r);
        CHECK(s[i].slot != NULL);
    }
    CHECK(upfront_scope_open(r).slot == NULL); /* all slots are open */
    CHECK(upfront_scope_alloc(s[2], 1, 3) == NULL && upfront_scope_alloc(s[2], UINT64_MAX, 1) == NULL);
    CHECK_EQ(upfront_scope_defer(s[2], NULL, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK(upfront_scope_alloc(s[1], 1, 1) == NULL && upfront_scope_pool(s[1], 8, 8, 1) == NULL); /* covered */
    CHECK_EQ(upfront_scope_defer(s[1], note, NULL), UPFRONT_ORDER);
    CHECK(upfront_scope_temp(s[1], 1, 1) == NULL && upfront_scope_temp(s[2], 1, 3) == NULL);
    CHECK(upfront_scope_temp(s[2], SCOPE_SIZE + 1, 1) == NULL); /* full */
    CHECK_EQ(upfront_scope_close(s[2]), UPFRONT_OK);
    upfront_row_freeze(s[1].slot);
    CHECK(upfront_scope_open(r).slot == NULL); /* the topmost is frozen */
    CHECK_EQ(upfront_scope_close(s[1]), UPFRONT_ORDER);
    upfront_row_close(r);
    CHECK_EQ(closed_count, 0);
    window_free(w, 2 * WINDOW);
}

static void scope_full(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope s = upfront_scope_open(r);
    CHECK(upfront_scope_pool(s, 8, 8, SCOPE_SIZE) == NULL);
    CHECK(upfront_scope_pool(s, 8, 8, 1) != NULL && upfront_scope_pool(s, 8, 8, 1) != NULL);
    CHECK(upfront_scope_pool(s, 8, 8, 1) == NULL); /* no free header */
    CHECK(upfront_scope_alloc(s, s.slot->limit - s.tag - s.slot->cursor, 1) != NULL);
    CHECK(upfront_scope_pool(s, 8, 8, 0) == NULL); /* not even its node */
    CHECK_EQ(upfront_scope_defer(s, note, (void *)5), UPFRONT_FULL);
    CHECK(closed_count == 1 && closed[0] == 5); /* it ran at once: nothing is lost */
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK);
    CHECK_EQ(closed_count, 1);
    window_free(w, 2 * WINDOW);
}

/* Chains that also hold what isn't C's: who made that closes the scope, and C runs its own part of it. */
static void scope_mixed(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope s = upfront_scope_open(r), temp;
    upfront_node *other = upfront_row_node(s.slot, s.tag), gone;
    upfront_pool *objects;
    uint64_t mark;
    CHECK_EQ(upfront_scope_defer(s, note, (void *)1), UPFRONT_OK);
    mark = s.slot->chain;
    CHECK_EQ(upfront_scope_defer(s, note, (void *)2), UPFRONT_OK);
    upfront_row_link(s.slot, other, OTHER_CLASS, 0);
    CHECK_EQ(upfront_scope_defer(s, note, (void *)3), UPFRONT_OK);
    CHECK_EQ(upfront_scope_defer(s, note, (void *)4), UPFRONT_OK);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_ORDER);
    CHECK_EQ(upfront_scope_run(s.slot, 0), 2);
    CHECK_EQ(upfront_scope_run(s.slot, 0), 0); /* the other one is at the head */
    CHECK(upfront_row_unlink(s.slot, &gone) && gone.below / UPFRONT_GENERATION == OTHER_CLASS);
    CHECK_EQ(upfront_scope_run(s.slot, mark), 1);
    CHECK_EQ(s.slot->chain, mark);
    CHECK(closed_count == 3 && closed[0] == 4 && closed[1] == 3 && closed[2] == 2);
    objects = upfront_scope_pool(s, 8, 8, 1);
    objects->kind = OTHER_CLASS; /* a pool whose objects have finalizers */
    CHECK_EQ(upfront_scope_close(s), UPFRONT_ORDER);
    objects->kind = 0;
    temp = temp_of(r, s);
    other = upfront_row_node(temp.slot, temp.tag);
    upfront_row_link(temp.slot, other, OTHER_CLASS, 0);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_ORDER);
    CHECK(upfront_row_unlink(temp.slot, &gone));
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK);
    CHECK(closed_count == 4 && closed[3] == 1);
    window_free(w, 2 * WINDOW);
}

/* While its finalizers run, a scope gives nothing and can't be closed again. */
static upfront_scope closing;
static int code_inside;

static void meddle(void *arg) {
    CHECK(arg == NULL && upfront_scope_alloc(closing, 1, 1) == NULL);
    code_inside = upfront_scope_close(closing);
}

static void scope_meddling(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    closing = upfront_scope_open(r);
    CHECK_EQ(upfront_scope_defer(closing, note, (void *)1), UPFRONT_OK);
    CHECK_EQ(upfront_scope_defer(closing, meddle, NULL), UPFRONT_OK);
    CHECK_EQ(upfront_scope_close(closing), UPFRONT_OK);
    CHECK_EQ(code_inside, UPFRONT_ORDER);
    CHECK_EQ(closed_count, 1);
    CHECK_EQ(r->open, 0);
    window_free(w, 2 * WINDOW);
}

void test_scope(void) {
    scope_order();
    scope_refusals();
    scope_full();
    scope_mixed();
    scope_meddling();
}
