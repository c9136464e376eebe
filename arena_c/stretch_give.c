#include "stretch_end.h"

#ifdef UPFRONT_STRETCHED

static uint64_t round_up(uint64_t n, uint64_t mask) { return (n + mask) & ~mask; }

static int has_log_room(const upfront_stretch_end *e) { return e->log == NULL || *e->records < e->room; }

/* What the shift of a thing is a multiple of, less one. What is aligned to a line may be the block of an arena, whose paddings go by
 * addresses: in its page it lies where it lies elsewhere, so that the arena is full when it is there. */
static uint64_t shift_mask(uint64_t mask) { return mask + 1 < UPFRONT_LINE ? mask : mask | (UPFRONT_PAGE - 1); }

/* Where the thing at offset `at` lies: behind a gap while there is room. */
static uint64_t place_for(const upfront_stretch_end *e, uint64_t at, uint64_t size, uint64_t mask) {
    uint64_t more = size / 4 < UPFRONT_GAP_MORE ? size / 4 : UPFRONT_GAP_MORE;
    uint64_t after = e->cursor + UPFRONT_GAP_LEAST + (more & ~UINT64_C(15)), tight = round_up(e->shift, shift_mask(mask)) + at, place;
    if (size == 0 || !has_log_room(e)) /* of no bytes there may come any number */
        return tight;
    place = after > e->shift + at ? after : e->shift + at;
    place = mask + 1 < UPFRONT_LINE ? round_up(place, mask | 7) : round_up(place - at, shift_mask(mask)) + at;
    return upfront_stretch_has_room(e, place - at) ? place : tight;
}

#ifdef UPFRONT_MEMDEBUG
static void expect_free(const upfront_stretch_end *e, uint64_t from, uint64_t to) {
    upfront_damage d;
    if (upfront_stretch_free_differs(e, from, to, &d))
        upfront_stretch_damaged(&d);
}

static void expect_gap(const upfront_stretch_end *e, uint64_t from, uint64_t to, const upfront_record *before,
                       const upfront_record *after) {
    upfront_damage d;
    if (upfront_stretch_gap_differs(e, from, to, before, after, &d))
        upfront_stretch_damaged(&d);
}

/* Says that there is a thing; a full log takes it for more of the last one. */
static void record(const upfront_stretch_end *e, uint64_t place, uint64_t size) {
    upfront_record *r = e->log + *e->records;
    if (!has_log_room(e)) {
        r[-1].size = place + size - r[-1].place;
        return;
    }
    memset(r, 0, sizeof *r);
    r->place = place;
    r->size = size;
    r->scope = (uint32_t)e->stretch->names;
    r->account = (uint32_t)(e->stretch->names >> 32);
    ++*e->records;
}

/* Says that `size` bytes at the cursor are more of the last thing, or where that had none, a thing. */
static void record_more(const upfront_stretch_end *e, uint64_t size) {
    upfront_record *last = e->log + *e->records - 1;
    if (*e->records != 0 && last->place + last->size == e->cursor)
        last->size += size;
    else
        record(e, e->cursor, size);
}
#endif

/* Hands out: bytes from the cursor to `place` are a gap, those behind it live. */
static void *give(const upfront_stretch_end *e, uint64_t place, uint64_t size) {
    char *p = e->map + place;
#ifdef UPFRONT_MEMDEBUG
    char *gap = e->map + e->cursor;
    expect_free(e, e->cursor, place + size);
    UPFRONT_UNPOISON(gap, p - gap);
    memset(gap, UPFRONT_GAP, (size_t)(p - gap));
    UPFRONT_POISON(gap, p - gap);
#endif
    upfront_mark_live(p, size);
    if (e->part->high < place + size && !upfront_stretch_is_twin(e))
        e->part->high = place + size;
    return p;
}

void *upfront_stretch_take(upfront_linear *l, uint64_t at, uint64_t size, uint64_t mask) {
    upfront_stretch_end e;
    uint64_t place;
    void *p;
    if (!upfront_stretch_see(l, &e)) {
        l->cursor = at + size;
        p = upfront_at(l, at);
        upfront_mark_live(p, size);
        return p;
    }
    place = place_for(&e, at, size, mask);
    p = give(&e, place, size);
#ifdef UPFRONT_MEMDEBUG
    if (size != 0 && !upfront_stretch_is_twin(&e))
        record(&e, place, size);
#endif
    l->origin += place - at - e.shift;
    l->cursor = at + size;
    return p;
}

static void *give_more(upfront_stretch_end *e, uint64_t size) {
    void *p = give(e, e->cursor, size);
#ifdef UPFRONT_MEMDEBUG
    if (size != 0 && !upfront_stretch_is_twin(e))
        record_more(e, size);
#endif
    return p;
}

void *upfront_stretch_grow(upfront_linear *l, uint64_t size) {
    upfront_stretch_end e;
    if (upfront_stretch_see(l, &e))
        return give_more(&e, size);
    upfront_mark_live(upfront_at(l, l->cursor), size);
    return upfront_at(l, l->cursor);
}

uint64_t upfront_stretch_pool(upfront_linear *slot, uint64_t size, uint64_t align, uint64_t count) {
    uint64_t gap = align < UPFRONT_GAP_LEAST ? UPFRONT_GAP_LEAST : align;
    uint64_t gaps = upfront_pool_gaps(size, align, count, gap);
    upfront_stretch_end e;
    if (gaps == 0 || !upfront_stretch_see(slot, &e) || !upfront_stretch_has_room(&e, e.shift + gaps))
        return 0;
    give_more(&e, gaps);
    slot->origin += gaps;
    return gap;
}

#ifdef UPFRONT_MEMDEBUG
/* Takes the records of what lies at `from` or behind it out of the log, and looks at the gaps between them. `end` is where the gap behind
 * the last one ends. */
static void forget(const upfront_stretch_end *e, uint64_t from, uint64_t end) {
    const upfront_record *after = NULL;
    upfront_record *r;
    while (*e->records != 0 && e->log[*e->records - 1].place >= from) {
        r = &e->log[*e->records - 1];
        expect_gap(e, r->place + r->size, end, r, after);
        r->gone = (uint32_t)e->stretch->gone;
        end = r->place;
        after = r;
        --*e->records;
    }
    r = *e->records == 0 ? NULL : &e->log[*e->records - 1];
    if (r != NULL && r->place + r->size > from) { /* it goes on, shorter */
        expect_gap(e, r->place + r->size, end, r, after);
        r->size = from - r->place;
    } else {
        expect_gap(e, from, end, r, after);
    }
}
#endif

static void cut(const upfront_stretch_end *e, uint64_t from) {
#ifdef UPFRONT_MEMDEBUG
    if (!upfront_stretch_is_twin(e)) {
        uint64_t behind = e->bound - e->cursor;
        forget(e, from, e->cursor);
        expect_free(e, e->cursor, e->cursor + (behind < UPFRONT_GAP_LEAST ? behind : UPFRONT_GAP_LEAST));
    }
#endif
    upfront_mark_dead(e->map + from, e->cursor - from);
}

void upfront_stretch_cut(upfront_linear *l, const void *from) {
    upfront_stretch_end e;
    if (upfront_stretch_see(l, &e))
        cut(&e, upfront_distance(from, e.map));
    else
        upfront_mark_dead((void *)(uintptr_t)from, upfront_distance(upfront_at(l, l->cursor), from));
}

/* Whatever was handed out at `from` or behind it is dead: the header doesn't say any more where it ended. */
static void bury(const upfront_stretch_end *e, uint64_t from) {
    uint64_t to = e->part->high < from ? from : e->part->high;
#ifdef UPFRONT_MEMDEBUG
    uint64_t end = *e->records == 0 ? from : e->log[*e->records - 1].place + e->log[*e->records - 1].size;
    forget(e, from, end < from ? from : end);
#endif
    upfront_mark_dead(e->map + from, to - from);
}

void upfront_stretch_note(upfront_linear *slot, uint32_t made) {
#ifdef UPFRONT_MEMDEBUG
    upfront_stretch_end e;
    upfront_record *last;
    if (!upfront_stretch_see(slot, &e) || *e.records == 0)
        return;
    last = &e.log[*e.records - 1];
    if (last->place + last->size == e.cursor)
        last->made = made;
#else
    (void)slot, (void)made;
#endif
}

/* The first piece of the twin, or one below it. What of the twin is above its lowest piece is dead, or handed out. */
static void grow_twin(const upfront_stretch_end *e, uint64_t edge) {
    uint64_t from = upfront_stretch_twin(e) + edge, to = e->part->low == 0 ? e->start + e->stretch->part : e->part->low;
    if (from >= to)
        return;
#ifdef UPFRONT_MEMDEBUG
    expect_free(e, from, to);
#endif
    upfront_mark_dead(e->map + from, to - from);
    e->part->low = from;
}

/* A new piece goes on where the old one ended, while its room is sure as place_for has it. */
void upfront_stretch_far_grow(upfront_row *r, uint64_t edge) {
    upfront_linear *far_slot = upfront_row_far(r);
    upfront_stretch_end e;
    uint64_t shift;
    if (!upfront_stretch_see(far_slot, &e))
        return;
    shift = e.cursor - edge;
    if (upfront_stretch_is_twin(&e) || upfront_round_edge(shift) + r->edge > e.twin) {
        shift = upfront_stretch_twin(&e);
        grow_twin(&e, edge);
    }
    far_slot->origin += shift - e.shift;
}

void upfront_stretch_far_close(upfront_row *r) {
    upfront_linear *far_slot = upfront_row_far(r);
    upfront_stretch_end e;
    if (!upfront_stretch_see(far_slot, &e)) {
        upfront_mark_dead(upfront_at(far_slot, r->edge), r->end - r->edge);
        return;
    }
    if (upfront_stretch_is_twin(&e)) {
        upfront_mark_dead(e.map + e.shift + r->edge, r->end - r->edge);
        bury(&e, e.start);
    } else {
        cut(&e, e.start);
    }
    far_slot->origin += e.start - r->end - e.shift;
}

#endif
