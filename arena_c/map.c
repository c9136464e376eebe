#include "map.h"

static uint64_t siblings_of(const upfront_map_arena *a) { return a->siblings == 0 ? 1 : a->siblings; }

static uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t times(uint64_t a, uint64_t b) { return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

void upfront_map_measure(const upfront_map_arena *arenas, uint64_t count, uint64_t guard, upfront_map_sum *sum) {
    uint64_t i;
    if (sum == NULL)
        return;
    memset(sum, 0, sizeof *sum);
    for (i = 0; i < count && arenas != NULL; i++) {
        uint64_t size = arenas[i].size, rows = siblings_of(&arenas[i]);
        uint64_t each = size > UINT64_MAX - UPFRONT_EDGE - guard ? UINT64_MAX : upfront_map_behind(size, guard);
        sum->rows = plus(sum->rows, rows);
        sum->bytes = plus(sum->bytes, times(rows, size));
        sum->guards = plus(sum->guards, times(rows, guard));
        sum->whole = plus(sum->whole, times(rows, each));
    }
    sum->edges = sum->whole - plus(sum->bytes, sum->guards);
}

/* upfront_map_size, and what the arenas take of it. */
static uint64_t measure(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools, uint64_t guard,
                        upfront_map_sum *sum) {
    uint64_t i, size;
    if (arenas == NULL || count > UPFRONT_COUNT_MAX || !upfront_map_is_guard(guard))
        return 0;
    for (i = 0; i < count; i++)
        if (arenas[i].size >= UPFRONT_OFFSET_MAX || arenas[i].siblings > UPFRONT_COUNT_MAX || !upfront_map_is_kind(arenas[i].kind))
            return 0;
    upfront_map_measure(arenas, count, guard, sum);
    if (!upfront_map_are_counts(sum->rows, slots, pools))
        return 0;
    size = upfront_map_behind(upfront_map_tables(sum->rows, slots, pools), guard) + sum->whole;
    return size < UPFRONT_OFFSET_MAX ? size : 0;
}

uint64_t upfront_map_size(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools, uint64_t guard) {
    upfront_map_sum sum;
    return measure(arenas, count, slots, pools, guard, &sum);
}

/* Row `index` for the bytes [start, end) of the block. */
static upfront_row *lay_out_row(upfront_map *m, uint64_t index, const char *name, uint64_t start, uint64_t end) {
    upfront_row *r = upfront_map_row(m, index);
    uint64_t at = upfront_distance(r, m), head = upfront_map_head(m->rows, m->pools);
    upfront_row_init(r, m, name, start, end, m->slots, m->pools, head + index * upfront_map_records(m->slots) - at,
                     upfront_map_headers(m->rows, m->pools) + index * m->pools * sizeof(upfront_pool) - at);
    return r;
}

/* Nothing is open in the row any more, and its handles find nothing outside of it. */
static void end_row(upfront_row *r) {
    uint64_t over = offsetof(upfront_row, over);
    r->arena.arena.gen = r->temp.arena.gen = r->arena.depth = r->temp.depth = 0;
    r->arena.records = over;
    r->temp.records = over - r->temp.back;
}

/* Ends what an earlier map of more rows, or of more pools, left open where this one has nothing. */
static void end_rest(upfront_map *m, uint64_t rows) {
    uint64_t i, headers = upfront_map_headers(m->rows, m->pools);
    uint64_t pools = (upfront_map_head(m->rows, m->pools) - headers) / sizeof(upfront_pool);
    upfront_pool *p = (upfront_pool *)((uintptr_t)m + (uintptr_t)headers);
    for (i = m->rows; i < rows; i++)
        if (upfront_map_row(m, i)->arena.depth != 0)
            end_row(upfront_map_row(m, i));
    for (i = m->rows * m->pools; i < pools; i++)
        if (p[i].gen != 0) /* most pages of a large head were never written */
            p[i].gen = 0;
}

/* Generations go on from the newest that any row of the head gave: a pool's header may have been another row's. */
static void go_on(upfront_map *m) {
    uint64_t i, newest = 0, rows = (upfront_map_headers(m->rows, m->pools) - sizeof *m) / sizeof(upfront_row);
    end_rest(m, rows);
    for (i = 0; i < rows; i++) {
        const upfront_row *r = upfront_map_row(m, i);
        newest = r->arena.arena.next > newest ? r->arena.arena.next : newest;
        newest = r->temp.arena.next > newest ? r->temp.arena.next : newest;
    }
    for (i = 0; i < m->rows; i++)
        upfront_map_row(m, i)->arena.arena.next = upfront_map_row(m, i)->temp.arena.next = newest;
}

/* Makes the rows of one line of the plan, from row `first` and offset `start`. Gives the offset behind them. */
static uint64_t lay_out(upfront_map *m, const upfront_map_arena *a, uint64_t first, uint64_t start) {
    uint64_t k;
    for (k = 0; k < siblings_of(a); k++) {
        upfront_row *r = lay_out_row(m, first + k, a->name, start, start + a->size);
        r->kind = a->kind;
        r->kin = first << 32 | k;
        start = upfront_map_behind(start + a->size, m->guard);
    }
    return start;
}

upfront_map *upfront_map_init(void *block, uint64_t size, const upfront_map_arena *arenas, uint64_t count, uint64_t slots,
                              uint64_t pools, uint64_t guard) {
    upfront_map *m = (upfront_map *)block;
    upfront_map_sum sum;
    uint64_t i, start, row = 0, needed = measure(arenas, count, slots, pools, guard, &sum);
    if (block == NULL || (uintptr_t)block % UPFRONT_EDGE != 0 || needed == 0 || size < needed || size >= UPFRONT_OFFSET_MAX)
        return NULL;
    m->magic = UPFRONT_MAP_MAGIC;
    m->size = size;
    m->rows = sum.rows;
    m->slots = slots;
    m->pools = pools;
    m->tables = upfront_map_tables(m->rows, slots, pools);
    m->guard = guard;
    m->unused = 0;
    go_on(m);
    start = upfront_map_behind(m->tables, guard);
    for (i = 0; i < count; i++) {
        start = lay_out(m, &arenas[i], row, start);
        row += siblings_of(&arenas[i]);
    }
    return m;
}

void upfront_map_over(upfront_map *m) {
    uint64_t i;
    for (i = 0; m != NULL && i < m->rows; i++)
        end_row(upfront_map_row(m, i));
}

/* Of the rows from `row` up, those that go with it when it is rewound: itself, and for a region the regions above it and its siblings. */
static int goes_along(const upfront_map *m, uint64_t row, uint64_t other) {
    const upfront_row *r = upfront_map_row(m, row), *o = upfront_map_row(m, other);
    return other == row || (r->kind == UPFRONT_REGION && o->kind == UPFRONT_REGION && upfront_row_group(o) != upfront_row_group(r));
}

static int is_c_row(const upfront_row *r) {
    return !((r->arena.odd | r->temp.odd) & UPFRONT_CLOSING) && upfront_scopes_is_c(&r->temp, 0) && upfront_scopes_is_c(&r->arena, 0);
}

static void empty(upfront_row *r) {
    upfront_scopes *h = &r->arena;
    h->odd |= UPFRONT_CLOSING;
    for (; h->depth != 0; upfront_scopes_close(h)) {
        h->arena.gen = 0;
        upfront_scopes_run(h, upfront_scopes_top(h)->chain);
    }
    h->odd &= ~(uint64_t)UPFRONT_CLOSING;
}

int upfront_map_rewind(upfront_map *m, uint64_t row) {
    uint64_t i;
    if (m == NULL || row >= m->rows)
        return UPFRONT_BAD_ARGUMENT;
    for (i = row; i < m->rows; i++)
        if (goes_along(m, row, i) && !is_c_row(upfront_map_row(m, i)))
            return UPFRONT_ORDER;
    for (i = m->rows; i-- > row;)
        if (goes_along(m, row, i))
            empty(upfront_map_row(m, i));
    return UPFRONT_OK;
}

/* The sizes are those of whole groups of siblings, and need exactly the bytes that the rows have. */
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
    if (m == NULL || sizes == NULL || row >= m->rows || count - 1 >= m->rows - row || !may_reconfigure(m, row, sizes, count))
        return UPFRONT_BAD_ARGUMENT;
    for (i = 0; i < count; i++)
        if (upfront_map_row(m, row + i)->arena.depth != 0)
            return UPFRONT_ORDER;
    start = upfront_map_start(m, upfront_map_row(m, row));
    for (i = 0; i < count; i++) {
        upfront_row *r = upfront_map_row(m, row + i), was = *r;
        lay_out_row(m, row + i, was.name, start, start + sizes[i]);
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
