#include "map.h"

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
        upfront_row_init(r, m, was.name, start, start + sizes[i], m->slots, m->pools);
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
