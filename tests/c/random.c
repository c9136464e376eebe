/* random.c - random programs on one arena of a map: after every step the walk agrees, no live byte has changed, and each finalizer has run
 * once when what it lies in was closed. */
#include "check.h"

enum { RANDOM_SLOTS = 6, RANDOM_POOLS = 4, RANDOM_LIVE = 512, RANDOM_NODES = 64, RANDOM_STEPS = 20000, RANDOM_SIZE = 6 * 65536 };

/* A scope of either end. Its index: near ones from 0 up, temporary ones from RANDOM_SLOTS up. */
typedef struct life {
    upfront_scope scope;
    uint64_t near_index; /* of a temporary one: which near one it ends with */
    uint64_t count;      /* finalizers that have not run */
} life;

typedef struct piece {
    unsigned char *at;
    uint64_t size, of; /* the index of its scope */
    int value;
    upfront_pool *pool;
    uint64_t tag;
} piece;

typedef struct taken_pool {
    upfront_pool *pool;
    uint64_t tag, of;
} taken_pool;

static struct {
    piece live[RANDOM_LIVE];
    life lives[2 * RANDOM_SLOTS];
    taken_pool pools[RANDOM_POOLS];
    uint64_t count, pool_count, temps, last, seed;
    unsigned char *block;
    upfront_map *map;
    upfront_row *row;
} world;

static uint64_t below(uint64_t n) { return next_random(&world.seed) % n; }

static uint64_t top_near(void) { return world.row->arena.depth - 1; }

static uint64_t top_temp(void) { return RANDOM_SLOTS + world.temps - 1; }

/* The topmost scope of an end: of the far one now and then, if there is any. */
static uint64_t some_top(void) { return world.temps != 0 && below(3) == 0 ? top_temp() : top_near(); }

static void remember(void *at, uint64_t size, uint64_t of, const taken_pool *pool) {
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
    p->of = of;
    p->value = (int)below(256);
    p->pool = pool == NULL ? NULL : pool->pool;
    p->tag = pool == NULL ? 0 : pool->tag;
    fill(at, size, p->value);
    world.count++;
}

/* Before a scope closes: all bytes are as they were, and it has no more of them. */
static void forget(uint64_t of) {
    uint64_t i, kept = 0;
    for (i = 0; i < world.count; i++) {
        CHECK(holds(world.live[i].at, world.live[i].size, world.live[i].value));
        if (world.live[i].of != of)
            world.live[kept++] = world.live[i];
    }
    world.count = kept;
    while (world.pool_count != 0 && world.pools[world.pool_count - 1].of == of)
        world.pool_count--;
    for (i = 0; i < world.pool_count; i++)
        CHECK(world.pools[i].of != of); /* pools of newer scopes went first */
}

static void finalize(void *arg) {
    life *l = (life *)arg;
    CHECK(l->count != 0);
    l->count--;
}

static void step_alloc(void) {
    uint64_t of = some_top(), size = below(8) == 0 ? below(RANDOM_SIZE) : below(300), mask = (UINT64_C(1) << below(21)) - 1;
    upfront_scope s = world.lives[of].scope;
    if (below(4) != 0)
        mask &= 63;
    switch (below(4)) {
    case 0: remember(upfront_scopes_grow(s.arena, s.gen, s.arena->arena.cursor, size), size, of, NULL); break;
    case 1: remember(upfront_scopes_bump(s.arena, s.gen, size, mask), size, of, NULL); break;
    default: remember(upfront_scope_alloc(s, size, mask + 1), size, of, NULL); break;
    }
}

static void step_pool_open(void) {
    taken_pool *p = &world.pools[world.pool_count];
    uint64_t before, of = some_top();
    upfront_scope s = world.lives[of].scope;
    int code;
    if (world.pool_count == RANDOM_POOLS || (world.temps != 0 && of < RANDOM_SLOTS))
        return; /* so pools end in the order in which they were made */
    before = s.arena->arena.cursor;
    code = upfront_scope_pool_of(s, below(100), UINT64_C(1) << below(8), below(40), 0, 0, &p->pool);
    if (code != UPFRONT_OK) {
        CHECK(code == UPFRONT_FULL && s.arena->arena.cursor == before);
        return;
    }
    p->tag = p->pool->gen;
    CHECK_EQ(p->tag, ++world.last); /* of the near end, whichever end the pool lies at */
    p->of = of;
    world.pool_count++;
}

static void step_get(void) {
    const taken_pool *p = &world.pools[below(world.pool_count)];
    remember(upfront_pool_get(p->pool, p->tag), p->pool->stride, p->of, p);
}

static void step_put(void) {
    piece *p = &world.live[below(world.count)];
    if (p->pool == NULL)
        return;
    CHECK(holds(p->at, p->size, p->value));
    CHECK_EQ(upfront_pool_put(p->pool, p->tag, p->at), UPFRONT_OK);
    CHECK_EQ(upfront_pool_put(p->pool, p->tag, p->at), UPFRONT_DOUBLE);
    *p = world.live[--world.count];
}

static void step_defer(void) {
    life *l = &world.lives[some_top()];
    if (l->count < RANDOM_NODES) {
        l->count++; /* one that finds no room runs at once */
        (void)upfront_scope_defer(l->scope, finalize, l);
    }
}

static void step_temp(void) {
    uint64_t of = some_top(), before = upfront_row_used(world.row);
    life *l = &world.lives[RANDOM_SLOTS + world.temps];
    upfront_scope s = upfront_scope_temp(world.lives[of].scope, below(RANDOM_SIZE / 3));
    if (s.arena == NULL) {
        CHECK_EQ(upfront_row_used(world.row), before);
        return;
    }
    l->scope = s;
    l->near_index = of < RANDOM_SLOTS ? of : world.lives[of].near_index;
    l->count = 0;
    world.temps++;
}

static void step_open(void) {
    life *l;
    if (world.row->arena.depth == RANDOM_SLOTS)
        return;
    l = &world.lives[world.row->arena.depth];
    l->scope = upfront_scope_open(&world.row->arena);
    l->count = 0;
    CHECK_EQ(l->scope.gen, ++world.last);
}

static void check_closed(const life *l) {
    CHECK_EQ(l->count, 0);
    CHECK(!upfront_scope_is_alive(l->scope) && upfront_scope_alloc(l->scope, 0, 1) == NULL);
    CHECK_EQ(upfront_scope_close(l->scope), UPFRONT_STALE);
}

static void step_close_temp(void) {
    if (world.temps > 1)
        CHECK_EQ(upfront_scope_close(world.lives[RANDOM_SLOTS].scope), UPFRONT_ORDER);
    forget(top_temp());
    CHECK_EQ(upfront_scope_close(world.lives[top_temp()].scope), UPFRONT_OK);
    check_closed(&world.lives[top_temp()]);
    world.temps--;
}

static void step_close(void) {
    uint64_t near_index = top_near(), temps = world.temps, i;
    if (near_index > 0)
        CHECK_EQ(upfront_scope_close(world.lives[0].scope), UPFRONT_ORDER);
    while (world.temps != 0 && world.lives[top_temp()].near_index == near_index) {
        forget(top_temp());
        world.temps--;
    }
    forget(near_index);
    CHECK_EQ(upfront_scope_close(world.lives[near_index].scope), UPFRONT_OK);
    check_closed(&world.lives[near_index]);
    for (i = world.temps; i < temps; i++)
        check_closed(&world.lives[RANDOM_SLOTS + i]);
}

static void step(void) {
    if (world.row->arena.depth == 0) {
        step_open();
        return;
    }
    switch (below(12)) {
    case 0: step_open(); break;
    case 1: below(2) == 0 ? step_close() : step_defer(); break;
    case 2: step_temp(); break;
    case 3:
        if (world.temps != 0)
            step_close_temp();
        break;
    case 4: step_defer(); break;
    case 5: step_pool_open(); break;
    case 6:
    case 7:
        if (world.pool_count != 0)
            step_get();
        break;
    case 8:
        if (world.count != 0)
            step_put();
        break;
    default: step_alloc(); break;
    }
}

static void random_program(uint64_t seed) {
    static const upfront_map_arena plan[1] = {{"level", UPFRONT_REGION, RANDOM_SIZE, 1}};
    uint64_t size = upfront_map_size(plan, 1, RANDOM_SLOTS, RANDOM_POOLS, 0), i, count;
    upfront_range out[9];
    memset(&world, 0, sizeof world);
    world.seed = seed;
    world.block = window_new(size);
    world.map = upfront_map_init(world.block, size, plan, 1, RANDOM_SLOTS, RANDOM_POOLS, 0);
    world.row = upfront_map_row(world.map, 0);
    for (i = 0; i < RANDOM_STEPS; i++) {
        step();
        CHECK_EQ(world.row->temp.depth, world.temps);
        if (upfront_map_walk(world.map, size, out, 9, &count) != UPFRONT_OK) {
            fprintf(stderr, "random: seed %llu, step %llu: the walk says corrupt\n", (unsigned long long)seed, (unsigned long long)i);
            exit(1);
        }
    }
    while (world.row->arena.depth != 0)
        step_close();
    CHECK_EQ(upfront_row_used(world.row), 0);
    CHECK_EQ(world.temps, 0);
    window_free(world.block, size);
}

void test_random(void) {
    uint64_t seed;
    for (seed = 1; seed <= 3; seed++)
        random_program(seed * 2654435761u);
}
