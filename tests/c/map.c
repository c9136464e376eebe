/* map.c - tests of map.h: laying out, rewinding in order, with every kind of row. */
#include "check.h"

enum { MAP_ROWS = 6, MAP_SLOTS = 3, MAP_POOLS = 2 };

static const upfront_map_arena map_plan[MAP_ROWS] = {
    {"init", UPFRONT_REGION, 1000, 1},   {"systems", UPFRONT_REGION, WINDOW, 1}, {"level", UPFRONT_REGION, 2 * WINDOW + 1, 1},
    {"frame 0", UPFRONT_FRAME, 4096, 1}, {"pad 0.0", UPFRONT_PAD, 0, 1},         {"pad 0.1", UPFRONT_PAD, 1, 1},
};

static void map_refuses_plan(upfront_map_arena arena, uint64_t count, uint64_t slots, uint64_t pools) {
    static unsigned char nothing[1];
    upfront_map_arena arenas[3]; /* a count beyond is refused before one is looked at */
    arenas[0] = arenas[1] = arenas[2] = arena;
    CHECK_EQ(upfront_map_size(arenas, count, slots, pools, 0), 0);
    CHECK(upfront_map_init(nothing, UPFRONT_OFFSET_MAX - 1, arenas, count, slots, pools, 0) == NULL);
}

static void map_sizes(void) {
    upfront_map_arena a = map_plan[0], large = map_plan[0];
    CHECK_EQ(upfront_map_size(NULL, 1, 1, 1, 0), 0);
    CHECK_EQ(upfront_map_size(&a, 1, 1, 0, 0), 2 * WINDOW);
    map_refuses_plan(a, 0, 1, 1);
    map_refuses_plan(a, 65536, 1, 1);
    map_refuses_plan(a, UINT64_MAX, 1, 1);
    map_refuses_plan(a, 1, 0, 1);
    map_refuses_plan(a, 1, 65536, 1);
    map_refuses_plan(a, 1, UINT64_MAX, 1);
    map_refuses_plan(a, 1, 1, 65536);
    map_refuses_plan(a, 1, 1, UINT64_MAX);
    a.kind = 0;
    map_refuses_plan(a, 1, 1, 1);
    a.kind = UPFRONT_PAD + 1;
    map_refuses_plan(a, 1, 1, 1);
    a.kind = UPFRONT_REGION;
    a.siblings = 65536;
    map_refuses_plan(a, 1, 1, 1);
    a.siblings = 40000;
    map_refuses_plan(a, 2, 1, 1); /* more rows than are counted */
    a.siblings = 1;
    a.kind = UPFRONT_PAD + 1;
    large.size = UPFRONT_OFFSET_MAX;
    map_refuses_plan(large, 1, 1, 1);
    large.size = UINT64_MAX; /* whose rounding up is 0 */
    map_refuses_plan(large, 2, 1, 1);
    large.size = UPFRONT_OFFSET_MAX - 1;
    map_refuses_plan(large, 1, 1, 1);
    map_refuses_plan(large, 3, 1, 1);
    large.size = UPFRONT_OFFSET_MAX - 2 * WINDOW;
    CHECK_EQ(upfront_map_size(&large, 1, 1, 1, 0), UPFRONT_OFFSET_MAX - WINDOW);
    CHECK(upfront_map_size(&a, 1, 65535, 65535, 0) == 0); /* still of a bad kind */
    a.kind = UPFRONT_REGION;
    CHECK(upfront_map_size(&a, 1, 65535, 65535, 0) > 65535 * 128);
}

static void map_lays_out(void) {
    uint64_t size = upfront_map_size(map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0), i, start = WINDOW, value;
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
        upfront_linear *s = upfront_row_slot(r, 0);
        uint64_t tag = upfront_row_open(r);
        unsigned char *p;
        CHECK_EQ(r->start, start);
        CHECK_EQ(r->end, start + map_plan[i].size);
        CHECK(strcmp(r->name, map_plan[i].name) == 0 && r->kind == map_plan[i].kind);
        CHECK(upfront_linear_bump(s, tag + map_plan[i].size + 1, map_plan[i].size + 1, 0) == NULL);
        p = (unsigned char *)upfront_linear_bump(s, tag + map_plan[i].size, map_plan[i].size, 0);
        CHECK(p == w + start);
        fill(p, map_plan[i].size, (int)i + 1);
        start = upfront_round_edge(r->end);
    }
    for (i = 0; i < MAP_ROWS; i++)
        CHECK(holds(w + upfront_map_row(m, i)->start, map_plan[i].size, (int)i + 1));
    /* a second map in the same block goes on with the generations: the handles of the first stay dead */
    value = upfront_tag(upfront_row_slot(upfront_map_row(m, 0), 0));
    m = upfront_map_init(w, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0);
    CHECK_EQ(upfront_row_open(upfront_map_row(m, 0)), value + UPFRONT_GENERATION);
    CHECK(upfront_linear_bump(upfront_row_slot(upfront_map_row(m, 0), 0), value, 0, 0) == NULL);
    window_free(w, size + WINDOW);
}

static int is_open(const upfront_map *m, uint64_t row) { return upfront_map_row(m, row)->open != 0; }

static void open_all(upfront_map *m) {
    uint64_t i, k;
    for (i = 0; i < MAP_ROWS; i++)
        for (k = upfront_map_row(m, i)->open; k < 2; k++)
            upfront_row_open(upfront_map_row(m, i));
}

static void map_rewinds_in_order(void) {
    uint64_t size = upfront_map_size(map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0), row, i;
    unsigned char *w = window_new(size);
    upfront_map *m = upfront_map_init(w, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0);
    CHECK_EQ(upfront_map_rewind(NULL, 0), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_rewind(m, MAP_ROWS), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_rewind(m, UINT64_MAX), UPFRONT_BAD_ARGUMENT);
    for (row = 0; row < MAP_ROWS; row++) {
        open_all(m);
        upfront_row_far_open(upfront_map_row(m, row));
        upfront_row_far_grow(upfront_map_row(m, row), 1, 1);
        CHECK_EQ(upfront_map_rewind(m, row), UPFRONT_OK);
        for (i = 0; i < MAP_ROWS; i++) /* a region takes those above it along; frames and pads stand beside */
            CHECK_EQ(!is_open(m, i), i == row || (row < 3 && i > row && i < 3));
        CHECK_EQ(upfront_map_rewind(m, row), UPFRONT_OK); /* an empty one stays empty */
    }
    window_free(w, size);
}

/* Finalizers that aren't C's are their owner's: with one in the way, nothing is rewound. */
static void map_rewind_refuses(void) {
    uint64_t size = upfront_map_size(map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0), tag;
    unsigned char *w = window_new(size);
    upfront_map *m = upfront_map_init(w, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0);
    upfront_row *level = upfront_map_row(m, 2);
    upfront_linear *far_slot = upfront_row_far(level), *top = upfront_row_slot(level, 1);
    upfront_node node;
    open_all(m);
    upfront_row_link(top, upfront_row_node(top, upfront_tag(top)), OTHER_CLASS, 2);
    CHECK_EQ(upfront_map_rewind(m, 2), UPFRONT_ORDER);
    CHECK_EQ(upfront_map_rewind(m, 0), UPFRONT_ORDER);
    CHECK_EQ(upfront_map_rewind(m, 3), UPFRONT_OK);
    CHECK(is_open(m, 0) && is_open(m, 1) && level->open == 2);
    CHECK(upfront_row_unlink(top, &node));
    tag = upfront_row_far_open(level);
    CHECK_EQ(upfront_row_far_grow(level, 16, 8), UPFRONT_OK);
    upfront_row_link(far_slot, upfront_row_node(far_slot, tag), OTHER_CLASS, 2);
    CHECK_EQ(upfront_map_rewind(m, 1), UPFRONT_ORDER);
    CHECK(upfront_row_unlink(far_slot, &node));
    CHECK_EQ(upfront_map_rewind(m, 0), UPFRONT_OK);
    CHECK(!is_open(m, 0) && !is_open(m, 2) && level->far_of == 0);
    window_free(w, size);
}

static int siblings_closed[8], siblings_count;

static void note_sibling(void *arg) { siblings_closed[siblings_count++] = (int)(intptr_t)arg; }

/* The walk doesn't take a row for a sibling of one that isn't its like, or isn't the first. */
static void map_sibling_words(upfront_map *m, uint64_t size) {
    static const uint64_t wrong[4][3] = {{3, 2, 1}, {1, 0, 1}, {4, 1, 3}, {2, 1, 2}}; /* row, group, sibling */
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
    upfront_map_row(m, 2)->kind = UPFRONT_PAD;
    CHECK_EQ(upfront_map_walk(m, size, out, 5 * 5 + 2, &count), UPFRONT_CORRUPT);
    upfront_map_row(m, 2)->kind = UPFRONT_REGION;
}

/* Rooms of a server: equal, side by side, each rewound alone; what lies below takes them all along. */
static void map_siblings(void) {
    static const upfront_map_arena plan[3] = {
        {"systems", UPFRONT_REGION, 100, 0}, {"room", UPFRONT_REGION, WINDOW + 1, 3}, {"top", UPFRONT_REGION, 50, 1}};
    uint64_t size = upfront_map_size(plan, 3, MAP_SLOTS, MAP_POOLS, 0), i;
    unsigned char *w = window_new(size);
    upfront_map *m = upfront_map_init(w, size, plan, 3, MAP_SLOTS, MAP_POOLS, 0);
    CHECK_EQ(size, (1 + 1 + 3 * 2 + 1) * WINDOW);
    CHECK_EQ(m->rows, 5);
    siblings_count = 0;
    for (i = 0; i < 5; i++) {
        upfront_row *r = upfront_map_row(m, i);
        upfront_scope s = upfront_scope_open(r);
        CHECK_EQ(upfront_row_group(r), i >= 1 && i <= 3 ? 1 : i);
        CHECK_EQ(upfront_row_sibling(r), i >= 1 && i <= 3 ? i - 1 : 0);
        CHECK_EQ(r->end - r->start, i >= 1 && i <= 3 ? WINDOW + 1 : plan[i == 4 ? 2 : 0].size);
        CHECK_EQ(upfront_scope_defer(s, note_sibling, (void *)(intptr_t)i), UPFRONT_OK);
    }
    CHECK_EQ(upfront_map_rewind(m, 2), UPFRONT_OK); /* the second room, and what lies above the rooms */
    CHECK(siblings_count == 2 && siblings_closed[0] == 4 && siblings_closed[1] == 2);
    CHECK(is_open(m, 0) && is_open(m, 1) && !is_open(m, 2) && is_open(m, 3) && !is_open(m, 4));
    CHECK(upfront_scope_temp(upfront_scope_open(upfront_map_row(m, 4)), 10, 1) != NULL);
    CHECK_EQ(upfront_map_rewind(m, 0), UPFRONT_OK);
    CHECK(siblings_count == 5 && siblings_closed[2] == 3 && siblings_closed[3] == 1 && siblings_closed[4] == 0);
    for (i = 0; i < 5; i++)
        CHECK(!is_open(m, i));
    map_sibling_words(m, size);
    window_free(w, size);
}

/* A pool's header lies in the tables: after a rewind it must not go on handing out chunks, nor stay taken. */
static void map_rewind_closes_pools(void) {
    uint64_t size = upfront_map_size(map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0), i, tag;
    unsigned char *w = window_new(size);
    upfront_map *m = upfront_map_init(w, size, map_plan, MAP_ROWS, MAP_SLOTS, MAP_POOLS, 0);
    upfront_row *level = upfront_map_row(m, 2);
    for (i = 0; i < 10; i++) {
        upfront_pool *p, *q;
        upfront_linear *s = upfront_row_slot(level, 0);
        uint64_t pool_tag;
        tag = upfront_row_open(level);
        CHECK_EQ(upfront_row_pool_open(s, tag, 16, 8, 100, 1, &p), UPFRONT_OK);
        CHECK_EQ(upfront_row_pool_open(s, tag, 16, 8, 100, 1, &q), UPFRONT_OK);
        pool_tag = q->free & ~UPFRONT_OFFSETS;
        CHECK(upfront_pool_get(q, pool_tag) != NULL);
        upfront_row_open(level); /* the pools are not this one's */
        CHECK(upfront_linear_bump(s + 1, upfront_tag(s + 1) + 8, 8, 0) != NULL);
        upfront_row_far_open(level);
        CHECK_EQ(upfront_map_rewind(m, 0), UPFRONT_OK);
        CHECK(upfront_pool_get(q, pool_tag) == NULL && q->live == 0 && q->open == 0);
    }
    window_free(w, size);
}

void test_map(void) {
    map_sizes();
    map_lays_out();
    map_rewinds_in_order();
    map_rewind_refuses();
    map_siblings();
    map_rewind_closes_pools();
}
