/* walk.c - tests of upfront_map_walk: every byte is in one range, and impossible words are
 * found. */
#include "check.h"

enum { WALK_ROWS = 5, WALK_SLOTS = 3, WALK_POOLS = 2, WALK_RANGES = 6 * WALK_ROWS + 3 };

static const upfront_map_arena walk_plan[WALK_ROWS] = {
    {"init", UPFRONT_REGION, 3000, 1, 0, 0},   {"level", UPFRONT_REGION, 5 * WINDOW + 24, 1, 0, 0},
        {"frame 0", UPFRONT_FRAME, WINDOW, 1, 0, 0},
    {"scratch 0.0", UPFRONT_SCRATCH, 0, 1, 0, 0}, {"scratch 0.1", UPFRONT_SCRATCH, 4096, 1, 0, 0},
};

static uint64_t walk_size;
static unsigned char *block;
static upfront_map *map;

static upfront_scope walk_level, walk_temp; /* the topmost scope of each end of the level */

static void take_node(upfront_scope s) { upfront_scopes_link(s.arena, upfront_scopes_node(s.arena, s.gen, 8, 7),
    OTHER_CLASS); }

/* A map of nested scopes, finalizers, both ends, open and closed pools, a frozen scope, and rows
 * without a scope. The plan is smaller than the block, whose size isn't a multiple of an edge. */
static void walk_open(void) {
    upfront_scope s;
    upfront_pool *pool[2];
    walk_size = upfront_map_size(walk_plan, WALK_ROWS, WALK_SLOTS, WALK_POOLS, 0) + 4096;
    block = window_new(walk_size);
    map = upfront_map_init(block, walk_size, walk_plan, WALK_ROWS, WALK_SLOTS, WALK_POOLS, 0);
    CHECK(map != NULL);
    s = upfront_scope_open(&upfront_map_row(map, 0)->arena);
    CHECK(upfront_scope_alloc(s, 3000, 1) != NULL);
    s = upfront_scope_open(&upfront_map_row(map, 1)->arena);
    CHECK(upfront_scope_alloc(s, 1000, 1) != NULL);
    take_node(s);
    CHECK(upfront_scope_temp(s, 5000).arena != NULL);
    walk_level = upfront_scope_open(s.arena);
    take_node(walk_level);
    CHECK_EQ(upfront_scope_pool_of(walk_level, 24, 8, 20, 9, 0, &pool[0]), UPFRONT_OK);
    CHECK_EQ(upfront_scope_pool_of(walk_level, 24, 8, 20, 9, 0, &pool[1]), UPFRONT_OK);
    CHECK(upfront_pool_get(pool[0], pool[0]->gen) != NULL);
    upfront_pool_close(pool[1]);
    walk_temp = upfront_scope_temp(walk_level, 10000);
    take_node(walk_temp);
    s = upfront_scope_open(&upfront_map_row(map, 2)->arena);
    CHECK(upfront_scope_alloc(s, 64, 1) != NULL);
    s.arena->arena.gen = 0;
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
    uint64_t count, needed, i, at = 0, room, sum[UPFRONT_RANGE_GUARD] = {0}, used = 0, free_bytes = 0;
    walk_open();
    CHECK_EQ(upfront_map_walk(map, walk_size, out, WALK_RANGES, &needed), UPFRONT_OK);
    CHECK(needed <= WALK_RANGES);
    for (i = 0; i < needed; i++) {
        CHECK_EQ(out[i].offset, at);
        CHECK(out[i].size != 0 && out[i].what >= UPFRONT_RANGE_TABLES && out[i].what <= UPFRONT_RANGE_UNPLANNED);
        CHECK((out[i].row == WALK_ROWS) == (out[i].what == UPFRONT_RANGE_TABLES ||
            out[i].what == UPFRONT_RANGE_UNPLANNED || i == 1));
        sum[out[i].what] += out[i].size;
        at += out[i].size;
    }
    CHECK_EQ(at, walk_size);
    CHECK_EQ(sum[UPFRONT_RANGE_TABLES], map->tables);
    CHECK_EQ(sum[UPFRONT_RANGE_UNPLANNED], 4096);
    for (i = 0; i < WALK_ROWS; i++) {
        const upfront_arena *a = &upfront_map_row(map, i)->arena.arena;
        used += a->cursor - a->start;
        free_bytes += a->limit - a->cursor;
    }
    CHECK_EQ(sum[UPFRONT_RANGE_USED], used);
    CHECK_EQ(sum[UPFRONT_RANGE_FREE], free_bytes);
    CHECK_EQ(sum[UPFRONT_RANGE_TEMP], upfront_map_row(map, 1)->end - upfront_map_row(map, 1)->arena.arena.limit);
    CHECK(sum[UPFRONT_RANGE_TEMP] >= 15000 && sum[UPFRONT_RANGE_TEMP] < 15000 + 2 * UPFRONT_LINE);
    for (room = 0; room < needed; room++) {
        upfront_range few[WALK_RANGES];
        memset(few, 0xee, sizeof few);
        CHECK_EQ(upfront_map_walk(map, walk_size, room == 0 ? NULL : few, room, &count), UPFRONT_FULL);
        CHECK_EQ(count, needed);
        CHECK(memcmp(few, out, (size_t)room * sizeof few[0]) == 0 &&
            holds(few + room, (WALK_RANGES - room) * sizeof few[0], 0xee));
    }
    CHECK_EQ(upfront_map_walk(map, walk_size, out, needed, &count), UPFRONT_OK);
    CHECK_EQ(upfront_map_walk(NULL, walk_size, out, WALK_RANGES, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_walk(map, walk_size, out, WALK_RANGES, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_walk(map, walk_size, NULL, 1, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_walk(map, walk_size - 1, out, WALK_RANGES, &count), UPFRONT_CORRUPT);
    CHECK_EQ(count, WALK_ROWS);
    walk_close();
}

/* The index of a word in its struct. */
#define WORD(type, member) (offsetof(type, member) / 8)

static const uint64_t all = UINT64_MAX, none = 0;
static const uint64_t places = 0xfffff; /* an offset inside the block is wrong but possible */

static uint64_t untold_of_row(const upfront_row *r, uint64_t word) {
    uint64_t mask = 0, i, ends = strlen(r->name), first = WORD(upfront_row, name);
    /* the characters, and the zero after them, which may be one more */
    if (word >= first && word < first + UPFRONT_NAME_SIZE / 8) {
        for (i = 0; i < 8; i++)
            if ((word - first) * 8 + i <= ends)
                memset((unsigned char *)&mask + i, 0xff, 1);
        return mask;
    }
    return word == WORD(upfront_row, kind) ? 3 : none; /* another kind */
}

static uint64_t untold_of_header(const upfront_row *r, const upfront_scopes *h, uint64_t word) {
    switch (word) {
    case WORD(upfront_arena, cursor): return places;
    case WORD(upfront_arena, limit): return h->back != 0 || r->temp.depth != 0 ? places : none;
    case WORD(upfront_arena, gen): return upfront_scopes_top(h)->gen; /* one bit: frozen or not */
    case WORD(upfront_arena, asked): return all; /* any request */
    case WORD(upfront_arena, misused): return all; /* any generation */
    /* not used by the far end */
    case WORD(upfront_arena, least): return h->back != 0 ? all : places;
    case WORD(upfront_arena, next): return all; /* any number so far */
    /* the far end begins at its newest scope */
    case WORD(upfront_arena, start): return h->back != 0 ? all : none;
    case WORD(upfront_scopes, chain): return h->depth != 0 ? places : none;
    case WORD(upfront_scopes, odd): return all; /* the owner's */
    case WORD(upfront_scopes, owner): return all;
    case WORD(upfront_scopes, base): return 3; /* at most the number of slots */
    default: return none;
    }
}

static uint64_t untold_of_record(const upfront_scopes *h, uint64_t index, uint64_t word) {
    int is_open = index != 0 && index <= h->depth;
    switch (word) {
    case WORD(upfront_record, mark): return is_open ? places : all; /* any, in a closed one */
    case WORD(upfront_record, chain): return is_open ? places : all;
    case WORD(upfront_record, gen): return is_open ? 3 : none; /* one between its neighbours' */
    /* of the far end alone */
    case WORD(upfront_record, limit): return is_open && h->back != 0 ? places : all;
    case WORD(upfront_record, edge): return is_open && h->back != 0 ? places : all;
    default: return all;
    }
}

static uint64_t untold_of_pool(const upfront_pool *p, uint64_t word) {
    /* a closed one keeps its stride; with a generation all words must be a pool's */
    if (p->gen == 0)
        return word == WORD(upfront_pool, stride) ? all : none;
    switch (word) {
    case WORD(upfront_pool, gen): return 7;   /* another valid one */
    case WORD(upfront_pool, free): return 31; /* fewer than the chunks */
    /* the one live chunk as a retired one */
    case WORD(upfront_pool, count): return UINT64_C(1) << 32;
    case WORD(upfront_pool, kind): return all >> 32; /* the owner's */
    default: return none;
    }
}

/* The bits of a word that may be wrong without a report. */
static uint64_t untold(uint64_t word) {
    uint64_t header = sizeof(upfront_scopes) / 8, row_words = sizeof(upfront_row) / 8, records = WALK_SLOTS + 1;
    upfront_tables tables = upfront_map_tables(WALK_ROWS, WALK_ROWS * WALK_SLOTS, WALK_ROWS * WALK_POOLS);
    uint64_t head = tables.head / 8, pools = tables.headers / 8;
    const upfront_row *r;
    if (word < sizeof(upfront_map) / 8)
        return none;
    if (word >= head) {
        word -= head;
        r = upfront_map_row(map, word / 8 / (2 * records));
        return untold_of_record(word / 8 % (2 * records) < records ? &r->arena : &r->temp, word / 8 % records,
            word % 8);
    }
    if (word >= pools) {
        word -= pools;
        r = upfront_map_row(map, word / 8 / WALK_POOLS);
        return word / 8 / WALK_POOLS < WALK_ROWS ? untold_of_pool(upfront_row_pool(r, word / 8 % WALK_POOLS), word % 8)
            : all;
    }
    word -= sizeof(upfront_map) / 8;
    r = upfront_map_row(map, word / row_words);
    if (word / row_words >= WALK_ROWS)
        return all; /* room for rows of a larger map */
    word %= row_words;
    return word < 2 * header ? untold_of_header(r, word < header ? &r->arena : &r->temp, word % header)
        : untold_of_row(r, word);
}

/* Flips every bit of every control word, and all bits of a word at once. */
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
            } else if (mask != all)
                kept++;
        }
        *at = ~good;
        CHECK(is_told() || mask == all || word % 8 < 4);
        *at = good;
    }
    CHECK_EQ(walks(&count), UPFRONT_OK);
    CHECK(told > kept);
    walk_close();
}

/* Contradictions of two words, and others that one flipped bit doesn't make. */
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
    map->tables = upfront_map_tables_of(map).size;
    CHECK(is_told()); /* tables larger than the block aren't read */
    map->rows = map->slots = map->tables = 0;
    CHECK(is_told()); /* no rows is possible */
    *map = good_map;
    last = upfront_map_row(map, WALK_ROWS - 1);
    good = *last;
    /* inside the block, but the next edge isn't */
    last->end = last->arena.arena.limit = upfront_distance(map, last) + walk_size;
    CHECK(is_told());
    last->end = ++last->arena.arena.limit;
    CHECK(is_told());
    *last = good;
    last->end = last->arena.arena.limit = last->arena.arena.start - 8; /* before its first byte */
    last->temp.arena.cursor = last->temp.arena.limit = last->end - last->temp.back;
    CHECK(is_told());
    *last = good;
    r = upfront_map_row(map, 1);
    good = *r;
    memset(r->name, 'x', sizeof r->name);
    CHECK_EQ(walks(&count), UPFRONT_CORRUPT);
    CHECK_EQ(count, 1); /* the row */
    *r = good;
    CHECK(!is_told());
    p = upfront_row_pool(r, 0);
    p->inverse = UINT64_MAX / 12 + 1;
    p->stride = 12;
    CHECK(is_told());
    p->stride = WINDOW; /* possible words of chunks that don't fit */
    p->inverse = UINT64_MAX / WINDOW + 1;
    CHECK(is_told());
    p->stride = 24;
    p->inverse = UINT64_MAX / 24 + 1;
    p->retired = 2; /* more than aren't free */
    CHECK(is_told());
    p->retired = 1;
    CHECK(!is_told());
    p->retired = 0;
    p->chunks += 40000 * 24; /* after the arena */
    p->numbers += 40000 * 24;
    CHECK(is_told());
    p->chunks -= 80000 * 24; /* before it */
    p->numbers -= 80000 * 24;
    CHECK(is_told());
    p->chunks += 40000 * 24;
    p->numbers += 40000 * 24;
    CHECK(!is_told());
    /* counts that fit in their row, but not together with the other rows */
    r = upfront_map_row(map, WALK_ROWS - 1);
    good = *r;
    r->arena.slots = --r->temp.slots;
    r->temp.records -= sizeof(upfront_record);
    CHECK(is_told());
    *r = good;
    r = upfront_map_row(map, WALK_ROWS - 2);
    good = *r;
    r->arena.slots = r->temp.slots = 1000; /* records outside of the tables aren't read */
    r->temp.records = r->arena.records + 1001 * sizeof(upfront_record) - r->temp.back;
    CHECK_EQ(walks(&count), UPFRONT_CORRUPT);
    CHECK_EQ(count, WALK_ROWS - 2);
    *r = good;
    r->pools = 65535; /* outside of the head */
    upfront_map_row(map, WALK_ROWS - 1)->headers += (65535 - WALK_POOLS) * sizeof(upfront_pool);
    CHECK_EQ(walks(&count), UPFRONT_CORRUPT);
    CHECK_EQ(count, WALK_ROWS - 2);
    upfront_map_row(map, WALK_ROWS - 1)->headers -= (65535 - WALK_POOLS) * sizeof(upfront_pool);
    *r = good;
    r->pools--;
    CHECK_EQ(walks(&count), UPFRONT_CORRUPT);
    CHECK_EQ(count, WALK_ROWS - 2); /* the row */
    *r = good;
    CHECK(!is_told());
    walk_close();
}

/* Records must fit together: no mark outside of its neighbours', no generation that is unused or
 * out of order, no closed record with a generation, and no header that lets a scope below the
 * topmost allocate. */
static void walk_tells_records(void) {
    upfront_scopes *h;
    upfront_record *r, good;
    upfront_scopes kept;
    uint64_t at, kept_below;
    walk_open();
    h = walk_level.arena;
    kept = *h;
    r = upfront_scopes_top(h);
    good = *r;
    kept_below = r[-1].gen;
    r->mark = r[-1].mark;
    CHECK(!is_told());
    r->mark = h->arena.cursor;
    CHECK(!is_told());
    r->mark++;
    CHECK(is_told()); /* past the cursor */
    r->mark = r[-1].mark;
    r->mark--;
    CHECK(is_told()); /* below the arena */
    *r = good;
    CHECK(upfront_scope_open(h).gen == 5 && !is_told());
    r[1].mark = r->mark - 1;
    CHECK(is_told()); /* below the scope under it */
    r[1].mark = h->arena.cursor;
    upfront_scopes_close(h);
    for (at = 0; at < 8; at++) { /* a node's word is inside of the arena */
        r->chain = h->arena.start + at;
        CHECK(is_told());
    }
    r->chain = h->arena.start + 8;
    CHECK(!is_told());
    *r = good;
    h->chain = 0; /* possible: the node may have run */
    CHECK(!is_told());
    h->chain = h->arena.start;
    CHECK(is_told());
    *h = kept;
    r->gen = r[-1].gen;
    CHECK(is_told());
    *r = good;
    r[-1].gen = r->gen;
    CHECK(is_told());
    r[-1].gen = kept_below;
    r->gen = h->arena.next + 1;
    CHECK(is_told());
    *r = good;
    r[1].gen = h->arena.next;
    CHECK(is_told());
    r[1].gen = 0;
    upfront_scopes_record(h, 0)->gen = 1;
    CHECK(is_told());
    upfront_scopes_record(h, 0)->gen = 0;
    h->arena.gen = r[-1].gen;
    CHECK(is_told()); /* a covered scope doesn't allocate */
    h->arena.gen = 0;
    CHECK(!is_told()); /* frozen */
    *h = kept;
    h->depth = WALK_SLOTS + 1;
    CHECK(is_told());
    *h = kept;
    h->base = WALK_SLOTS + 1;
    CHECK(is_told());
    h->base = WALK_SLOTS;
    CHECK(!is_told());
    *h = kept;
    h = &upfront_map_row(map, 3)->arena; /* without a scope */
    h->chain = h->arena.start + 8;
    CHECK(is_told());
    h->chain = 0;
    CHECK(!is_told());
    walk_close();
}

/* Both ends in order; the bytes past the near end's limit belong to temporary scopes. */
static void walk_tells_ends(void) {
    upfront_row *r, kept;
    upfront_record *t, kept_record;
    walk_open();
    r = upfront_map_row(map, 1);
    kept = *r;
    r->arena.arena.cursor = r->arena.arena.limit;
    CHECK(!is_told());
    r->arena.arena.cursor++;
    CHECK(is_told());
    r->arena.arena.cursor = r->arena.arena.start - 1;
    CHECK(is_told());
    *r = kept;
    r->arena.arena.limit = r->end + 1;
    CHECK(is_told());
    *r = kept;
    r->temp.arena.cursor = r->temp.arena.limit + 1;
    CHECK(is_told());
    *r = kept;
    r->temp.arena.limit = r->end - r->temp.back + 1;
    CHECK(is_told());
    *r = kept;
    r->temp.arena.cursor = r->arena.arena.limit - r->temp.back - 1; /* in the near end */
    CHECK(is_told());
    *r = kept;
    r->temp.chain = r->end - r->temp.back + 8; /* a node past its last byte */
    CHECK(is_told());
    *r = kept;
    t = upfront_scopes_record(&r->temp, 2); /* the older one's words, in the newer record */
    kept_record = *t;
    t->mark = t[-1].edge - r->temp.back;
    CHECK(is_told()); /* the older one's cursor is past its limit */
    t->limit = t->mark;
    CHECK(!is_told());
    t->limit++;
    CHECK(is_told());
    *t = kept_record;
    t->edge = r->arena.arena.limit - 1; /* the older one begins below the newer */
    CHECK(is_told());
    t->edge = t[-1].edge + 1; /* or past its end */
    CHECK(is_told());
    *t = kept_record;
    t[-1].edge--; /* the oldest doesn't end with the arena */
    CHECK(is_told());
    t[-1].edge++;
    r->end -= 8;
    CHECK(is_told());
    *r = kept;
    CHECK(!is_told());
    r->arena.arena.least = r->end - r->arena.arena.start;
    CHECK(!is_told());
    r->arena.arena.least++;
    CHECK(is_told());
    *r = kept;
    r = upfront_map_row(map, 0);
    r->arena.arena.limit--; /* without temporary scopes */
    CHECK(is_told());
    r->arena.arena.limit++;
    CHECK(!is_told());
    walk_close();
}

/* The least and the most: a row without bytes, an empty node, pools without chunks, with the
 * smallest chunks, all free, with handles, up to the last byte; and a map smaller than its
 * header. */
static void walk_of_least(void) {
    const upfront_map_arena plan[2] = {{"none", UPFRONT_REGION, 0, 1, 0, 0}, {"level", UPFRONT_REGION, 1000, 1, 0, 0}};
    uint64_t count, last, rows, size, whole = upfront_pool_size(8, 8, 3, 0) + 2 * sizeof(upfront_node);
    upfront_pool *p;
    upfront_scope s;
    upfront_arena *a;
    for (rows = 1; rows <= 2; rows++) {
        walk_size = upfront_map_size(plan, rows, 1, 4, 0);
        block = window_new(walk_size);
        map = upfront_map_init(block, walk_size, plan, rows, 1, 4, 0);
        CHECK(!is_told());
        if (rows == 1)
            walk_close();
    }
    s = upfront_scope_open(&upfront_map_row(map, 1)->arena);
    a = &s.arena->arena;
    upfront_scopes_link(s.arena, upfront_scopes_node(s.arena, s.gen, 0, 7), OTHER_CLASS);
    CHECK(!is_told());
    CHECK(upfront_scope_pool_of(s, 8, 8, 5, 1, 1, &p) == UPFRONT_OK && !is_told());
    CHECK(upfront_scope_alloc(s, a->limit - a->cursor - whole - 2 * sizeof(upfront_node), 1) != NULL);
    CHECK(upfront_scope_pool_of(s, 8, 8, 0, 1, 0, &p) == UPFRONT_OK && !is_told());
    p = upfront_scope_pool(s, 8, 8, 3);
    CHECK(p != NULL && a->cursor == a->limit && !is_told());
    p->chunks += 8; /* its last chunk is past the row */
    p->numbers += 8;
    CHECK(is_told());
    last = upfront_distance(p, upfront_row_of(s.arena)) + p->numbers - 8 - a->start;
    p->chunks -= last + 16; /* its first number is before the row */
    p->numbers -= last + 16;
    CHECK(is_told());
    p->chunks += 8;
    p->numbers += 8;
    CHECK(!is_told());
    p->chunks += last;
    p->numbers += last;
    CHECK(upfront_scope_pool_of(s, 8, 8, 0, 1, 0, &p) == UPFRONT_FULL);
    for (size = 0; size < sizeof *map; size += 8) {
        /* memory checkers see a read past the block */
        unsigned char *w = window_new(WINDOW), *few = w + WINDOW - size;
        memcpy(few, map, (size_t)size);
        CHECK(upfront_map_walk((upfront_map *)(void *)few, size, NULL, 0, &count) == UPFRONT_CORRUPT && count == 0);
        window_free(w, WINDOW);
    }
    walk_close();
}

/* No scope may allocate while finalizers run: the walk accepts that. */
static void walk_while_closing(void) {
    upfront_scopes *temp, *h;
    uint64_t class_;
    walk_open();
    temp = walk_temp.arena;
    h = walk_level.arena;
    h->odd |= UPFRONT_CLOSING;
    h->arena.gen = 0;
    temp->arena.gen = 0;
    CHECK(!is_told());
    upfront_scopes_unlink(temp, &class_);
    CHECK(class_ == OTHER_CLASS && !is_told());
    upfront_scopes_temp_close(temp);
    CHECK(!is_told());
    CHECK(temp->depth == 1 && temp->arena.gen == 1);
    temp->arena.gen = 0;
    upfront_scopes_temp_close(temp);
    CHECK(temp->depth == 0 && !is_told());
    walk_close();
}

void test_walk(void) {
    walk_names_every_byte();
    walk_tells_each_word();
    walk_tells_pairs();
    walk_tells_records();
    walk_tells_ends();
    walk_of_least();
    walk_while_closing();
}
