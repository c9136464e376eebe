#include "ring.h"

static void ring_restart(upfront_ring *r) {
    r->arena.cursor = r->oldest = r->arena.start;
    r->arena.limit = r->end;
    r->count = r->seam = 0;
}

upfront_ring *upfront_ring_init(void *block, uint64_t size) {
    upfront_ring *r = (upfront_ring *)upfront_arena_init(block, size, sizeof *r);
    if (r == NULL)
        return NULL;
    r->end = size;
    ring_restart(r);
    return r;
}

void *upfront_ring_wrap(upfront_ring *r, uint64_t gen, uint64_t size, uint64_t mask) {
    upfront_arena *a = &r->arena;
    uint64_t at = upfront_arena_up(a, a->start + UPFRONT_RING_WORD, mask);
    if (a->gen != gen || r->seam != 0 || at > r->oldest || size > r->oldest - at)
        return upfront_arena_refuse(a, gen, size); /* in an empty ring the oldest block is at the start, and nothing fits before it */
    r->seam = a->cursor;
    a->cursor = a->start;
    a->limit = r->oldest;
    return upfront_ring_push(r, gen, size, mask);
}

void *upfront_ring_alloc(upfront_ring *r, uint64_t size, uint64_t align) {
    void *p;
    if (r == NULL || r->arena.gen == 0 || size >= UPFRONT_OFFSET_MAX || !upfront_is_align(align))
        return NULL;
    align = (align - 1) | (UPFRONT_RING_WORD - 1);
    p = upfront_ring_push(r, r->arena.gen, size, align);
    return p != NULL ? p : upfront_ring_wrap(r, r->arena.gen, size, align);
}

void *upfront_ring_overwrite(upfront_ring *r, uint64_t size, uint64_t align) {
    uint64_t front;
    void *p = upfront_ring_alloc(r, size, align);
    if (p != NULL || r == NULL || size >= UPFRONT_OFFSET_MAX || !upfront_is_align(align) ||
        !upfront_ring_ever_fits(r, size, (align - 1) | (UPFRONT_RING_WORD - 1)))
        return p;
    while (p == NULL && upfront_ring_free(r, upfront_ring_front(r, &front)) == UPFRONT_OK)
        p = upfront_ring_alloc(r, size, align);
    return p;
}

/* Where the run of blocks ends that the oldest one begins. */
static uint64_t ring_stop(const upfront_ring *r) { return r->seam == 0 ? r->arena.cursor : r->seam; }

int upfront_ring_find(const upfront_ring *r, uint64_t gen, const void *p) {
    uint64_t offset, word, at, start;
    if (p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (r->arena.gen != gen)
        return UPFRONT_STALE;
    if (r->count == 0)
        return UPFRONT_FOREIGN;
    offset = upfront_arena_offset(&r->arena, p);
    start = r->arena.start;
    word = upfront_ring_word(r, r->oldest);
    at = r->oldest + UPFRONT_RING_WORD + word / UPFRONT_RING_PADDING;
    if (at + word % UPFRONT_RING_PADDING > ring_stop(r))
        return UPFRONT_CORRUPT;
    if (offset == at)
        return UPFRONT_OK;
    if (offset - r->oldest <= ring_stop(r) - r->oldest || (r->seam != 0 && offset - start <= r->arena.cursor - start))
        return UPFRONT_ORDER;
    return UPFRONT_FOREIGN;
}

int upfront_ring_free(upfront_ring *r, void *p) {
    return r == NULL ? UPFRONT_BAD_ARGUMENT : upfront_ring_pop(r, r->arena.gen, p);
}

int upfront_ring_reset(upfront_ring *r, uint64_t gen) {
    upfront_arena *a;
    if (r == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (r->arena.gen != gen)
        return UPFRONT_STALE;
    a = &r->arena;
    a->least = upfront_ring_least(r);
    if (r->seam == 0) {
        upfront_mark_dead(upfront_arena_at(a, r->oldest), a->cursor - r->oldest);
    } else {
        upfront_mark_dead(upfront_arena_at(a, r->oldest), r->seam - r->oldest);
        upfront_mark_dead(upfront_arena_at(a, a->start), a->cursor - a->start);
    }
    ring_restart(r);
    return UPFRONT_OK;
}

uint64_t upfront_ring_room(const upfront_ring *r) {
    uint64_t front = r->seam == 0 ? r->oldest - r->arena.start : 0, behind = r->arena.limit - r->arena.cursor;
    uint64_t skip = upfront_ring_up(r->arena.cursor) - r->arena.cursor;
    uint64_t most;
    behind = behind < skip ? 0 : behind - skip;
    most = front < behind ? behind : front;
    return most < UPFRONT_RING_WORD ? 0 : most - UPFRONT_RING_WORD;
}

/* What one call of the walk has written. */
typedef struct ring_walker {
    upfront_ring_range *out;
    uint64_t room, count, live;
} ring_walker;

/* Ranges are given by their offsets; what is empty has no name. */
static int ring_name(ring_walker *w, uint64_t from, uint64_t to, uint64_t what, uint64_t block) {
    upfront_ring_range *out = w->out + w->count;
    if (from == to)
        return UPFRONT_OK;
    if (w->count == w->room)
        return UPFRONT_FULL;
    w->count++;
    out->offset = from;
    out->size = to - from;
    out->what = what;
    out->block = block;
    return UPFRONT_OK;
}

static int ring_name_blocks(ring_walker *w, const upfront_ring *r, uint64_t from, uint64_t to) {
    int code = UPFRONT_OK;
    while (from != to && code == UPFRONT_OK) {
        uint64_t word, at, after = upfront_ring_up(from) + UPFRONT_RING_WORD;
        if (after > to || w->live == r->count)
            return UPFRONT_CORRUPT;
        word = upfront_ring_word(r, after - UPFRONT_RING_WORD);
        at = after + word / UPFRONT_RING_PADDING;
        after = at + word % UPFRONT_RING_PADDING;
        if (after > to || at % UPFRONT_RING_WORD != 0)
            return UPFRONT_CORRUPT;
        w->live++;
        code = ring_name(w, from, after, UPFRONT_RING_LIVE, at);
        from = after;
    }
    return code;
}

/* Whether the header's words can be those of a ring in a block of so many bytes. */
static int ring_is_sane(const upfront_ring *r, uint64_t size) {
    const upfront_arena *a = &r->arena;
    if (a->start != sizeof *r || r->end != size || a->next != a->gen || r->oldest % UPFRONT_RING_WORD != 0 ||
        a->least > size - sizeof *r)
        return 0;
    if (r->seam == 0)
        return a->start <= r->oldest && r->oldest <= a->cursor && a->cursor <= r->end && a->limit == r->end &&
               (r->count != 0 || a->cursor == a->start);
    return a->start < a->cursor && a->cursor <= r->oldest && r->oldest < r->seam && r->seam <= r->end && a->limit == r->oldest;
}

int upfront_ring_walk(const upfront_ring *r, uint64_t size, upfront_ring_range *out, uint64_t room, uint64_t *count) {
    ring_walker w;
    uint64_t start, end, low, high;
    int code;
    if (r == NULL || out == NULL || count == NULL)
        return UPFRONT_BAD_ARGUMENT;
    w.out = out;
    w.room = room;
    w.count = w.live = *count = 0;
    if (!ring_is_sane(r, size))
        return UPFRONT_CORRUPT;
    start = r->arena.start;
    end = r->end;
    /* not wrapped: free [start, oldest), live [oldest, cursor), free; wrapped: live [start, cursor), free, live [oldest, seam), skipped */
    low = r->seam == 0 ? start : r->arena.cursor;
    high = ring_stop(r);
    code = ring_name(&w, 0, start, UPFRONT_RING_HEADER, 0);
    if (code == UPFRONT_OK)
        code = ring_name_blocks(&w, r, start, low);
    if (code == UPFRONT_OK)
        code = ring_name(&w, low, r->oldest, UPFRONT_RING_FREE, 0);
    if (code == UPFRONT_OK)
        code = ring_name_blocks(&w, r, r->oldest, high);
    if (code == UPFRONT_OK)
        code = ring_name(&w, high, end, r->seam == 0 ? UPFRONT_RING_FREE : UPFRONT_RING_SKIPPED, 0);
    if (code == UPFRONT_OK && w.live != r->count)
        code = UPFRONT_CORRUPT;
    *count = w.count;
    return code;
}
