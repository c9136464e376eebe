/* ends.h - a linear arena with two ends: the far end is for temporaries, and comes down towards the cursor.
 *
 * Algorithm  The near end is the bump of arena.h. The far end rounds down from the limit and moves the limit there, so that the near end's
 *            comparison knows of it without a look.
 * Bound      An allocation succeeds at either end exactly when it fits between the two with its padding: they touch, and never meet.
 * Cost       O(1); both fast paths are inlined. The header is 128 bytes.
 * Source     Frykholm, "Custom Memory Allocation in C++"; the far end is the double-ended stack of the Bitsquid streams.
 *
 * It remembers the newest mark of each end, because two things would break an older block without it: a resize of the last block when
 * it lies below a mark, and a rewind to a mark that a rewind has passed meanwhile. Both are refused. */
#ifndef UPFRONT_ENDS_H
#define UPFRONT_ENDS_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arena's line, and one for what a second end needs. All but `lost` are offsets; the far end's position is the limit. */
typedef struct upfront_ends {
    upfront_arena arena;
    uint64_t end;      /* past the last byte of the block: where the far end begins */
    uint64_t high;     /* the near end's highest position, as of the last time that bytes came back */
    uint64_t low;      /* the far end's lowest, likewise */
    uint64_t mark;     /* the near end's newest mark */
    uint64_t far_mark; /* the far end's newest mark */
    uint64_t last;     /* of a stack (stack.h): the near end's last live block, 0 for none */
    uint64_t far_last; /* and the far end's */
    uint64_t lost;     /* in checked builds: bytes that alignment has cost at the near end since a reset */
} upfront_ends;

/* The offset, aligned down to mask + 1: of the address. */
static inline uint64_t upfront_ends_down(const upfront_ends *e, uint64_t offset, uint64_t mask) {
    uint64_t from = (uint64_t)(uintptr_t)e;
    return ((from + offset) & ~mask) - from;
}

/* Whether what begins at offset `at`, which is at most the limit or has wrapped, lies behind the near end. */
static inline int upfront_ends_fits(const upfront_ends *e, uint64_t at) {
    return at - e->arena.cursor <= e->arena.limit - e->arena.cursor;
}

/* The near end's is upfront_arena_bump. This is the far end's; pre: as there. */
static inline void *upfront_ends_bump_far(upfront_ends *e, uint64_t gen, uint64_t size, uint64_t mask) {
    upfront_arena *a = &e->arena;
    uint64_t at = upfront_ends_down(e, a->limit - size, mask);
    if (a->gen != gen || !upfront_ends_fits(e, at) || upfront_arena_refuses(a))
        return upfront_arena_refuse(a, gen, size);
    a->limit = at;
    return upfront_mark_live(upfront_arena_at(a, at), size);
}

/* The position of the near end, to rewind to. It is remembered as the newest mark. */
static inline uint64_t upfront_ends_mark(upfront_ends *e) { return e->mark = e->arena.cursor; }

static inline uint64_t upfront_ends_mark_far(upfront_ends *e) { return e->far_mark = e->arena.limit; }

/* The bytes of an end from offset `to` on are free again. */
void upfront_ends_cut(upfront_ends *e, uint64_t to);
void upfront_ends_cut_far(upfront_ends *e, uint64_t to);

/* Makes an arena of the block: the header at its front, the rest is room. NULL when the block is null, not aligned to 64, smaller than
 * three lines or too large. */
upfront_ends *upfront_ends_init(void *block, uint64_t size);

/* NULL: full, or size or align out of bounds. */
void *upfront_ends_alloc(upfront_ends *e, uint64_t size, uint64_t align);
void *upfront_ends_alloc_far(upfront_ends *e, uint64_t size, uint64_t align);

/* Frees what that end allocated since the mark. UPFRONT_ORDER for a mark that is newer than the newest one, as one is that a rewind has
 * passed; for one before the start; and so for a mark of the other end. */
int upfront_ends_rewind(upfront_ends *e, uint64_t gen, uint64_t mark);
int upfront_ends_rewind_far(upfront_ends *e, uint64_t gen, uint64_t mark);

/* upfront_linear_resize with the newest mark as the floor. */
int upfront_ends_resize(upfront_ends *e, uint64_t gen, const void *p, uint64_t old, uint64_t size);

/* Frees everything at both ends. */
void upfront_ends_reset(upfront_ends *e);

#ifdef __cplusplus
}
#endif
#endif
