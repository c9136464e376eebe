/* linear.h - allocates from a block by one cursor that moves up until it is rewound.
 *
 * Algorithm  The header of arena.h is at the front of the block, and upfront_arena_bump allocates.
 * Bound      An allocation of size bytes at offset `at` succeeds exactly when at + size <= limit
 *            and the generation is the header's.
 * Cost       O(1); upfront_arena_bump is inlined: three comparisons, one store.
 * Source     Frykholm, "Custom Memory Allocation in C++"; Llopis, "Start Pre-allocating And Stop
 *            Worrying". */
#ifndef UPFRONT_LINEAR_H
#define UPFRONT_LINEAR_H

#include "arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef upfront_arena upfront_linear;

/* Makes an arena with a header of `header` bytes. The header and the other bytes have at least a
 * cache line each. The generation is 1. */
upfront_arena *upfront_arena_init(void *block, uint64_t size, uint64_t header);

/* Makes an arena with a header of one cache line. */
upfront_linear *upfront_linear_init(void *block, uint64_t size);

/* Allocates with checked arguments, for C programs. */
void *upfront_linear_alloc(upfront_linear *l, uint64_t size, uint64_t align);

/* Moves the cursor back to an earlier value. UPFRONT_ORDER if the value is above the present one or
 * below the start. */
int upfront_linear_rewind(upfront_linear *l, uint64_t gen, uint64_t cursor);

/* Changes the size of the last block in place. `old` is its present size, which the arena doesn't
 * keep. UPFRONT_FULL if it doesn't fit. UPFRONT_ORDER for a block that isn't the last or is below
 * offset `floor`, the newest mark: a rewind to the mark must find the blocks below it as they were.
 * UPFRONT_FOREIGN for an address that isn't allocated. A block of 0 bytes at the mark isn't below
 * it. */
int upfront_linear_resize(upfront_linear *l, uint64_t gen, uint64_t floor, const void *p, uint64_t old, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
