#include "stretch_end.h"

#ifdef UPFRONT_STRETCHED

static uint64_t window_size(uint64_t bytes) { return upfront_stretch_window_size(upfront_round_edge(bytes)); }

static uint64_t array_size(uint64_t rows) { return upfront_round_edge(rows * sizeof(upfront_stretch)); }

uint64_t upfront_map_stretch_size(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools, uint64_t guard) {
    uint64_t i, rows = 0, sum = 0, map = upfront_map_size(arenas, count, slots, pools, guard);
    if (map == 0)
        return 0;
    for (i = 0; i < count; i++) {
        uint64_t siblings = arenas[i].siblings == 0 ? 1 : arenas[i].siblings;
        rows += siblings;
        sum += siblings * UPFRONT_WINDOWS * window_size(arenas[i].size);
    }
    sum += array_size(rows);
    return map + sum <= UPFRONT_STRETCH_MAX ? sum : 0;
}

/* A closed slot begins where the current window does: its row's first scope and its far end. */
static void aim(upfront_linear *slot, const upfront_row *r, const upfront_stretch *s) {
    uint64_t far_part = slot == upfront_row_far(r), first = far_part ? r->end : r->start;
    uint64_t start = (uint64_t)(uintptr_t)upfront_stretch_map(s) + upfront_stretch_part(s, s->current, far_part);
    slot->origin = start - first - (uint64_t)(uintptr_t)slot;
}

/* Gives `count` rows from `row` up their windows, from `place` on. Returns the place behind them. */
static uint64_t lay_windows(upfront_map *m, uint64_t row, uint64_t count, uint64_t place) {
    upfront_stretch *s = (upfront_stretch *)((uintptr_t)m + (uintptr_t)m->size) + row;
    for (; count > 0; count--, row++, s++) {
        upfront_row *r = upfront_map_row(m, row);
        uint64_t i;
        memset(s, 0, sizeof *s);
        s->map = upfront_distance(m, s);
        s->row = upfront_distance(r, s);
        s->place = place;
        s->part = 3 * upfront_round_edge(r->end - r->start) + UPFRONT_EDGE;
        s->window = window_size(r->end - r->start);
        r->space = 0 - s->row;
        upfront_row_slot(r, 0)->count = 0; /* not UPFRONT_UNMARKED: its own bytes are never used */
        for (i = 0; i <= r->slots; i++)
            aim(upfront_row_slot(r, i), r, s);
        place += UPFRONT_WINDOWS * s->window;
    }
    return place;
}

int upfront_map_stretch(upfront_map *m, uint64_t size) {
    uint64_t i, sum;
    if (m == NULL || m->size % UPFRONT_EDGE != 0)
        return UPFRONT_BAD_ARGUMENT;
    sum = array_size(m->rows);
    for (i = 0; i < m->rows; i++) {
        const upfront_row *r = upfront_map_row(m, i);
        if (r->open != 0)
            return UPFRONT_BAD_ARGUMENT;
        sum += UPFRONT_WINDOWS * window_size(r->end - r->start);
    }
    if (size < sum || m->size + size > UPFRONT_STRETCH_MAX)
        return UPFRONT_BAD_ARGUMENT;
    lay_windows(m, 0, m->rows, m->size + array_size(m->rows));
    return UPFRONT_OK;
}

void upfront_stretch_redraw(upfront_map *m, uint64_t row, uint64_t count) {
    const upfront_stretch *first = upfront_stretch_of(upfront_map_row(m, row));
    uint64_t place, end;
    if (first == NULL)
        return;
    place = first->place;
    end = lay_windows(m, row, count, place);
    UPFRONT_UNPOISON((char *)m + place, end - place); /* a window is poisoned when it is entered, and a log isn't */
}

void upfront_stretch_window(const upfront_row *r, uint64_t index, uint64_t *place, uint64_t *size, uint64_t *parts) {
    const upfront_stretch *s = upfront_stretch_of(r);
    *place = s == NULL ? 0 : upfront_stretch_part(s, index, 0);
    *size = s == NULL ? 0 : s->window;
    *parts = s == NULL ? 0 : 2 * s->part;
}

uint64_t upfront_stretch_current(const upfront_row *r) {
    const upfront_stretch *s = upfront_stretch_of(r);
    return s == NULL ? 0 : s->current;
}

void upfront_stretch_renew(upfront_row *r) {
    upfront_stretch *s = upfront_stretch_of(r);
    if (s != NULL && r->open == 0)
        memset(s->parts[s->current], 0, sizeof s->parts[0]);
}

upfront_record *upfront_stretch_log(const upfront_stretch *s, uint64_t window, uint64_t far_part, uint64_t *room) {
#ifdef UPFRONT_MEMDEBUG
    *room = s->part / 64;
    return (upfront_record *)(void *)(upfront_stretch_map(s) + upfront_stretch_part(s, window, 2)) + far_part * *room;
#else
    *room = s == NULL ? window : far_part * 0;
    return NULL;
#endif
}

int upfront_stretch_see(const upfront_linear *slot, upfront_stretch_end *e) {
    uint64_t far_part;
    e->row = upfront_stretch_row(slot);
    e->stretch = e->row == NULL ? NULL : upfront_stretch_of(e->row);
    if (e->stretch == NULL)
        return 0;
    far_part = slot == upfront_row_far(e->row);
    e->slot = slot;
    e->map = upfront_stretch_map(e->stretch);
    e->part = &e->stretch->parts[e->stretch->current][far_part];
    e->start = upfront_stretch_part(e->stretch, e->stretch->current, far_part);
    e->shift = upfront_distance(slot, e->map) + slot->origin;
    e->cursor = e->shift + slot->cursor;
    e->last = e->row->end;
    e->bound = e->start + e->stretch->part;
    e->twin = e->bound - upfront_stretch_bytes(e->stretch);
    if (far_part) {
        e->last = slot->limit & UPFRONT_OFFSETS;
        e->bound = upfront_stretch_is_twin(e) ? e->shift + e->last : e->twin;
    }
    e->records = far_part ? &e->stretch->far_records : &e->stretch->records;
    e->log = upfront_stretch_log(e->stretch, e->stretch->current, far_part, &e->room);
    return 1;
}

uint64_t upfront_stretch_place(const upfront_linear *slot, const void *p) {
    const upfront_row *r = upfront_stretch_row(slot);
    if (r == NULL || r->space == 0)
        return upfront_offset(slot, p);
    return upfront_distance(p, upfront_stretch_map(upfront_stretch_of(r)));
}

void *upfront_stretch_at(const upfront_linear *slot, uint64_t place) {
    const upfront_row *r = upfront_stretch_row(slot);
    if (r == NULL || r->space == 0)
        return upfront_at(slot, place);
    return upfront_stretch_map(upfront_stretch_of(r)) + place;
}

void upfront_stretch_bounds(const upfront_row *r, uint64_t index, uint64_t *from, uint64_t *to) {
    const upfront_linear *slot = upfront_row_slot(r, index);
    upfront_stretch_end e;
    if (!upfront_stretch_see(slot, &e))
        return;
    *from = e.start;
    *to = index == r->slots && upfront_stretch_is_twin(&e) ? e.start + e.stretch->part : e.cursor;
    if (index != 0 && index < r->slots) {
        upfront_stretch_see(slot - 1, &e);
        *from = e.cursor;
    }
}

/* The log of a window that is entered again begins anew. It ends at the first record that was never used. */
#ifdef UPFRONT_MEMDEBUG
static void clear_log(const upfront_stretch *s, uint64_t far_part) {
    uint64_t room, count = 0;
    upfront_record *log = upfront_stretch_log(s, s->current, far_part, &room);
    while (count < room && log[count].place != 0)
        count++;
    memset(log, 0, (size_t)count * sizeof *log);
}
#endif

static void enter(upfront_stretch *s) {
#ifdef UPFRONT_MEMDEBUG
    clear_log(s, 0);
    clear_log(s, 1);
#endif
    if ((s->entered >> s->current & 1) == 0)
        UPFRONT_POISON(upfront_stretch_map(s) + upfront_stretch_part(s, s->current, 0), 2 * s->part);
    s->entered |= UPFRONT_IN_USE | UINT64_C(1) << s->current;
    s->records = s->far_records = 0;
}

void upfront_stretch_open(upfront_row *r) {
    upfront_linear *child = upfront_row_slot(r, r->open);
    upfront_stretch *s = upfront_stretch_of(r);
    if (s == NULL) {
        if (r->open == 0 && child->count == UPFRONT_UNMARKED)
            upfront_mark_dead(upfront_at(child, r->start), r->end - r->start);
    } else if (r->open == 0) {
        enter(s);
    } else {
        child->origin = (child - 1)->origin - sizeof *child;
    }
}

void upfront_stretch_close(upfront_row *r) {
    upfront_linear *child = upfront_row_slot(r, r->open - 1);
    upfront_stretch *s = upfront_stretch_of(r);
    uint64_t from = 0, to = 0;
    if (s == NULL) {
        upfront_mark_dead(upfront_at(child, child->start), child->cursor - child->start);
        return;
    }
    upfront_stretch_bounds(r, r->open - 1, &from, &to);
    upfront_stretch_cut(child, upfront_stretch_map(s) + from);
    s->gone = 0;
    if (r->open > 1) {
        child->origin = (child - 1)->origin - sizeof *child;
        return;
    }
    s->current = s->current + 1 < UPFRONT_WINDOWS ? s->current + 1 : 0;
    s->entered &= ~UPFRONT_IN_USE;
    aim(child, r, s);
    aim(upfront_row_far(r), r, s);
}

void upfront_stretch_names(upfront_row *r, uint32_t scope, uint32_t account) {
    upfront_stretch *s = upfront_stretch_of(r);
    if (s != NULL)
        s->names = (uint64_t)account << 32 | scope;
}

void upfront_stretch_closed_by(upfront_row *r, uint32_t site) {
    upfront_stretch *s = upfront_stretch_of(r);
    if (s != NULL)
        s->gone = site;
}

#endif
