/* ring.h - allocates and frees in first-in, first-out order: for streams and queues of commands.
 *
 * Algorithm  Blocks are allocated in order and freed in the same order. A word before each block
 *            holds its size and padding. A new block follows the newest one. If it doesn't fit
 *            before the end, it wraps to the start, provided the oldest block leaves enough bytes
 *            there; a block never straddles the end. The skipped tail counts as used until the last
 *            block before it is freed.
 * Bound      An allocation takes size + 8 bytes and its padding. It succeeds exactly when these
 *            bytes fit after the newest block or, unless the ring has wrapped, before the oldest
 *            one. With an align of at least 8 it succeeds in any ring when free >= 2 * (size +
 *            align + 7), and in an empty ring when free >= size + align + 7. The last byte can be
 *            used.
 * Cost       O(1): a push tests the generation and the free bytes; a pop makes 4 tests before it
 *            changes a word.
 *            Space: 8 bytes and padding a block.
 * Source     The scratch allocator of Bitsquid's foundation, without its bug. The original tested
 *            only whether the new cursor is in live memory, so a block could jump over all live
 *            memory. This ring compares the size with the free bytes before it makes a block.
 *
 * Damage     Writes to free bytes change nothing. The word before a block isn't sealed. If an
 *            overwritten word leads past upfront_ring_stop, a free of its block is refused as
 *            UPFRONT_CORRUPT, and front returns 0 bytes. If the word has another size that fits,
 *            the free releases more or less than the block. A later pop then finds no block and is
 *            refused as UPFRONT_CORRUPT; a walk shows the damage earlier. Until then bytes of a
 *            live block may be allocated again, but no byte outside of the ring is touched. A reset
 *            repairs the ring.
 *
 * `count` distinguishes an empty ring from a full one; the cursors may be the same in both. An
 * empty ring starts again at its first byte. */
#ifndef UPFRONT_RING_H
#define UPFRONT_RING_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One cache line for the arena and one more, then the bytes of blocks. The arena's cursor is past
 * the newest block. The limit is the end of the free bytes after the newest block: the end of the
 * ring, or the oldest block's word. Until the ring wraps, the blocks are in [oldest, cursor). After
 * that the older blocks are in [oldest, seam) and the newer ones in [start, cursor). */
typedef struct upfront_ring {
    upfront_arena arena;
    uint64_t count;  /* number of live blocks */
    uint64_t end;    /* offset past the last byte */
    uint64_t oldest; /* offset of the oldest block's word; start if there is none */
    uint64_t seam;   /* wrapped: the skipped tail begins here; 0: not wrapped */
    uint64_t unused[4];
} upfront_ring;

/* The word before a block: its size + UPFRONT_RING_PADDING * the padding between word and block. */
#define UPFRONT_RING_PADDING (UINT64_C(1) << 40)

enum { UPFRONT_RING_WORD = sizeof(uint64_t) };

/* Returns the first multiple of 8 at or after the end of a block: the place of the next word. */
static inline uint64_t upfront_ring_up(uint64_t offset) {
    return (offset + UPFRONT_RING_WORD - 1) & ~(uint64_t)(UPFRONT_RING_WORD - 1);
}

/* Reads a word. With AddressSanitizer the words are poisoned, so that a write before a block is
 * found; only this function may read them. */
UPFRONT_UNCHECKED static inline uint64_t upfront_ring_word(const upfront_ring *r, uint64_t offset) {
    return *(const uint64_t *)upfront_arena_at(&r->arena, offset);
}

static inline uint64_t upfront_ring_size(const upfront_ring *r) { return r->end - r->arena.start; }

/* Returns the used bytes: from the oldest block's word to the end of the newest block, with the
 * skipped tail. */
static inline uint64_t upfront_ring_used(const upfront_ring *r) {
    return r->arena.cursor - r->oldest + (r->seam == 0 ? 0 : upfront_ring_size(r));
}

/* Returns the fewest bytes that were free at once. */
static inline uint64_t upfront_ring_least(const upfront_ring *r) {
    uint64_t free = upfront_ring_size(r) - upfront_ring_used(r);
    return free < r->arena.least ? free : r->arena.least;
}

/* Makes a block at `at`, with its word at `word`. Returns its first byte. pre: it fits there. */
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

/* Allocates after the newest block. NULL if it doesn't fit there, or the generation isn't the
 * ring's; upfront_ring_wrap may still find space. pre: size <= UPFRONT_OFFSET_MAX; mask = align - 1
 * is 7 at least. */
static inline void *upfront_ring_push(upfront_ring *r, uint64_t gen, uint64_t size, uint64_t mask) {
    upfront_arena *a = &r->arena;
    uint64_t word = upfront_ring_up(a->cursor);
    uint64_t at = upfront_arena_up(a, word + UPFRONT_RING_WORD, mask);
    if (a->gen != gen || !upfront_arena_fits(a, at, size) || upfront_arena_refuses(a))
        return NULL;
    return upfront_ring_put(r, word, at, size);
}

/* Returns the end of the blocks that follow the oldest one: the cursor, or the seam. */
static inline uint64_t upfront_ring_stop(const upfront_ring *r) { return r->seam == 0 ? r->arena.cursor : r->seam; }

/* Returns the oldest block and its size; NULL if there is none. If its word leads past
 * upfront_ring_stop, the size is 0, and upfront_ring_pop refuses the block. */
static inline void *upfront_ring_front(const upfront_ring *r, uint64_t *size) {
    uint64_t word, at, stop = upfront_ring_stop(r);
    if (stop < r->oldest + UPFRONT_RING_WORD) /* empty, or a word was overwritten */
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

/* Returns UPFRONT_OK for the address of the oldest block; UPFRONT_BAD_ARGUMENT for null;
 * UPFRONT_STALE for another generation; UPFRONT_CORRUPT if the words before blocks contradict each
 * other; UPFRONT_ORDER for an address in live memory; UPFRONT_FOREIGN for any other, such as a
 * freed block's until it is reused. Cost: O(1) for the oldest block, else O(blocks). */
int upfront_ring_find(const upfront_ring *r, uint64_t gen, const void *p);

/* Frees the oldest block; refuses any other with the code of upfront_ring_find. */
static inline int upfront_ring_pop(upfront_ring *r, uint64_t gen, void *p) {
    upfront_arena *a = &r->arena;
    uint64_t word, at, after, stop = upfront_ring_stop(r);
    /* no word is there: the ring is empty, or a word was overwritten */
    if (stop < r->oldest + UPFRONT_RING_WORD || a->gen != gen)
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
    /* the next block, if any, is the first from the start */
    if (r->count == 0 || r->seam == after) {
        r->oldest = a->start;
        r->seam = 0;
        a->limit = r->end;
    } else if (r->oldest < r->seam) { /* wrapped, and no word led past the seam */
        a->limit = r->oldest;
    }
    return UPFRONT_OK;
}

/* Makes a ring of the block, of three cache lines at least. */
upfront_ring *upfront_ring_init(void *block, uint64_t size);

/* The slow path: allocates at the start, before the oldest block. NULL if it doesn't fit there
 * either, or the generation isn't the ring's. pre: as upfront_ring_push, which returned NULL. */
void *upfront_ring_wrap(upfront_ring *r, uint64_t gen, uint64_t size, uint64_t mask);

/* Allocates a block. An align below 8 is 8. */
void *upfront_ring_alloc(upfront_ring *r, uint64_t size, uint64_t align);

/* Allocates a block and frees the oldest blocks until it fits, even if they are still in use: for
 * data that may be lost, such as a log. Returns NULL, and frees nothing, for a block that doesn't
 * fit in the empty ring. Also returns NULL if the ring's words are damaged. */
void *upfront_ring_overwrite(upfront_ring *r, uint64_t size, uint64_t align);

/* Does upfront_ring_pop for C programs, with a null check: null is UPFRONT_BAD_ARGUMENT. */
int upfront_ring_free(upfront_ring *r, void *p);

/* Frees all blocks in one move. UPFRONT_STALE for another generation. */
int upfront_ring_reset(upfront_ring *r, uint64_t gen);

/* Returns the largest size that can be allocated now at an align of 8 or less; 0 also if no block
 * fits. */
uint64_t upfront_ring_room(const upfront_ring *r);

#define UPFRONT_RING_SKIPPED 4 /* `live` of the skipped tail in the output of upfront_ring_walk */

/* Lists the live blocks, each with its word and padding, and the skipped tail. Cost: O(blocks). */
int upfront_ring_walk(const upfront_ring *r, upfront_block *out, uint64_t room, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
