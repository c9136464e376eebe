#include "ring.h"

static void ring_restart(upfront_ring *r, uint64_t tag) {
    r->cursor = r->oldest = upfront_ring_start(r);
    r->count = r->seam = 0;
    r->limit = tag | r->end;
}

upfront_ring *upfront_ring_init(void *block, uint64_t size) {
    upfront_ring *r = (upfront_ring *)block;
    if (!upfront_is_block(block, size, 2 * UPFRONT_LINE))
        return NULL;
    UPFRONT_UNPOISON(r, sizeof *r); /* the block may have been the inside of another arena */
    r->origin = 0 - upfront_skew(block);
    r->end = upfront_skew(block) + size;
    r->peak = 0;
    ring_restart(r, UPFRONT_GENERATION);
    upfront_mark_dead(r + 1, size - sizeof *r);
    return r;
}

void *upfront_ring_wrap(upfront_ring *r, uint64_t tag, uint64_t size, uint64_t mask) {
    uint64_t at = (upfront_ring_start(r) + UPFRONT_RING_WORD + mask) & ~mask;
    if (upfront_ring_tag(r) != tag || r->seam != 0 || at > r->oldest || size > r->oldest - at)
        return NULL; /* in an empty ring the oldest block is at the start, and nothing fits before it */
    r->seam = r->cursor;
    r->cursor = upfront_ring_start(r);
    r->limit = tag | r->oldest;
    return upfront_ring_push(r, tag, size, mask);
}

void *upfront_ring_alloc(upfront_ring *r, uint64_t size, uint64_t align) {
    void *p;
    if (r == NULL || size > UPFRONT_OFFSET_MAX || !upfront_is_align(align))
        return NULL;
    align = (align - 1) | (UPFRONT_RING_WORD - 1);
    p = upfront_ring_push(r, upfront_ring_tag(r), size, align);
    return p != NULL ? p : upfront_ring_wrap(r, upfront_ring_tag(r), size, align);
}

/* Where the run of blocks ends that the oldest one begins. */
static uint64_t ring_stop(const upfront_ring *r) { return r->seam == 0 ? r->cursor : r->seam; }

int upfront_ring_find(const upfront_ring *r, uint64_t tag, const void *p) {
    uint64_t offset, word, at, start;
    if (p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_ring_tag(r) != tag)
        return UPFRONT_STALE;
    if (r->count == 0)
        return UPFRONT_FOREIGN;
    offset = upfront_distance(p, r) - r->origin;
    start = upfront_ring_start(r);
    word = upfront_ring_word(r, r->oldest);
    at = r->oldest + UPFRONT_RING_WORD + word / UPFRONT_GENERATION;
    if (at + (word & UPFRONT_OFFSETS) > ring_stop(r))
        return UPFRONT_CORRUPT;
    if (offset == at)
        return UPFRONT_OK;
    if (offset - r->oldest <= ring_stop(r) - r->oldest || (r->seam != 0 && offset - start <= r->cursor - start))
        return UPFRONT_ORDER;
    return UPFRONT_FOREIGN;
}

int upfront_ring_free(upfront_ring *r, void *p) {
    return r == NULL ? UPFRONT_BAD_ARGUMENT : upfront_ring_pop(r, upfront_ring_tag(r), p);
}

int upfront_ring_reset(upfront_ring *r, uint64_t tag) {
    if (r == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_ring_tag(r) != tag)
        return UPFRONT_STALE;
    r->peak = upfront_ring_peak(r);
    if (r->seam == 0) {
        upfront_mark_dead(upfront_ring_at(r, r->oldest), r->cursor - r->oldest);
    } else {
        upfront_mark_dead(upfront_ring_at(r, r->oldest), r->seam - r->oldest);
        upfront_mark_dead(r + 1, r->cursor - upfront_ring_start(r));
    }
    ring_restart(r, tag);
    return UPFRONT_OK;
}

uint64_t upfront_ring_room(const upfront_ring *r) {
    uint64_t front = r->seam == 0 ? r->oldest - upfront_ring_start(r) : 0, behind = (r->limit & UPFRONT_OFFSETS) - r->cursor;
    uint64_t skip = upfront_ring_up(r->cursor) - r->cursor;
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
static int ring_name(ring_walker *w, const upfront_ring *r, uint64_t from, uint64_t to, uint64_t what, uint64_t block) {
    upfront_ring_range *out = w->out + w->count;
    if (from == to)
        return UPFRONT_OK;
    if (w->count == w->room)
        return UPFRONT_FULL;
    w->count++;
    out->offset = from + r->origin;
    out->size = to - from;
    out->what = what;
    out->block = block == 0 ? 0 : block + r->origin;
    return UPFRONT_OK;
}

static int ring_name_blocks(ring_walker *w, const upfront_ring *r, uint64_t from, uint64_t to) {
    int code = UPFRONT_OK;
    while (from != to && code == UPFRONT_OK) {
        uint64_t word, at, after = upfront_ring_up(from) + UPFRONT_RING_WORD;
        if (after > to || w->live == r->count)
            return UPFRONT_CORRUPT;
        word = upfront_ring_word(r, after - UPFRONT_RING_WORD);
        at = after + word / UPFRONT_GENERATION;
        after = at + (word & UPFRONT_OFFSETS);
        if (after > to || at % UPFRONT_RING_WORD != 0)
            return UPFRONT_CORRUPT;
        w->live++;
        code = ring_name(w, r, from, after, UPFRONT_RING_LIVE, at);
        from = after;
    }
    return code;
}

/* Whether the header's words can be those of a ring in a block of so many bytes. */
static int ring_is_sane(const upfront_ring *r, uint64_t size) {
    uint64_t start = upfront_ring_start(r), limit = r->limit & UPFRONT_OFFSETS, skew = upfront_skew(r);
    if (r->origin != 0 - skew || r->end != skew + size || r->oldest % UPFRONT_RING_WORD != 0 || r->peak > size - sizeof *r)
        return 0;
    if (r->seam == 0)
        return start <= r->oldest && r->oldest <= r->cursor && r->cursor <= r->end && limit == r->end &&
               (r->count != 0 || r->cursor == start);
    return start < r->cursor && r->cursor <= r->oldest && r->oldest < r->seam && r->seam <= r->end && limit == r->oldest;
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
    start = upfront_ring_start(r);
    end = r->end;
    /* not wrapped: free [start, oldest), live [oldest, cursor), free; wrapped: live [start, cursor), free, live [oldest, seam), skipped */
    low = r->seam == 0 ? start : r->cursor;
    high = ring_stop(r);
    code = ring_name(&w, r, start - sizeof *r, start, UPFRONT_RING_HEADER, 0);
    if (code == UPFRONT_OK)
        code = ring_name_blocks(&w, r, start, low);
    if (code == UPFRONT_OK)
        code = ring_name(&w, r, low, r->oldest, UPFRONT_RING_FREE, 0);
    if (code == UPFRONT_OK)
        code = ring_name_blocks(&w, r, r->oldest, high);
    if (code == UPFRONT_OK)
        code = ring_name(&w, r, high, end, r->seam == 0 ? UPFRONT_RING_FREE : UPFRONT_RING_SKIPPED, 0);
    if (code == UPFRONT_OK && w.live != r->count)
        code = UPFRONT_CORRUPT;
    *count = w.count;
    return code;
}
