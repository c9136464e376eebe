/* linear.h - the aligned bump over a block: one cursor that only moves up, until it is rewound.
 *
 * Algorithm  The header of arena.h at the front of the block, and its bump.
 * Bound      An allocation of size bytes at offset `at` succeeds exactly when at + size <= limit
 *            and the generation is the header's.
 * Cost       O(1); upfront_arena_bump is inlined: two comparisons, two stores.
 * Source     Frykholm, "Custom Memory Allocation in C++"; Llopis, "Start Pre-allocating And Stop
 *            Worrying". */
#ifndef UPFRONT_LINEAR_H
#define UPFRONT_LINEAR_H

#include "arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef upfront_arena upfront_linear;

/* Makes an arena of the block: the header, which has `header` bytes, at its front, the rest is
 * room. Its generation is 1. NULL when the block is null, not aligned to 64, has no line behind the
 * header, or is too large, or the header is less than a line. A block may be reused: what was there
 * before is not looked at. */
upfront_arena *upfront_arena_init(void *block, uint64_t size, uint64_t header);

/* The same with a header of one line. */
upfront_linear *upfront_linear_init(void *block, uint64_t size);

/* The checked face of the bump for C programs. NULL: full, or size or align out of bounds. */
void *upfront_linear_alloc(upfront_linear *l, uint64_t size, uint64_t align);

/* Moves the cursor back to an earlier value of itself. UPFRONT_ORDER when `cursor` is newer than
 * the cursor or before the start. */
int upfront_linear_rewind(upfront_linear *l, uint64_t gen, uint64_t cursor);

/* Makes the last block longer or shorter where it is. old is the size it has; the caller knows it,
 * the arena keeps none. UPFRONT_FULL when there is no room. UPFRONT_ORDER for a block that is not
 * the last, and for one below `floor` (an offset: the newest mark, so that what an older owner
 * counts on is left alone). UPFRONT_FOREIGN for an address that was not handed out. A block of no
 * bytes lies at the mark, not below it. */
int upfront_linear_resize(upfront_linear *l, uint64_t gen, uint64_t floor, const void *p,
                          uint64_t old, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
