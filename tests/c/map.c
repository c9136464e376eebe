/* map.c - tests of map.h: layout and rewinds, for every kind of row. */
#include "check.h"

enum { MAP_ROWS = 6, MAP_SLOTS = 3, MAP_POOLS = 2 };

static const upfront_map_arena map_plan[MAP_ROWS] = {
    {"init", UPFRONT_REGION, 1000, 1, 0, 0},   {"systems", UPFRONT_REGION, WINDOW, 1, 0, 0},
        {"level", UPFRONT_REGION, 2 * WINDOW + 1, 1, 0, 0},
    {"frame 0", UPFRONT_FRAME, 4096, 1, 0, 0}, {"scratch 0.0", UPFRONT_SCRATCH, 0, 1, 0, 0},
        {"scratch 0.1", UPFRONT_SCRATCH, 1, 1, 0, 0},
};

static void map_refuses_plan(upfront_map_arena arena, uint64_t count, uint64_t slots, uint64_t pools) {
    static unsigned char nothing[1];
    upfront_map_arena arenas[3]; /* a count out of bounds is refused before a line is read */
    arenas[0] = arenas[1] = arenas[2] = arena;
    CHECK_EQ(upfront_map_size(arenas, count, slots, pools, 0), 0);
    CHECK(upfront_map_init(nothing, UPFRONT_OFFSET_MAX - 1, arenas, count, slots, pools, 0) == NULL);
}

static void map_sizes(void) {
    upfront_map_arena a = map_plan[0], large = map_plan[0];
    CHECK(upfront_map_tables(0, 1, 0).size == 0 && upfront_map_tables(0, 0, 1).size == 0);
    CHECK(upfront_map_tables(65536, 1, 1).size == 0);
    CHECK(upfront_map_tables(1, 65536, 1).size == 0 && upfront_map_tables(1, 1, 65536).size == 0);
    CHECK_EQ(upfront_map_size(NULL, 1, 1, 1, 0), 0);
    CHECK_EQ(upfront_map_size(&a, 1, 1, 0, 0), 2 * WINDOW);
    map_refuses_plan(a, 65536, 1, 1);
    map_refuses_plan(a, UINT64_MAX, 1, 1);
    map_refuses_plan(a, 1, 0, 1);
    map_refuses_plan(a, 1, 65536, 1);
    map_refuses_plan(a, 1, UINT64_MAX, 1);
    map_refuses_plan(a, 1, 1, 65536);
    map_refuses_plan(a, 1, 1, UINT64_MAX);
    a.kind = 0;
    map_refuses_plan(a, 1, 1, 1);
    a.kind = UPFRONT_SCRATCH + 1;
    map_refuses_plan(a, 1, 1, 1);
    a.kind = UPFRONT_REGION;
    a.siblings = 65536;
    map_refuses_plan(a, 1, 1, 1);
    a.siblings = 40000;
    map_refuses_plan(a, 2, 1, 1); /* more rows than are counted */
    a.siblings = 1;
    a.kind = UPFRONT_SCRATCH + 1;
    large.size = UPFRONT_OFFSET_MAX;
    map_refuses_plan(large, 1, 1, 1);
    large.size = UINT64_MAX; /* rounds up to 0 */
    map_refuses_plan(large, 2, 1, 1);
    large.size = UPFRONT_OFFSET_MAX - 1;
    map_refuses_plan(large, 1, 1, 1);
    map_refuses_plan(large, 3, 1, 1);
    large.size = UPFRONT_OFFSET_MAX - 2 * WINDOW;
    CHECK_EQ(upfront_map_size(&large, 1, 1, 1, 0), UPFRONT_OFFSET_MAX - WINDOW);
    CHECK(upfront_map_size(&a, 1, 65535, 65535, 0) == 0); /* the kind is still bad */
    a.kind = UPFRONT_REGION;
    CHECK(upfront_map_size(&a, 1, 65535, 65535, 0) > 65535 * 128);
}

static void map_lays_out(void) {
    uint64_t size = upfront_map_size(map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0), i, start = WINDOW;
    unsigned char *w = window_new(size + WINDOW);
    upfront_map *m;
    CHECK_EQ(size, 8 * WINDOW);
    CHECK(upfront_map_init(NULL, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0) == NULL);
    CHECK(upfront_map_init(w + 4096, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0) == NULL);
    CHECK(upfront_map_init(w, size - 1, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0) == NULL);
    CHECK(upfront_map_init(w, UPFRONT_OFFSET_MAX, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0) == NULL);
    CHECK(upfront_map_init(w, size, NULL, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0) == NULL);
    CHECK(holds(w, size, 0));
    m = upfront_map_init(w, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0);
    CHECK(m != NULL);
    for (i = 0; i < MAP_ROWS; i++) {
        upfront_row *r = upfront_map_row(m, i);
        upfront_scope s = upfront_scope_open(&r->arena);
        unsigned char *p;
        CHECK_EQ(upfront_map_start(m, r), start);
        CHECK_EQ(upfront_map_end(m, r), start + map_plan[i].size);
        CHECK(strcmp(r->name, map_plan[i].name) == 0 && r->kind == map_plan[i].kind);
        CHECK(upfront_scope_alloc(s, map_plan[i].size + 1, 1) == NULL);
        p = (unsigned char *)upfront_scope_alloc(s, map_plan[i].size, 1);
        CHECK(p == w + start);
        fill(p, map_plan[i].size, (int)i + 1);
        start = upfront_round_edge(start + map_plan[i].size);
    }
    for (i = 0; i < MAP_ROWS; i++)
        CHECK(holds(w + upfront_map_start(m, upfront_map_row(m, i)), map_plan[i].size, (int)i + 1));
    window_free(w, size + WINDOW);
}

/* A second map over the first one's tables continues the generations: the two share no handle. */
static void map_goes_on(void) {
    uint64_t size = upfront_map_size(map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0), i, turn, tags[MAP_ROWS];
    unsigned char *w = window_new(size);
    upfront_scope s[MAP_ROWS], inner[MAP_ROWS], temp[MAP_ROWS];
    upfront_pool *p[MAP_ROWS];
    for (turn = 0; turn < 5; turn++) {
        upfront_map *m = upfront_map_init(w, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0);
        for (i = 0; i < MAP_ROWS; i++) {
            upfront_row *r = upfront_map_row(m, i);
            if (turn != 0) {
                CHECK(!upfront_scope_is_alive(s[i]) && !upfront_scope_is_alive(inner[i]) &&
                    !upfront_scope_is_alive(temp[i]));
                CHECK(upfront_scope_alloc(s[i], 0, 1) == NULL && upfront_scope_close(inner[i]) != UPFRONT_OK);
                CHECK(i > 3 || upfront_pool_get(p[i], tags[i]) == NULL);
            }
            s[i] = upfront_scope_open(&r->arena);
            inner[i] = upfront_scope_open(&r->arena);
            temp[i] = upfront_scope_temp(inner[i], 1);
            /* a pool takes a generation, too; all rows continue from the newest */
            CHECK_EQ(s[i].gen, 3 * turn + 1);
            CHECK_EQ(inner[i].gen, 3 * turn + 2);
            /* the last two rows are too small for a pool */
            CHECK_EQ(temp[i].gen, i > 3 ? 0 : 3 * turn + 1);
            if (i > 3)
                continue;
            p[i] = upfront_scope_pool(inner[i], 8, 8, 1);
            tags[i] = p[i]->gen;
            /* open scopes make no difference */
            CHECK(turn % 2 != 0 || upfront_scope_close(inner[i]) == UPFRONT_OK);
        }
    }
    window_free(w, size);
}

static upfront_scope top_of(upfront_scopes *h) {
    upfront_scope s;
    s.arena = h;
    s.gen = upfront_scopes_top(h)->gen;
    return s;
}

/* Maps of other counts over heads of one size: rows are over rows, pools' headers over pools'
 * headers. */
static void map_goes_on_otherwise(void) {
    static const uint64_t counts[][3] = {{6, 3, 2}, {4, 9, 12}, {5, 1, 9}, {2, 30, 20}, {6, 2, 7}, {5, 1, 0}};
    enum { TURNS = 40, KINDS = sizeof counts / sizeof counts[0] };
    uint64_t size = 16 * WINDOW, turn, i, old, made = 0, tags[TURNS * MAP_ROWS];
    unsigned char *w = window_new(size);
    upfront_scope s[TURNS * MAP_ROWS];
    upfront_pool *p[TURNS * MAP_ROWS];
    for (turn = 0; turn < TURNS; turn++) {
        const uint64_t *c = counts[turn % KINDS];
        upfront_map *m = upfront_map_init(w, size, map_plan, c[0], c[1], c[2], 0);
        CHECK_EQ(upfront_map_tables(c[0], c[0] * c[1], c[0] * c[2]).head, 6144);
        CHECK_EQ(upfront_map_tables(c[0], c[0] * c[1], c[0] * c[2]).headers, 3072);
        CHECK(m != NULL);
        for (i = 0; i < c[0] && i < 3; i++, made++) {
            s[made] = upfront_scope_open(&upfront_map_row(m, i)->arena);
            p[made] = upfront_scope_pool(s[made], 8, 8, 1);
            tags[made] = p[made] == NULL ? 0 : p[made]->gen;
            CHECK(p[made] != NULL || c[2] == 0);
            for (old = 0; old < made; old++) {
                CHECK(s[old].arena != s[made].arena || s[old].gen < s[made].gen);
                CHECK(p[old] == NULL || p[old] != p[made] || tags[old] < tags[made]);
            }
        }
        for (i = 0; i < c[0] && i < 3; i++)
            CHECK_EQ(upfront_scope_close(top_of(&upfront_map_row(m, i)->arena)), UPFRONT_OK);
        upfront_map_over(m);
        for (old = 0; old < made; old++)
            CHECK(!upfront_scope_is_alive(s[old]) && upfront_scope_alloc(s[old], 1, 1) == NULL &&
                s[old].arena->depth == 0 &&
                  upfront_scopes_top(s[old].arena)->count == 0 &&
                      (p[old] == NULL || upfront_pool_get(p[old], tags[old]) == NULL));
    }
    window_free(w, size);
}

/* A map of fewer rows and pools over the tables of a map with open scopes and pools closes
 * these. */
static void map_ends_what_was_open(void) {
    uint64_t size = upfront_map_size(map_plan, 4, 3, 2, 0), i;
    unsigned char *w = window_new(size);
    upfront_map *m = upfront_map_init(w, size, map_plan, 4, 3, 2, 0);
    upfront_scope s[4], temp[4];
    upfront_pool *p[4];
    uint64_t tags[4];
    for (i = 0; i < 4; i++) {
        s[i] = upfront_scope_open(&upfront_map_row(m, i)->arena);
        p[i] = upfront_scope_pool(s[i], 8, 8, 1);
        temp[i] = upfront_scope_temp(s[i], 100);
        CHECK(p[i] != NULL && temp[i].arena != NULL);
        tags[i] = p[i]->gen;
    }
    CHECK_EQ(upfront_map_tables(2, 6, 2).head, upfront_map_tables(4, 12, 8).head);
    CHECK_EQ(upfront_map_tables(2, 6, 2).headers, upfront_map_tables(4, 12, 8).headers);
    CHECK(upfront_map_init(w, size, map_plan, 2, 3, 1, 0) != NULL);
    for (i = 0; i < 4; i++) {
        CHECK(!upfront_scope_is_alive(s[i]) && upfront_scope_alloc(s[i], 1, 1) == NULL &&
            upfront_scope_close(s[i]) == UPFRONT_STALE);
        CHECK(!upfront_scope_is_alive(temp[i]) && upfront_scope_alloc(temp[i], 1, 1) == NULL);
        CHECK(upfront_pool_get(p[i], tags[i]) == NULL);
    }
    window_free(w, size);
}

/* The walk refuses a sibling of another kind or size, or out of order. */
static void map_sibling_words(upfront_map *m, uint64_t size) {
    /* row, group, sibling */
    static const uint64_t wrong[4][3] = {{3, 2, 1}, {1, 0, 1}, {4, 1, 3}, {2, 1, 2}};
    upfront_range out[5 * 5 + 2];
    uint64_t count, i;
    for (i = 0; i < 4; i++) {
        upfront_row *r = upfront_map_row(m, wrong[i][0]), good = *r;
        CHECK_EQ(upfront_map_walk(m, size, out, 5 * 5 + 2, &count), UPFRONT_OK);
        r->kin = wrong[i][1] << 32 | wrong[i][2];
        CHECK_EQ(upfront_map_walk(m, size, out, 5 * 5 + 2, &count), UPFRONT_CORRUPT);
        CHECK_EQ(count, wrong[i][0]);
        *r = good;
    }
    upfront_map_row(m, 2)->kind = UPFRONT_SCRATCH;
    CHECK_EQ(upfront_map_walk(m, size, out, 5 * 5 + 2, &count), UPFRONT_CORRUPT);
    upfront_map_row(m, 2)->kind = UPFRONT_REGION;
}

/* Rooms of a server: equal siblings between two other regions. */
static void map_siblings(void) {
    static const upfront_map_arena plan[3] = {
        {"systems", UPFRONT_REGION, 100, 0, 0, 0}, {"room", UPFRONT_REGION, WINDOW + 1, 3, 0, 0},
            {"top", UPFRONT_REGION, 50, 1, 0, 0}};
    uint64_t size = upfront_map_size(plan, 3, MAP_SLOTS, MAP_POOLS, 0), i;
    unsigned char *w = window_new(size);
    upfront_map *m = upfront_map_init(w, size, plan, 3, MAP_SLOTS, MAP_POOLS, 0);
    CHECK_EQ(size, (1 + 1 + 3 * 2 + 1) * WINDOW);
    CHECK_EQ(m->rows, 5);
    for (i = 0; i < 5; i++) {
        upfront_row *r = upfront_map_row(m, i);
        CHECK_EQ(upfront_row_group(r), i >= 1 && i <= 3 ? 1 : i);
        CHECK_EQ(upfront_row_sibling(r), i >= 1 && i <= 3 ? i - 1 : 0);
        CHECK_EQ(r->end - r->arena.arena.start, i >= 1 && i <= 3 ? WINDOW + 1 : plan[i == 4 ? 2 : 0].size);
    }
    map_sibling_words(m, size);
    window_free(w, size);
}

/* Lines with their own counts, and lines with the defaults. */
static const upfront_map_arena counted_plan[4] = {
    {"systems", UPFRONT_REGION, 1000, 1, 0, 0},
    {"room", UPFRONT_REGION, 17 * 1024, 3, 1, 1},
    {"level", UPFRONT_REGION, WINDOW, 1, 7, 0},
    {"scratch", UPFRONT_SCRATCH, 2 * WINDOW - 8, 2, 0, 5},
};

enum { COUNTED_ROWS = 7, COUNTED_SLOTS = 3, COUNTED_POOLS = 2 };

/* Each row has its line's records and headers; all are disjoint and fill the tables. */
static void map_counts_a_row(void) {
    static const uint64_t slots[COUNTED_ROWS] = {3, 1, 1, 1, 7, 3, 3}, pools[COUNTED_ROWS] = {2, 1, 1, 1, 2, 5, 5};
    uint64_t size = upfront_map_size(counted_plan, 4, COUNTED_SLOTS, COUNTED_POOLS, 0), i, k, count;
    unsigned char *w = window_new(size);
    upfront_map *m = upfront_map_init(w, size, counted_plan, 4, COUNTED_SLOTS, COUNTED_POOLS, 0);
    upfront_range out[6 * COUNTED_ROWS + 3];
    const uint64_t ones[4] = {500, WINDOW, WINDOW, 500}, kept[4] = {17 * 1024, 17 * 1024, 17 * 1024, WINDOW};
    CHECK(m->slots == 19 && m->pools == 17 && m->tables == upfront_map_tables(COUNTED_ROWS, 19, 17).size);
    for (i = 0; i < COUNTED_ROWS; i++) {
        upfront_row *r = upfront_map_row(m, i);
        upfront_scope s = {NULL, 0};
        CHECK(r->arena.slots == slots[i] && r->temp.slots == slots[i] && r->pools == pools[i]);
        for (k = 0; k < slots[i]; k++)
            CHECK((s = upfront_scope_open(&r->arena)).arena != NULL);
        CHECK(upfront_scope_open(&r->arena).arena == NULL);
        for (k = 0; k < pools[i]; k++)
            CHECK(upfront_scope_pool(s, 8, 8, 1) != NULL);
        CHECK(upfront_scope_pool(s, 8, 8, 1) == NULL);
        CHECK(upfront_scope_temp(s, 64).arena != NULL);
    }
    CHECK_EQ(upfront_map_walk(m, size, out, 6 * COUNTED_ROWS + 3, &count), UPFRONT_OK);
    for (i = 0; i < COUNTED_ROWS; i++) {
        CHECK_EQ(upfront_map_row(m, i)->arena.depth, slots[i]);
        for (k = 0; k < pools[i]; k++)
            CHECK(upfront_row_pool(upfront_map_row(m, i), k)->gen != 0);
    }
    for (i = COUNTED_ROWS; i-- > 0;)
        row_close(upfront_map_row(m, i));
    CHECK_EQ(upfront_map_reconfigure(m, 1, ones, 4), UPFRONT_BAD_ARGUMENT); /* siblings differ */
    CHECK_EQ(upfront_map_reconfigure(m, 1, kept, 4), UPFRONT_OK);
    for (i = 0; i < COUNTED_ROWS; i++)
        CHECK(upfront_map_row(m, i)->arena.slots == slots[i] && upfront_map_row(m, i)->pools == pools[i]);
    CHECK_EQ(upfront_map_walk(m, size, out, 6 * COUNTED_ROWS + 3, &count), UPFRONT_OK);
    upfront_map_over(m);
    window_free(w, size);
}

/* Equal counts, of lines or from defaults, make the same bytes. */
static void map_counts_alike(void) {
    uint64_t size = upfront_map_size(map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, WINDOW), i;
    unsigned char *a = window_new(size), *b = window_new(size);
    size_t tables = (size_t)upfront_map_tables(MAP_ROWS, MAP_ROWS * MAP_SLOTS, MAP_ROWS * MAP_POOLS).size;
    upfront_map_arena own[MAP_ROWS];
    memcpy(own, map_plan, sizeof own);
    for (i = 0; i < MAP_ROWS; i++) {
        own[i].slots = MAP_SLOTS;
        own[i].pools = MAP_POOLS;
    }
    CHECK_EQ(upfront_map_size(own, MAP_ROWS, 0, 0, WINDOW), size);
    CHECK(upfront_map_init(a, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, WINDOW) != NULL);
    CHECK(upfront_map_init(b, size, own, MAP_ROWS, 0, 0, WINDOW) != NULL);
    CHECK(memcmp(a, b, tables) == 0);
    for (i = 0; i < MAP_ROWS; i++) {
        own[i].slots = 65536;
        CHECK_EQ(upfront_map_size(own, MAP_ROWS, 1, 1, 0), 0);
        own[i].slots = 1;
        own[i].pools = 65536;
        CHECK_EQ(upfront_map_size(own, MAP_ROWS, 1, 1, 0), 0);
        own[i].pools = 1;
    }
    window_free(a, size);
    window_free(b, size);
}

/* A map without rows has only tables. Handles of the maps before it stay stale, also after the next
 * map with rows. */
static void map_without_rows(void) {
    uint64_t size = upfront_map_size(map_plan, 1, 1, 1, 0), turn, count, none = 0, tags[8];
    unsigned char *w = window_new(size);
    upfront_range out[3];
    upfront_scope s[8];
    upfront_pool *p[8];
    CHECK_EQ(upfront_map_size(NULL, 0, 0, 0, 0), WINDOW);
    CHECK_EQ(upfront_map_size(NULL, 0, 9, 9, WINDOW), 2 * WINDOW);
    CHECK(upfront_map_init(w, WINDOW - 1, NULL, 0, 1, 1, 0) == NULL && upfront_map_size(NULL, 0, 1, 1, 1) == 0);
    for (turn = 0; turn < 8; turn++) {
        upfront_map *m = upfront_map_init(w, size, map_plan, turn % 2, 1, 1, 0);
        CHECK(m != NULL && m->rows == turn % 2 && m->tables >= UPFRONT_HEAD_LEAST);
        s[turn].arena = NULL;
        if (m->rows != 0) {
            s[turn] = upfront_scope_open(&upfront_map_row(m, 0)->arena);
            p[turn] = upfront_scope_pool(s[turn], 8, 8, 1);
            CHECK(p[turn] != NULL);
            tags[turn] = p[turn]->gen;
        } else {
            CHECK_EQ(upfront_map_walk(m, size, out, 3, &count), UPFRONT_OK);
            CHECK(count == 3 && out[0].what == UPFRONT_RANGE_TABLES && out[2].what == UPFRONT_RANGE_UNPLANNED);
            CHECK(out[0].row == 0 && out[2].offset + out[2].size == size);
            m->pools = 1;
            CHECK_EQ(upfront_map_walk(m, size, out, 3, &count), UPFRONT_CORRUPT);
            m->pools = 0;
            CHECK_EQ(upfront_map_reconfigure(m, 0, &none, 1), UPFRONT_BAD_ARGUMENT);
            CHECK_EQ(upfront_map_reconfigure(m, 0, &none, 0), UPFRONT_BAD_ARGUMENT);
            upfront_map_over(m);
        }
        for (count = 1; count <= turn; count += 2)
            if (count < turn || m->rows == 0)
                CHECK(!upfront_scope_is_alive(s[count]) && upfront_scope_alloc(s[count], 1, 1) == NULL &&
                    upfront_pool_get(p[count], tags[count]) == NULL);
    }
    window_free(w, size);
}

void test_map(void) {
    map_sizes();
    map_without_rows();
    map_counts_a_row();
    map_counts_alike();
    map_lays_out();
    map_goes_on();
    map_goes_on_otherwise();
    map_ends_what_was_open();
    map_siblings();
}
