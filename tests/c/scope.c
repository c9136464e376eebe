/* scope.c - tests of scope.h: records and generations, the chain, pools, and the scopes that C may
 * close. */
#include "check.h"

enum { SCOPE_SLOTS = 3, SCOPE_POOLS = 2, SCOPE_SIZE = 4096 };

static int closed[16], closed_count;

static void note(void *arg) { closed[closed_count++] = (int)(intptr_t)arg; }

static upfront_row *scope_row(unsigned char *w) {
    upfront_row *r = (upfront_row *)(void *)w;
    row_here(r, w, "scope", WINDOW, WINDOW + SCOPE_SIZE, SCOPE_SLOTS, SCOPE_POOLS);
    closed_count = 0;
    return r;
}

static void scope_names(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    const char *longest = "0123456789012345678901234567890";
    const char *longer = "01234567890123456789012345678901";
    CHECK(strcmp(r->name, "scope") == 0 && holds(r->name + 5, UPFRONT_NAME_SIZE - 5, 0));
    row_here(r, w, longest, WINDOW, WINDOW, SCOPE_SLOTS, SCOPE_POOLS);
    CHECK(strcmp(r->name, longest) == 0);
    row_here(r, w, longer, WINDOW, WINDOW, SCOPE_SLOTS, SCOPE_POOLS);
    CHECK(strcmp(r->name, longest) == 0);
    /* from the row itself */
    row_here(r, w, r->name + 29, WINDOW, WINDOW, SCOPE_SLOTS, SCOPE_POOLS);
    CHECK(r->name[0] == '9' && r->name[1] == '0' && holds(r->name + 2, UPFRONT_NAME_SIZE - 2, 0));
    row_here(r, w, "", WINDOW, WINDOW, SCOPE_SLOTS, SCOPE_POOLS);
    CHECK(holds(r->name, UPFRONT_NAME_SIZE, 0));
    window_free(w, 2 * WINDOW);
}

/* A covered scope is alive and doesn't allocate; a scope takes no byte. */
static void scope_nests(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scopes *h = &r->arena;
    upfront_scope s[SCOPE_SLOTS];
    int i, j;
    for (i = 0; i < SCOPE_SLOTS; i++) {
        s[i] = upfront_scope_open(h);
        CHECK(s[i].arena == h && s[i].gen == (uint64_t)i + 1);
        CHECK(upfront_scope_alloc(s[i], 104, 1) == w + WINDOW + i * 104);
        for (j = 0; j < i; j++) {
            CHECK(upfront_scope_alloc(s[j], 0, 1) == NULL && upfront_scope_is_alive(s[j]));
            CHECK_EQ(h->arena.misused, s[j].gen);
            CHECK(upfront_scopes_find(h, s[j].gen) == (uint64_t)j + 1);
        }
    }
    CHECK(upfront_scope_open(h).arena == NULL); /* all records are open */
    CHECK(upfront_row_of(h) == r && upfront_row_of(&r->temp) == r);
    CHECK_EQ(upfront_row_used(r), 312);
    for (i = SCOPE_SLOTS; i-- > 0;) {
        CHECK_EQ(upfront_scope_close(s[i]), UPFRONT_OK);
        CHECK(is_marked(w + WINDOW + i * 104, 1) && is_marked(w + WINDOW + i * 104 + 103, 1));
        CHECK(upfront_scope_alloc(s[i], 0, 1) == NULL && !upfront_scope_is_alive(s[i]));
        CHECK_EQ(upfront_scopes_find(h, s[i].gen), 0);
        CHECK_EQ(upfront_row_used(r), i * 104);
        if (i > 0)
            CHECK(upfront_scope_alloc(s[i - 1], 0, 1) == w + WINDOW + i * 104); /* uncovered */
    }
    CHECK(h->depth == 0 && h->arena.gen == 0);
    CHECK_EQ(r->arena.arena.least, r->end - r->arena.arena.start - 312);
    s[1] = upfront_scope_open(h);
    CHECK_EQ(s[1].gen, SCOPE_SLOTS + 1); /* the record was reused */
    CHECK(upfront_scope_alloc(s[0], 0, 1) == NULL && !upfront_scope_is_alive(s[0]) && upfront_scope_is_alive(s[1]));
    window_free(w, 2 * WINDOW);
}

/* Each scope has its own refusal, kept while it is covered. */
static void scope_remembers(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_scopes *h = &scope_row(w)->arena;
    upfront_scope a = upfront_scope_open(h), b;
    CHECK(upfront_scope_alloc(a, SCOPE_SIZE + 1, 1) == NULL);
    CHECK_EQ(h->arena.asked, UPFRONT_ASKED | (SCOPE_SIZE + 1));
    b = upfront_scope_open(h);
    CHECK_EQ(h->arena.asked, 0);
    CHECK(upfront_scope_alloc(a, 7, 1) == NULL && h->arena.asked == 0);
    CHECK(upfront_scope_alloc(b, SCOPE_SIZE + 2, UPFRONT_ALIGN_MAX) == NULL);
    CHECK_EQ(h->arena.asked, UPFRONT_ASKED | (UPFRONT_ALIGN_MAX - 1) << UPFRONT_ASKED_MASK | (SCOPE_SIZE + 2));
    CHECK_EQ(upfront_scope_close(b), UPFRONT_OK);
    CHECK_EQ(h->arena.asked, UPFRONT_ASKED | (SCOPE_SIZE + 1));
    CHECK_EQ(upfront_scope_close(a), UPFRONT_OK);
    CHECK_EQ(h->arena.asked, 0);
    window_free(w, 2 * WINDOW);
}

/* A frozen scope is alive, and no scope allocates until it closes. */
static void scope_freezes(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope s = upfront_scope_open(&r->arena);
    s.arena->arena.gen = 0;
    CHECK(upfront_scope_is_alive(s) && upfront_scope_alloc(s, 0, 1) == NULL);
    CHECK(upfront_scope_open(s.arena).arena == NULL && upfront_scope_temp(s, 0).arena == NULL);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_ORDER);
    CHECK_EQ(upfront_scope_defer(s, note, NULL), UPFRONT_ORDER);
    CHECK_EQ(closed_count, 0);
    upfront_scopes_close(&r->arena); /* as the owner does */
    CHECK(!upfront_scope_is_alive(s) && upfront_scope_open(&r->arena).gen == s.gen + 1);
    window_free(w, 2 * WINDOW);
}

static void scope_grows(void) {
    unsigned char *w = window_new(2 * WINDOW), *a;
    upfront_scopes *h = &scope_row(w)->arena;
    upfront_scope s = upfront_scope_open(h);
    a = (unsigned char *)upfront_scope_alloc(s, 10, 1);
    CHECK(upfront_scopes_grow(h, s.gen, h->arena.cursor, 5) == a + 10 && is_marked(a + 14, 0));
    CHECK(upfront_scopes_grow(h, s.gen + 1, h->arena.cursor, 0) == NULL);
    CHECK(upfront_scopes_grow(h, s.gen, h->arena.cursor, SCOPE_SIZE) == NULL);
    CHECK(h->arena.asked == (UPFRONT_ASKED | SCOPE_SIZE) && h->arena.misused == s.gen + 1);
    /* to the last byte */
    CHECK(upfront_scopes_grow(h, s.gen, h->arena.cursor, SCOPE_SIZE - 15) == a + 15);
    CHECK(upfront_scopes_grow(h, s.gen, h->arena.cursor, 0) == a + SCOPE_SIZE &&
        upfront_scopes_grow(h, s.gen, h->arena.cursor, 1) == NULL);
    window_free(w, 2 * WINDOW);
}

/* A node is a word before its object. */
static void scope_nodes(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_scopes *h = &scope_row(w)->arena;
    upfront_scope s = upfront_scope_open(h);
    uint64_t *object[4], i, class_, cursor;
    CHECK(upfront_scope_alloc(s, 3, 1) != NULL);
    for (i = 0; i < 4; i++) {
        object[i] = (uint64_t *)upfront_scopes_node(h, s.gen, 8, 7);
        CHECK(object[i] == (uint64_t *)(void *)(w + WINDOW + 16 + 16 * i));
        CHECK(is_marked((unsigned char *)(object[i] - 1), 0) && is_marked((unsigned char *)object[i] + 7, 0));
        *object[i] = UINT64_MAX;
        upfront_scopes_link(h, object[i], i == 3 ? (1 << 24) - 1 : i);
    }
    cursor = h->arena.cursor;
    CHECK(upfront_scopes_node(h, s.gen, SCOPE_SIZE - 3 - 5 - 64 - 7, 7) == NULL);
    CHECK_EQ(h->arena.asked, UPFRONT_ASKED | (SCOPE_SIZE - 3 - 5 - 64 - 7 + 8));
    CHECK(upfront_scopes_node(h, s.gen + 1, 0, 7) == NULL && h->arena.misused == s.gen + 1);
    CHECK_EQ(h->arena.cursor, cursor);
    for (i = 4; i-- > 0;) {
        CHECK(upfront_scopes_unlink(h, &class_) == object[i] && class_ == (i == 3 ? (1 << 24) - 1 : i));
        CHECK_EQ(*object[i], UINT64_MAX);
    }
    CHECK_EQ(h->chain, 0);
    /* to the last byte */
    CHECK(upfront_scopes_node(h, s.gen, SCOPE_SIZE - 3 - 5 - 64 - 8, 7) != NULL);
    CHECK_EQ(h->arena.cursor, h->arena.limit);
    window_free(w, 2 * WINDOW);
}

static void scope_order(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope a = upfront_scope_open(&r->arena), b;
    upfront_pool *p, *q;
    CHECK(upfront_scope_alloc(a, 100, 16) == w + WINDOW);
    CHECK_EQ(upfront_scope_defer(a, note, (void *)1), UPFRONT_OK);
    p = upfront_scope_pool(a, 24, 8, 3);
    CHECK(p != NULL && p->count == 3 && upfront_row_pool(r, 0) == p);
    CHECK_EQ(upfront_scope_defer(a, note, (void *)2), UPFRONT_OK);
    b = upfront_scope_open(&r->arena);
    CHECK_EQ(upfront_scope_defer(b, note, (void *)3), UPFRONT_OK);
    q = upfront_scope_pool(b, 8, 8, 1);
    CHECK(q != NULL && upfront_row_pool(r, 1) == q);
    CHECK_EQ(upfront_scope_close(a), UPFRONT_ORDER);
    CHECK_EQ(closed_count, 0);
    CHECK_EQ(upfront_scope_close(b), UPFRONT_OK);
    CHECK(closed_count == 1 && closed[0] == 3);
    CHECK_EQ(upfront_scope_close(b), UPFRONT_STALE);
    CHECK(r->arena.depth == 1 && p->gen != 0 && q->gen == 0);
    CHECK_EQ(upfront_scope_close(a), UPFRONT_OK);
    CHECK(closed_count == 3 && closed[1] == 2 && closed[2] == 1);
    CHECK(p->gen == 0 && r->arena.depth == 0 && upfront_row_used(r) == 0);
    window_free(w, 2 * WINDOW);
}

/* Each function returns a code for a null scope and for a stale one. */
static void scope_zero(void) {
    static const upfront_scope none = {NULL, 0};
    unsigned char *w = window_new(2 * WINDOW);
    upfront_scope s[3];
    upfront_pool *p;
    int i;
    s[0] = none;
    s[1].arena = NULL, s[1].gen = 1;
    /* before the first open the header's generation is 0, too */
    s[2].arena = &scope_row(w)->arena, s[2].gen = 0;
    CHECK(upfront_scope_open(NULL).arena == NULL);
    for (i = 0; i < 3; i++) {
        int code = i < 2 ? UPFRONT_BAD_ARGUMENT : UPFRONT_ORDER;
        CHECK(!upfront_scope_is_open(s[i]) && !upfront_scope_is_alive(s[i]));
        CHECK(upfront_scope_alloc(s[i], 1, 1) == NULL && upfront_scope_alloc(s[i], 0, 1) == NULL);
        CHECK_EQ(upfront_scope_defer(s[i], note, NULL), code);
        CHECK(upfront_scope_pool(s[i], 8, 8, 1) == NULL);
        p = (upfront_pool *)(void *)w;
        CHECK_EQ(upfront_scope_pool_of(s[i], 8, 8, 1, 0, 0, &p), code);
        CHECK(p == NULL && upfront_scope_temp(s[i], 1).arena == NULL && upfront_scope_temp(s[i], 1).gen == 0);
        CHECK_EQ(upfront_scope_close(s[i]), i < 2 ? UPFRONT_BAD_ARGUMENT : UPFRONT_STALE);
    }
    CHECK(closed_count == 0 && s[2].arena->arena.cursor == s[2].arena->arena.start);
    window_free(w, 2 * WINDOW);
}

static void scope_refusals(void) {
    static const uint64_t bad[][3] = {{UINT64_MAX, 8, 0}, {UINT64_MAX, 8, 1}, {8, 0, 1}, {8, 3, 0}, {8, 8, UINT64_MAX},
                                      {1, 2 * UPFRONT_ALIGN_MAX, 1}};
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope s[2];
    upfront_pool *p;
    uint64_t i;
    s[0] = upfront_scope_open(&r->arena);
    s[1] = upfront_scope_open(&r->arena);
    CHECK(upfront_scope_alloc(s[1], 1, 3) == NULL && upfront_scope_alloc(s[1], 1, 0) == NULL);
    CHECK(upfront_scope_alloc(s[1], 1, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_scope_alloc(s[1], UINT64_MAX, 1) == NULL && upfront_scope_alloc(s[1], UPFRONT_OFFSET_MAX, 1) == NULL);
    CHECK_EQ(r->arena.arena.asked, UPFRONT_ASKED | UPFRONT_OFFSET_MAX); /* full like any other */
    CHECK_EQ(upfront_scope_defer(s[1], NULL, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_scope_defer(s[0], note, NULL), UPFRONT_ORDER);
    CHECK(upfront_scope_pool(s[0], 8, 8, 1) == NULL);
    CHECK_EQ(upfront_scope_pool_of(s[0], 8, 8, 1, 0, 0, &p), UPFRONT_ORDER);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(upfront_scope_pool_of(s[1], bad[i][0], bad[i][1], bad[i][2], 0, 0, &p), UPFRONT_BAD_ARGUMENT);
        CHECK(p == NULL);
    }
    CHECK(upfront_scope_temp(s[0], 1).arena == NULL && upfront_scope_temp(s[1], UPFRONT_OFFSET_MAX).arena == NULL);
    CHECK_EQ(r->arena.arena.cursor, r->arena.arena.start);
    CHECK_EQ(r->arena.chain, 0);
    CHECK_EQ(closed_count, 0);
    window_free(w, 2 * WINDOW);
}

/* The scope of a load or of a frame is the owner's: C may use it but not close it. */
static void scope_base(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope load = upfront_scope_open(&r->arena), s;
    r->arena.base = 1;
    CHECK_EQ(upfront_scope_defer(load, note, (void *)1), UPFRONT_OK);
    CHECK_EQ(upfront_scope_close(load), UPFRONT_ORDER);
    CHECK(closed_count == 0 && upfront_scope_is_open(load) && upfront_scope_alloc(load, 1, 1) != NULL);
    s = upfront_scope_open(&r->arena);
    CHECK_EQ(upfront_scope_close(load), UPFRONT_ORDER);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK); /* a scope in it is C's, which may close it */
    CHECK_EQ(upfront_scope_close(load), UPFRONT_ORDER);
    r->arena.base = 0;
    CHECK_EQ(upfront_scope_close(load), UPFRONT_OK);
    CHECK_EQ(closed_count, 1);
    window_free(w, 2 * WINDOW);
}

static void scope_full(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope s = upfront_scope_open(&r->arena);
    upfront_pool *p;
    CHECK(upfront_scope_pool(s, 8, 8, 1) != NULL && upfront_scope_pool(s, 8, 8, 1) != NULL);
    CHECK_EQ(upfront_scope_pool_of(s, 8, 8, 1, 0, 0, &p), UPFRONT_TABLE_FULL);
    CHECK(p == NULL && r->arena.arena.asked == 0);
    CHECK(upfront_scope_alloc(s, r->arena.arena.limit - r->arena.arena.cursor, 1) != NULL);
    CHECK_EQ(upfront_scope_defer(s, note, (void *)5), UPFRONT_FULL);
    CHECK(closed_count == 1 && closed[0] == 5); /* it ran at once */
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK);
    CHECK_EQ(closed_count, 1);
    window_free(w, 2 * WINDOW);
}

/* A refused pool changes nothing but records its size: with that many free bytes it succeeds, with
 * one less it doesn't. */
static void scope_pool_need(uint64_t size, uint64_t align, uint64_t count, int handles, uint64_t used) {
    static unsigned char before[WINDOW];
    unsigned char *w = window_new(3 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_arena *a = &r->arena.arena;
    upfront_scope s = upfront_scope_open(&r->arena);
    upfront_pool *p;
    uint64_t need, least, room;
    CHECK(upfront_scope_alloc(s, used, 1) != NULL);
    a->limit = a->cursor;
    CHECK_EQ(upfront_scope_pool_of(s, size, align, count, 0, handles, &p), UPFRONT_FULL);
    need = a->asked & ~UPFRONT_ASKED;
    least = 16 + upfront_pool_size(size, align, count, (uint64_t)handles);
    CHECK(need >= least && need < least + 16 + align);
    for (room = 0; room < need; room += room + 40 < need ? 17 : 1) {
        a->limit = a->cursor + room;
        a->asked = UPFRONT_ASKED | need; /* the words didn't change */
        memcpy(before, w, sizeof before);
        CHECK_EQ(upfront_scope_pool_of(s, size, align, count, 0, handles, &p), UPFRONT_FULL);
        CHECK(p == NULL && memcmp(before, w, sizeof before) == 0);
        CHECK(is_marked(w + WINDOW + used, 1) || room < 24); /* unused bytes have no mark */
    }
    a->limit = a->cursor + need;
    CHECK_EQ(upfront_scope_pool_of(s, size, align, count, 0, handles, &p), UPFRONT_OK);
    CHECK(a->cursor == a->limit && (uintptr_t)upfront_pool_chunk(p, 0) % align == 0);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK);
    window_free(w, 3 * WINDOW);
}

/* In a chain with nodes of another class C runs its own part, and the nodes' maker closes the
 * scope. */
static void scope_mixed(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope s = upfront_scope_open(&r->arena);
    upfront_pool *objects;
    uint64_t mark, class_;
    CHECK_EQ(upfront_scope_defer(s, note, (void *)1), UPFRONT_OK);
    mark = r->arena.chain;
    CHECK_EQ(upfront_scope_defer(s, note, (void *)2), UPFRONT_OK);
    upfront_scopes_link(s.arena, upfront_scopes_node(s.arena, s.gen, 8, 7), OTHER_CLASS);
    CHECK_EQ(upfront_scope_defer(s, note, (void *)3), UPFRONT_OK);
    CHECK_EQ(upfront_scope_defer(s, note, (void *)4), UPFRONT_OK);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_ORDER);
    CHECK(closed_count == 0 && upfront_scope_is_open(s));
    CHECK_EQ(upfront_scopes_run(s.arena, 0), 2);
    CHECK_EQ(upfront_scopes_run(s.arena, 0), 0); /* the other node is first */
    CHECK(upfront_scopes_unlink(s.arena, &class_) != NULL && class_ == OTHER_CLASS);
    CHECK_EQ(upfront_scopes_run(s.arena, mark), 1);
    CHECK_EQ(s.arena->chain, mark);
    CHECK(closed_count == 3 && closed[0] == 4 && closed[1] == 3 && closed[2] == 2);
    /* a pool of objects with finalizers */
    CHECK_EQ(upfront_scope_pool_of(s, 8, 8, 1, OTHER_CLASS, 0, &objects), UPFRONT_OK);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_ORDER);
    CHECK_EQ(upfront_scopes_run(s.arena, 0), 0);
    objects->kind = 0;
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK);
    CHECK(closed_count == 4 && closed[3] == 1);
    window_free(w, 2 * WINDOW);
}

/* While its finalizers run, a scope doesn't allocate, open or close. */
static upfront_scope closing;
static upfront_pool *closing_pool;

static void meddle(void *arg) {
    CHECK(arg == NULL && upfront_scope_is_alive(closing));
    CHECK(upfront_scope_alloc(closing, 0, 1) == NULL && upfront_scope_temp(closing, 1).arena == NULL);
    CHECK(upfront_scope_open(closing.arena).arena == NULL && upfront_scope_pool(closing, 8, 8, 1) == NULL);
    CHECK_EQ(upfront_scope_defer(closing, note, NULL), UPFRONT_ORDER);
    CHECK_EQ(upfront_scope_close(closing), UPFRONT_ORDER);
    note((void *)(intptr_t)(7 + (closing_pool->gen != 0)));
}

static void scope_meddling(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope below = upfront_scope_open(&r->arena);
    closing = upfront_scope_open(&r->arena);
    CHECK_EQ(upfront_scope_defer(closing, note, (void *)1), UPFRONT_OK);
    CHECK_EQ(upfront_scope_defer(closing, meddle, NULL), UPFRONT_OK);
    closing_pool = upfront_scope_pool(closing, 8, 8, 1);
    CHECK_EQ(upfront_scope_close(closing), UPFRONT_OK);
    /* the newer pool is closed when the finalizer runs */
    CHECK(closed_count == 2 && closed[0] == 7 && closed[1] == 1);
    CHECK(r->arena.depth == 1 && r->arena.odd == 0 && upfront_scope_is_open(below));
    window_free(w, 2 * WINDOW);
}

/* Go runs C's finalizers up to the first other node; each is counted before it runs. */
static void scope_runs_deferred(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scopes *h = &r->arena;
    upfront_scope s = upfront_scope_open(h);
    uint64_t *theirs;
    CHECK_EQ(upfront_scope_defer(s, note, (void *)1), UPFRONT_OK);
    theirs = (uint64_t *)upfront_scopes_node(h, s.gen, sizeof *theirs, 7);
    upfront_scopes_link(h, theirs, 100);
    CHECK_EQ(upfront_scope_defer(s, note, (void *)2), UPFRONT_OK);
    CHECK_EQ(upfront_scope_defer(s, note, (void *)3), UPFRONT_OK);
    upfront_scopes_run_deferred(h, 0);
    CHECK(closed_count == 2 && closed[0] == 3 && closed[1] == 2);
    CHECK(upfront_arena_at(&h->arena, h->chain) == (void *)theirs && upfront_scopes_top(h)->ran == 2);
    h->chain = theirs[-1] % UPFRONT_NODE_CLASS;
    upfront_scopes_run_deferred(h, 0);
    CHECK(closed_count == 3 && closed[2] == 1 && h->chain == 0);
    window_free(w, 2 * WINDOW);
}

/* While the topmost scope builds in all free bytes, no scope opens at either end. */
static void scope_builds(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = scope_row(w);
    upfront_scope s = upfront_scope_open(&r->arena);
    r->arena.odd |= UPFRONT_BUILDING;
    CHECK(upfront_scope_open(&r->arena).arena == NULL);
    CHECK(upfront_scope_temp(s, 8).arena == NULL);
    r->arena.odd = 0;
    CHECK(upfront_scope_temp(s, 8).arena != NULL);
    window_free(w, 2 * WINDOW);
}

void test_scope(void) {
    uint64_t align, used;
    scope_runs_deferred();
    scope_builds();
    scope_names();
    scope_nests();
    scope_remembers();
    scope_freezes();
    scope_grows();
    scope_nodes();
    scope_order();
    scope_zero();
    scope_refusals();
    scope_base();
    scope_full();
    for (align = 1; align <= 4096; align *= 8)
        for (used = 0; used < 10; used++)
            {
            scope_pool_need(24, align, 10, 0, used);
            scope_pool_need(24, align, 10, 1, used);
        }
    scope_mixed();
    scope_meddling();
}
