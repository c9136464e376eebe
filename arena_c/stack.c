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

int upfront_stack_free(upfront_stack *s, const void *p) {
    const upfront_stack_below *below;
    if (s == NULL || p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_offset(&s->linear, p) - s->linear.start > s->linear.cursor - s->linear.start)
        return UPFRONT_FOREIGN;
    if (s->linear.chain == 0 || upfront_at(&s->linear, s->linear.chain) != p)
        return UPFRONT_ORDER;
    below = (const upfront_stack_below *)p - 1;
    return upfront_stack_rewind(s, below->cursor);
}

uint64_t upfront_stack_mark(const upfront_stack *s) { return s->linear.cursor; }

int upfront_stack_rewind(upfront_stack *s, uint64_t mark) {
    uint64_t cursor, last;
    int code;
    if (s == NULL)
        return UPFRONT_BAD_ARGUMENT;
    cursor = s->linear.cursor;
    last = s->linear.chain;
    while (last != 0 && cursor > mark) {
        const upfront_stack_below *below = (const upfront_stack_below *)upfront_at(&s->linear, last) - 1;
        cursor = below->cursor;
        last = below->last;
    }
    if (cursor != mark)
        return UPFRONT_ORDER;
    code = upfront_linear_rewind(&s->linear, upfront_tag(&s->linear), mark);
    s->linear.chain = last;
    return code;
}
