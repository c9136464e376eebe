/* stretch.c - a map that is stretched and one that isn't, driven by one random program: they answer alike, and nothing that is handed out
 * ever overlaps, moves or changes. */
#include "check.h"

#ifdef UPFRONT_STRETCHED

enum { TWIN_ROWS = 4, TWIN_SLOTS = 4, TWIN_POOLS = 3, TWIN_LIVE = 256, TWIN_STEPS = 6000, TWIN_RANGES = 6 * TWIN_ROWS + 3 };

static const upfront_map_arena twin_plan[3] = {
    {"level", UPFRONT_REGION, 3 * WINDOW + 100, 1}, {"room", UPFRONT_REGION, WINDOW, 2}, {"pad", UPFRONT_PAD, 1000, 1}};

typedef struct twin_piece {
    unsigned char *at;
    uint64_t size, row, depth, serial; /* depth: as in random.c */
    int value;
    upfront_pool *pool[2];
    uint64_t chunk[2]; /* offsets from the header */
} twin_piece;

/* World 0 is as it is in release, world 1 is stretched. */
static struct {
    upfront_map *map[2];
    unsigned char *block[2];
    uint64_t bytes[2], size, seed, serial, count;
    twin_piece live[TWIN_LIVE];
} twins;

static uint64_t twin_below(uint64_t n) { return next_random(&twins.seed) % n; }

static upfront_row *twin_row(int world, uint64_t row) { return upfront_map_row(twins.map[world], row); }

static upfront_linear *twin_top(int world, uint64_t row) {
    upfront_row *r = twin_row(world, row);
    return upfront_row_slot(r, r->open - 1);
}

static void twins_open(uint64_t seed) {
    uint64_t space = upfront_map_stretch_size(twin_plan, 3, TWIN_SLOTS, TWIN_POOLS, WINDOW);
    int i;
    memset(&twins, 0, sizeof twins);
    twins.seed = seed;
    twins.size = upfront_map_size(twin_plan, 3, TWIN_SLOTS, TWIN_POOLS, WINDOW);
    CHECK(space != 0);
    for (i = 0; i < 2; i++) {
        twins.bytes[i] = twins.size + (i == 0 ? 0 : space);
        twins.block[i] = window_new(twins.bytes[i]);
        twins.map[i] = upfront_map_init(twins.block[i], twins.size, twin_plan, 3, TWIN_SLOTS, TWIN_POOLS, WINDOW);
        CHECK(twins.map[i] != NULL);
    }
    CHECK_EQ(upfront_map_stretch(twins.map[1], space - 1), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_map_stretch(twins.map[1], space), UPFRONT_OK);
}

static void twins_close(void) {
    window_free(twins.block[0], twins.bytes[0]);
    window_free(twins.block[1], twins.bytes[1]);
}

static void slots_agree(const upfront_linear *a, const upfront_linear *b) {
    CHECK_EQ(a->cursor, b->cursor);
    CHECK_EQ(a->limit, b->limit);
    CHECK_EQ(a->start, b->start);
    CHECK(a->count == b->count || (a->limit & UPFRONT_OFFSETS) == 0);
    CHECK_EQ(a->peak, b->peak);
    CHECK_EQ(a->refused, b->refused);
    CHECK_EQ(a->chain == 0, b->chain == 0);
}

static void twins_agree(void) {
    static upfront_range ranges[2][TWIN_RANGES];
    uint64_t row, i, count[2];
    for (row = 0; row < TWIN_ROWS; row++) {
        const upfront_row *a = twin_row(0, row), *b = twin_row(1, row);
        CHECK(a->start == b->start && a->end == b->end && a->edge == b->edge && a->peak == b->peak);
        CHECK(a->open == b->open && a->far_of == b->far_of && a->kin == b->kin);
        CHECK_EQ(upfront_row_used(a), upfront_row_used(b));
        CHECK_EQ(upfront_row_padding(a), upfront_row_padding(b));
        for (i = 0; i <= TWIN_SLOTS; i++)
            slots_agree(upfront_row_slot(a, i), upfront_row_slot(b, i));
        for (i = 0; i < TWIN_POOLS; i++) {
            const upfront_pool *p = upfront_row_pool(a, i), *q = upfront_row_pool(b, i);
            CHECK(p->free == q->free && p->bound == q->bound && p->live == q->live && (p->open == 0) == (q->open == 0));
        }
    }
    for (i = 0; i < 2; i++)
        CHECK_EQ(upfront_map_walk(twins.map[i], twins.size, ranges[i], TWIN_RANGES, &count[i]), UPFRONT_OK);
    CHECK_EQ(count[0], count[1]);
    CHECK(memcmp(ranges[0], ranges[1], (size_t)count[0] * sizeof ranges[0][0]) == 0);
}

/* Both gave something or neither did; what the stretched one gave is ours alone. */
static twin_piece *both(uint64_t row, uint64_t depth, void *a, void *b, uint64_t size, uint64_t align) {
    twin_piece *p = &twins.live[twins.count];
    unsigned char *at = (unsigned char *)b;
    uint64_t i;
    CHECK((a == NULL) == (b == NULL));
    if (at == NULL)
        return NULL;
    CHECK((uintptr_t)at % align == 0);
    CHECK(upfront_at_place(upfront_row_slot(twin_row(1, row), 0), upfront_place(upfront_row_far(twin_row(1, row)), at)) == at);
    CHECK(at + size <= twins.block[1] + twins.bytes[1] && at >= twins.block[1] + twins.size);
    if (size != 0)
        CHECK(is_marked(at, 0) && is_marked(at + size - 1, 0));
    for (i = 0; i < twins.count; i++)
        CHECK(at + size <= twins.live[i].at || twins.live[i].at + twins.live[i].size <= at || size == 0 || twins.live[i].size == 0);
    if (twins.count == TWIN_LIVE)
        return NULL;
    memset(p, 0, sizeof *p);
    p->at = at;
    p->size = size;
    p->row = row;
    p->depth = depth;
    p->serial = ++twins.serial;
    p->value = (int)twin_below(256);
    fill(at, size, p->value);
    twins.count++;
    return p;
}

/* All hold what was put there; those of a depth of a row that are not older than a serial go. */
static void twins_forget(uint64_t row, uint64_t depth, uint64_t serial) {
    uint64_t i, kept = 0;
    for (i = 0; i < twins.count; i++) {
        const twin_piece *p = &twins.live[i];
        CHECK(holds(p->at, p->size, p->value));
        if (p->row != row || p->depth != depth || p->serial < serial)
            twins.live[kept++] = *p;
    }
    twins.count = kept;
}

static void twin_alloc(uint64_t row, uint64_t depth) {
    uint64_t size = twin_below(6) == 0 ? twin_below(WINDOW) : twin_below(4) * twin_below(100), align = UINT64_C(1) << twin_below(17);
    void *p[2];
    int i;
    if (twin_below(4) != 0)
        align = (align & 63) == 0 ? 8 : align;
    for (i = 0; i < 2; i++) {
        upfront_linear *s = depth == TWIN_SLOTS + 1 ? upfront_row_far(twin_row(i, row)) : twin_top(i, row);
        p[i] = upfront_linear_bump(s, upfront_tag(s) + size, size, align - 1);
    }
    both(row, depth, p[0], p[1], size, align);
#ifdef UPFRONT_ASAN
    CHECK(p[1] == NULL || is_marked((unsigned char *)p[1] + size, 1));
#endif
}

/* The newest thing of the topmost scope. */
static void twin_grow(uint64_t row, uint64_t depth) {
    uint64_t size = twin_below(40), i;
    twin_piece *last = NULL;
    void *p[2];
    int k;
    for (i = 0; i < twins.count; i++)
        if (twins.live[i].row == row && twins.live[i].depth == depth && twins.live[i].serial == twins.serial &&
            twins.live[i].pool[0] == NULL)
            last = &twins.live[i];
    if (last == NULL)
        return;
    for (k = 0; k < 2; k++) {
        upfront_linear *s = twin_top(k, row);
        p[k] = upfront_linear_grow(s, upfront_tag(s) + size, size);
    }
    CHECK((p[0] == NULL) == (p[1] == NULL));
    if (p[0] == NULL)
        return;
    CHECK(p[1] == last->at + last->size);
    last->size += size;
    fill(last->at, last->size, last->value);
}

static void twin_pool(uint64_t row, uint64_t depth) {
    uint64_t size = twin_below(100), align = UINT64_C(1) << twin_below(9), count = twin_below(40);
    int code[2], i;
    upfront_pool *p[2];
    for (i = 0; i < 2; i++)
        code[i] = upfront_row_pool_open(twin_top(i, row), upfront_tag(twin_top(i, row)), size, align, count, 1 + depth, &p[i]);
    CHECK_EQ(code[0], code[1]);
    twins.serial++;
}

static void twin_get(uint64_t row) {
    uint64_t n = twin_below(TWIN_POOLS);
    upfront_pool *p[2] = {upfront_row_pool(twin_row(0, row), n), upfront_row_pool(twin_row(1, row), n)};
    void *chunk[2];
    twin_piece *piece;
    if (p[0]->open == 0)
        return;
    chunk[0] = upfront_pool_get(p[0], p[0]->free & ~UPFRONT_OFFSETS);
    chunk[1] = upfront_pool_get(p[1], p[1]->free & ~UPFRONT_OFFSETS);
    piece = both(row, p[0]->kind - 1, chunk[0], chunk[1], p[0]->stride, 8);
    if (piece == NULL)
        return;
    memcpy(piece->pool, p, sizeof p);
    piece->chunk[0] = (uint64_t)((uintptr_t)chunk[0] - (uintptr_t)p[0]);
}

static void twin_put(void) {
    twin_piece *p = &twins.live[twin_below(twins.count)];
    int i;
    if (p->pool[0] == NULL)
        return;
    CHECK(holds(p->at, p->size, p->value));
    for (i = 0; i < 2; i++) {
        char *chunk = i == 0 ? (char *)p->pool[0] + p->chunk[0] : (char *)p->at;
        CHECK_EQ(upfront_pool_put(p->pool[i], p->pool[i]->free & ~UPFRONT_OFFSETS, chunk + 1), UPFRONT_MISALIGNED);
        CHECK_EQ(upfront_pool_put(p->pool[i], p->pool[i]->free & ~UPFRONT_OFFSETS, chunk), UPFRONT_OK);
        CHECK_EQ(upfront_pool_put(p->pool[i], p->pool[i]->free & ~UPFRONT_OFFSETS, chunk), UPFRONT_DOUBLE);
    }
    *p = twins.live[--twins.count];
}

static void twin_link(uint64_t row) {
    uint64_t depth = twin_row(0, row)->open;
    upfront_node *node[2];
    int i;
    for (i = 0; i < 2; i++)
        node[i] = upfront_row_node(twin_top(i, row), upfront_tag(twin_top(i, row)));
    CHECK((node[0] == NULL) == (node[1] == NULL));
    if (node[0] == NULL)
        return;
    for (i = 0; i < 2; i++)
        upfront_row_link(twin_top(i, row), node[i], OTHER_CLASS, depth);
    twins.serial++;
}

static void twin_unlink_all(upfront_linear *a, upfront_linear *b, uint64_t depth) {
    upfront_node node[2];
    while (upfront_row_unlink(a, &node[0])) {
        CHECK(upfront_row_unlink(b, &node[1]));
        CHECK(node[0].what == node[1].what && (depth == 0 || node[0].what == depth));
    }
    CHECK(!upfront_row_unlink(b, &node[1]));
}

static void twin_close(uint64_t row) {
    uint64_t depth = twin_row(0, row)->open, n, window = upfront_stretch_current(twin_row(1, row));
    int i;
    if (twin_row(0, row)->far_of == depth)
        twins_forget(row, TWIN_SLOTS + 1, 0);
    twins_forget(row, depth, 0);
    twin_unlink_all(twin_top(0, row), twin_top(1, row), depth);
    for (i = 0; i < 2; i++) {
        upfront_row *r = twin_row(i, row);
        for (n = 0; n < TWIN_POOLS; n++)
            if (upfront_row_pool(r, n)->open && upfront_row_pool(r, n)->kind == depth + 1)
                upfront_pool_close(upfront_row_pool(r, n));
        if (r->far_of == depth)
            upfront_row_far_close(r);
        upfront_row_close(r);
    }
    CHECK_EQ(upfront_stretch_current(twin_row(1, row)), depth == 1 ? (window + 1) % UPFRONT_WINDOWS : window);
    twins.serial++;
}

static void twin_far(uint64_t row) {
    uint64_t size = twin_below(3) == 0 ? twin_below(WINDOW / 2) : twin_below(50), align = UINT64_C(1) << twin_below(17);
    int code[2], i;
    for (i = 0; i < 2; i++) {
        upfront_row *r = twin_row(i, row);
        if (r->far_of == 0)
            upfront_row_far_open(r);
        code[i] = upfront_row_far_grow(r, size, align);
    }
    CHECK_EQ(code[0], code[1]);
}

/* A constructor that makes a few things, and fails; or who frees what was made since a mark. */
static void twin_rewind(uint64_t row) {
    uint64_t depth = twin_row(0, row)->open, serial = twins.serial + 1, n = twin_below(4);
    upfront_linear was[2] = {*twin_top(0, row), *twin_top(1, row)};
    int i;
    while (n-- > 0)
        twin_alloc(row, depth);
    twins_forget(row, depth, serial);
    for (i = 0; i < 2; i++)
        if (serial % 2 == 0)
            upfront_row_rewind(twin_row(i, row), &was[i]);
        else
            CHECK_EQ(upfront_linear_rewind(twin_top(i, row), upfront_tag(&was[i]), was[i].cursor), UPFRONT_OK);
    twins.serial++;
}

static void twins_redraw(void) {
    static const uint64_t sizes[2][TWIN_ROWS] = {{3 * WINDOW + 100, WINDOW, WINDOW, 1000},
                                                 {WINDOW, 2 * WINDOW - 5, 2 * WINDOW - 5, 2 * WINDOW}};
    static const uint64_t less[TWIN_ROWS] = {2 * WINDOW, 2 * WINDOW, 2 * WINDOW, 10};
    uint64_t row, n = twin_below(2), place, size, parts, from, to;
    const uint64_t *drawn = twin_below(2) == 0 ? less : sizes[n];
    int i;
    for (row = 0; row < TWIN_ROWS; row++)
        while (twin_row(0, row)->open != 0)
            twin_close(row);
    upfront_stretch_window(twin_row(1, 0), 0, &from, &size, &parts);
    upfront_stretch_window(twin_row(1, TWIN_ROWS - 1), UPFRONT_WINDOWS - 1, &to, &size, &parts);
    to += size;
    for (i = 0; i < 2; i++)
        if (upfront_map_redraw(twins.map[i], 0, drawn, TWIN_ROWS) != UPFRONT_OK)
            CHECK_EQ(i, 0);
    upfront_stretch_window(twin_row(1, 0), 0, &place, &size, &parts);
    CHECK_EQ(place, from);
    upfront_stretch_window(twin_row(1, TWIN_ROWS - 1), UPFRONT_WINDOWS - 1, &place, &size, &parts);
    CHECK_EQ(place + size, to);
    UPFRONT_UNPOISON(twins.block[1] + from, to - from);
    memset(twins.block[1] + from, 0, (size_t)(to - from));
}

static void twin_step(void) {
    uint64_t row = twin_below(TWIN_ROWS), depth = twin_row(0, row)->open;
    int i;
    if (depth == 0) {
        upfront_row_open(twin_row(0, row));
        upfront_row_open(twin_row(1, row));
        return;
    }
    switch (twin_below(16)) {
    case 0:
        for (i = 0; i < 2 && depth < TWIN_SLOTS; i++)
            upfront_row_open(twin_row(i, row));
        twins.serial++;
        break;
    case 1: twin_close(row); break;
    case 2: twin_far(row); break;
    case 3:
    case 4:
        if (twin_row(0, row)->far_of != 0)
            twin_alloc(row, TWIN_SLOTS + 1);
        break;
    case 5: twin_pool(row, depth); break;
    case 6:
    case 7: twin_get(row); break;
    case 8:
        if (twins.count != 0)
            twin_put();
        break;
    case 9: twin_link(row); break;
    case 10: twin_rewind(row); break;
    case 11: twin_grow(row, depth); break;
    case 12:
        if (twin_below(40) == 0)
            twins_redraw();
        break;
    default: twin_alloc(row, depth); break;
    }
}

static void twin_program(uint64_t seed) {
    upfront_damage damage;
    upfront_found found;
    uint64_t i, k, row;
    twins_open(seed);
    for (i = 0; i < TWIN_STEPS; i++) {
        twin_step();
        twins_agree();
        if (i % 16 == 0) {
            CHECK_EQ(upfront_stretch_check(twins.map[1], &damage), UPFRONT_OK);
            for (k = 0; k < twins.count; k++)
                CHECK(upfront_stretch_find(twins.map[1], twins.live[k].at, &found) && found.current && found.row == twins.live[k].row);
        }
    }
    for (row = 0; row < TWIN_ROWS; row++)
        while (twin_row(0, row)->open != 0)
            twin_close(row);
    twins_close();
}

void test_stretch(void) {
    uint64_t seed;
    for (seed = 1; seed <= 3; seed++)
        twin_program(seed * 2654435761u);
}

#else

void test_stretch(void) {}

#endif
