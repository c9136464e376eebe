/* stack.h - last in, first out, at both ends: an arena whose blocks remember what was before them.
 *
 * Algorithm  Two words before each block hold the end's position as it was; freeing the last block moves the end there. A mark is a
 *            position. The far end comes down towards the near one (ends.h), each with its own last block and its own marks.
 * Bound      Only the last live block of an end can be freed; a mark is good until its end goes back beyond it. An allocation succeeds
 *            exactly when it fits between the ends with its two words and its padding: they touch, and never meet.
 * Cost       O(1); 16 bytes and the alignment a block. The header is 128 bytes.
 * Source     Frykholm, "Custom Memory Allocation in C++"; Stehly-Calisto, "Climbing the stack allocator"; Llopis, "Start Pre-allocating
 *            And Stop Worrying" for the stack with two ends. */
#ifndef UPFRONT_STACK_H
#define UPFRONT_STACK_H

#include "ends.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct upfront_stack {
    upfront_ends ends;
} upfront_stack;

/* The words before a block: the end's position before the allocation, and the block that was last then. */
typedef struct upfront_stack_below {
    uint64_t cursor;
    uint64_t last;
} upfront_stack_below;

/* mask = align - 1, at least 15; pre: as for upfront_arena_bump. */
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

/* The same at the far end: the block first, then its two words below it, where the far end then is. */
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

/* Of the bytes in use at the near end those that were not asked for: alignment, and the two words before each block. Cost: O(blocks). */
uint64_t upfront_stack_padding(const upfront_stack *s);

/* NULL: full, or size or align out of bounds. Alignments below 16 are 16. */
void *upfront_stack_alloc(upfront_stack *s, uint64_t size, uint64_t align);
void *upfront_stack_alloc_far(upfront_stack *s, uint64_t size, uint64_t align);

/* Frees the last live block of an end. UPFRONT_ORDER for any other block, UPFRONT_FOREIGN for an address outside what that end has in
 * use, which a block that was freed already is, UPFRONT_CORRUPT as below. */
int upfront_stack_free(upfront_stack *s, const void *p);
int upfront_stack_free_far(upfront_stack *s, const void *p);

/* The position to rewind to. */
uint64_t upfront_stack_mark(const upfront_stack *s);
uint64_t upfront_stack_mark_far(const upfront_stack *s);

/* Frees all blocks of an end that are newer than the mark, in one move. UPFRONT_ORDER for a mark that is newer than the end, or was never
 * its mark: a mark is what upfront_stack_mark gave while the blocks before it are live. UPFRONT_CORRUPT when something wrote over the
 * words before a block. Cost: O(blocks freed). */
int upfront_stack_rewind(upfront_stack *s, uint64_t mark);
int upfront_stack_rewind_far(upfront_stack *s, uint64_t mark);

/* Frees everything at both ends, or at the far one, whatever lies before the blocks. */
void upfront_stack_reset(upfront_stack *s);
void upfront_stack_reset_far(upfront_stack *s);

#ifdef __cplusplus
}
#endif
#endif
