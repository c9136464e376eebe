/* level.c - the C core without Go: a map is opened, a level is loaded, played and rewound, three times over. */
#include <stdio.h>

#include "upfront.h"

enum { SLOTS = 4, POOLS = 2, FROGS = 50, LEVELS = 3, CLOSE_LOG = 1, BUDGET = 512 * 1024 };

/* The program's memory: all of it, taken once, from wherever it likes. The map begins at a boundary of 64 KiB. */
static unsigned char memory[BUDGET + UPFRONT_EDGE];

typedef struct frog {
    float x, y;
    uint64_t id;
} frog;

static int logs_closed;

static int fail(const char *what) {
    fprintf(stderr, "level: %s\n", what);
    return 1;
}

/* Who opens a scope runs its finalizers: newest first, each leaves the chain before it runs. */
static void run_finalizers(upfront_linear *scope) {
    upfront_node node;
    while (upfront_row_unlink(scope, &node))
        if (node.below / UPFRONT_GENERATION == CLOSE_LOG)
            logs_closed++;
}

static int play(upfront_row *level, uint64_t number) {
    upfront_linear *scope = upfront_row_slot(level, level->open);
    uint64_t tag = upfront_row_open(level), far_tag = upfront_row_far_open(level), i;
    upfront_linear *temp = upfront_row_far(level);
    upfront_node *node = upfront_row_node(scope, tag);
    upfront_pool *frogs;
    char *text;
    if (upfront_row_far_grow(level, 64, 8) != UPFRONT_OK)
        return fail("no room for temporaries");
    text = (char *)upfront_linear_bump(temp, far_tag + 64, 64, 7);
    if (text == NULL || node == NULL)
        return fail("full before the level began");
    snprintf(text, 64, "pond %d", (int)number);
    upfront_row_link(scope, node, CLOSE_LOG, number);
    if (upfront_row_pool_open(scope, tag, sizeof(frog), 8, FROGS, 0, &frogs) != UPFRONT_OK)
        return fail("no room for the frogs");
    for (i = 0; i < FROGS; i++) {
        frog *f = (frog *)upfront_pool_get(frogs, frogs->free & ~UPFRONT_OFFSETS);
        if (f == NULL)
            return fail("the pool is smaller than it said");
        f->id = i;
    }
    if (upfront_pool_get(frogs, frogs->bound & ~UPFRONT_OFFSETS) != NULL)
        return fail("the pool is larger than it said");
    printf("level: %s with %d frogs, %d bytes\n", text, (int)upfront_pool_count(frogs), (int)upfront_row_used(level));
    upfront_row_far_close(level);
    return 0;
}

int main(void) {
    static const upfront_map_arena plan[] = {{"init", UPFRONT_REGION, 4096}, {"systems", UPFRONT_REGION, 8192},
                                             {"level", UPFRONT_REGION, 100000}, {"pad", UPFRONT_PAD, 4096}};
    uint64_t size = upfront_map_size(plan, 4, SLOTS, POOLS), number, count;
    void *block = memory + (UPFRONT_EDGE - ((uintptr_t)memory & (UPFRONT_EDGE - 1)));
    upfront_range ranges[5 * 4 + 2];
    upfront_map *m;
    upfront_row *level;
    if (size == 0 || size > BUDGET)
        return fail("the plan is larger than the budget");
    m = upfront_map_init(block, size, plan, 4, SLOTS, POOLS);
    if (m == NULL)
        return fail("the map was refused");
    level = upfront_map_row(m, 2);
    for (number = 0; number < LEVELS; number++) {
        if (play(level, number) != 0)
            return 1;
        if (upfront_map_rewind(m, 2) != UPFRONT_ORDER)
            return fail("rewound over a finalizer");
        run_finalizers(upfront_row_slot(level, 0));
        if (upfront_map_rewind(m, 2) != UPFRONT_OK || upfront_row_used(level) != 0)
            return fail("the level did not go");
        if (upfront_map_walk(m, size, ranges, 5 * 4 + 2, &count) != UPFRONT_OK)
            return fail("the tables contradict themselves");
    }
    if (logs_closed != LEVELS)
        return fail("a finalizer did not run exactly once");
    puts("ok: a level without Go");
    return 0;
}
