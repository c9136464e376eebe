/* stack.h - last in, first out: a linear arena whose blocks remember what was before them.
 *
 * Algorithm  A word before each block holds the cursor as it was; freeing the last block moves the cursor there. A mark is a cursor.
 * Bound      Only the last live block can be freed; a mark is good until the cursor goes below it.
 * Cost       O(1); 8 bytes and the alignment a block.
 * Source     Frykholm, "Custom Memory Allocation in C++"; Stehly-Calisto, "Climbing the stack allocator". */
#ifndef UPFRONT_STACK_H
#define UPFRONT_STACK_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `chain` is the offset of the last live block, 0 for none. */
typedef struct upfront_stack {
    upfront_linear linear;
} upfront_stack;

/* The word before a block: the cursor before the allocation, and the block that was last then. */
typedef struct upfront_stack_below {
    uint64_t cursor;
    uint64_t last;
} upfront_stack_below;

/* need = tag + sizeof(upfront_stack_below) + size; mask = align - 1, at least 15. */
static inline void *upfront_stack_push(upfront_stack *s, uint64_t tag, uint64_t size, uint64_t mask) {
    upfront_linear *l = &s->linear;
    uint64_t cursor = l->cursor;
    uint64_t at = (cursor + sizeof(upfront_stack_below) + mask) & ~mask;
    upfront_stack_below *below;
    if (l->limit - tag - size - at >= UPFRONT_OFFSET_MAX) {
        l->refused = tag + size;
        return NULL;
    }
    below = (upfront_stack_below *)upfront_at(l, at) - 1;
    UPFRONT_UNPOISON(below, sizeof *below);
    below->cursor = cursor;
    below->last = l->chain;
    l->chain = at;
    l->cursor = at + size;
    l->count++;
    upfront_mark_live(below + 1, size);
    return below + 1;
}

upfront_stack *upfront_stack_init(void *block, uint64_t size);

/* NULL: full, or size or align out of bounds. Alignments below 16 are 16. */
void *upfront_stack_alloc(upfront_stack *s, uint64_t size, uint64_t align);

/* Frees the last live block. UPFRONT_ORDER for any other block, UPFRONT_FOREIGN for an address outside what is in use, which a block
 * that was freed already is, UPFRONT_CORRUPT as below. */
int upfront_stack_free(upfront_stack *s, const void *p);

/* The position to rewind to. */
uint64_t upfront_stack_mark(const upfront_stack *s);

/* Frees all blocks newer than the mark, in one move. UPFRONT_ORDER for a mark that is newer than the stack, or was never its mark:
 * a mark is what upfront_stack_mark gave while the blocks below it are live. UPFRONT_CORRUPT when something wrote over the words before
 * a block. Cost: O(blocks freed). */
int upfront_stack_rewind(upfront_stack *s, uint64_t mark);

#ifdef __cplusplus
}
#endif
#endif
