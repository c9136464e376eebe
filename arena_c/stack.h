/* stack.h - allocates and frees in last-in, first-out order, at two ends of a block.
 *
 * Algorithm  Two words before each block hold the end's position and last block from before the
 *            allocation. Freeing the last block restores both values. A mark is a position. The far
 *            end grows down towards the near end (ends.h). Each end has its own last block and
 *            marks.
 * Example    The near end's cursor is 128 and there is no block. A block of 24 bytes starts at 144,
 *            after the words {128, 0}, and the cursor is 168. The next block starts at 192, after
 *            the words {168, 144} at 176. Freeing it puts the cursor back to 168 and the last block
 *            to 144.
 * Bound      Only the last live block of an end can be freed. A mark is valid until the end moves
 *            back past the mark. An allocation succeeds exactly when it fits between the ends with
 *            its two words and padding.
 * Cost       O(1). Space: 16 bytes and the padding for each block; the header is 128 bytes.
 * Source     Frykholm, "Custom Memory Allocation in C++"; Stehly-Calisto, "Climbing the stack
 *            allocator"; Llopis, "Start Pre-allocating And Stop Worrying" for the stack with two
 *            ends. */
#ifndef UPFRONT_STACK_H
#define UPFRONT_STACK_H

#include "ends.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct upfront_stack {
    upfront_ends ends;
} upfront_stack;

/* The words before a block: the position and the last block of its end before the allocation. */
typedef struct upfront_stack_below {
    uint64_t cursor;
    uint64_t last;
} upfront_stack_below;

/* Allocates at the near end. mask = align - 1 is at least 15; results and other preconditions are
 * those of upfront_arena_bump. */
static inline void *upfront_stack_push(upfront_stack *s, uint64_t gen, uint64_t size, uint64_t mask) {
    upfront_arena *a = &s->ends.arena;
    uint64_t at = upfront_arena_up(a, a->cursor + sizeof(upfront_stack_below), mask);
    upfront_stack_below *below;
    if (a->gen != gen || !upfront_arena_fits(a, at, size) || upfront_arena_refuses(a))
        return upfront_arena_refuse(a, gen, size);
    below = (upfront_stack_below *)upfront_arena_at(a, at) - 1;
    UPFRONT_UNPOISON(below, sizeof *below);
    below->cursor = a->cursor;
    below->last = s->ends.last;
    s->ends.last = at;
    a->cursor = at + size;
    upfront_mark_live(below + 1, size);
    return below + 1;
}

/* Allocates at the far end: the block, and below it its two words. The far end is then at the
 * words. */
static inline void *upfront_stack_push_far(upfront_stack *s, uint64_t gen, uint64_t size, uint64_t mask) {
    upfront_arena *a = &s->ends.arena;
    uint64_t at = upfront_ends_down(&s->ends, a->limit - size, mask) - sizeof(upfront_stack_below);
    upfront_stack_below *below;
    if (a->gen != gen || !upfront_ends_fits(&s->ends, at) || upfront_arena_refuses(a))
        return upfront_arena_refuse(a, gen, size);
    below = (upfront_stack_below *)upfront_arena_at(a, at);
    UPFRONT_UNPOISON(below, sizeof *below);
    below->cursor = a->limit;
    below->last = s->ends.far_last;
    s->ends.far_last = at + sizeof *below;
    a->limit = at;
    upfront_mark_live(below + 1, size);
    return below + 1;
}

upfront_stack *upfront_stack_init(void *block, uint64_t size);

/* Returns the overhead of the near end in bytes: padding, and two words a block. Cost:
 * O(blocks). */
uint64_t upfront_stack_padding(const upfront_stack *s);

/* An alignment below 16 counts as 16. */
void *upfront_stack_alloc(upfront_stack *s, uint64_t size, uint64_t align);
void *upfront_stack_alloc_far(upfront_stack *s, uint64_t size, uint64_t align);

/* Free the last live block of an end. UPFRONT_ORDER for any other block, UPFRONT_FOREIGN for an
 * address outside of the end's used bytes, such as a freed block's. UPFRONT_CORRUPT if the words
 * before the block are impossible: they were overwritten. */
int upfront_stack_free(upfront_stack *s, const void *p);
int upfront_stack_free_far(upfront_stack *s, const void *p);

/* Return the position to rewind to. */
uint64_t upfront_stack_mark(const upfront_stack *s);
uint64_t upfront_stack_mark_far(const upfront_stack *s);

/* Free all blocks of an end that are newer than the mark, in one move. UPFRONT_ORDER for a position
 * that isn't a valid mark of the end. UPFRONT_CORRUPT if the words before a block are impossible.
 * Cost: O(blocks freed). */
int upfront_stack_rewind(upfront_stack *s, uint64_t mark);
int upfront_stack_rewind_far(upfront_stack *s, uint64_t mark);

/* Free all blocks of both ends, or of the far one, without reading the words before them. */
void upfront_stack_reset(upfront_stack *s);
void upfront_stack_reset_far(upfront_stack *s);

#ifdef __cplusplus
}
#endif
#endif
