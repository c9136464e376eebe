#include "stack.h"

#define STACK_MASK (sizeof(upfront_stack_below) - 1)

upfront_stack *upfront_stack_init(void *block, uint64_t size) {
    return (upfront_stack *)upfront_linear_init(block, size);
}

void *upfront_stack_alloc(upfront_stack *s, uint64_t size, uint64_t align) {
    if (s == NULL || size > UPFRONT_OFFSET_MAX || !upfront_is_align(align))
        return NULL;
    return upfront_stack_push(s, upfront_tag(&s->linear), size, (align - 1) | STACK_MASK);
}

/* From the block at *last to what was before it; false when the words there can't be: each block lies above what was before it. */
static int step_down(const upfront_stack *s, uint64_t *cursor, uint64_t *last) {
    const upfront_stack_below *below = (const upfront_stack_below *)upfront_at(&s->linear, *last) - 1;
    uint64_t was = below->cursor;
    if (was < s->linear.start || was > *last - sizeof *below || below->last > was ||
        (below->last != 0 && below->last < s->linear.start + sizeof *below))
        return 0;
    *cursor = was;
    *last = below->last;
    return 1;
}

static int rewind_to(upfront_stack *s, uint64_t cursor, uint64_t last) {
    s->linear.chain = last;
    return upfront_linear_rewind(&s->linear, upfront_tag(&s->linear), cursor);
}

int upfront_stack_free(upfront_stack *s, const void *p) {
    uint64_t cursor, last;
    if (s == NULL || p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_offset(&s->linear, p) - s->linear.start > s->linear.cursor - s->linear.start)
        return UPFRONT_FOREIGN;
    last = s->linear.chain;
    if (last == 0 || upfront_at(&s->linear, last) != p)
        return UPFRONT_ORDER;
    return step_down(s, &cursor, &last) ? rewind_to(s, cursor, last) : UPFRONT_CORRUPT;
}

uint64_t upfront_stack_mark(const upfront_stack *s) { return s->linear.cursor; }

int upfront_stack_rewind(upfront_stack *s, uint64_t mark) {
    uint64_t cursor, last;
    if (s == NULL)
        return UPFRONT_BAD_ARGUMENT;
    cursor = s->linear.cursor;
    last = s->linear.chain;
    while (last != 0 && cursor > mark)
        if (!step_down(s, &cursor, &last))
            return UPFRONT_CORRUPT;
    return cursor == mark ? rewind_to(s, cursor, last) : UPFRONT_ORDER;
}
