/* stretch_damage.c - what memdebug finds: each byte of a gap, writes to what is dead or was never handed out, and pools; and which thing it
 * names. */
#include "check.h"

#ifdef UPFRONT_MEMDEBUG

enum { DAMAGE_SLOTS = 3, DAMAGE_POOLS = 2 };

static const upfront_map_arena damage_plan[2] = {{"init", UPFRONT_REGION, 4096, 1}, {"level", UPFRONT_REGION, 2 * WINDOW, 1}};

static unsigned char *damage_block;
static uint64_t damage_bytes;
static upfront_map *damage_map;
static upfront_row *damage_row;
static upfront_linear *damage_slot;
static upfront_damage damage_met;
static uint64_t damage_count;

static void note_damage(const upfront_damage *d) {
    if (damage_count++ == 0)
        damage_met = *d;
}

static void damage_open(void) {
    uint64_t size = upfront_map_size(damage_plan, 2, DAMAGE_SLOTS, DAMAGE_POOLS, 0);
    damage_bytes = size + upfront_map_stretch_size(damage_plan, 2, DAMAGE_SLOTS, DAMAGE_POOLS, 0);
    damage_block = window_new(damage_bytes);
    damage_map = upfront_map_init(damage_block, size, damage_plan, 2, DAMAGE_SLOTS, DAMAGE_POOLS, 0);
    CHECK_EQ(upfront_map_stretch(damage_map, damage_bytes - size), UPFRONT_OK);
    damage_row = upfront_map_row(damage_map, 1);
    damage_slot = upfront_row_slot(damage_row, 0);
    upfront_on_damage = note_damage;
    damage_count = 0;
}

static void damage_close(void) {
    upfront_on_damage = NULL;
    window_free(damage_block, damage_bytes);
}

/* A write that a sanitizer doesn't see. */
__attribute__((noinline, no_sanitize("address"))) static void spoil(void *p) { *(volatile unsigned char *)p ^= 0x40; }

static unsigned char *take_one(upfront_linear *slot, uint64_t size, uint64_t align) {
    unsigned char *p = (unsigned char *)upfront_linear_bump(slot, upfront_tag(slot) + size, size, align - 1);
    CHECK(p != NULL);
    fill(p, size, 1);
    return p;
}

/* The damage is at p, and names the thing before it or none; the check and the core agree. */
static void is_met(uint64_t what, const unsigned char *p, const unsigned char *thing, const upfront_damage *d) {
    CHECK_EQ(d->what, what);
    CHECK(d->at == p);
    CHECK(d->map == damage_map && d->row == 1 && d->place == (uint64_t)(p - damage_block));
    CHECK((d->found ^ d->expected) == 0x40);
    CHECK_EQ(d->record.place, thing == NULL ? 0 : (uint64_t)(thing - damage_block));
}

static void check_finds(uint64_t what, const unsigned char *p, const unsigned char *thing) {
    upfront_damage d;
    CHECK_EQ(upfront_stretch_check(damage_map, &d), UPFRONT_CORRUPT);
    is_met(what, p, thing, &d);
}

static void core_met(uint64_t what, const unsigned char *p, const unsigned char *thing) {
    CHECK(damage_count != 0);
    is_met(what, p, thing, &damage_met);
    damage_count = 0;
}

enum { GAP_THINGS = 5 };

static const uint64_t gap_kinds[GAP_THINGS][2] = {{5, 1}, {100, 64}, {0, 1}, {1000, 8}, {24, 8}};

/* Opens scopes with a few things, in a scope, in one inside it, and at the far end; gives where the gaps are. */
static uint64_t gap_things(unsigned char *things[], unsigned char *gaps[], uint64_t ends[]) {
    uint64_t i, place, size, parts, n = 0;
    unsigned char *at;
    upfront_row_open(damage_row);
    upfront_stretch_window(damage_row, upfront_stretch_current(damage_row), &place, &size, &parts);
    at = damage_block + place;
    for (i = 0; i < GAP_THINGS; i++) {
        if (i == 3)
            upfront_row_open(damage_row);
        things[n] = take_one(upfront_row_slot(damage_row, i < 3 ? 0 : 1), gap_kinds[i][0], gap_kinds[i][1]);
        if (gap_kinds[i][0] == 0)
            continue;
        gaps[n] = at;
        ends[n] = (uint64_t)(things[n] - at);
        at = things[n] + gap_kinds[i][0];
        n++;
    }
    upfront_row_far_open(damage_row);
    CHECK_EQ(upfront_row_far_grow(damage_row, 100, 8), UPFRONT_OK);
    at = damage_block + place + parts / 2;
    for (i = 0; i < 2; i++, n++) {
        things[n] = take_one(upfront_row_far(damage_row), 40, 8);
        gaps[n] = at;
        ends[n] = (uint64_t)(things[n] - at);
        at = things[n] + 40;
    }
    return n;
}

static void gap_things_close(void) {
    upfront_row_far_close(damage_row);
    upfront_row_close(damage_row);
    upfront_row_close(damage_row);
}

/* Every byte of every gap: the check finds it, and so does the close. */
static void damage_gaps(void) {
    unsigned char *things[GAP_THINGS + 2], *gaps[GAP_THINGS + 2];
    uint64_t ends[GAP_THINGS + 2], n, i, k, bytes = 1;
    upfront_damage d;
    damage_open();
    n = gap_things(things, gaps, ends);
    CHECK_EQ(n, GAP_THINGS + 1);
    CHECK_EQ(upfront_stretch_check(damage_map, &d), UPFRONT_OK);
    gap_things_close();
    CHECK_EQ(damage_count, 0);
    for (i = 0; i < n; i++)
        for (k = 0; k < bytes; k++) {
            const unsigned char *thing;
            n = gap_things(things, gaps, ends);
            bytes = ends[i];
            thing = i == 0 || i == n - 2 ? NULL : things[i - 1]; /* before the first near one, and the first far one, there is none */
            CHECK(bytes >= 16);
            spoil(gaps[i] + k);
            check_finds(UPFRONT_DAMAGE_GAP, gaps[i] + k, thing);
            CHECK_EQ(damage_count, 0);
            gap_things_close();
            core_met(UPFRONT_DAMAGE_GAP, gaps[i] + k, thing);
        }
    damage_close();
}

/* What was made shorter, and longer, ends where it ends now. */
static void damage_shorter(void) {
    unsigned char *p;
    uint64_t tag;
    damage_open();
    tag = upfront_row_open(damage_row);
    p = take_one(damage_slot, 100, 8);
    CHECK_EQ(upfront_linear_resize(damage_slot, tag, damage_slot->start, p, 100, 30), UPFRONT_OK);
    CHECK_EQ(upfront_linear_resize(damage_slot, tag, damage_slot->start, p, 30, 50), UPFRONT_OK);
    CHECK(upfront_linear_grow(damage_slot, tag + 6, 6) == p + 50);
    CHECK(take_one(damage_slot, 8, 8) == p + 72);
    spoil(p + 57);
    check_finds(UPFRONT_DAMAGE_GAP, p + 57, p);
    spoil(p + 57);
    upfront_row_close(damage_row);
    CHECK_EQ(damage_count, 0);
    damage_close();
}

/* Behind the last thing: nobody had it yet. */
static void damage_tail(void) {
    unsigned char *p;
    uint64_t k;
    damage_open();
    for (k = 0; k < 16; k++) {
        upfront_row_open(damage_row);
        p = take_one(damage_slot, 100, 8);
        spoil(p + 100 + k);
        check_finds(UPFRONT_DAMAGE_FRESH, p + 100 + k, p);
        upfront_row_close(damage_row);
        core_met(UPFRONT_DAMAGE_FRESH, p + 100 + k, p);
        spoil(p + 100 + k);
    }
    upfront_row_open(damage_row);
    p = take_one(damage_slot, 10, 1);
    spoil(p + 50); /* somebody had it when the window's turn was last */
    check_finds(UPFRONT_DAMAGE_DEAD, p + 50, p);
    damage_close();
}

/* A write to what is dead is found when its bytes are handed out again, and by the check while its window is in use. */
static void damage_dead(void) {
    unsigned char *p, *q;
    uint64_t i;
    upfront_linear was;
    damage_open();
    upfront_row_open(damage_row);
    q = take_one(damage_slot, 8, 8);
    upfront_row_open(damage_row);
    upfront_stretch_names(damage_row, 6, 7);
    p = take_one(damage_slot + 1, 64, 8);
    upfront_stretch_note(damage_slot + 1, 5);
    upfront_stretch_closed_by(damage_row, 9);
    upfront_row_close(damage_row);
    spoil(p + 10);
    check_finds(UPFRONT_DAMAGE_DEAD, p + 10, p);
    CHECK(take_one(damage_slot, 100, 8) >= q + 8);
    CHECK(damage_met.record.made == 5 && damage_met.record.scope == 6 && damage_met.record.account == 7 && damage_met.record.gone == 9);
    core_met(UPFRONT_DAMAGE_DEAD, p + 10, p);
    was = *damage_slot; /* a constructor that fails */
    p = take_one(damage_slot, 50, 8);
    upfront_row_rewind(damage_row, &was);
    CHECK_EQ(damage_count, 0);
    spoil(p);
    take_one(damage_slot, 8, 8);
    core_met(UPFRONT_DAMAGE_DEAD, p, p);
    p = take_one(damage_slot, 50, 8);
    CHECK_EQ(damage_count, 0);
    upfront_row_close(damage_row);
    spoil(p + 3); /* after the close: when the window's turn has come again */
    for (i = 0; i < UPFRONT_WINDOWS; i++) {
        CHECK_EQ(damage_count, 0);
        upfront_row_open(damage_row);
        take_one(damage_slot, 4000, 8);
        upfront_row_close(damage_row);
    }
    CHECK(damage_count == 1 && damage_met.what == UPFRONT_DAMAGE_DEAD && damage_met.at == p + 3);
    damage_close();
}

/* What frames and pads have left is looked at by the check; what regions have may be out of reach. */
static void damage_left(uint64_t kind) {
    unsigned char *p, *temp;
    upfront_damage d;
    damage_open();
    damage_row->kind = kind;
    upfront_row_open(damage_row);
    p = take_one(damage_slot, 80, 8);
    upfront_row_far_open(damage_row);
    CHECK_EQ(upfront_row_far_grow(damage_row, 10, 1), UPFRONT_OK);
    temp = take_one(upfront_row_far(damage_row), 10, 1);
    upfront_row_far_close(damage_row);
    upfront_row_close(damage_row);
    CHECK_EQ(upfront_stretch_check(damage_map, &d), UPFRONT_OK);
    spoil(temp + 2);
    if (kind != UPFRONT_REGION)
        check_finds(UPFRONT_DAMAGE_DEAD, temp + 2, temp);
    upfront_row_open(damage_row);
    spoil(p + 79);
    if (kind != UPFRONT_REGION)
        check_finds(UPFRONT_DAMAGE_DEAD, p + 79, p);
    else
        CHECK_EQ(upfront_stretch_check(damage_map, &d), UPFRONT_OK);
    spoil(p + 79);
    spoil(temp + 2);
    while (upfront_stretch_current(damage_row) != 0 || damage_row->open != 0) {
        if (damage_row->open == 0)
            upfront_row_open(damage_row);
        upfront_row_close(damage_row);
    }
    spoil(p); /* now this window is the one that comes next */
    if (kind != UPFRONT_REGION)
        check_finds(UPFRONT_DAMAGE_DEAD, p, p);
    CHECK_EQ(damage_count, 0);
    damage_close();
}

/* Fresh pages have nothing of what was there; the core must be told. */
static void damage_renewed(void) {
    uint64_t place, size, parts, i;
    damage_open();
    for (i = 0; i < 2 * UPFRONT_WINDOWS + 1; i++) {
        upfront_row_open(damage_row);
        take_one(damage_slot, 4000, 8);
        upfront_row_far_open(damage_row);
        CHECK_EQ(upfront_row_far_grow(damage_row, 10, 1), UPFRONT_OK);
        take_one(upfront_row_far(damage_row), 10, 1);
        upfront_row_far_close(damage_row);
        upfront_row_close(damage_row);
        upfront_stretch_window(damage_row, upfront_stretch_current(damage_row), &place, &size, &parts);
        UPFRONT_UNPOISON(damage_block + place, parts);
        memset(damage_block + place, 0, (size_t)parts);
        upfront_stretch_renew(damage_row);
    }
    CHECK_EQ(damage_count, 0);
    damage_close();
}

/* The pool's own damage names the chunk. `p` is the first byte. */
static void chunk_met(uint64_t what, const unsigned char *p, const unsigned char *chunk) {
    const upfront_record *pool = &damage_met.record;
    CHECK(damage_met.map == damage_map && damage_met.row == 1 && damage_met.place == (uint64_t)(p - damage_block));
    CHECK((uint64_t)(p - damage_block) - pool->place < pool->size && pool->made == 3);
    CHECK(damage_count != 0 && damage_met.what == what && damage_met.at == p && damage_met.chunk == chunk && damage_met.chunk_size == 24);
    damage_count = 0;
}

static void damage_chunks(void) {
    unsigned char *chunk[3];
    upfront_pool *p;
    upfront_damage d;
    uint64_t i, k, tag;
    damage_open();
    upfront_row_open(damage_row);
    CHECK_EQ(upfront_row_pool_open(damage_slot, upfront_tag(damage_slot), 20, 8, 3, 1, &p), UPFRONT_OK);
    tag = p->free & ~UPFRONT_OFFSETS;
    upfront_stretch_note(damage_slot, 3);
    CHECK_EQ(upfront_pool_gap(p), 16);
    for (i = 0; i < 3; i++)
        chunk[i] = (unsigned char *)upfront_pool_get(p, tag);
    for (i = 0; i < 3; i++)
        for (k = 0; k < 32; k++) {
            unsigned char *at = chunk[i] + (k < 16 ? -16 + (ptrdiff_t)k : 8 + (ptrdiff_t)k);
            spoil(at);
            CHECK_EQ(upfront_stretch_check(damage_map, &d), UPFRONT_CORRUPT);
            CHECK(d.what == UPFRONT_DAMAGE_CHUNK_GAP && d.at == at && d.map == damage_map && d.row == 1);
            CHECK_EQ(upfront_pool_put(p, tag, chunk[i]), UPFRONT_OK);
            chunk_met(UPFRONT_DAMAGE_CHUNK_GAP, at, chunk[i]);
            spoil(at);
            CHECK(upfront_pool_get(p, tag) == chunk[i]);
        }
    CHECK_EQ(upfront_stretch_check(damage_map, &d), UPFRONT_OK);
    for (k = 8; k < 24; k++) { /* after the put; its link is its first word */
        CHECK_EQ(upfront_pool_put(p, tag, chunk[1]), UPFRONT_OK);
        spoil(chunk[1] + k);
        CHECK_EQ(upfront_stretch_check(damage_map, &d), UPFRONT_CORRUPT);
        CHECK(d.what == UPFRONT_DAMAGE_CHUNK && d.chunk == chunk[1]);
        CHECK(upfront_pool_get(p, tag) == chunk[1]);
        chunk_met(UPFRONT_DAMAGE_CHUNK, chunk[1] + k, chunk[1]);
    }
    spoil(chunk[2] + 24);
    upfront_pool_close(p);
    chunk_met(UPFRONT_DAMAGE_CHUNK_GAP, chunk[2] + 24, chunk[2]);
    upfront_row_close(damage_row);
    CHECK_EQ(damage_count, 0);
    damage_close();
}

/* A link that leads nowhere: the pool says that it has none any more, instead of following it. Pools that stand alone are looked at too. */
static void damage_link(void) {
    unsigned char *w = window_new(WINDOW), *chunk;
    upfront_pool *p = upfront_pool_make(w, WINDOW, 16, 8);
    uint64_t tag = p->free & ~UPFRONT_OFFSETS;
    upfront_on_damage = note_damage;
    damage_count = 0;
    chunk = (unsigned char *)upfront_pool_get(p, tag);
    CHECK_EQ(upfront_pool_put(p, tag, chunk), UPFRONT_OK);
    spoil(chunk + 12);
    CHECK(upfront_pool_get(p, tag) == chunk);
    CHECK(damage_count == 1 && damage_met.what == UPFRONT_DAMAGE_CHUNK && damage_met.at == chunk + 12 && damage_met.map == NULL);
    CHECK_EQ(upfront_pool_put(p, tag, chunk), UPFRONT_OK);
    spoil(chunk + 5);
    CHECK(upfront_pool_get(p, tag) == NULL);
    CHECK(damage_count == 2 && upfront_pool_get(p, tag) == NULL);
    CHECK(upfront_first_damage.what != 0);
    upfront_on_damage = NULL;
    window_free(w, WINDOW);
}

void test_stretch_damage(void) {
    damage_gaps();
    damage_shorter();
    damage_tail();
    damage_dead();
    damage_left(UPFRONT_REGION);
    damage_left(UPFRONT_FRAME);
    damage_left(UPFRONT_PAD);
    damage_renewed();
    damage_chunks();
    damage_link();
}

#else

void test_stretch_damage(void) {}

#endif
