/* reconfigure.c - tests of guards between arenas, and of edges that move while no scope is open. */
#include "check.h"

enum { RECONFIGURE_ROWS = 6, RECONFIGURE_SLOTS = 3, RECONFIGURE_POOLS = 1,
    RECONFIGURE_RANGES = 6 * RECONFIGURE_ROWS + 3 };

static const upfront_map_arena reconfigure_plan[] = {
    {"init", UPFRONT_REGION, 1000, 1, 0, 0},
    {"match", UPFRONT_REGION, 2 * WINDOW, 3, 0, 0},
    {"level", UPFRONT_REGION, 3 * WINDOW - 1, 1, 0, 0},
    {"scratch 0.0", UPFRONT_SCRATCH, WINDOW, 1, 0, 0},
};

static uint64_t reconfigure_size;
static unsigned char *reconfigure_block;
static upfront_map *reconfigure_map;

static void reconfigure_open(uint64_t guard) {
    reconfigure_size = upfront_map_size(reconfigure_plan, 4, RECONFIGURE_SLOTS, RECONFIGURE_POOLS, guard);
    CHECK_EQ(reconfigure_size, WINDOW + WINDOW + 6 * WINDOW + 3 * WINDOW + WINDOW + 7 * guard);
    reconfigure_block = window_new(reconfigure_size);
    reconfigure_map = upfront_map_init(reconfigure_block, reconfigure_size, reconfigure_plan, 4, RECONFIGURE_SLOTS,
                                       RECONFIGURE_POOLS, guard);
    CHECK(reconfigure_map != NULL);
}

/* Each row has a used, a free and an edge range, and a guard after it. */
static void reconfigure_walks(uint64_t guard) {
    static upfront_range out[RECONFIGURE_RANGES];
    uint64_t count, i, at = 0, guards = 0;
    CHECK_EQ(upfront_map_walk(reconfigure_map, reconfigure_size, out, RECONFIGURE_RANGES, &count), UPFRONT_OK);
    for (i = 0; i < count; i++) {
        CHECK_EQ(out[i].offset, at);
        at += out[i].size;
        if (out[i].what == UPFRONT_RANGE_GUARD) {
            CHECK_EQ(out[i].size, guard);
            CHECK_EQ(out[i].row, guards == 0 ? (uint64_t)RECONFIGURE_ROWS : guards - 1);
            guards++;
        }
    }
    CHECK_EQ(at, reconfigure_size);
    CHECK_EQ(guards, guard == 0 ? 0 : RECONFIGURE_ROWS + 1);
}

static void guards_are_between(void) {
    uint64_t guard, i, at;
    upfront_map_arena a = reconfigure_plan[0];
    CHECK_EQ(upfront_map_size(&a, 1, 1, 0, WINDOW - 1), 0);
    CHECK_EQ(upfront_map_size(&a, 1, 1, 0, UPFRONT_OFFSET_MAX), 0);
    CHECK_EQ(upfront_map_size(&a, 1, 1, 0, UPFRONT_OFFSET_MAX - WINDOW), 0);
    for (guard = 0; guard <= 2 * WINDOW; guard += WINDOW) {
        reconfigure_open(guard);
        at = WINDOW + guard;
        for (i = 0; i < RECONFIGURE_ROWS; i++) {
            const upfront_row *r = upfront_map_row(reconfigure_map, i);
            CHECK_EQ(upfront_map_start(reconfigure_map, r), at);
            at = upfront_round_edge(upfront_map_end(reconfigure_map, r)) + guard;
        }
        CHECK_EQ(at, reconfigure_size);
        reconfigure_walks(guard);
        window_free(reconfigure_block, reconfigure_size);
    }
}

static void guard_words_are_checked(void) {
    uint64_t count;
    reconfigure_open(WINDOW);
    reconfigure_map->guard = WINDOW / 2;
    CHECK_EQ(upfront_map_walk(reconfigure_map, reconfigure_size, NULL, 0, &count), UPFRONT_CORRUPT);
    CHECK_EQ(count, RECONFIGURE_ROWS);
    reconfigure_map->guard = 2 * WINDOW;
    CHECK_EQ(upfront_map_walk(reconfigure_map, reconfigure_size, NULL, 0, &count), UPFRONT_CORRUPT);
    CHECK_EQ(count, 0);
    reconfigure_map->guard = reconfigure_size;
    CHECK_EQ(upfront_map_walk(reconfigure_map, reconfigure_size, NULL, 0, &count), UPFRONT_CORRUPT);
    CHECK_EQ(count, RECONFIGURE_ROWS);
    window_free(reconfigure_block, reconfigure_size);
}

static void reconfigure_refuses(uint64_t row, const uint64_t *sizes, uint64_t count, int code) {
    static unsigned char before[WINDOW];
    memcpy(before, reconfigure_block, WINDOW);
    CHECK_EQ(upfront_map_reconfigure(reconfigure_map, row, sizes, count), code);
    CHECK(memcmp(before, reconfigure_block, WINDOW) == 0);
}

static void edges_move(uint64_t guard) {
    const uint64_t as_planned[] = {1000, 2 * WINDOW, 2 * WINDOW, 2 * WINDOW, 3 * WINDOW - 1, WINDOW};
    const uint64_t sizes[] = {WINDOW + 5, WINDOW + 5, WINDOW, 3 * WINDOW};
    uint64_t all[] = {2 * WINDOW, WINDOW, WINDOW, WINDOW, 5 * WINDOW - 7};
    upfront_row *match, *level;
    upfront_scope s, again;
    uint64_t i;
    reconfigure_open(guard);
    match = upfront_map_row(reconfigure_map, 1);
    level = upfront_map_row(reconfigure_map, 4);
    level->arena.owner = 77, level->temp.owner = 78, level->arena.base = 1, level->arena.odd = 4, level->temp.odd = 8;
    /* scratch too, while it is empty */
    CHECK_EQ(upfront_map_reconfigure(reconfigure_map, 0, as_planned, RECONFIGURE_ROWS), UPFRONT_OK);
    reconfigure_walks(guard);
    s = upfront_scope_open(&level->arena);
    reconfigure_refuses(0, all, 5, UPFRONT_ORDER);
    row_close(upfront_map_row(reconfigure_map, 4));
    reconfigure_refuses(0, NULL, 5, UPFRONT_BAD_ARGUMENT);
    reconfigure_refuses(0, all, 0, UPFRONT_BAD_ARGUMENT);
    reconfigure_refuses(0, all, 4, UPFRONT_BAD_ARGUMENT); /* the sizes have another sum */
    reconfigure_refuses(6, all, 1, UPFRONT_BAD_ARGUMENT);
    reconfigure_refuses(UINT64_MAX, all, 1, UPFRONT_BAD_ARGUMENT);
    reconfigure_refuses(5, all, 2, UPFRONT_BAD_ARGUMENT);
    reconfigure_refuses(1, sizes, 4, UPFRONT_BAD_ARGUMENT); /* siblings differ */
    reconfigure_refuses(2, all, 3, UPFRONT_BAD_ARGUMENT);   /* begins among siblings */
    all[0] = 3 * WINDOW;
    reconfigure_refuses(0, all, 3, UPFRONT_BAD_ARGUMENT); /* ends among siblings, for any sum */
    all[0] = WINDOW, all[1] = all[2] = 2 * WINDOW;
    reconfigure_refuses(0, all, 3, UPFRONT_BAD_ARGUMENT);
    all[0] = UPFRONT_OFFSET_MAX;
    reconfigure_refuses(0, all, 5, UPFRONT_BAD_ARGUMENT);
    all[0] = 2 * WINDOW, all[1] = all[2] = all[3] = WINDOW;
    CHECK_EQ(upfront_map_reconfigure(NULL, 0, all, 5), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_reconfigure(reconfigure_map, 0, all, 5), UPFRONT_OK);
    for (i = 0; i < 5; i++)
        CHECK_EQ(upfront_map_row(reconfigure_map, i)->end - upfront_map_row(reconfigure_map, i)->arena.arena.start,
            all[i]);
    reconfigure_walks(guard);
    CHECK(level->arena.owner == 77 && level->temp.owner == 78 && level->arena.base == 1 && level->arena.odd == 4 &&
        level->temp.odd == 8);
    CHECK(strcmp(level->name, "level") == 0 && level->kind == UPFRONT_REGION && upfront_row_group(level) == 4);
    CHECK(upfront_row_group(match) == 1 && upfront_row_sibling(upfront_map_row(reconfigure_map, 3)) == 2);
    CHECK(upfront_scope_alloc(s, 0, 1) == NULL); /* stale */
    again = upfront_scope_open(&level->arena);
    CHECK_EQ(again.gen, s.gen + 1);
    CHECK(upfront_scope_alloc(again, all[4] + 1, 1) == NULL);
    fill(upfront_scope_alloc(again, all[4], 1), all[4], 9);
    reconfigure_walks(guard);
    row_close(upfront_map_row(reconfigure_map, 4));
    window_free(reconfigure_block, reconfigure_size);
}

void test_reconfigure(void) {
    guards_are_between();
    guard_words_are_checked();
    edges_move(0);
    edges_move(WINDOW);
}
