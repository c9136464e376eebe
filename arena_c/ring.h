/* ring.h - first in, first out: blocks for streams and commands, that begin again at the start when the end is reached.
 *
 * Algorithm  Each block has a word before it: its size and its padding. A new block lies behind the newest; where it doesn't fit before
 *            the end it goes to the start, if the oldest block has left room there. No block straddles the end: the tail that is skipped
 *            counts as used until the last block before it is freed. Only the oldest block can be freed.
 * Bound      An allocation takes size + 8 bytes and its padding. It succeeds exactly when that fits in the room behind the newest block
 *            or, while nothing has gone back to the start, before the oldest one. Whatever has happened before, it succeeds when
 *            free >= 2 * (size + align + 7), with an align of at least 8; in an empty ring, where the room is one piece, when
 *            free >= size + align + 7. The last byte can be used.
 * Cost       O(1); fast path: 1 comparison; free: 4. 8 bytes and the alignment a block.
 * Source     The scratch allocator of Bitsquid's foundation, whose fault this one can't have: it asked whether the new cursor lies in
 *            live memory, and a block that jumps over all of it was handed out. Here the room is measured before the block is made.
 *
 * Damage     Free room holds no words: a write there changes nothing. The word before a block isn't sealed. One that leads
 *            beyond the newest block is refused as UPFRONT_CORRUPT when its block is the oldest, and front then gives no
 *            byte. One with another size that fits frees more or less than the block: the next pop that doesn't find its
 *            block there is refused as UPFRONT_CORRUPT, and the walk tells it before. Until then room of a live block may be
 *            handed out; nothing outside of the ring's block is read or written. A reset makes the ring whole.
 *
 * `count` tells an empty ring from a full one, not the cursors: in both they may be the same. An empty ring begins at its start again. */
#ifndef UPFRONT_RING_H
#define UPFRONT_RING_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arena's line, and one more; the room begins behind it. The arena's cursor is past the newest block, and its limit is where the room
 * behind that ends: the end, or the oldest block's word. Not wrapped: the blocks lie in [oldest, cursor). Wrapped: in [oldest, seam), and
 * the newer ones in [start, cursor). */
typedef struct upfront_ring {
    upfront_arena arena;
    uint64_t count;  /* live blocks */
    uint64_t end;    /* offset past the last byte */
    uint64_t oldest; /* offset of the oldest block's word; start when there is none */
    uint64_t seam;   /* wrapped: where the skipped tail begins; 0: not wrapped */
    uint64_t unused[4];
} upfront_ring;

/* The word before a block: its size, and from UPFRONT_RING_PADDING up the padding between the two. */
#define UPFRONT_RING_PADDING (UINT64_C(1) << 40)

enum { UPFRONT_RING_WORD = sizeof(uint64_t) };

/* The word lies at the first multiple of 8 behind the block before. */
static inline uint64_t upfront_ring_up(uint64_t offset) { return (offset + UPFRONT_RING_WORD - 1) & ~(uint64_t)(UPFRONT_RING_WORD - 1); }

/* AddressSanitizer takes the words for dead memory, so that a write before a block is found; only this function may read them. */
UPFRONT_UNCHECKED static inline uint64_t upfront_ring_word(const upfront_ring *r, uint64_t offset) {
    return *(const uint64_t *)upfront_arena_at(&r->arena, offset);
}

static inline uint64_t upfront_ring_size(const upfront_ring *r) { return r->end - r->arena.start; }

/* Bytes between the oldest block's word and the end of the newest block, with the skipped tail. */
static inline uint64_t upfront_ring_used(const upfront_ring *r) {
    return r->arena.cursor - r->oldest + (r->seam == 0 ? 0 : upfront_ring_size(r));
}

/* The least that was free. */
static inline uint64_t upfront_ring_least(const upfront_ring *r) {
    uint64_t free = upfront_ring_size(r) - upfront_ring_used(r);
    return free < r->arena.least ? free : r->arena.least;
}

static inline uint64_t upfront_ring_peak(const upfront_ring *r) { return upfront_ring_size(r) - upfront_ring_least(r); }

/* A block at `at`, with its word at `word`. pre: it fits there. */
static inline void *upfront_ring_put(upfront_ring *r, uint64_t word, uint64_t at, uint64_t size) {
    upfront_arena *a = &r->arena;
    uint64_t *p = (uint64_t *)upfront_arena_at(a, word);
    UPFRONT_UNPOISON(p, UPFRONT_RING_WORD);
    *p = (at - word - UPFRONT_RING_WORD) * UPFRONT_RING_PADDING | size;
    UPFRONT_POISON(p, UPFRONT_RING_WORD);
    a->cursor = at + size;
    r->count++;
    return upfront_mark_live(upfront_arena_at(a, at), size);
}

/* A block behind the newest. NULL when there is no room there, or the generation is not the ring's; upfront_ring_wrap may still find some.
 * pre: size <= UPFRONT_OFFSET_MAX; mask = align - 1 is 7 at least; upfront_ring_alloc sees to both. */
static inline void *upfront_ring_push(upfront_ring *r, uint64_t gen, uint64_t size, uint64_t mask) {
    upfront_arena *a = &r->arena;
    uint64_t word = upfront_ring_up(a->cursor);
    uint64_t at = upfront_arena_up(a, word + UPFRONT_RING_WORD, mask);
    if (a->gen != gen || !upfront_arena_fits(a, at, size) || upfront_arena_refuses(a))
        return NULL;
    return upfront_ring_put(r, word, at, size);
}

/* Where the run of blocks ends that the oldest one begins. */
static inline uint64_t upfront_ring_stop(const upfront_ring *r) { return r->seam == 0 ? r->arena.cursor : r->seam; }

/* The oldest block and its size; NULL when there is none. Behind a word that leads beyond the newest block there are 0 bytes, which
 * upfront_ring_pop refuses. */
static inline void *upfront_ring_front(const upfront_ring *r, uint64_t *size) {
    uint64_t word, at, stop = upfront_ring_stop(r);
    if (stop < r->oldest + UPFRONT_RING_WORD) /* empty, or a word was written over */
        return NULL;
    word = upfront_ring_word(r, r->oldest);
    at = r->oldest + UPFRONT_RING_WORD + word / UPFRONT_RING_PADDING;
    *size = word % UPFRONT_RING_PADDING;
    if (at + *size > stop) {
        *size = 0;
        at = r->oldest + UPFRONT_RING_WORD;
    }
    return upfront_arena_at(&r->arena, at);
}

/* UPFRONT_OK for the address of the oldest block. Otherwise UPFRONT_BAD_ARGUMENT for null, UPFRONT_STALE, UPFRONT_CORRUPT when something
 * wrote over the words before blocks, UPFRONT_ORDER for an address in live memory, UPFRONT_FOREIGN for any other, which a block that was
 * freed already is until its place is used again. Cost: O(1), of what isn't the oldest block O(blocks). */
int upfront_ring_find(const upfront_ring *r, uint64_t gen, const void *p);

/* Frees the oldest block; any other is refused with the code of upfront_ring_find. */
static inline int upfront_ring_pop(upfront_ring *r, uint64_t gen, void *p) {
    upfront_arena *a = &r->arena;
    uint64_t word, at, after, stop = upfront_ring_stop(r);
    if (stop < r->oldest + UPFRONT_RING_WORD || a->gen != gen) /* there is no word: empty, or one was written over */
        return upfront_ring_find(r, gen, p);
    word = upfront_ring_word(r, r->oldest);
    at = r->oldest + UPFRONT_RING_WORD + word / UPFRONT_RING_PADDING;
    after = at + word % UPFRONT_RING_PADDING;
    if (upfront_arena_at(a, at) != p || after > stop)
        return upfront_ring_find(r, gen, p);
    a->least = upfront_ring_least(r);
    upfront_mark_dead(p, after - at);
    r->oldest = upfront_ring_up(after);
    if (--r->count == 0)
        a->cursor = a->start;
    if (r->count == 0 || r->seam == after) { /* the next block, if there is one, is the first from the start */
        r->oldest = a->start;
        r->seam = 0;
        a->limit = r->end;
    } else if (r->oldest < r->seam) { /* wrapped, and no word led past the seam */
        a->limit = r->oldest;
    }
    return UPFRONT_OK;
}

/* Makes a ring of the block: the header at its front, the rest is room. NULL when the block is null, not aligned to 64, smaller than
 * three lines or too large. A block may be reused: what was there before is not looked at. */
upfront_ring *upfront_ring_init(void *block, uint64_t size);

/* The miss: a block at the start, before the oldest one. NULL when there is no room either, or the generation is not the ring's.
 * pre: as upfront_ring_push, which has found no room. */
void *upfront_ring_wrap(upfront_ring *r, uint64_t gen, uint64_t size, uint64_t mask);

/* A block, by the fast path or not. NULL: full, or size or align out of bounds. Alignments below 8 are 8. */
void *upfront_ring_alloc(upfront_ring *r, uint64_t size, uint64_t align);

/* A block that finds room: the oldest blocks are freed until it does, whoever still reads them. For what may be lost, as a log. NULL: it
 * doesn't fit in the empty ring either, and nothing is freed; size or align out of bounds; or the words contradict themselves. */
void *upfront_ring_overwrite(upfront_ring *r, uint64_t size, uint64_t align);

/* upfront_ring_pop for C programs: null is UPFRONT_BAD_ARGUMENT. */
int upfront_ring_free(upfront_ring *r, void *p);

/* Frees all blocks in one move. UPFRONT_STALE, UPFRONT_BAD_ARGUMENT for null. */
int upfront_ring_reset(upfront_ring *r, uint64_t gen);

/* The largest size that upfront_ring_alloc gives now at an align of 8 or less; 0 as well when it gives nothing. */
uint64_t upfront_ring_room(const upfront_ring *r);

/* A block with its word and padding, or the skipped tail, which nobody asked for. */
typedef struct upfront_ring_range {
    uint64_t offset, size; /* from the ring's header */
    uint64_t asked;
    uint64_t skipped;
} upfront_ring_range;

/* Names what is used, by its place: at most `room` ranges, and the number of all. UPFRONT_CORRUPT: the words contradict themselves.
 * UPFRONT_BAD_ARGUMENT for null. Cost: O(blocks). */
int upfront_ring_walk(const upfront_ring *r, upfront_ring_range *out, uint64_t room, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
