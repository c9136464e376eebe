/* random.c - random programs on one arena of a map: after every step the walk agrees, and no live byte has changed. */
#include "check.h"

enum { RANDOM_SLOTS = 6, RANDOM_POOLS = 4, RANDOM_LIVE = 512, RANDOM_STEPS = 20000, RANDOM_SIZE = 6 * 65536 };

typedef struct piece {
    unsigned char *at;
    uint64_t size, depth; /* depth: the scope it lies in; RANDOM_SLOTS + 1 for the far end */
    int value;
    upfront_pool *pool;
    uint64_t tag;
} piece;

static struct {
    piece live[RANDOM_LIVE];
    uint64_t count, seed;
    unsigned char *block;
    upfront_map *map;
    upfront_row *row;
    upfront_pool *pools[RANDOM_POOLS];
    uint64_t pool_tags[RANDOM_POOLS], pool_depths[RANDOM_POOLS], pool_count;
} world;

static uint64_t below(uint64_t n) { return next_random(&world.seed) % n; }

static void remember(void *at, uint64_t size, uint64_t depth, upfront_pool *pool, uint64_t tag) {
    piece *p = &world.live[world.count];
    uint64_t i;
    if (world.count == RANDOM_LIVE || at == NULL)
        return;
    for (i = 0; i < world.count; i++) {
        const piece *other = &world.live[i];
        CHECK((unsigned char *)at + size <= other->at || other->at + other->size <= (unsigned char *)at);
    }
    p->at = (unsigned char *)at;
    p->size = size;
    p->depth = depth;
    p->value = (int)below(256);
    p->pool = pool;
    p->tag = tag;
    fill(at, size, p->value);
    world.count++;
}

static void forget_depth(uint64_t depth) {
    uint64_t i, kept = 0;
    for (i = 0; i < world.count; i++) {
        CHECK(holds(world.live[i].at, world.live[i].size, world.live[i].value));
        if (world.live[i].depth != depth)
            world.live[kept++] = world.live[i];
    }
    world.count = kept;
}

static void step_alloc(upfront_linear *slot, uint64_t depth) {
    uint64_t size = below(8) == 0 ? below(RANDOM_SIZE) : below(300), mask = (UINT64_C(1) << below(17)) - 1;
    if (below(4) != 0)
        mask &= 63;
    remember(upfront_linear_bump(slot, upfront_tag(slot) + size, size, mask), size, depth, NULL, 0);
}

static void step_pool_open(void) {
    upfront_linear *slot = upfront_row_slot(world.row, world.row->open - 1);
    uint64_t i = world.pool_count, tag = upfront_tag(slot);
    if (i == RANDOM_POOLS)
        return;
    if (upfront_row_pool_open(slot, tag, below(100), UINT64_C(1) << below(8), below(40), 1, &world.pools[i]) != UPFRONT_OK)
        return;
    world.pool_tags[i] = world.pools[i]->free & ~UPFRONT_OFFSETS;
    world.pool_depths[i] = world.row->open;
    world.pool_count++;
}

static void step_put(void) {
    uint64_t i = below(world.count);
    piece *p = &world.live[i];
    if (p->pool == NULL)
        return;
    CHECK(holds(p->at, p->size, p->value));
    CHECK_EQ(upfront_pool_put(p->pool, p->tag, p->at), UPFRONT_OK);
    CHECK_EQ(upfront_pool_put(p->pool, p->tag, p->at), UPFRONT_DOUBLE);
    *p = world.live[--world.count];
}

static void step_close(void) {
    uint64_t depth = world.row->open;
    if (world.row->far_of == depth) {
        forget_depth(RANDOM_SLOTS + 1);
        upfront_row_far_close(world.row);
    }
    forget_depth(depth);
    while (world.pool_count != 0 && world.pool_depths[world.pool_count - 1] == depth)
        upfront_pool_close(world.pools[--world.pool_count]);
    upfront_row_close(world.row);
}

static void step(void) {
    upfront_row *r = world.row;
    uint64_t pool = world.pool_count == 0 ? 0 : below(world.pool_count);
    if (r->open == 0) {
        upfront_row_open(r);
        return;
    }
    switch (below(12)) {
    case 0:
        if (r->open < RANDOM_SLOTS)
            upfront_row_open(r);
        break;
    case 1: step_close(); break;
    case 2:
        if (r->far_of == 0)
            upfront_row_far_open(r);
        (void)upfront_row_far_grow(r, below(RANDOM_SIZE / 3), UINT64_C(1) << below(17));
        break;
    case 3:
    case 4: step_alloc(upfront_row_far(r), RANDOM_SLOTS + 1); break;
    case 5: step_pool_open(); break;
    case 6:
    case 7:
        if (world.pool_count != 0)
            remember(upfront_pool_get(world.pools[pool], world.pool_tags[pool]), world.pools[pool]->stride, world.pool_depths[pool],
                     world.pools[pool], world.pool_tags[pool]);
        break;
    case 8:
        if (world.count != 0)
            step_put();
        break;
    default: step_alloc(upfront_row_slot(r, r->open - 1), r->open); break;
    }
}

static void random_program(uint64_t seed) {
    static const upfront_map_arena plan[1] = {{"level", UPFRONT_REGION, RANDOM_SIZE, 1}};
    uint64_t size = upfront_map_size(plan, 1, RANDOM_SLOTS, RANDOM_POOLS, 0), i, count;
    upfront_range out[7];
    memset(&world, 0, sizeof world);
    world.seed = seed;
    world.block = window_new(size);
    world.map = upfront_map_init(world.block, size, plan, 1, RANDOM_SLOTS, RANDOM_POOLS, 0);
    world.row = upfront_map_row(world.map, 0);
    for (i = 0; i < RANDOM_STEPS; i++) {
        step();
        if (upfront_map_walk(world.map, size, out, 7, &count) != UPFRONT_OK) {
            fprintf(stderr, "random: seed %llu, step %llu: the walk says corrupt\n", (unsigned long long)seed, (unsigned long long)i);
            exit(1);
        }
    }
    while (world.row->open != 0)
        step_close();
    window_free(world.block, size);
}

void test_random(void) {
    uint64_t seed;
    for (seed = 1; seed <= 3; seed++)
        random_program(seed * 2654435761u);
}
