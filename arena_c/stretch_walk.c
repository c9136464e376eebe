#include "stretch_end.h"

#ifdef UPFRONT_STRETCHED

/* What was handed out lies in the part. */
static int part_holds(const upfront_stretch *s, uint64_t window, uint64_t far_part) {
    const upfront_part *p = &s->parts[window][far_part];
    uint64_t start = upfront_stretch_part(s, window, far_part);
    return (p->high == 0 || p->high - start <= s->part) && (p->low == 0 || (far_part && p->low - start < s->part));
}

static int records_hold(const upfront_stretch *s) {
    uint64_t room;
    return upfront_stretch_log(s, s->current, 0, &room) == NULL ? s->records + s->far_records == 0
                                                                 : s->records <= room && s->far_records <= room;
}

static int words_hold(const upfront_map *m, const upfront_row *r, const upfront_stretch *s) {
    uint64_t i, bytes = upfront_round_edge(r->end - r->start);
    if (s->map != upfront_distance(m, s) || s->row != 0 - r->space || s->part != 3 * bytes + UPFRONT_EDGE ||
        s->window != upfront_stretch_window_size(bytes) || s->current >= UPFRONT_WINDOWS || s->entered >= 2 * UPFRONT_IN_USE)
        return 0;
    if ((r->open != 0) != ((s->entered & UPFRONT_IN_USE) != 0))
        return 0;
    for (i = 0; i < UPFRONT_WINDOWS; i++)
        if (!part_holds(s, i, 0) || !part_holds(s, i, 1))
            return 0;
    return records_hold(s);
}

/* An open slot hands out from the current window, and there is room for all that may still be asked for. A closed one begins there,
 * or where its parent last stood, in any window. */
static int slot_holds(const upfront_row *r, uint64_t index) {
    const upfront_linear *slot = upfront_row_slot(r, index);
    upfront_stretch_end e;
    if (upfront_row_index(slot) != index || !upfront_stretch_see(slot, &e))
        return 0;
    if (index == r->slots && r->far_of == 0)
        return e.shift + r->end == e.start;
    if (index < r->slots && index >= r->open)
        return index == 0 ? e.cursor == e.start : e.cursor - e.stretch->place < UPFRONT_WINDOWS * e.stretch->window;
    if (e.cursor < e.start)
        return 0;
    if (index == r->slots && e.last == 0)
        return e.cursor - e.start <= e.stretch->part;
    return upfront_stretch_has_room(&e, e.shift);
}

int upfront_stretch_holds(const upfront_map *m, uint64_t row) {
    const upfront_row *r = upfront_map_row(m, row);
    const upfront_stretch *s = (const upfront_stretch *)((uintptr_t)m + (uintptr_t)m->size) + row;
    uint64_t i, place;
    if (upfront_map_row(m, 0)->space == 0 || r->space == 0)
        return upfront_map_row(m, 0)->space == r->space;
    if (r->space != upfront_distance(s, r) || !words_hold(m, r, s))
        return 0;
    place = row == 0 ? m->size + upfront_round_edge(m->rows * sizeof *s) : s[-1].place + UPFRONT_WINDOWS * s[-1].window;
    if (s->place != place)
        return 0;
    for (i = 0; i <= r->slots; i++)
        if (!slot_holds(r, i))
            return 0;
    return 1;
}

#endif
