#include "stretch_end.h"

#ifdef UPFRONT_STRETCHED

static int covers(const upfront_record *r, uint64_t place) { return place - r->place < r->size; }

static void found_record(upfront_found *out, uint64_t what, const upfront_record *r, uint64_t place) {
    out->what = what;
    out->record = *r;
    out->offset = place - r->place - (what == UPFRONT_FOUND_GAP ? r->size : 0);
}

/* The last live record that begins at the place or before it: they are in order. Gives how many those are. */
static uint64_t live_until(const upfront_record *log, uint64_t live, uint64_t place) {
    uint64_t low = 0, high = live;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (log[middle].place <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of the records behind the live ones each died no later than the one before it, so the first that has the place is what was there last. */
static const upfront_record *dead_at(const upfront_record *log, uint64_t room, uint64_t live, uint64_t place) {
    for (; live < room && log[live].place != 0; live++)
        if (covers(&log[live], place))
            return &log[live];
    return NULL;
}

static int is_just_behind(const upfront_record *r, uint64_t place) {
    return place - r->place - r->size < UPFRONT_GAP_LEAST + UPFRONT_GAP_MORE;
}

static const upfront_record *dead_before(const upfront_record *log, uint64_t room, uint64_t live, uint64_t place) {
    const upfront_record *nearest = NULL;
    for (; live < room && log[live].place != 0; live++)
        if (is_just_behind(&log[live], place) &&
            (nearest == NULL || nearest->place + nearest->size < log[live].place + log[live].size))
            nearest = &log[live];
    return nearest;
}

void upfront_stretch_search(const upfront_record *log, uint64_t room, uint64_t live, uint64_t place, upfront_found *out) {
    const upfront_record *r = NULL;
    uint64_t before;
    out->what = UPFRONT_FOUND_ROOM;
    out->live = out->offset = 0;
    memset(&out->record, 0, sizeof out->record);
    if (log == NULL)
        return;
    before = live_until(log, live, place);
    if (before != 0)
        r = &log[before - 1];
    out->live = 1;
    if (r != NULL && covers(r, place)) {
        found_record(out, UPFRONT_FOUND_THING, r, place);
        return;
    }
    if (before < live && r == NULL) {
        out->what = UPFRONT_FOUND_GAP; /* before the first */
        return;
    }
    if (before < live) {
        found_record(out, UPFRONT_FOUND_GAP, r, place);
        return;
    }
    /* behind all that lives */
    out->live = 0;
    if (dead_at(log, room, live, place) != NULL) {
        found_record(out, UPFRONT_FOUND_THING, dead_at(log, room, live, place), place);
    } else if (r != NULL && is_just_behind(r, place)) {
        out->live = 1;
        found_record(out, UPFRONT_FOUND_GAP, r, place);
    } else if (dead_before(log, room, live, place) != NULL) {
        found_record(out, UPFRONT_FOUND_GAP, dead_before(log, room, live, place), place);
    }
}

/* What of a row's windows an address is in. */
static void find_in(const upfront_stretch *s, uint64_t place, upfront_found *out) {
    uint64_t offset = (place - s->place) % s->window, room, in_use;
    const upfront_record *log;
    out->window = (place - s->place) / s->window;
    in_use = out->window == s->current && (s->entered & UPFRONT_IN_USE) != 0;
    out->far_part = offset / s->part;
    if (out->far_part < 2) {
        log = upfront_stretch_log(s, out->window, out->far_part, &room);
        upfront_stretch_search(log, room, !in_use ? 0 : out->far_part ? s->far_records : s->records, place, out);
    } else {
        out->what = UPFRONT_FOUND_LOG;
        out->far_part = offset >= 2 * s->part + s->part / 2;
    }
    out->current = in_use;
}

int upfront_stretch_find(const upfront_map *m, const void *p, upfront_found *out) {
    uint64_t i, place = upfront_distance(p, m);
    memset(out, 0, sizeof *out);
    for (i = 0; i < m->rows; i++) {
        const upfront_stretch *s = upfront_stretch_of(upfront_map_row(m, i));
        if (s == NULL || place - s->place >= UPFRONT_WINDOWS * s->window)
            continue;
        out->row = i;
        find_in(s, place, out);
        return 1;
    }
    return 0;
}

#endif
