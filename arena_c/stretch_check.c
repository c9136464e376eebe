#include "stretch_end.h"

#ifdef UPFRONT_STRETCHED

upfront_damage upfront_first_damage;
void (*upfront_on_damage)(const upfront_damage *damage);

#ifdef UPFRONT_MEMDEBUG

/* Checked bytes may be poisoned. A word that may be anything's: */
typedef uint64_t __attribute__((may_alias)) any_word;

__attribute__((noinline, no_sanitize("address"))) const unsigned char *upfront_stretch_differs(const void *p, uint64_t size,
                                                                                                unsigned char value) {
    const unsigned char *at = (const unsigned char *)p, *end = at + size;
    const uint64_t word = UINT64_C(0x0101010101010101) * value;
    while (at != end && (uintptr_t)at % sizeof word != 0 && *at == value)
        at++;
    if ((uintptr_t)at % sizeof word == 0)
        while ((uint64_t)(end - at) >= sizeof word && *(const any_word *)(const void *)at == word)
            at += sizeof word;
    while (at != end && *at == value)
        at++;
    return at == end ? NULL : at;
}

__attribute__((noinline, no_sanitize("address"))) static uint32_t byte_at(const unsigned char *p) { return *p; }

__attribute__((noinline, no_sanitize("address"))) static uint64_t word_at(const unsigned char *p) {
    return *(const any_word *)(const void *)p;
}

void upfront_stretch_damaged(const upfront_damage *d) {
    static char met;
    if (!__atomic_test_and_set(&met, __ATOMIC_SEQ_CST))
        upfront_first_damage = *d;
    if (upfront_on_damage == NULL)
        __builtin_trap();
    upfront_on_damage(d);
}

static int bytes_differ(const void *p, uint64_t size, unsigned char value, uint64_t what, upfront_damage *d) {
    const unsigned char *at = upfront_stretch_differs(p, size, value);
    if (at == NULL)
        return 0;
    memset(d, 0, sizeof *d);
    d->what = what;
    d->at = at;
    d->expected = value;
    d->found = byte_at(at);
    return 1;
}

static int range_differs(const upfront_stretch_end *e, uint64_t from, uint64_t to, unsigned char value, uint64_t what,
                         upfront_damage *d) {
    if (from >= to || !bytes_differ(e->map + from, to - from, value, what, d))
        return 0;
    d->map = (const upfront_map *)(const void *)e->map;
    d->row = upfront_stretch_index(e->row, d->map);
    d->place = upfront_distance(d->at, e->map);
    return 1;
}

int upfront_stretch_free_differs(const upfront_stretch_end *e, uint64_t from, uint64_t to, upfront_damage *d) {
    uint64_t dead_from = e->start, dead_to = e->part->high, lower, upper;
    upfront_found found;
    int differs;
    if (from >= e->twin && e->slot == upfront_row_far(e->row)) {
        dead_from = e->part->low == 0 ? to : e->part->low;
        dead_to = to;
    }
    lower = from > dead_from ? from : dead_from;
    upper = to < dead_to ? to : dead_to;
    differs = range_differs(e, from, dead_from < to ? dead_from : to, 0, UPFRONT_DAMAGE_FRESH, d) ||
              range_differs(e, lower, upper, UPFRONT_DEAD, UPFRONT_DAMAGE_DEAD, d) ||
              range_differs(e, from > dead_to ? from : dead_to, to, 0, UPFRONT_DAMAGE_FRESH, d);
    if (differs) {
        upfront_stretch_search(e->log, e->room, *e->records, d->place, &found);
        d->record = found.record;
    }
    return differs;
}

int upfront_stretch_gap_differs(const upfront_stretch_end *e, uint64_t from, uint64_t to, const upfront_record *before,
                                const upfront_record *after, upfront_damage *d) {
    if (!range_differs(e, from, to, UPFRONT_GAP, UPFRONT_DAMAGE_GAP, d))
        return 0;
    if (before != NULL)
        d->record = *before;
    if (after != NULL)
        d->next = *after;
    return 1;
}

/* The far slot of the row that a pool's header lies in: the last line before the headers that has a slot's index. pre: it lies in a row. */
static const upfront_linear *far_slot_before(const upfront_pool *p) {
    const upfront_linear *line = (const upfront_linear *)(const void *)p - 1;
    while (upfront_stretch_row(line) == NULL)
        line--;
    return line;
}

/* Only a pool of a stretched row has gaps, and says so where it is. */
static void name_chunk(const upfront_pool *p, uint64_t index, upfront_damage *d) {
    upfront_found found;
    d->chunk = upfront_pool_chunk(p, index);
    d->chunk_size = p->stride - upfront_pool_gap(p);
    if (p->open > 1) {
        const upfront_row *r = upfront_stretch_row(far_slot_before(p));
        d->map = (const upfront_map *)(const void *)upfront_stretch_map(upfront_stretch_of(r));
        d->row = upfront_stretch_index(r, d->map);
        d->place = upfront_distance(d->at, d->map);
        if (upfront_stretch_find(d->map, d->chunk, &found))
            d->record = found.record;
    }
}

/* A free chunk is dead but for its link, which names another one or none. */
static int free_chunk_differs(const upfront_pool *p, uint64_t index, upfront_damage *d) {
    const unsigned char *chunk = (const unsigned char *)upfront_pool_chunk(p, index);
    uint64_t size = p->stride - upfront_pool_gap(p);
    if (word_at(chunk) > upfront_pool_count(p)) {
        memset(d, 0, sizeof *d);
        d->what = UPFRONT_DAMAGE_CHUNK;
        d->at = chunk;
        d->found = byte_at(chunk);
        d->expected = UPFRONT_DEAD; /* any index would do */
    } else if (!bytes_differ(chunk + sizeof(uint64_t), size - sizeof(uint64_t), UPFRONT_DEAD, UPFRONT_DAMAGE_CHUNK, d)) {
        return 0;
    }
    name_chunk(p, index, d);
    return 1;
}

/* The gaps before and behind a chunk. */
static int gaps_differ(const upfront_pool *p, uint64_t index, upfront_damage *d) {
    const char *chunk = (const char *)upfront_pool_chunk(p, index);
    uint64_t gap = upfront_pool_gap(p);
    if (!bytes_differ(chunk - gap, gap, UPFRONT_GAP, UPFRONT_DAMAGE_CHUNK_GAP, d) &&
        !bytes_differ(chunk + p->stride - gap, gap, UPFRONT_GAP, UPFRONT_DAMAGE_CHUNK_GAP, d))
        return 0;
    name_chunk(p, index, d);
    return 1;
}

int upfront_stretch_get(const upfront_pool *p, uint64_t index) {
    upfront_damage d;
    if (!free_chunk_differs(p, index, &d))
        return 1;
    upfront_stretch_damaged(&d);
    return d.at != d.chunk; /* else its link leads anywhere */
}

void upfront_stretch_put(const upfront_pool *p, uint64_t index) {
    upfront_damage d;
    if (gaps_differ(p, index, &d))
        upfront_stretch_damaged(&d);
}

/* All of an open pool. */
static int pool_differs(const upfront_pool *p, upfront_damage *d) {
    uint64_t i;
    for (i = 0; i < upfront_pool_count(p); i++) {
        uint8_t state = *upfront_pool_state(p, i);
        int is_free = state == UPFRONT_CHUNK_FRESH || state == UPFRONT_CHUNK_FREE;
        if (gaps_differ(p, i, d) || (is_free && free_chunk_differs(p, i, d)))
            return 1;
    }
    return 0;
}

void upfront_stretch_pool_close(const upfront_pool *p) {
    upfront_damage d;
    if (p->open > 1 && pool_differs(p, &d))
        upfront_stretch_damaged(&d);
}

static int gaps_of_end_differ(const upfront_stretch_end *e, upfront_damage *d) {
    const upfront_record *before = NULL;
    uint64_t i, from = e->start;
    for (i = 0; i < *e->records; i++) {
        if (upfront_stretch_gap_differs(e, from, e->log[i].place, before, &e->log[i], d))
            return 1;
        before = &e->log[i];
        from = before->place + before->size;
    }
    return !upfront_stretch_is_twin(e) && upfront_stretch_gap_differs(e, from, e->cursor, before, NULL, d);
}

/* One end of a row with open scopes. Of a twin what isn't handed out yet is among what is. */
static int end_differs(const upfront_stretch_end *e, upfront_damage *d) {
    uint64_t end = e->slot == upfront_row_far(e->row) ? e->twin : e->bound, from = e->cursor, to;
    if (gaps_of_end_differ(e, d))
        return 1;
    if (upfront_stretch_is_twin(e))
        from = e->part->high;
    to = (e->part->high < from ? from : e->part->high) + UPFRONT_TAIL;
    return upfront_stretch_free_differs(e, from, to < end ? to : end, d);
}

/* One end of a window that isn't in use: all of it is dead. */
static int left_differs(const upfront_row *r, uint64_t window, uint64_t far_part, upfront_damage *d) {
    upfront_stretch_end e;
    uint64_t none = 0, end;
    upfront_stretch_see(upfront_row_slot(r, far_part * r->slots), &e);
    e.part = &e.stretch->parts[window][far_part];
    e.start = upfront_stretch_part(e.stretch, window, far_part);
    e.log = upfront_stretch_log(e.stretch, window, far_part, &e.room);
    e.records = &none;
    end = e.start + e.stretch->part;
    e.twin = end - upfront_stretch_bytes(e.stretch);
    return upfront_stretch_free_differs(&e, e.start, e.part->high, d) ||
           (e.part->low != 0 && upfront_stretch_free_differs(&e, e.part->low, end, d));
}

/* The windows that a frame or a pad has left. Those of a region may be out of reach. */
static int left_windows_differ(const upfront_row *r, upfront_damage *d) {
    const upfront_stretch *s = upfront_stretch_of(r);
    uint64_t i;
    if (s == NULL || r->kind == UPFRONT_REGION)
        return 0;
    for (i = 0; i < UPFRONT_WINDOWS; i++)
        if ((i != s->current || r->open == 0) && (left_differs(r, i, 0, d) || left_differs(r, i, 1, d)))
            return 1;
    return 0;
}

static int row_differs(upfront_row *r, upfront_damage *d) {
    upfront_stretch_end e;
    uint64_t i;
    if (left_windows_differ(r, d))
        return 1;
    for (i = 0; i < r->pools; i++)
        if (upfront_row_pool(r, i)->open && pool_differs(upfront_row_pool(r, i), d))
            return 1;
    if (r->open == 0 || !upfront_stretch_see(upfront_row_slot(r, r->open - 1), &e))
        return 0;
    if (end_differs(&e, d))
        return 1;
    upfront_stretch_see(upfront_row_far(r), &e);
    return end_differs(&e, d);
}

int upfront_stretch_check(const upfront_map *m, upfront_damage *first) {
    uint64_t i;
    for (i = 0; i < m->rows; i++)
        if (row_differs(upfront_map_row(m, i), first)) {
            first->map = m;
            first->row = i;
            first->place = upfront_distance(first->at, m);
            return UPFRONT_CORRUPT;
        }
    return UPFRONT_OK;
}

#else

int upfront_stretch_check(const upfront_map *m, upfront_damage *first) {
    (void)m, (void)first;
    return UPFRONT_OK;
}

#endif
#endif
