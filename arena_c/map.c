#include "map.h"

/* Returns the plan line's own value, or the default. */
static uint64_t said_or(uint64_t said, uint64_t usual) { return said == 0 ? usual : said; }

static uint64_t siblings_of(const upfront_map_arena *a) { return said_or(a->siblings, 1); }

static int is_line(const upfront_map_arena *a, uint64_t slots, uint64_t pools) {
    return a->size < UPFRONT_OFFSET_MAX && a->siblings <= UPFRONT_COUNT_MAX && upfront_map_is_kind(a->kind) &&
           upfront_map_are_counts(said_or(a->slots, slots), said_or(a->pools, pools));
}

/* Does upfront_map_size and fills in the map's header. */
static uint64_t measure(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools, uint64_t guard,
                        upfront_map *m) {
    uint64_t i, arenas_size = 0;
    memset(m, 0, sizeof *m);
    m->magic = UPFRONT_MAP_MAGIC;
    m->guard = guard;
    if ((arenas == NULL && count != 0) || count > UPFRONT_COUNT_MAX || !upfront_map_is_guard(guard))
        return 0;
    for (i = 0; i < count; i++) {
        const upfront_map_arena *a = &arenas[i];
        uint64_t rows = siblings_of(a);
        if (!is_line(a, slots, pools))
            return 0;
        m->rows += rows;
        m->slots += rows * said_or(a->slots, slots);
        m->pools += rows * said_or(a->pools, pools);
        /* can't wrap unless there are too many rows */
        arenas_size += rows * upfront_map_behind(a->size, guard);
    }
    m->tables = upfront_map_tables_of(m).size;
    m->size = upfront_map_behind(m->tables, guard) + arenas_size;
    return m->tables != 0 && m->size < UPFRONT_OFFSET_MAX ? m->size : 0;
}

uint64_t upfront_map_size(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools,
                          uint64_t guard) {
    upfront_map m;
    return measure(arenas, count, slots, pools, guard, &m);
}

/* Makes row `index` of a line from offset `start` on. Its tables follow those of the row before
 * it. */
static upfront_row *lay_out_row(upfront_map *m, uint64_t index, const upfront_map_arena *a, uint64_t start) {
    upfront_row *r = upfront_map_row(m, index);
    upfront_row_init(r, m, a->name, start, start + a->size, a->slots, a->pools,
                     upfront_map_records_at(m, index) - upfront_distance(r, m),
                     upfront_map_headers_at(m, index) - upfront_distance(r, m));
    return r;
}

/* Ends all scopes of the row, whose handles then read only the row itself. */
static void end_row(upfront_row *r) {
    uint64_t over = offsetof(upfront_row, over);
    r->arena.arena.gen = r->temp.arena.gen = r->arena.depth = r->temp.depth = 0;
    r->arena.records = over;
    r->temp.records = over - r->temp.back;
}

/* Ends the rows and pools of an earlier map that this one doesn't have. */
static void end_rest(upfront_map *m, uint64_t rows) {
    upfront_tables t = upfront_map_tables_of(m);
    uint64_t i, pools = (t.head - t.headers) / sizeof(upfront_pool);
    upfront_pool *p = (upfront_pool *)((uintptr_t)m + (uintptr_t)t.headers);
    for (i = m->rows; i < rows; i++)
        if (upfront_map_row(m, i)->arena.depth != 0)
            end_row(upfront_map_row(m, i));
    for (i = m->pools; i < pools; i++)
        if (p[i].gen != 0) /* don't touch a page that was never written */
            p[i].gen = 0;
}

/* Continues the generations from the newest of any row in the head: a pool's header may have been
 * in another row. */
static void go_on(upfront_map *m) {
    uint64_t i, newest = 0, rows = (upfront_map_tables_of(m).headers - sizeof *m) / sizeof(upfront_row);
    end_rest(m, rows);
    for (i = 0; i < rows; i++) {
        const upfront_row *r = upfront_map_row(m, i);
        newest = r->arena.arena.next > newest ? r->arena.arena.next : newest;
        newest = r->temp.arena.next > newest ? r->temp.arena.next : newest;
    }
    for (i = 0; i < m->rows; i++)
        upfront_map_row(m, i)->arena.arena.next = upfront_map_row(m, i)->temp.arena.next = newest;
}

/* Makes the rows of one line from row `first` and offset `start` on. Returns the offset after
 * them. */
static uint64_t lay_out(upfront_map *m, const upfront_map_arena *a, uint64_t first, uint64_t start) {
    uint64_t k;
    for (k = 0; k < siblings_of(a); k++) {
        upfront_row *r = lay_out_row(m, first + k, a, start);
        r->kind = a->kind;
        r->kin = first << 32 | k;
        start = upfront_map_behind(start + a->size, m->guard);
    }
    return start;
}

upfront_map *upfront_map_init(void *block, uint64_t size, const upfront_map_arena *arenas, uint64_t count,
                              uint64_t slots, uint64_t pools, uint64_t guard) {
    upfront_map *m = (upfront_map *)block;
    upfront_map made;
    int earlier;
    uint64_t i, start, row = 0, needed = measure(arenas, count, slots, pools, guard, &made);
    if (block == NULL || (uintptr_t)block % UPFRONT_EDGE != 0 || needed == 0 || size < needed ||
        size >= UPFRONT_OFFSET_MAX)
        return NULL;
    earlier = m->magic != 0;
    *m = made;
    m->size = size;
    if (earlier) /* else the head is zero, and its pages stay untouched */
        go_on(m);
    start = upfront_map_behind(m->tables, guard);
    for (i = 0; i < count; i++) {
        upfront_map_arena a = arenas[i];
        a.slots = said_or(a.slots, slots);
        a.pools = said_or(a.pools, pools);
        start = lay_out(m, &a, row, start);
        row += siblings_of(&a);
    }
    return m;
}

void upfront_map_over(upfront_map *m) {
    uint64_t i;
    for (i = 0; m != NULL && i < m->rows; i++)
        end_row(upfront_map_row(m, i));
}

/* Reports whether the sizes are for whole groups of siblings and need exactly the rows' bytes. */
static int may_reconfigure(const upfront_map *m, uint64_t row, const uint64_t *sizes, uint64_t count) {
    const upfront_row *first = upfront_map_row(m, row), *last = upfront_map_row(m, row + count - 1);
    uint64_t i, start = upfront_map_start(m, first);
    for (i = 0; i < count; i++) {
        const upfront_row *r = upfront_map_row(m, row + i);
        uint64_t group = upfront_row_group(r);
        if (group < row || sizes[i] >= UPFRONT_OFFSET_MAX || sizes[i] != sizes[group - row])
            return 0;
        start = upfront_map_behind(start + sizes[i], m->guard);
    }
    if (row + count < m->rows && upfront_row_group(upfront_map_row(m, row + count)) < row + count)
        return 0;
    return start == upfront_map_behind(upfront_map_end(m, last), m->guard);
}

int upfront_map_reconfigure(upfront_map *m, uint64_t row, const uint64_t *sizes, uint64_t count) {
    uint64_t i, start;
    if (m == NULL || sizes == NULL || row >= m->rows || count == 0 || count > m->rows - row ||
        !may_reconfigure(m, row, sizes, count))
        return UPFRONT_BAD_ARGUMENT;
    for (i = 0; i < count; i++)
        if (upfront_map_row(m, row + i)->arena.depth != 0)
            return UPFRONT_ORDER;
    start = upfront_map_start(m, upfront_map_row(m, row));
    for (i = 0; i < count; i++) {
        upfront_row *r = upfront_map_row(m, row + i), was = *r;
        upfront_row_init(r, m, was.name, start, start + sizes[i], was.arena.slots, was.pools, was.arena.records,
                         was.headers);
        r->arena.owner = was.arena.owner;
        r->arena.base = was.arena.base;
        r->arena.odd = was.arena.odd;
        r->temp.owner = was.temp.owner;
        r->temp.odd = was.temp.odd;
        r->kind = was.kind;
        r->kin = was.kin;
        start = upfront_map_behind(start + sizes[i], m->guard);
    }
    return UPFRONT_OK;
}
