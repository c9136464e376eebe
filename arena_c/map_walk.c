#include "map.h"

/* The chain is empty or begins with a node between the two offsets. */
static int chain_holds(uint64_t chain, uint64_t start, uint64_t end) {
    return chain == 0 || (chain >= start && chain < end && end - chain >= sizeof(upfront_node) && chain % 8 == 0);
}

/* What is true of every slot, open or not: it is where its words say, and they lie inside the arena. */
static int place_holds(const upfront_map *m, const upfront_row *r, uint64_t i) {
    const upfront_linear *s = upfront_row_slot(r, i);
    return s->origin == upfront_distance(m, s) && upfront_row_index(s) == i && s->start >= r->start && s->start <= r->end;
}

/* A closed slot has no room, no finalizers and no bytes. */
static int closed_holds(const upfront_linear *s) {
    return (s->limit & UPFRONT_OFFSETS) == 0 && s->chain == 0 && s->cursor == s->start;
}

/* Slots nest: each begins where its parent stands, only the topmost has room, and none was asked for more than it uses. */
static int slot_holds(const upfront_row *r, uint64_t i) {
    const upfront_linear *s = upfront_row_slot(r, i);
    uint64_t limit = s->limit & UPFRONT_OFFSETS;
    uint64_t below = i == 0 ? r->start : upfront_row_slot(r, i - 1)->cursor, from, to;
    upfront_row_bounds(r, i, &from, &to);
    if (s->start != below || s->cursor < s->start || s->cursor > r->edge || !chain_holds(s->chain, from, to))
        return 0;
    if (upfront_asked(s->count) > s->cursor - s->start)
        return 0;
    return limit == 0 || (i + 1 == r->open && limit == r->edge);
}

/* The far end's slot while it is open: its limit is the upper edge of the newest piece, or 0 before the first and while it closes. */
static int far_holds(const upfront_row *r) {
    const upfront_linear *s = upfront_row_far(r);
    uint64_t limit = s->limit & UPFRONT_OFFSETS;
    uint64_t from, to;
    upfront_row_bounds(r, r->slots, &from, &to);
    if (s->start != r->end || s->cursor < r->edge || s->cursor > r->end || !chain_holds(s->chain, from, to))
        return 0;
    if (upfront_asked(s->count) > r->end - r->edge)
        return 0;
    return limit == 0 || (s->cursor <= limit && limit <= r->end);
}

static int pool_holds(const upfront_map *m, const upfront_row *r, const upfront_pool *p) {
    uint64_t generation = p->bound & ~UPFRONT_OFFSETS, count = p->bound & UPFRONT_OFFSETS, next = p->free - generation;
    uint64_t first = upfront_distance(p, m) + p->chunks;
    if (p->open == 0)
        return count == 0 && next == 0 && p->live == 0;
    if (p->open != 1 || p->stride < 8 || p->stride % 8 != 0 || p->inverse != UINT64_MAX / p->stride + 1)
        return 0;
    if (first % 8 != 0 || first < r->start || first > r->end || count > first - r->start || count > (r->end - first) / p->stride)
        return 0;
    return next <= count && p->live <= count && (next == 0) == (p->live == count);
}

static int name_holds(const char *name) {
    const char *last = (const char *)memchr(name, 0, UPFRONT_NAME_SIZE);
    while (last != NULL && last < name + UPFRONT_NAME_SIZE && *last == 0)
        last++;
    return last == name + UPFRONT_NAME_SIZE;
}

/* Siblings stand side by side, of one size. */
static int sibling_holds(const upfront_map *m, const upfront_row *r, uint64_t row) {
    uint64_t group = upfront_row_group(r);
    const upfront_row *first;
    if (group > row || upfront_row_sibling(r) != row - group)
        return 0;
    first = upfront_map_row(m, group);
    return upfront_row_group(first) == group && first->kind == r->kind && first->end - first->start == r->end - r->start;
}

static int row_holds(const upfront_map *m, const upfront_row *r, uint64_t row, uint64_t start) {
    uint64_t i;
    if (r->slots != m->slots || r->pools != m->pools || r->open > r->slots || r->far_of > r->open || !upfront_map_is_kind(r->kind))
        return 0;
    if (r->start != start || r->end < r->start || r->end > m->size || upfront_round_edge(r->end) + m->guard > m->size ||
        r->edge < r->start || r->edge > r->end || (r->far_of == 0 && r->edge != r->end))
        return 0;
    if (r->peak > r->end - r->start || !sibling_holds(m, r, row) || !name_holds(r->name) || r->unused != 0)
        return 0;
    for (i = 0; i <= r->slots; i++) {
        int is_open = i == r->slots ? r->far_of != 0 : i < r->open;
        if (!place_holds(m, r, i))
            return 0;
        if (!is_open && !closed_holds(upfront_row_slot(r, i)))
            return 0;
        if (is_open && !(i == r->slots ? far_holds(r) : slot_holds(r, i)))
            return 0;
    }
    for (i = 0; i < r->pools; i++)
        if (!pool_holds(m, r, upfront_row_pool(r, i)))
            return 0;
    return 1;
}

static int map_holds(const upfront_map *m, uint64_t size) {
    if (m->magic != UPFRONT_MAP_MAGIC || m->size != size || m->unused != 0 || !upfront_map_is_guard(m->guard))
        return 0;
    if (!upfront_map_are_counts(m->rows, m->slots, m->pools) || m->tables != upfront_map_tables(m->rows, m->slots, m->pools))
        return 0;
    return upfront_round_edge(m->tables) + m->guard <= size;
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
    uint64_t i;
    if (m == NULL || count == NULL || (out == NULL && room != 0))
        return UPFRONT_BAD_ARGUMENT;
    w.out = out;
    w.room = room;
    w.count = w.at = 0;
    *count = m->rows;
    if (!map_holds(m, size))
        return UPFRONT_CORRUPT;
    name_range(&w, m->tables, m->rows, UPFRONT_RANGE_TABLES);
    name_range(&w, upfront_round_edge(m->tables), m->rows, UPFRONT_RANGE_EDGE);
    name_range(&w, w.at + m->guard, m->rows, UPFRONT_RANGE_GUARD);
    for (i = 0; i < m->rows; i++) {
        const upfront_row *r = upfront_map_row(m, i);
        *count = i;
        if (!row_holds(m, r, i, w.at))
            return UPFRONT_CORRUPT;
        name_range(&w, r->open == 0 ? r->start : upfront_row_slot(r, r->open - 1)->cursor, i, UPFRONT_RANGE_USED);
        name_range(&w, r->edge, i, UPFRONT_RANGE_FREE);
        name_range(&w, r->end, i, UPFRONT_RANGE_TEMP);
        name_range(&w, upfront_round_edge(r->end), i, UPFRONT_RANGE_EDGE);
        name_range(&w, w.at + m->guard, i, UPFRONT_RANGE_GUARD);
    }
    name_range(&w, size, m->rows, UPFRONT_RANGE_UNPLANNED);
    *count = w.count;
    return w.count > w.room ? UPFRONT_FULL : UPFRONT_OK;
}
