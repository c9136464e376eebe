/* walk.c - tests of upfront_map_walk: every byte has one name, and a word that can't be is told. */
#include "check.h"

enum { WALK_ROWS = 5, WALK_SLOTS = 3, WALK_POOLS = 2, WALK_RANGES = 5 * WALK_ROWS + 2 };

static const upfront_map_arena walk_plan[WALK_ROWS] = {
    {"init", UPFRONT_REGION, 3000, 1},   {"level", UPFRONT_REGION, 5 * WINDOW + 24, 1}, {"frame 0", UPFRONT_FRAME, WINDOW, 1},
    {"pad 0.0", UPFRONT_PAD, 0, 1}, {"pad 0.1", UPFRONT_PAD, 4096, 1},
};

static uint64_t walk_size;
static unsigned char *block;
static upfront_map *map;

static void take_bytes(upfront_row *r, uint64_t size) {
    upfront_linear *s = upfront_row_slot(r, r->open - 1);
    CHECK(upfront_linear_bump(s, upfront_tag(s) + size, size, 0) != NULL);
}

static void take_node(upfront_linear *s) { upfront_row_link(s, upfront_row_node(s, upfront_tag(s)), 3, 4); }

/* A map with one of each: nested scopes, finalizers, both ends, pools open and closed, a frozen scope, rows without a scope. The plan is
 * smaller than the block, whose size is not a multiple of an edge. */
static void walk_open(void) {
    upfront_row *level;
    upfront_linear *s;
    upfront_pool *pool[2];
    walk_size = upfront_map_size(walk_plan, WALK_ROWS, WALK_SLOTS, WALK_POOLS, 0) + 4096;
    block = window_new(walk_size);
    map = upfront_map_init(block, walk_size, walk_plan, WALK_ROWS, WALK_SLOTS, WALK_POOLS, 0);
    CHECK(map != NULL);
    upfront_row_open(upfront_map_row(map, 0));
    take_bytes(upfront_map_row(map, 0), 3000);
    level = upfront_map_row(map, 1);
    upfront_row_open(level);
    take_bytes(level, 1000);
    take_node(upfront_row_slot(level, 0));
    upfront_row_open(level);
    s = upfront_row_slot(level, 1);
    take_node(s);
    CHECK_EQ(upfront_row_pool_open(s, upfront_tag(s), 24, 8, 20, 9, &pool[0]), UPFRONT_OK);
    CHECK_EQ(upfront_row_pool_open(s, upfront_tag(s), 24, 8, 20, 9, &pool[1]), UPFRONT_OK);
    CHECK(upfront_pool_get(pool[0], pool[0]->free & ~UPFRONT_OFFSETS) != NULL);
    upfront_pool_close(pool[1]);
    upfront_row_far_open(level);
    CHECK_EQ(upfront_row_far_grow(level, 100, 8), UPFRONT_OK);
    take_node(upfront_row_far(level));
    upfront_row_open(upfront_map_row(map, 2));
    take_bytes(upfront_map_row(map, 2), 64); /* see untold_of_row */
    upfront_row_freeze(upfront_row_slot(upfront_map_row(map, 2), 0));
}

static void walk_close(void) { window_free(block, walk_size); }

static int walks(uint64_t *count) {
    static upfront_range out[WALK_RANGES];
    return upfront_map_walk(map, walk_size, out, WALK_RANGES, count);
}

static int is_told(void) {
    uint64_t count;
    return walks(&count) == UPFRONT_CORRUPT;
}

static void walk_names_every_byte(void) {
    upfront_range out[WALK_RANGES];
    uint64_t count, needed, i, at = 0, room, sum[7] = {0};
    walk_open();
    CHECK_EQ(upfront_map_walk(map, walk_size, out, WALK_RANGES, &needed), UPFRONT_OK);
    CHECK(needed <= WALK_RANGES);
    for (i = 0; i < needed; i++) {
        CHECK_EQ(out[i].offset, at);
        CHECK(out[i].size != 0 && out[i].what >= UPFRONT_RANGE_TABLES && out[i].what <= UPFRONT_RANGE_UNPLANNED);
        CHECK((out[i].row == WALK_ROWS) == (out[i].what == UPFRONT_RANGE_TABLES || out[i].what == UPFRONT_RANGE_UNPLANNED || i == 1));
        sum[out[i].what] += out[i].size;
        at += out[i].size;
    }
    CHECK_EQ(at, walk_size);
    CHECK_EQ(sum[UPFRONT_RANGE_TABLES], map->tables);
    CHECK_EQ(sum[UPFRONT_RANGE_UNPLANNED], 4096);
    CHECK_EQ(sum[UPFRONT_RANGE_TEMP], UPFRONT_PIECE);
    for (room = 0; room < needed; room++) {
        upfront_range few[WALK_RANGES];
        memset(few, 0xee, sizeof few);
        CHECK_EQ(upfront_map_walk(map, walk_size, room == 0 ? NULL : few, room, &count), UPFRONT_FULL);
        CHECK_EQ(count, needed);
        CHECK(memcmp(few, out, (size_t)room * sizeof few[0]) == 0 && holds(few + room, (WALK_RANGES - room) * sizeof few[0], 0xee));
    }
    CHECK_EQ(upfront_map_walk(NULL, walk_size, out, WALK_RANGES, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_walk(map, walk_size, out, WALK_RANGES, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_walk(map, walk_size, NULL, 1, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_walk(map, walk_size - 1, out, WALK_RANGES, &count), UPFRONT_CORRUPT);
    CHECK_EQ(count, WALK_ROWS);
    walk_close();
}

/* The words below are where a word lies in its struct, in words. */
#define WORD(type, member) (offsetof(type, member) / 8)

static const uint64_t all = UINT64_MAX, none = 0;
static const uint64_t places = 0xfffff;                /* an offset inside the block is wrong but possible */
static const uint64_t counts = ~(UPFRONT_OBJECT - 1);  /* how often something happened */
static const uint64_t generations = ~(UPFRONT_GENERATION - 1);

static uint64_t untold_of_row(const upfront_row *r, uint64_t word) {
    uint64_t mask = 0, i, ends = strlen(r->name);
    if (word < 4) { /* the characters, and the zero behind them, which may be one more */
        for (i = 0; i < 8; i++)
            if (word * 8 + i <= ends)
                memset((unsigned char *)&mask + i, 0xff, 1);
        return mask;
    }
    switch (word) {
    case WORD(upfront_row, owner): return all; /* the owner's */
    case WORD(upfront_row, kind): return 3;    /* one kind for another */
    case WORD(upfront_row, peak): return places;
    case WORD(upfront_row, open): return r->open == 0 ? 3 : none; /* a closed slot looks like a frozen scope without a byte */
    default: return none;
    }
}

static uint64_t untold_of_slot(const upfront_row *r, uint64_t index, uint64_t word) {
    int is_far = index == r->slots, is_open = is_far ? r->far_of != 0 : index < r->open, is_top = is_far || index + 1 == r->open;
    switch (word) {
    case WORD(upfront_linear, cursor): return is_open && is_top ? places : none; /* a covered one ends where its child begins */
    case WORD(upfront_linear, limit): return is_far && is_open ? generations | places : generations;
    case WORD(upfront_linear, count): return is_open ? counts | places : all; /* a sum up to what is used; a closed one's is nothing's */
    case WORD(upfront_linear, chain): return is_open ? places : none;
    case WORD(upfront_linear, refused): return all; /* anything may have been asked for */
    default: return none;
    }
}

static uint64_t untold_of_pool(const upfront_pool *p, uint64_t word) {
    switch (word) {
    case WORD(upfront_pool, free): return p->open ? 31 : none;
    case WORD(upfront_pool, bound): return p->open ? 0xffff : none; /* more or fewer chunks, where there is room for them */
    case WORD(upfront_pool, live): return p->open ? 31 : none;
    case WORD(upfront_pool, kind): return all; /* the owner's */
    case WORD(upfront_pool, chunks): return p->open ? places & ~UINT64_C(7) : all;
    case WORD(upfront_pool, open): return p->open ? none : 1; /* a closed one with good words becomes one of no chunks */
    default: return p->open ? none : all;                     /* of a closed one the rest is not read */
    }
}

/* Which bits of the word at `word` words from the map may be wrong unnoticed. */
static uint64_t untold(uint64_t word) {
    uint64_t row_words = upfront_row_size(WALK_SLOTS, WALK_POOLS) / 8, row, rest;
    const upfront_row *r;
    if (word < sizeof(upfront_map) / 8)
        return none;
    row = (word - sizeof(upfront_map) / 8) / row_words;
    rest = (word - sizeof(upfront_map) / 8) % row_words;
    r = upfront_map_row(map, row);
    if (rest < sizeof(upfront_row) / 8)
        return untold_of_row(r, rest);
    rest -= sizeof(upfront_row) / 8;
    if (rest / 8 <= WALK_SLOTS)
        return untold_of_slot(r, rest / 8, rest % 8);
    return untold_of_pool(upfront_row_pool(r, rest / 8 - WALK_SLOTS - 1), rest % 8);
}

/* Every bit of every control word in turn, and all bits of a word at once. */
static void walk_tells_each_word(void) {
    uint64_t word, bit, told = 0, kept = 0, count;
    walk_open();
    for (word = 0; word < map->tables / 8; word++) {
        uint64_t *at = (uint64_t *)(void *)map + word, good = *at, mask = untold(word);
        for (bit = 0; bit < 64; bit++) {
            *at = good ^ (UINT64_C(1) << bit);
            if (is_told())
                told++;
            else if ((mask >> bit & 1) == 0) {
                fprintf(stderr, "walk: bit %d of word %d of the tables flips unnoticed\n", (int)bit, (int)word);
                exit(1);
            } else
                kept++;
        }
        *at = ~good;
        CHECK(is_told() || mask == all || (mask | generations) == all || word % 8 < 4);
        *at = good;
    }
    CHECK_EQ(walks(&count), UPFRONT_OK);
    CHECK(told > kept);
    walk_close();
}

/* Contradictions of two words, and those that one flipped bit doesn't reach. */
static void walk_tells_pairs(void) {
    upfront_row *r, *last;
    upfront_pool *p;
    upfront_map good_map;
    upfront_row good;
    uint64_t count;
    walk_open();
    good_map = *map;
    map->rows = map->slots = 65535;
    map->pools = 0;
    map->tables = sizeof *map + map->rows * upfront_row_size(map->slots, map->pools);
    CHECK(is_told()); /* tables larger than the block: nothing is read there */
    *map = good_map;
    last = upfront_map_row(map, WALK_ROWS - 1);
    good = *last;
    last->end = last->edge = walk_size; /* inside the block, but the next edge isn't */
    CHECK(is_told());
    last->end = last->edge = walk_size + 1;
    CHECK(is_told());
    *last = good;
    r = upfront_map_row(map, 1);
    good = *r;
    memset(r->name, 'x', sizeof r->name);
    CHECK_EQ(walks(&count), UPFRONT_CORRUPT);
    CHECK_EQ(count, 1); /* which row it was */
    *r = good;
    CHECK(!is_told());
    p = upfront_row_pool(r, 0);
    p->inverse = UINT64_MAX / 12 + 1;
    p->stride = 12;
    CHECK(is_told());
    p->stride = WINDOW; /* good words of chunks that would not fit */
    p->inverse = UINT64_MAX / WINDOW + 1;
    CHECK(is_told());
    p->stride = 24;
    p->inverse = UINT64_MAX / 24 + 1;
    p->live = 20; /* all live, and yet one to take */
    CHECK(is_told());
    p->live = 1;
    p->chunks += 40000 * 24; /* behind the arena */
    CHECK(is_told());
    p->chunks -= 40000 * 24;
    CHECK(!is_told());
    walk_close();
}

/* No scope was asked for more than it uses: up to that byte a sum is possible, beyond it isn't. */
static void walk_tells_sums(void) {
    upfront_row *r;
    uint64_t i, used;
    walk_open();
    r = upfront_map_row(map, 1);
    for (i = 0; i < 3; i++) {
        upfront_linear *s = i == 2 ? upfront_row_far(r) : upfront_row_slot(r, i);
        uint64_t good = s->count;
        used = i == 2 ? r->end - r->edge : s->cursor - s->start;
        s->count = 5 * UPFRONT_OBJECT + used;
        CHECK(!is_told());
        s->count++;
        CHECK(is_told());
        s->count = good;
    }
    upfront_row_slot(r, 2)->count = UINT64_MAX; /* closed */
    CHECK(!is_told());
    walk_close();
}

/* While the temporaries' finalizers run the far end is frozen, with its pieces there: a report made then must not cry wolf. */
static void walk_while_closing(void) {
    upfront_node node;
    upfront_row *r;
    walk_open();
    r = upfront_map_row(map, 1);
    upfront_row_freeze(upfront_row_far(r));
    CHECK(!is_told());
    CHECK(upfront_row_unlink(upfront_row_far(r), &node));
    CHECK(!is_told());
    upfront_row_far_close(r);
    CHECK(!is_told());
    upfront_row_far_open(r);
    CHECK(!is_told());
    walk_close();
}

void test_walk(void) {
    walk_names_every_byte();
    walk_tells_each_word();
    walk_tells_pairs();
    walk_tells_sums();
    walk_while_closing();
}
