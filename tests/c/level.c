/* level.c - the C core without Go: opens a map; loads, plays and rewinds a level, three times. */
#include <stdio.h>

#include "upfront.h"

enum { SYSTEMS, LEVEL, REGIONS };
enum { SCOPES = 4, POOLS = 2, FROGS = 50, LEVELS = 3, BUDGET = 512 * 1024 };

/* The program's memory, from any source. The map begins at a multiple of 64 KiB. */
static unsigned char memory[BUDGET + UPFRONT_EDGE];

typedef struct frog {
    float x, y;
    uint64_t id;
} frog;

typedef struct log_file {
    int open;
} log_file;

static int logs_closed;

static void close_log(void *arg) {
    ((log_file *)arg)->open = 0;
    logs_closed++;
}

static int fail(const char *what) {
    fprintf(stderr, "level: %s\n", what);
    return 1;
}

/* A level's objects are made in its scope; closing it finalizes, newest first, and frees all in one
 * move. */
static int play(upfront_row *level, int number) {
    upfront_scope s = upfront_scope_open(&level->arena);
    upfront_scope temp = upfront_scope_temp(s, 64); /* a temporary, at the far end */
    char *text = (char *)upfront_scope_alloc(temp, 64, 1);
    log_file *log = (log_file *)upfront_scope_alloc(s, sizeof *log, 8);
    upfront_pool *frogs = upfront_scope_pool(s, sizeof(frog), 8, FROGS);
    uint64_t tag, i;
    if (text == NULL || log == NULL || frogs == NULL)
        return fail("full");
    log->open = 1;
    if (upfront_scope_defer(s, close_log, log) != UPFRONT_OK)
        return fail("no room for a finalizer");
    snprintf(text, 64, "pond %d", number);
    tag = frogs->gen;
    for (i = 0; i < FROGS; i++) {
        frog *f = (frog *)upfront_pool_get(frogs, tag);
        if (f == NULL)
            return fail("the pool is smaller than it said");
        f->id = i;
    }
    if (upfront_pool_get(frogs, tag) != NULL)
        return fail("the pool is larger than it said");
    printf("level: %s with %d frogs, %d bytes\n", text, (int)frogs->count, (int)upfront_row_used(level));
    if (upfront_scope_close(s) != UPFRONT_OK || upfront_pool_get(frogs, tag) != NULL)
        return fail("the level did not close");
    return 0;
}

int main(void) {
    const upfront_map_arena plan[REGIONS] = {{"systems", UPFRONT_REGION, 64 * 1024, 1, 0, 0},
        {"level", UPFRONT_REGION, 256 * 1024, 1, 0, 0}};
    unsigned char *block = memory + (UPFRONT_EDGE - (uintptr_t)memory % UPFRONT_EDGE) % UPFRONT_EDGE;
    upfront_map *map = upfront_map_init(block, BUDGET, plan, REGIONS, SCOPES, POOLS, 0);
    upfront_range ranges[5 * REGIONS + 2];
    uint64_t count, covered = 0, i;
    int number;
    if (map == NULL)
        return fail("the plan does not fit");
    for (number = 1; number <= LEVELS; number++)
        if (play(upfront_map_row(map, LEVEL), number) != 0)
            return 1;
    if (logs_closed != LEVELS)
        return fail("a finalizer did not run");
    if (upfront_map_walk(map, BUDGET, ranges, 5 * REGIONS + 2, &count) != UPFRONT_OK)
        return fail("the tables contradict themselves");
    for (i = 0; i < count; i++)
        covered += ranges[i].size;
    if (covered != BUDGET || upfront_row_used(upfront_map_row(map, LEVEL)) != 0)
        return fail("bytes are missing");
    printf("ok: %d levels in one block of %d bytes\n", LEVELS, BUDGET);
    return 0;
}
