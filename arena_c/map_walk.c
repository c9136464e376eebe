#include "map.h"

static int is_between(uint64_t at, uint64_t from, uint64_t to) { return from <= at && at <= to; }

/* Reports whether the chain is empty or begins with a node between two offsets of the header. */
static int chain_holds(uint64_t chain, uint64_t from, uint64_t to) {
    return chain == 0 || (is_between(chain, from, to) && chain - from >= sizeof(upfront_node) && chain % 8 == 0);
}

/* Reports whether the records are possible: open scopes begin in order, with increasing
 * generations, and the records above are closed. */
static int records_hold(const upfront_scopes *h, uint64_t from, uint64_t to) {
    uint64_t i;
    for (i = 0; i <= h->slots; i++) {
        const upfront_record *r = upfront_scopes_record(h, i);
        if (i == 0 || i > h->depth) {
            if (r->gen != 0)
                return 0;
        } else if (r->gen <= r[-1].gen || r->gen > h->arena.next || !is_between(r->mark, from, to) ||
                   !chain_holds(r->chain, from, to) || (h->back == 0 && i > 1 && r->mark < r[-1].mark)) {
            return 0;
        }
    }
    return 1;
}

/* Reports whether an end's header is possible: cursor and limit in order from `from` on, and a
 * generation only of the topmost scope. Nodes and marks of the near end are at or before its
 * cursor. temps_hold checks that the limit is in [from, to]. */
static int end_holds(const upfront_row *r, const upfront_scopes *h, uint64_t from, uint64_t to) {
    const upfront_arena *a = &h->arena;
    uint64_t last = h->back == 0 ? a->cursor : to;
    if (h->slots != r->arena.slots || h->depth > h->slots || h->base > h->slots)
        return 0;
    if (!is_between(a->cursor, from, a->limit))
        return 0;
    if (!chain_holds(h->chain, from, last) || (h->depth == 0 && h->chain != 0))
        return 0;
    if (!records_hold(h, from, last))
        return 0;
    return a->gen == 0 || a->gen == upfront_scopes_top(h)->gen;
}

/* Reports whether temporary scopes are possible: each is below the older one, the newest begins at
 * the near end's limit, and each contains its cursor and limit, kept in the record of the next
 * newer one. */
static int temps_hold(const upfront_row *r) {
    const upfront_scopes *h = &r->temp;
    uint64_t i, end = r->end, start = r->arena.arena.start;
    for (i = 0; i <= h->depth; i++) {
        const upfront_record *newer = upfront_scopes_record(h, i + 1);
        int top = i == h->depth;
        uint64_t from = top ? r->arena.arena.limit : newer->edge;
        uint64_t cursor = (top ? h->arena.cursor : newer->mark) + h->back - from;
        uint64_t limit = (top ? h->arena.limit : newer->limit) + h->back - from;
        if ((i == 0 && from != end) || !is_between(from, start, end) || limit > end - from || cursor > limit)
            return 0;
        end = from;
    }
    return 1;
}

/* Reports whether a pool's numbers, states and chunks are within its row. */
static int pool_lies(const upfront_pool *p, uint64_t numbers, uint64_t first, uint64_t end) {
    uint64_t beside = first - numbers, needed = p->count * UINT64_C(5);
    if (p->handles != 0)
        needed += p->count * UINT64_C(4);
    return numbers % 8 == 0 && first % 8 == 0 && numbers <= first && first <= end &&
           beside == upfront_round_up(needed, 8) && p->count <= (end - first) / p->stride;
}

static int pool_holds(const upfront_map *m, const upfront_row *r, const upfront_pool *p) {
    uint64_t at = upfront_distance(p, m), start = upfront_map_start(m, r);
    if (p->gen == 0)
        return (p->free | p->chunks | p->numbers | p->inverse | p->count | p->retired | p->kind | p->handles) == 0;
    if (p->gen > r->arena.arena.next || p->stride < 8 || p->stride % 8 != 0 || p->inverse != UINT64_MAX / p->stride + 1)
        return 0;
    if (p->free > p->count || p->retired > p->count - p->free || (p->handles & (p->handles + 1)) != 0)
        return 0;
    return at + p->numbers >= start && pool_lies(p, at + p->numbers, at + p->chunks, upfront_map_end(m, r));
}

static int name_holds(const char *name) {
    const char *last = (const char *)memchr(name, 0, UPFRONT_NAME_SIZE);
    while (last != NULL && last < name + UPFRONT_NAME_SIZE && *last == 0)
        last++;
    return last == name + UPFRONT_NAME_SIZE;
}

/* Reports whether siblings follow each other and have one size. */
static int sibling_holds(const upfront_map *m, const upfront_row *r, uint64_t row) {
    uint64_t group = upfront_row_group(r);
    const upfront_row *first;
    if (group > row || upfront_row_sibling(r) != row - group)
        return 0;
    first = upfront_map_row(m, group);
    return upfront_row_group(first) == group && first->kind == r->kind &&
           first->end - first->arena.arena.start == r->end - r->arena.arena.start;
}

/* Reports whether the row's tables end where the next row's begin, or for the last row at the end
 * of all tables. */
static int next_holds(const upfront_map *m, uint64_t row) {
    const upfront_row *next = upfront_map_row(m, row + 1);
    uint64_t records = upfront_map_records_at(m, row + 1), headers = upfront_map_headers_at(m, row + 1);
    uint64_t end = upfront_map_tables_of(m).headers + m->pools * sizeof(upfront_pool);
    if (row + 1 == m->rows)
        return records == m->tables && headers == end;
    return records <= m->tables && headers <= end && headers == upfront_distance(next, m) + next->headers;
}

static int row_holds(const upfront_map *m, const upfront_row *r, uint64_t row, uint64_t start) {
    const upfront_arena *a = &r->arena.arena;
    uint64_t i, end = upfront_map_end(m, r), back = offsetof(upfront_row, temp), at = upfront_distance(r, m);
    uint64_t records = upfront_map_records_at(m, row) - at, headers = upfront_map_headers_at(m, row) - at;
    if (!upfront_map_are_counts(r->arena.slots, r->pools) || !upfront_map_is_kind(r->kind) || r->arena.back != 0 ||
        r->temp.back != back || r->arena.records != records || r->headers != headers ||
        r->temp.records != records + upfront_map_records(r->arena.slots) / 2 - back || !next_holds(m, row))
        return 0;
    for (i = 0; i < sizeof r->unused / sizeof r->unused[0]; i++)
        if (r->unused[i] != 0)
            return 0;
    if ((r->over.mark | r->over.chain | r->over.gen | r->over.asked | r->over.count | r->over.limit | r->over.edge |
         r->over.ran) != 0)
        return 0;
    if (upfront_map_start(m, r) != start || !is_between(end, start, m->size) ||
        upfront_map_behind(end, m->guard) > m->size)
        return 0;
    if (!end_holds(r, &r->arena, a->start, r->end) || !end_holds(r, &r->temp, a->limit - back, r->end - back))
        return 0;
    if (!temps_hold(r) || a->least > r->end - a->start)
        return 0;
    if (!sibling_holds(m, r, row) || !name_holds(r->name))
        return 0;
    for (i = 0; i < r->pools; i++)
        if (!pool_holds(m, r, upfront_row_pool(r, i)))
            return 0;
    return 1;
}

static int map_holds(const upfront_map *m, uint64_t size) {
    if (m->magic != UPFRONT_MAP_MAGIC || m->size != size || m->unused != 0 || !upfront_map_is_guard(m->guard))
        return 0;
    if (m->tables == 0 || m->tables != upfront_map_tables_of(m).size)
        return 0;
    return upfront_map_behind(m->tables, m->guard) <= size;
}

typedef struct walk {
    upfront_range *out;
    uint64_t room, count, at;
} walk;

/* Adds the range from the walk's position to `end`. */
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
    *count = 0;
    if (size < sizeof *m)
        return UPFRONT_CORRUPT;
    *count = m->rows;
    if (!map_holds(m, size))
        return UPFRONT_CORRUPT;
    name_range(&w, m->tables, m->rows, UPFRONT_RANGE_TABLES);
    name_range(&w, upfront_round_edge(m->tables), m->rows, UPFRONT_RANGE_EDGE);
    name_range(&w, w.at + m->guard, m->rows, UPFRONT_RANGE_GUARD);
    for (i = 0; i < m->rows; i++) {
        const upfront_row *r = upfront_map_row(m, i);
        const upfront_arena *a = &r->arena.arena;
        *count = i;
        if (!row_holds(m, r, i, w.at))
            return UPFRONT_CORRUPT;
        name_range(&w, upfront_map_start(m, r) + a->cursor - a->start, i, UPFRONT_RANGE_USED);
        name_range(&w, upfront_map_start(m, r) + a->limit - a->start, i, UPFRONT_RANGE_FREE);
        name_range(&w, upfront_map_end(m, r), i, UPFRONT_RANGE_TEMP);
        name_range(&w, upfront_round_edge(upfront_map_end(m, r)), i, UPFRONT_RANGE_EDGE);
        name_range(&w, w.at + m->guard, i, UPFRONT_RANGE_GUARD);
    }
    name_range(&w, size, m->rows, UPFRONT_RANGE_UNPLANNED);
    *count = w.count;
    return w.count > w.room ? UPFRONT_FULL : UPFRONT_OK;
}
