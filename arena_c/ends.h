/* ends.h - a linear arena with two ends, one for lasting blocks and one for temporary blocks.
 *
 * Algorithm  The near end is the bump of arena.h. The far end allocates below the limit, rounded
 *            down, and moves the limit there, so the near end's comparison needs no change.
 * Bound      An allocation at either end succeeds exactly when it fits with its padding between the
 *            two ends. The last byte can be used.
 * Cost       O(1); both fast paths are inlined. The header is 128 bytes.
 * Source     Frykholm, "Custom Memory Allocation in C++"; the far end is the double-ended stack of
 *            the Bitsquid streams.
 *
 * The arena remembers the newest mark of each end, to refuse two calls that would break an older
 * block: a resize of a last block below the mark, and a rewind to a mark that an earlier rewind has
 * passed. */
#ifndef UPFRONT_ENDS_H
#define UPFRONT_ENDS_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One cache line for the arena, and one for the second end. All words but `lost` are offsets. The
 * far end's position is the limit. */
typedef struct upfront_ends {
    upfront_arena arena;
    uint64_t end; /* past the last byte of the block: the far end starts here */
    /* the near end's highest position; updated before bytes are freed */
    uint64_t high;
    uint64_t low;      /* the far end's lowest position; updated with `high` */
    uint64_t mark;     /* the near end's newest mark */
    uint64_t far_mark; /* the far end's newest mark */
    uint64_t last;     /* in a stack (stack.h): the near end's last live block; 0: none */
    uint64_t far_last; /* in a stack: the far end's */
    uint64_t lost;     /* in checked builds: padding at the near end since a reset, in bytes */
} upfront_ends;

/* Rounds an offset down so that its address is a multiple of mask + 1. */
static inline uint64_t upfront_ends_down(const upfront_ends *e, uint64_t offset, uint64_t mask) {
    uint64_t from = (uint64_t)(uintptr_t)e;
    return ((from + offset) & ~mask) - from;
}

/* Reports whether offset `at` is at or above the near end. pre: `at` is at most the limit, or has
 * wrapped below 0. */
static inline int upfront_ends_fits(const upfront_ends *e, uint64_t at) {
    return at - e->arena.cursor <= e->arena.limit - e->arena.cursor;
}

/* Allocates at the far end. Results and preconditions are those of upfront_arena_bump. */
static inline void *upfront_ends_bump_far(upfront_ends *e, uint64_t gen, uint64_t size, uint64_t mask) {
    upfront_arena *a = &e->arena;
    uint64_t at = upfront_ends_down(e, a->limit - size, mask);
    if (a->gen != gen || !upfront_ends_fits(e, at) || upfront_arena_refuses(a))
        return upfront_arena_refuse(a, gen, size);
    a->limit = at;
    return upfront_mark_live(upfront_arena_at(a, at), size);
}

/* Returns the near end's position, to rewind to, and remembers it as the newest mark. */
static inline uint64_t upfront_ends_mark(upfront_ends *e) { return e->mark = e->arena.cursor; }

static inline uint64_t upfront_ends_mark_far(upfront_ends *e) { return e->far_mark = e->arena.limit; }

/* Move an end back to offset `to` and free the bytes between. */
void upfront_ends_cut(upfront_ends *e, uint64_t to);
void upfront_ends_cut_far(upfront_ends *e, uint64_t to);

/* Makes an arena of a block of at least three cache lines. */
upfront_ends *upfront_ends_init(void *block, uint64_t size);

void *upfront_ends_alloc(upfront_ends *e, uint64_t size, uint64_t align);
void *upfront_ends_alloc_far(upfront_ends *e, uint64_t size, uint64_t align);

/* Free all blocks of an end since the mark. UPFRONT_ORDER for a mark of the other end, before the
 * end's start, or newer than the end's newest, such as one that a rewind has passed. */
int upfront_ends_rewind(upfront_ends *e, uint64_t gen, uint64_t mark);
int upfront_ends_rewind_far(upfront_ends *e, uint64_t gen, uint64_t mark);

/* Does upfront_linear_resize with the newest mark as the floor. */
int upfront_ends_resize(upfront_ends *e, uint64_t gen, const void *p, uint64_t old, uint64_t size);

/* Frees all blocks of both ends. */
void upfront_ends_reset(upfront_ends *e);

#ifdef __cplusplus
}
#endif
#endif
