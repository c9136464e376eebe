/* arena.h - allocates by moving a cursor up through a block; one generation at a time may allocate.
 *
 * Algorithm  Cursor and limit are offsets from the header. `gen` is the generation that may
 *            allocate: the one of the arena's topmost scope, or 0. A handle is a header and a
 *            generation. The handle of a closed, covered or frozen scope has another generation
 *            than the header, so one comparison refuses them all.
 * Example    Scope 5 is open. A scope opened on top of it has generation 6, and allocations with 5
 *            are refused until scope 6 closes. Then the header's generation is 5 again. 6 is
 *            refused for ever, because the next scope is 7.
 * Bound      An allocation succeeds exactly when its generation is the header's and its size with
 *            padding fits. Generations step by one in 64 bits and are never reused, even after
 *            upfront_arena_bound.
 * Cost       O(1): the rounding up, three comparisons, one store.
 * Source     Fredriksson, "Scope Stack Allocation"; the generations are those of Frykholm's "ID
 *            Lookup Table". */
#ifndef UPFRONT_ARENA_H
#define UPFRONT_ARENA_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The header, one cache line, before the arena's bytes. Offsets count from it. */
typedef struct upfront_arena {
    uint64_t cursor;  /* of the next free byte */
    uint64_t limit;   /* past the last free byte */
    uint64_t gen;     /* the generation that may allocate; 0: none */
    uint64_t asked;   /* the topmost scope's last refused request: UPFRONT_ASKED; 0: none */
    uint64_t misused; /* the last generation refused because it isn't the topmost; 0: none */
    uint64_t least;   /* fewest free bytes so far; updated when bytes are freed */
    uint64_t next;    /* the newest generation */
    uint64_t start;   /* of the first byte */
} upfront_arena;

/* The word `asked` holds the refused size, the alignment less 1 (at least 7) from this bit on, and
 * bit 63, because a request of 0 bytes may also be refused. Only upfront_arena_bump keeps the
 * alignment; other calls leave 7. Example: 100 bytes aligned to 16 are UPFRONT_ASKED | 15 << 40 |
 * 100. */
#define UPFRONT_ASKED_MASK 40
#define UPFRONT_ASKED (UINT64_C(1) << 63 | UINT64_C(7) << UPFRONT_ASKED_MASK)
/* also set if the request was refused on purpose (upfront_refuses); set alone until
 * upfront_arena_refuse adds the size */
#define UPFRONT_PURPOSE (UINT64_C(1) << 62)

static inline void *upfront_arena_at(const upfront_arena *a, uint64_t offset) {
    return (void *)((uintptr_t)a + (uintptr_t)offset);
}

static inline uint64_t upfront_arena_offset(const upfront_arena *a, const void *p) { return upfront_place(p, a); }

/* Rounds an offset up so that its address is a multiple of mask + 1. A header itself is aligned
 * only to a cache line. */
static inline uint64_t upfront_arena_up(const upfront_arena *a, uint64_t offset, uint64_t mask) {
    uint64_t from = (uint64_t)(uintptr_t)a;
    return ((from + offset + mask) & ~mask) - from;
}

static inline uint64_t upfront_arena_aligned(const upfront_arena *a, uint64_t mask) {
    return upfront_arena_up(a, a->cursor, mask);
}

/* Makes [start, limit) the arena's bytes, all free. No generation may allocate; the next one
 * continues the count. */
static inline void upfront_arena_bound(upfront_arena *a, uint64_t start, uint64_t limit) {
    a->cursor = a->start = start;
    a->limit = limit;
    a->least = limit - start;
    a->gen = a->asked = a->misused = 0;
}

/* upfront_arena_refuses reports whether a request is refused on purpose although it fits.
 * upfront_arena_purpose returns UPFRONT_PURPOSE if a request was refused on purpose and
 * upfront_arena_refuse hasn't recorded it, else 0. */
#ifdef UPFRONT_CHECKED
static inline int upfront_arena_refuses(upfront_arena *a) {
    if (!upfront_refuses())
        return 0;
    a->asked = UPFRONT_PURPOSE;
    return 1;
}

static inline uint64_t upfront_arena_purpose(const upfront_arena *a) {
    return a->asked == UPFRONT_PURPOSE ? UPFRONT_PURPOSE : 0;
}
#else
#define upfront_arena_refuses(a) 0
#define upfront_arena_purpose(a) 0
#endif

/* Records a refusal: the request if gen may allocate, else the generation. Returns NULL. */
static inline void *upfront_arena_refuse(upfront_arena *a, uint64_t gen, uint64_t size) {
    if (a->gen == gen)
        a->asked = UPFRONT_ASKED | size | upfront_arena_purpose(a);
    else
        a->misused = gen;
    return NULL;
}

/* Reports whether gen may allocate. In a header of zeros none may. */
static inline int upfront_arena_is(const upfront_arena *a, uint64_t gen) { return a->gen == gen && gen != 0; }

/* Reports whether the arguments of a C program are valid: an arena, and an alignment. */
static inline int upfront_arena_may_ask(const upfront_arena *a, uint64_t align) {
    return a != NULL && a->gen != 0 && upfront_is_align(align);
}

/* Reports whether `size` bytes fit from offset `at` on. pre: `at` is at or after the cursor. */
static inline int upfront_arena_fits(const upfront_arena *a, uint64_t at, uint64_t size) {
    return at <= a->limit && size <= a->limit - at;
}

/* Moves the cursor past the `size` bytes at offset `at`; returns 0 if gen may not allocate or they
 * don't fit. This and upfront_arena_back touch only the header, so they work without the
 * arena's bytes. */
static inline int upfront_arena_take(upfront_arena *a, uint64_t gen, uint64_t at, uint64_t size) {
    if (a->gen != gen || !upfront_arena_fits(a, at, size) || upfront_arena_refuses(a))
        return 0;
    a->cursor = at + size;
    return 1;
}

/* Returns size bytes, not zeroed. NULL: full, or gen isn't the topmost scope's. pre: size <=
 * UPFRONT_OFFSET_MAX; mask + 1 is a power of two up to UPFRONT_ALIGN_MAX. */
static inline void *upfront_arena_bump(upfront_arena *a, uint64_t gen, uint64_t size, uint64_t mask) {
    uint64_t at = upfront_arena_aligned(a, mask);
    if (!upfront_arena_take(a, gen, at, size))
        return upfront_arena_refuse(a, gen, size | mask << UPFRONT_ASKED_MASK);
    return upfront_mark_live(upfront_arena_at(a, at), size);
}

/* Updates `least`, before bytes are freed. */
static inline void upfront_arena_note(upfront_arena *a) {
    if (a->limit - a->cursor < a->least)
        a->least = a->limit - a->cursor;
}

static inline void upfront_arena_back(upfront_arena *a, uint64_t to) {
    upfront_arena_note(a);
    a->cursor = to;
}

/* Frees the bytes from offset `to` on; `how` is how their objects ended (mirror.h). */
static inline void upfront_arena_end(upfront_arena *a, uint64_t to, int how) {
    upfront_mark_ended(upfront_arena_at(a, to), a->cursor - to, how);
    upfront_arena_back(a, to);
}

static inline void upfront_arena_cut(upfront_arena *a, uint64_t to) { upfront_arena_end(a, to, UPFRONT_CLOSED); }

#ifdef __cplusplus
}
#endif
#endif
