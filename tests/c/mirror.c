/* mirror.c - tests of positions and of stray writes, in builds with mirrors. */
#include "check.h"

#ifdef UPFRONT_MIRROR

#include <setjmp.h>

enum { MIRROR_ROWS = 2, MIRROR_NAME = 7 };

static const upfront_map_arena mirror_plan[MIRROR_ROWS] = {
    {"level", UPFRONT_REGION, 3 * WINDOW, 1, 0, 0}, {"scratch 0.0", UPFRONT_SCRATCH, WINDOW, 1, 0, 0}};

static jmp_buf told;
static upfront_found tale;

static void tell(const upfront_found *found) {
    tale = *found;
    longjmp(told, 1);
}

typedef struct mirrored {
    unsigned char *block;
    uint64_t size;
    unsigned char *memory;
    upfront_map *map;
    upfront_scopes *level, *scratch;
} mirrored;

static mirrored mirror_up(void) {
    mirrored x;
    x.size = upfront_map_size(mirror_plan, MIRROR_ROWS, 4, 2, 0);
    x.block = window_new(x.size);
    x.map = upfront_map_init(x.block, x.size, mirror_plan, MIRROR_ROWS, 4, 2, 0);
    x.memory = window_new(upfront_mirror_size(x.block, x.size));
    CHECK(x.map != NULL && upfront_mirror_open(x.block, x.size, x.memory, tell, MIRROR_NAME));
    x.level = &upfront_map_row(x.map, 0)->arena;
    x.scratch = &upfront_map_row(x.map, 1)->arena;
    x.level->base = 1;
    return x;
}

static void mirror_down(mirrored *x) {
    upfront_mirror_close(x->block);
    CHECK(upfront_position(x->block) == x->block && upfront_place(x->memory, x->block) == upfront_distance(x->memory,
        x->block));
    window_free(x->memory, upfront_mirror_size(x->block, x->size));
    window_free(x->block, x->size);
}

/* Checks the position of an offset, and the way back. */
static void check_lies(const upfront_scopes *h, uint64_t offset, const void *p) {
    CHECK(upfront_position(upfront_arena_at(&h->arena, offset)) == p);
    CHECK_EQ(upfront_arena_offset(&h->arena, p), offset);
}

/* Objects are apart, aligned, and change windows when their address is reused. */
static void test_lies(void) {
    mirrored x = mirror_up();
    upfront_scope s = upfront_scope_open(x.level);
    uint64_t start = x.level->arena.start, sizes[] = {1, 3, 8, 24, 100, 1000, 5000, 1, 64},
        aligns[] = {1, 1, 8, 8, 64, 4096, 64, 1, 16};
    char *last = NULL, *first = NULL;
    size_t i;
    int turn;
    for (turn = 0; turn < 3; turn++) {
        last = NULL;
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char *p = (char *)upfront_scope_alloc(s, sizes[i], aligns[i]);
            CHECK(p != NULL && (uintptr_t)p % aligns[i] == 0);
            CHECK(last == NULL || p - last >= 63);
            check_lies(x.level, x.level->arena.cursor - sizes[i], p);
            check_lies(x.level, x.level->arena.cursor - 1, p + sizes[i] - 1);
            CHECK_EQ(upfront_arena_offset(&x.level->arena, p + sizes[i]), x.level->arena.cursor);
            if (aligns[i] == 64 && sizes[i] >= 128) /* an arena on it aligns as in every build */
                CHECK_EQ((uintptr_t)p % 4096, ((uintptr_t)x.level + x.level->arena.cursor - sizes[i]) % 4096);
            memset(p, 7, (size_t)sizes[i]);
            if (i == 0) {
                CHECK(turn == 0 || p != first);
                first = p;
            }
            last = p + sizes[i];
        }
        /* no bytes */
        CHECK_EQ(upfront_distance(upfront_scope_alloc(s, 0, 1), x.level), x.level->arena.cursor);
        CHECK(upfront_scope_close(s) == UPFRONT_ORDER);
        x.level->base = 0;
        CHECK(upfront_scope_close(s) == UPFRONT_OK);
        x.level->base = 1;
        CHECK_EQ(upfront_arena_offset(&x.level->arena, first), start); /* also of a dead object */
        s = upfront_scope_open(x.level);
    }
    CHECK(upfront_position(x.block + x.size) == x.block + x.size);
    mirror_down(&x);
}

static void count_up(void *arg) { ++*(int *)arg; }

/* Nodes, growing and shrinking, pools and temporaries are accounted as in every build. */
static void test_kinds(void) {
    mirrored x = mirror_up();
    upfront_scope s = upfront_scope_open(x.scratch), temp;
    upfront_arena *a = &x.scratch->arena;
    static const uint8_t then[] = {UPFRONT_CHUNK_FRESH, UPFRONT_CHUNK_FREE, UPFRONT_CHUNK_LIVE};
    int ran = 0, i;
    char *p, *q, *more;
    uint64_t from = a->start;
    upfront_pool *pool;
    CHECK(upfront_scope_defer(s, count_up, &ran) == UPFRONT_OK);
    CHECK_EQ(a->cursor, from + 8 + 16);
    from = a->cursor;
    p = (char *)upfront_scope_alloc(s, 10, 1);
    for (i = 0; i < 500; i++) {
        more = (char *)upfront_scopes_grow(x.scratch, s.gen, from, 10);
        CHECK(more == p + 10 + 10 * i);
        memset(more, i, 10);
    }
    CHECK_EQ(a->cursor, from + 5010);
    check_lies(x.scratch, from + 5009, p + 5009);
    /* an offset inside of the object */
    more = (char *)upfront_scopes_grow(x.scratch, s.gen, from + 100, 10);
    CHECK(more == p + 5010);
    upfront_mark_less(upfront_arena_at(a, from), upfront_arena_at(a, a->cursor), 10);
    a->cursor -= 10;
    check_lies(x.scratch, from, p); /* the object stays in place when it shrinks */
    q = (char *)upfront_scopes_grow(x.scratch, s.gen, a->cursor, 8); /* a new object */
    CHECK(q > p + 5010 + 63);
    upfront_mark_less(upfront_arena_at(a, a->cursor - 8), upfront_arena_at(a, a->cursor), 8);
    a->cursor -= 8;
    CHECK(upfront_position(upfront_arena_at(a, a->cursor)) == upfront_arena_at(a, a->cursor));
    pool = upfront_scope_pool(s, 24, 8, 3);
    p = (char *)upfront_pool_get(pool, pool->gen);
    q = (char *)upfront_pool_get(pool, pool->gen);
    CHECK(pool != NULL && q - p == 24 * UPFRONT_SPREAD && upfront_pool_chunk(pool, 1) == q);
    CHECK_EQ(upfront_pool_find(pool, pool->gen, q), 1);
    CHECK_EQ(upfront_pool_find(pool, pool->gen, q + 8), UPFRONT_MISALIGNED);
    CHECK_EQ(upfront_pool_find(pool, pool->gen, &x), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_pool_put(pool, pool->gen, q), UPFRONT_OK);
    CHECK_EQ(upfront_pool_put(pool, pool->gen, q), UPFRONT_DOUBLE);
    more = (char *)upfront_pool_get(pool, pool->gen);
    CHECK(more != q);
    CHECK_EQ(upfront_pool_put(pool, pool->gen, q), UPFRONT_DOUBLE); /* an earlier object's */
    memset(more, 6, 24);
    CHECK_EQ(upfront_pool_put(pool, pool->gen, p), UPFRONT_OK);
    /* the new object begins where the other ended */
    CHECK(upfront_pool_chunk(pool, 1) == more && holds(more, 24, 6));
    temp = upfront_scope_temp(s, 100);
    p = (char *)upfront_scope_alloc(temp, 100, 1);
    memset(p, 5, 100);
    check_lies(x.scratch, a->limit, p);
    upfront_mirror_gather(x.block, x.size);
    CHECK(holds((const char *)upfront_arena_at(a, a->limit), 100, 5));
    p = (char *)upfront_pool_canonical(pool, 1);
    CHECK(upfront_position(p) == more);
    memset(upfront_arena_at(a, a->limit), 7, 100); /* restored bytes of an earlier time */
    upfront_mirror_scatter(x.block, x.size);
    CHECK(holds((const char *)upfront_position(upfront_arena_at(a, a->limit)), 100, 7));
    upfront_pool_remark(pool, then); /* then chunk 0 was live, and chunk 1 wasn't */
    memcpy(upfront_pool_state(pool, 2), then, sizeof then);
    CHECK(upfront_position(p) == p);
    p = (char *)upfront_pool_canonical(pool, 0);
    CHECK(upfront_position(p) != p && upfront_pool_chunk(pool, 0) == upfront_position(p));
    memset(p, 8, 24);
    upfront_mirror_scatter(p, 24);
    CHECK(holds((const char *)upfront_pool_chunk(pool, 0), 24, 8));
    p = (char *)upfront_pool_canonical(pool, 1);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK);
    CHECK_EQ(ran, 1);
    CHECK_EQ(a->cursor, a->start);
    CHECK(upfront_position(p) == p); /* a chunk ends with its pool */
    mirror_down(&x);
}

#ifdef UPFRONT_CHECKED

static void check_found(int what, int how, const void *at, const void *start, uint64_t size) {
    CHECK_EQ(tale.what, what);
    CHECK_EQ(tale.how, how);
    CHECK_EQ(tale.address, (uintptr_t)at);
    CHECK_EQ(tale.start, (uintptr_t)start);
    CHECK_EQ(tale.size, size);
    CHECK_EQ(tale.name, MIRROR_NAME);
}

/* upfront_mirror_check finds each stray write, and so does the next use of the address. Each byte
 * is restored in between. */
static void test_found(void) {
    mirrored x = mirror_up();
    upfront_row *r = upfront_map_row(x.map, 1);
    upfront_scope s = upfront_scope_open(x.scratch), inner;
    unsigned char *p, *q;
    upfront_pool *pool;
    upfront_site = 3;
    p = (unsigned char *)upfront_scope_alloc(s, 24, 8);
    upfront_site = 0;
    CHECK(upfront_mirror_check(r, r->end, &tale));
    p[24] = 1;
    CHECK(!upfront_mirror_check(r, r->end, &tale));
    check_found(UPFRONT_PAST, 0, p + 24, p, 24);
    CHECK_EQ(tale.made, 3);
    memset(p + 24, 1, 256); /* all of the redzone, with one value */
    CHECK(!upfront_mirror_check(r, r->end, &tale));
    check_found(UPFRONT_PAST, 0, p + 24, p, 24);
    CHECK_EQ(tale.canonical, (uintptr_t)upfront_arena_at(&x.scratch->arena, x.scratch->arena.start));
    memset(p + 24, UPFRONT_DEAD, 256);
    p[-1] = 1;
    CHECK(!upfront_mirror_check(r, r->end, &tale));
    check_found(UPFRONT_BEFORE, 0, p - 1, p, 24);
    p[-1] = UPFRONT_DEAD;
    CHECK(upfront_mirror_check(r, r->end, &tale));
    CHECK(upfront_mirror_find((uintptr_t)p + 5, &tale));
    check_found(UPFRONT_LIVING, 0, p + 5, p, 24);
    CHECK(upfront_mirror_find((uintptr_t)p + 1000, &tale));
    check_found(UPFRONT_NO_OBJECT, 0, p + 1000, NULL, 0);
    CHECK_EQ(tale.canonical, (uintptr_t)upfront_arena_at(&x.scratch->arena,
        x.scratch->arena.start) + 1000 / UPFRONT_SPREAD);
    CHECK(!upfront_mirror_find((uintptr_t)x.block, &tale));

    inner = upfront_scope_open(x.scratch);
    q = (unsigned char *)upfront_scope_alloc(inner, 5000, 8);
    upfront_site = 4;
    CHECK_EQ(upfront_scope_close(inner), UPFRONT_OK);
    upfront_site = 0;
    q[4999] = 1;
    CHECK(!upfront_mirror_check(r, r->end, &tale));
    check_found(UPFRONT_ENDED, UPFRONT_CLOSED, q + 4999, q, 5000);
    CHECK_EQ(tale.ended, 4);
    CHECK((unsigned char *)upfront_scope_alloc(s, 24, 8) != q); /* not reused at once */
    inner = upfront_scope_open(x.scratch);
    if (setjmp(told) == 0) {
        x.scratch->arena.cursor -= 24; /* the same address again */
        upfront_mark_dead(upfront_arena_at(&x.scratch->arena, x.scratch->arena.cursor), 24);
        (void)upfront_scope_alloc(inner, 5000, 8);
        CHECK(0);
    }
    check_found(UPFRONT_ENDED, UPFRONT_CLOSED, q + 4999, q, 5000);
    q[4999] = UPFRONT_DEAD;
    x.scratch->arena.cursor = upfront_scopes_top(x.scratch)->mark;
    CHECK_EQ(upfront_scope_close(inner), UPFRONT_OK);

    pool = upfront_scope_pool(s, 16, 8, 2);
    q = (unsigned char *)upfront_pool_get(pool, pool->gen);
    CHECK_EQ(upfront_pool_put(pool, pool->gen, q), UPFRONT_OK);
    q[15] = 1;
    CHECK(!upfront_mirror_check(r, r->end, &tale));
    check_found(UPFRONT_ENDED, UPFRONT_PUT, q + 15, q, 16);
    q[15] = UPFRONT_DEAD;
    p[24] = 1;
    if (setjmp(told) == 0) {
        (void)upfront_scope_close(s);
        CHECK(0);
    }
    check_found(UPFRONT_PAST, 0, p + 24, p, 24);
    p[24] = UPFRONT_DEAD;
    p[-1] = 1;
    if (setjmp(told) == 0) {
        upfront_mark_dead(upfront_arena_at(&x.scratch->arena, x.scratch->arena.start), 24);
        CHECK(0);
    }
    check_found(UPFRONT_BEFORE, 0, p - 1, p, 24);
    mirror_down(&x);
}

/* A dead object with a live one inside its bytes is checked around the live one. */
static void test_overlaid(void) {
    static const uint64_t sizes[3][2] = {{8, 5000}, {8, 1}, {16, 8}};
    mirrored x = mirror_up();
    upfront_arena *a = &x.scratch->arena;
    unsigned char *p = NULL, *old = NULL;
    int i;
    for (i = 0; i < 3; i++) {
        upfront_scope s = upfront_scope_open(x.scratch);
        CHECK(upfront_scope_alloc(s, sizes[i][0], 8) != NULL);
        p = (unsigned char *)upfront_scope_alloc(s, sizes[i][1], 8);
        old = i == 0 ? p : old;
        CHECK(i < 2 ? upfront_scope_close(s) == UPFRONT_OK : upfront_scope_alloc(s, 8, 8) != NULL);
    }
    CHECK(p > old && p < old + 5000 - 8);
    CHECK(upfront_mirror_check(upfront_arena_at(a, a->start), WINDOW, &tale));
    old[4999] = 1;
    CHECK(!upfront_mirror_check(upfront_arena_at(a, a->start), WINDOW, &tale));
    check_found(UPFRONT_ENDED, UPFRONT_CLOSED, old + 4999, old, 5000);
    old[4999] = UPFRONT_DEAD;
    CHECK(upfront_mirror_check(upfront_arena_at(a, a->start), WINDOW, &tale));
    mirror_down(&x);
}

/* Objects of a row that ended as a whole still have notes, and the next ones are in the other
 * window. */
static void test_over(void) {
    mirrored x = mirror_up();
    unsigned char *p, *q;
    upfront_scope s;
    upfront_row *r;
    int i;
    for (i = 0; i < 3; i++) {
        p = (unsigned char *)upfront_scope_alloc(upfront_scope_open(x.level), 2 * WINDOW, 8);
        memset(p, i, 2 * WINDOW);
        row_close(upfront_map_row(x.map, 0));
        CHECK(upfront_mirror_find((uintptr_t)p + 9, &tale));
        check_found(UPFRONT_ENDED, UPFRONT_REWOUND, p + 9, p, 2 * WINDOW);
    }
    q = (unsigned char *)upfront_scope_alloc(upfront_scope_open(x.level), 1, 1);
    CHECK(q != p);
    *q = 1;
    mirror_down(&x);

    x = mirror_up(); /* an object across two edges has access to both, in both windows */
    for (i = 0; i < 4; i++) {
        s = upfront_scope_open(x.level);
        CHECK(upfront_scope_alloc(s, WINDOW - (i < 2 ? 8 : 16), 1) != NULL);
        p = (unsigned char *)upfront_scope_alloc(s, i < 2 ? WINDOW : 8, 8);
        if (i >= 2) /* also when the object grows */
            CHECK(upfront_scopes_grow(x.level, s.gen, x.level->arena.cursor - 8, WINDOW - 8) == p + 8);
        check_lies(x.level, x.level->arena.cursor - 1, p + WINDOW - 1);
        row_close(upfront_map_row(x.map, 0));
    }
    mirror_down(&x);

    /* the bytes before a row's first are in the row below, without access except for one page */
    x = mirror_up();
    p = (unsigned char *)upfront_scope_alloc(upfront_scope_open(x.scratch), 8, 8);
    s = upfront_scope_open(x.level);
    CHECK(upfront_scope_alloc(s, 3 * WINDOW - 200, 1) != NULL && upfront_scope_alloc(s, 100, 1) != NULL);
    row_close(upfront_map_row(x.map, 0));
    memset(p, 1, 8); /* the row above keeps its access */
    r = upfront_map_row(x.map, 1);
    CHECK(upfront_mirror_check(upfront_arena_at(&r->arena.arena, r->arena.arena.start), WINDOW, &tale));
    p[-1] = 1;
    CHECK(!upfront_mirror_check(upfront_arena_at(&r->arena.arena, r->arena.arena.start), WINDOW, &tale));
    check_found(UPFRONT_BEFORE, 0, p - 1, p, 8);
    p[-1] = UPFRONT_DEAD;

    CHECK(upfront_scope_open(x.level).arena != NULL); /* the end of a row finds earlier damage */
    s = upfront_scope_open(x.level);
    q = (unsigned char *)upfront_scope_alloc(s, 8, 8);
    CHECK_EQ(upfront_scope_close(s), UPFRONT_OK);
    *q = 1;
    if (setjmp(told) == 0) {
        row_close(upfront_map_row(x.map, 0));
        CHECK(0);
    }
    CHECK(tale.what == UPFRONT_ENDED && tale.how == UPFRONT_CLOSED && tale.size == 8);
    mirror_down(&x);
}

#endif

/* Outside of mirrors there are only fills. */
static void test_less(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_mark_less(w, w + 104, 64);
    CHECK(is_marked(w + 103, 1) && is_marked(w + 40, 1) && is_marked(w + 39, 0) && is_marked(w + 104, 0));
    window_free(w, WINDOW);
}

/* Live objects are listed by address, with call site and type; freed ones aren't. */
static void test_listed(void) {
    mirrored x = mirror_up();
    upfront_scope lowest = upfront_scope_open(x.level), s = upfront_scope_open(x.level);
    const void *from = upfront_arena_at(&x.level->arena, x.level->arena.start);
    upfront_live_object out[4];
    char *p, *q;
    CHECK(lowest.gen != 0 && upfront_mirror_objects(from, 2 * WINDOW, out, 4) == 0);
    p = (char *)upfront_scope_alloc(s, 24, 8);
    q = (char *)upfront_scope_alloc(s, 100, 8);
    upfront_mark_type(p, 5);
    upfront_mark_type(q, 65535);
    upfront_mark_type(&x, 9); /* in no mirror */
    CHECK_EQ(upfront_mirror_objects(from, 2 * WINDOW, out, 1), 2);
    CHECK_EQ(upfront_mirror_objects(from, 2 * WINDOW, out, 4), 2);
    CHECK(out[0].size == 24 && out[0].type == 5 && out[0].kind == 0 && out[1].size == 100 && out[1].type == 65535);
    CHECK_EQ(out[1].offset - out[0].offset, 24);
    upfront_scope_close(s);
    CHECK_EQ(upfront_mirror_objects(from, 2 * WINDOW, out, 4), 0);
    mirror_down(&x);
}

void test_mirror(void) {
    test_less();
    test_listed();
    test_lies();
    test_kinds();
#ifdef UPFRONT_CHECKED
    test_found();
    test_overlaid();
    test_over();
#endif
}

#else

void test_mirror(void) {}

#endif
