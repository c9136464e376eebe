#include "map.h"

static uint64_t tables_size(uint64_t rows, uint64_t slots, uint64_t pools) {
    return sizeof(upfront_map) + rows * upfront_row_size(slots, pools);
}

uint64_t upfront_map_size(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools) {
    uint64_t i, sum;
    if (arenas == NULL || count == 0 || count > 65535 || slots == 0 || slots > 65535 || pools > 65535)
        return 0;
    sum = upfront_round_edge(tables_size(count, slots, pools));
    for (i = 0; i < count; i++) {
        if (arenas[i].size >= UPFRONT_OFFSET_MAX || sum >= UPFRONT_OFFSET_MAX)
            return 0;
        sum += upfront_round_edge(arenas[i].size);
    }
    return sum < UPFRONT_OFFSET_MAX ? sum : 0;
}

upfront_map *upfront_map_init(void *block, uint64_t size, const upfront_map_arena *arenas, uint64_t count, uint64_t slots,
                              uint64_t pools) {
    upfront_map *m = (upfront_map *)block;
    uint64_t i, start, needed = upfront_map_size(arenas, count, slots, pools);
    if (block == NULL || (uintptr_t)block % UPFRONT_EDGE != 0 || needed == 0 || size < needed || size >= UPFRONT_OFFSET_MAX)
        return NULL;
    m->magic = UPFRONT_MAP_MAGIC;
    m->size = size;
    m->rows = count;
    m->slots = slots;
    m->pools = pools;
    start = upfront_round_edge(tables_size(count, slots, pools));
    for (i = 0; i < count; i++) {
        upfront_row *r = upfront_map_row(m, i);
        upfront_row_init(r, block, arenas[i].name, start, start + arenas[i].size, slots, pools);
        r->kind = arenas[i].kind;
        start = upfront_round_edge(start + arenas[i].size);
    }
    return m;
}

/* Rows that go with `row` when it is rewound: itself, and the regions above it. */
static int goes_along(const upfront_map *m, uint64_t row, uint64_t other) {
    return other == row || (other > row && upfront_map_row(m, row)->kind == UPFRONT_REGION &&
                            upfront_map_row(m, other)->kind == UPFRONT_REGION);
}

static int has_finalizers(const upfront_row *r) {
    uint64_t i;
    for (i = 0; i < r->open; i++)
        if (upfront_row_slot(r, i)->chain != 0)
            return 1;
    return r->far_of != 0 && upfront_row_far(r)->chain != 0;
}

int upfront_map_rewind(upfront_map *m, uint64_t row) {
    uint64_t i;
    if (m == NULL || row >= m->rows)
        return UPFRONT_BAD_ARGUMENT;
    for (i = row; i < m->rows; i++)
        if (goes_along(m, row, i) && has_finalizers(upfront_map_row(m, i)))
            return UPFRONT_ORDER;
    for (i = m->rows; i-- > row;) {
        upfront_row *r = upfront_map_row(m, i);
        if (!goes_along(m, row, i))
            continue;
        if (r->far_of != 0)
            upfront_row_far_close(r);
        while (r->open != 0)
            upfront_row_close(r);
    }
    return UPFRONT_OK;
}

/* The slot is where and what its place in the row says. */
static int slot_holds(const upfront_map *m, const upfront_row *r, uint64_t i) {
    const upfront_linear *s = upfront_row_slot(r, i);
    uint64_t limit = s->limit & UPFRONT_OFFSETS;
    uint64_t below = i == 0 || i >= r->open ? r->start : upfront_row_slot(r, i - 1)->cursor;
    if (s->origin != (uint64_t)((uintptr_t)m - (uintptr_t)s) || s->count / UPFRONT_GENERATION != i)
        return 0;
    if (i >= r->open)
        return limit == 0;
    if (s->start != below || s->cursor < s->start || s->cursor > r->edge || s->chain > s->cursor)
        return 0;
    return limit == 0 || (i + 1 == r->open && limit == r->edge);
}

static int far_holds(const upfront_map *m, const upfront_row *r) {
    const upfront_linear *s = upfront_row_far(r);
    uint64_t limit = s->limit & UPFRONT_OFFSETS;
    if (s->origin != (uint64_t)((uintptr_t)m - (uintptr_t)s) || s->count / UPFRONT_GENERATION != r->slots)
        return 0;
    if (r->far_of == 0 || limit == 0)
        return limit == 0 && r->edge == r->end;
    return s->cursor >= r->edge && s->cursor <= limit && limit <= r->end;
}

static int row_holds(const upfront_map *m, const upfront_row *r, uint64_t start) {
    uint64_t i;
    if (r->slots != m->slots || r->pools != m->pools || r->open > r->slots || r->far_of > r->open)
        return 0;
    if (r->start != start || r->end < r->start || r->end > m->size || r->edge < r->start || r->edge > r->end)
        return 0;
    if (r->peak > r->end - r->start || memchr(r->name, 0, UPFRONT_NAME_SIZE) == NULL)
        return 0;
    for (i = 0; i < r->slots; i++)
        if (!slot_holds(m, r, i))
            return 0;
    return far_holds(m, r);
}

typedef struct walk {
    upfront_range *out;
    uint64_t room, count, at;
} walk;

/* Names the bytes from where the walk stands up to `end`. */
static void name_range(walk *w, uint64_t end, uint64_t row, uint64_t what) {
    if (end == w->at)
        return;
    if (w->count < w->room) {
        upfront_range *r = &w->out[w->count];
        r->offset = w->at;
        r->size = end - w->at;
        r->row = row;
        r->what = what;
    }
    w->count++;
    w->at = end;
}

int upfront_map_walk(const upfront_map *m, uint64_t size, upfront_range *out, uint64_t room, uint64_t *count) {
    walk w;
    uint64_t i, tables;
    w.out = out;
    w.room = room;
    w.count = w.at = 0;
    *count = m->rows;
    if (m->magic != UPFRONT_MAP_MAGIC || m->size != size || m->rows == 0 || m->rows > 65535 || m->slots == 0 || m->slots > 65535 ||
        m->pools > 65535)
        return UPFRONT_CORRUPT;
    tables = tables_size(m->rows, m->slots, m->pools);
    if (upfront_round_edge(tables) > size)
        return UPFRONT_CORRUPT;
    name_range(&w, tables, m->rows, UPFRONT_RANGE_TABLES);
    name_range(&w, upfront_round_edge(tables), m->rows, UPFRONT_RANGE_EDGE);
    for (i = 0; i < m->rows; i++) {
        const upfront_row *r = upfront_map_row(m, i);
        *count = i;
        if (!row_holds(m, r, w.at))
            return UPFRONT_CORRUPT;
        name_range(&w, r->open == 0 ? r->start : upfront_row_slot(r, r->open - 1)->cursor, i, UPFRONT_RANGE_USED);
        name_range(&w, r->edge, i, UPFRONT_RANGE_FREE);
        name_range(&w, r->end, i, UPFRONT_RANGE_TEMP);
        name_range(&w, upfront_round_edge(r->end), i, UPFRONT_RANGE_EDGE);
    }
    name_range(&w, size, m->rows, UPFRONT_RANGE_UNPLANNED);
    *count = w.count;
    return w.count > w.room ? UPFRONT_FULL : UPFRONT_OK;
}
