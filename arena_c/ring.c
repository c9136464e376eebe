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

/* Returns the end of the free bytes before the oldest block. After an overwritten word `oldest` may
 * be past the newest block. */
static uint64_t ring_before(const upfront_ring *r) {
    uint64_t stop = upfront_ring_stop(r);
    return r->oldest < stop ? r->oldest : stop;
}

void *upfront_ring_wrap(upfront_ring *r, uint64_t gen, uint64_t size, uint64_t mask) {
    upfront_arena *a = (upfront_arena *)r;
    uint64_t at, before;
    if (r == NULL)
        return NULL;
    before = ring_before(r);
    at = upfront_arena_up(a, a->start + UPFRONT_RING_WORD, mask);
    if (a->gen != gen || upfront_arena_purpose(a) || r->seam != 0 || at > before || size > before - at ||
        upfront_arena_refuses(a))
        /* in an empty ring the oldest block is at the start, and nothing fits before it */
        return upfront_arena_refuse(a, gen, size);
    r->seam = a->cursor;
    a->limit = before;
    return upfront_ring_put(r, a->start, at, size);
}

void *upfront_ring_alloc(upfront_ring *r, uint64_t size, uint64_t align) {
    void *p;
    if (!upfront_arena_may_ask((upfront_arena *)r, align))
        return NULL;
    size = upfront_size(size);
    align = (align - 1) | (UPFRONT_RING_WORD - 1);
    p = upfront_ring_push(r, r->arena.gen, size, align);
    return p != NULL ? p : upfront_ring_wrap(r, r->arena.gen, size, align);
}

/* Reports whether a block fits in the empty ring. */
static int ring_ever_fits(const upfront_ring *r, uint64_t size, uint64_t align) {
    uint64_t at =
        upfront_arena_up(&r->arena, r->arena.start + UPFRONT_RING_WORD, (align - 1) | (UPFRONT_RING_WORD - 1));
    return at <= r->end && size <= r->end - at;
}

void *upfront_ring_overwrite(upfront_ring *r, uint64_t size, uint64_t align) {
    uint64_t front;
    void *p = upfront_ring_alloc(r, size, align);
    if (p != NULL || !upfront_arena_may_ask((upfront_arena *)r, align) || !ring_ever_fits(r, size, align))
        return p;
    while (p == NULL && upfront_ring_free(r, upfront_ring_front(r, &front)) == UPFRONT_OK)
        p = upfront_ring_alloc(r, size, align);
    return p;
}

int upfront_ring_find(const upfront_ring *r, uint64_t gen, const void *p) {
    uint64_t offset, word, at, start, count;
    if (r == NULL || p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (r->arena.gen != gen)
        return UPFRONT_STALE;
    if (r->count == 0)
        return UPFRONT_FOREIGN;
    if (upfront_ring_stop(r) < r->oldest + UPFRONT_RING_WORD)
        return UPFRONT_CORRUPT;
    offset = upfront_arena_offset(&r->arena, p);
    start = r->arena.start;
    word = upfront_ring_word(r, r->oldest);
    at = r->oldest + UPFRONT_RING_WORD + word / UPFRONT_RING_PADDING;
    if (at + word % UPFRONT_RING_PADDING > upfront_ring_stop(r))
        return UPFRONT_CORRUPT;
    if (offset == at)
        return UPFRONT_OK;
    if (upfront_ring_walk(r, NULL, 0, &count) != UPFRONT_OK)
        return UPFRONT_CORRUPT;
    if ((offset >= r->oldest && offset <= upfront_ring_stop(r)) ||
        (r->seam != 0 && offset >= start && offset <= r->arena.cursor))
        return UPFRONT_ORDER;
    return UPFRONT_FOREIGN;
}

int upfront_ring_free(upfront_ring *r, void *p) {
    return r == NULL ? UPFRONT_BAD_ARGUMENT : upfront_ring_pop(r, r->arena.gen, p);
}

int upfront_ring_reset(upfront_ring *r, uint64_t gen) {
    upfront_arena *a;
    uint64_t oldest;
    if (r == NULL)
        return UPFRONT_BAD_ARGUMENT;
    a = &r->arena;
    oldest = ring_before(r);
    if (!upfront_arena_is(a, gen))
        return UPFRONT_STALE;
    a->least = upfront_ring_least(r);
    if (r->seam == 0) {
        upfront_mark_dead(upfront_arena_at(a, oldest), a->cursor - oldest);
    } else {
        upfront_mark_dead(upfront_arena_at(a, oldest), r->seam - oldest);
        upfront_mark_dead(upfront_arena_at(a, a->start), a->cursor - a->start);
    }
    ring_restart(r);
    return UPFRONT_OK;
}

uint64_t upfront_ring_room(const upfront_ring *r) {
    uint64_t front, behind, skip, most;
    if (r == NULL)
        return 0;
    front = r->seam == 0 ? ring_before(r) - r->arena.start : 0;
    behind = r->arena.limit - r->arena.cursor;
    skip = upfront_ring_up(r->arena.cursor) - r->arena.cursor;
    behind = behind < skip ? 0 : behind - skip;
    most = front < behind ? behind : front;
    return most < UPFRONT_RING_WORD ? 0 : most - UPFRONT_RING_WORD;
}

static void ring_name(upfront_block range, upfront_block *out, uint64_t room, uint64_t *count) {
    if (*count < room)
        out[*count] = range;
    ++*count;
}

/* Lists the blocks in [at, stop). Returns 0 if a word leads past the end. */
static int ring_run(const upfront_ring *r, uint64_t at, uint64_t stop, upfront_block *out, uint64_t room,
                    uint64_t *count) {
    while (at < stop) {
        upfront_block b = {at, 0, 0, 0, 1};
        uint64_t word, head, next;
        if (stop - at < UPFRONT_RING_WORD)
            return 0;
        word = upfront_ring_word(r, at);
        head = UPFRONT_RING_WORD + word / UPFRONT_RING_PADDING;
        b.asked = word % UPFRONT_RING_PADDING;
        if (head > stop - at || b.asked > stop - at - head)
            return 0;
        next = upfront_ring_up(at + head + b.asked);
        if (next >= stop) {
            if (at + head + b.asked != stop)
                return 0;
            next = stop;
        }
        b.size = next - at;
        ring_name(b, out, room, count);
        at = next;
    }
    return 1;
}

int upfront_ring_walk(const upfront_ring *r, upfront_block *out, uint64_t room, uint64_t *count) {
    uint64_t start, cursor, stop;
    if (r == NULL || count == NULL || (out == NULL && room != 0))
        return UPFRONT_BAD_ARGUMENT;
    *count = 0;
    start = r->arena.start;
    cursor = r->arena.cursor;
    stop = upfront_ring_stop(r);
    if (r->end <= start || r->oldest < start || r->oldest > r->end || cursor < start || cursor > r->end ||
        stop > r->end || stop < r->oldest || (r->seam != 0 && cursor > r->oldest))
        return UPFRONT_CORRUPT;
    if (r->seam != 0 && !ring_run(r, start, cursor, out, room, count))
        return UPFRONT_CORRUPT;
    if (!ring_run(r, r->oldest, stop, out, room, count) || *count != r->count)
        return UPFRONT_CORRUPT;
    if (r->seam != 0 && stop != r->end) {
        upfront_block tail = {0, 0, 0, 0, UPFRONT_RING_SKIPPED};
        tail.offset = stop;
        tail.size = r->end - stop;
        ring_name(tail, out, room, count);
    }
    return UPFRONT_OK;
}
