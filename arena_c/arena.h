/* arena.h - the header of an arena, and the two questions that an allocation asks: the same scope? enough room?
 *
 * Algorithm  The cursor goes up to the limit; both count from the header. `gen` is the generation of whoever may allocate now: the
 *            topmost scope of the arena, or nobody. A handle is the header and a generation. Closed, covered, frozen, stale: all are
 *            another generation.
 * Bound      An allocation succeeds exactly when its generation is the header's and it fits with its padding. Generations step by one
 *            in 64 bits and are never given twice, also when the header is laid out anew.
 * Cost       O(1): an addition and a mask, two comparisons, two stores.
 * Source     Fredriksson, "Scope Stack Allocation"; the generations are those of Frykholm's "ID Lookup Table". */
#ifndef UPFRONT_ARENA_H
#define UPFRONT_ARENA_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One line. Offsets count from the header, which lies before its bytes. */
typedef struct upfront_arena {
    uint64_t cursor;  /* of the next free byte */
    uint64_t limit;   /* past the last free byte */
    uint64_t gen;     /* who may allocate; 0: nobody */
    uint64_t asked;   /* what the topmost scope was refused last: see UPFRONT_ASKED; 0: nothing */
    uint64_t misused; /* the generation that asked last without being the topmost; 0: none */
    uint64_t least;   /* the least that was free, as of the last time that bytes came back */
    uint64_t next;    /* the generation that was given last */
    uint64_t start;   /* of the first byte */
} upfront_arena;

/* `asked` is the size, from this bit on the alignment less 1, and UPFRONT_ASKED: a bit, because 0 bytes may be refused, too, and the
 * least alignment that is reckoned with. */
#define UPFRONT_ASKED_MASK 40
#define UPFRONT_ASKED (UINT64_C(1) << 63 | UINT64_C(7) << UPFRONT_ASKED_MASK)
#define UPFRONT_PURPOSE (UINT64_C(1) << 62) /* with it: there was room (upfront_refuses); alone until upfront_arena_refuse adds the size */

static inline void *upfront_arena_at(const upfront_arena *a, uint64_t offset) {
    return (void *)((uintptr_t)a + (uintptr_t)offset);
}

static inline uint64_t upfront_arena_offset(const upfront_arena *a, const void *p) { return upfront_place(p, a); }

/* The offset, aligned to mask + 1: of the address, since a header is aligned to a line only. */
static inline uint64_t upfront_arena_up(const upfront_arena *a, uint64_t offset, uint64_t mask) {
    uint64_t from = (uint64_t)(uintptr_t)a;
    return ((from + offset + mask) & ~mask) - from;
}

static inline uint64_t upfront_arena_aligned(const upfront_arena *a, uint64_t mask) { return upfront_arena_up(a, a->cursor, mask); }

/* The bytes [start, limit) are the arena's, all of them free, and nobody's yet. Generations go on. */
static inline void upfront_arena_bound(upfront_arena *a, uint64_t start, uint64_t limit) {
    a->cursor = a->start = start;
    a->limit = limit;
    a->least = limit - start;
    a->gen = a->asked = a->misused = 0;
}

/* Whether a request for which there is room is refused on purpose, and whether one was that
 * upfront_arena_refuse hasn't kept. */
#ifdef UPFRONT_CHECKED
static inline int upfront_arena_refuses(upfront_arena *a) {
    if (!upfront_refuses())
        return 0;
    a->asked = UPFRONT_PURPOSE;
    return 1;
}

static inline uint64_t upfront_arena_purpose(const upfront_arena *a) { return a->asked == UPFRONT_PURPOSE ? UPFRONT_PURPOSE : 0; }
#else
#define upfront_arena_refuses(a) 0
#define upfront_arena_purpose(a) 0
#endif

/* Keeps a refusal: of the topmost scope what it asked for, of anybody else who it was. */
static inline void *upfront_arena_refuse(upfront_arena *a, uint64_t gen, uint64_t size) {
    if (a->gen == gen)
        a->asked = UPFRONT_ASKED | size | upfront_arena_purpose(a);
    else
        a->misused = gen;
    return NULL;
}

/* Whether it is the generation of who may allocate. A header of zeros has none. */
static inline int upfront_arena_is(const upfront_arena *a, uint64_t gen) { return a->gen == gen && gen != 0; }

/* Whether a C program may ask: of an arena, by an alignment that is one. */
static inline int upfront_arena_may_ask(const upfront_arena *a, uint64_t align) {
    return a != NULL && a->gen != 0 && upfront_is_align(align);
}

/* Whether `size` bytes fit behind offset `at`. pre: at is the cursor, aligned. */
static inline int upfront_arena_fits(const upfront_arena *a, uint64_t at, uint64_t size) {
    return at <= a->limit && size <= a->limit - at;
}

/* Moves the cursor past the `size` bytes at offset `at`, if gen may allocate and they fit. This and upfront_arena_back
 * touch the header alone: an arena whose bytes nobody has follows the same rules. */
static inline int upfront_arena_take(upfront_arena *a, uint64_t gen, uint64_t at, uint64_t size) {
    if (a->gen != gen || !upfront_arena_fits(a, at, size) || upfront_arena_refuses(a))
        return 0;
    a->cursor = at + size;
    return 1;
}

/* size bytes, not zeroed; NULL: full, or gen isn't the topmost scope's. pre: size <= UPFRONT_OFFSET_MAX, mask + 1 is a power of two up to
 * UPFRONT_ALIGN_MAX. */
static inline void *upfront_arena_bump(upfront_arena *a, uint64_t gen, uint64_t size, uint64_t mask) {
    uint64_t at = upfront_arena_aligned(a, mask);
    if (!upfront_arena_take(a, gen, at, size))
        return upfront_arena_refuse(a, gen, size | mask << UPFRONT_ASKED_MASK);
    return upfront_mark_live(upfront_arena_at(a, at), size);
}

/* Notes how much is free before bytes come back. */
static inline void upfront_arena_note(upfront_arena *a) {
    if (a->limit - a->cursor < a->least)
        a->least = a->limit - a->cursor;
}

/* Moves the cursor back to offset `to`. */
static inline void upfront_arena_back(upfront_arena *a, uint64_t to) {
    upfront_arena_note(a);
    a->cursor = to;
}

/* The bytes from offset `to` on are free again: what was in them has ended in one of the ways of mirror.h. */
static inline void upfront_arena_end(upfront_arena *a, uint64_t to, int how) {
    upfront_mark_ended(upfront_arena_at(a, to), a->cursor - to, how);
    upfront_arena_back(a, to);
}

static inline void upfront_arena_cut(upfront_arena *a, uint64_t to) { upfront_arena_end(a, to, UPFRONT_CLOSED); }

#ifdef __cplusplus
}
#endif
#endif
