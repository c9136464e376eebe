#include "stack.h"

#define STACK_MASK (sizeof(upfront_stack_below) - 1)

upfront_stack *upfront_stack_init(void *block, uint64_t size) {
    return (upfront_stack *)upfront_ends_init(block, size);
}

static int bad_size(const upfront_stack *s, uint64_t size, uint64_t align) {
    return s == NULL || s->ends.arena.gen == 0 || size >= UPFRONT_OFFSET_MAX || !upfront_is_align(align);
}

void *upfront_stack_alloc(upfront_stack *s, uint64_t size, uint64_t align) {
    return bad_size(s, size, align) ? NULL : upfront_stack_push(s, s->ends.arena.gen, size, (align - 1) | STACK_MASK);
}

void *upfront_stack_alloc_far(upfront_stack *s, uint64_t size, uint64_t align) {
    return bad_size(s, size, align) ? NULL : upfront_stack_push_far(s, s->ends.arena.gen, size, (align - 1) | STACK_MASK);
}

/* A place in the chain of an end: where the end is, and its last block there. */
typedef struct stack_place {
    uint64_t at, last;
} stack_place;

static stack_place near_place(const upfront_stack *s) {
    stack_place now = {s->ends.arena.cursor, s->ends.last};
    return now;
}

static stack_place far_place(const upfront_stack *s) {
    stack_place now = {s->ends.arena.limit, s->ends.far_last};
    return now;
}

static const upfront_stack_below *below_of(const upfront_stack *s, stack_place now) {
    return (const upfront_stack_below *)upfront_arena_at(&s->ends.arena, now.last) - 1;
}

/* Each step goes from the last block to what was before it; false when the words there can't be. Here: each block lies above what was
 * before it. */
static int step_down(const upfront_stack *s, stack_place *now) {
    const upfront_stack_below *below = below_of(s, *now);
    uint64_t was = below->cursor, start = s->ends.arena.start;
    if (was < start || was > now->last - sizeof *below || below->last > was || (below->last != 0 && below->last < start + sizeof *below))
        return 0;
    now->at = was;
    now->last = below->last;
    return 1;
}

/* At the far end the end is always at the last block's words. */
static int step_up(const upfront_stack *s, stack_place *now) {
    const upfront_stack_below *below = below_of(s, *now);
    uint64_t was = below->cursor;
    if (was < now->last || was > s->ends.end || below->last != (was == s->ends.end ? 0 : was + sizeof *below))
        return 0;
    now->at = was;
    now->last = below->last;
    return 1;
}

static int go_down(upfront_stack *s, stack_place to) {
    s->ends.last = to.last;
    upfront_ends_cut(&s->ends, to.at);
    return UPFRONT_OK;
}

static int go_up(upfront_stack *s, stack_place to) {
    s->ends.far_last = to.last;
    upfront_ends_cut_far(&s->ends, to.at);
    return UPFRONT_OK;
}

uint64_t upfront_stack_padding(const upfront_stack *s) {
    stack_place now = near_place(s);
    uint64_t padding = 0, block = now.last;
    while (block != 0 && step_down(s, &now)) {
        padding += block - now.at; /* from the end before it */
        block = now.last;
    }
    return padding;
}

int upfront_stack_free(upfront_stack *s, const void *p) {
    stack_place now;
    if (s == NULL || p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    now = near_place(s);
    if (upfront_arena_offset(&s->ends.arena, p) - s->ends.arena.start > now.at - s->ends.arena.start)
        return UPFRONT_FOREIGN;
    if (now.last == 0 || upfront_arena_at(&s->ends.arena, now.last) != p)
        return UPFRONT_ORDER;
    return step_down(s, &now) ? go_down(s, now) : UPFRONT_CORRUPT;
}

int upfront_stack_free_far(upfront_stack *s, const void *p) {
    stack_place now;
    if (s == NULL || p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    now = far_place(s);
    if (upfront_arena_offset(&s->ends.arena, p) - now.at > s->ends.end - now.at)
        return UPFRONT_FOREIGN;
    if (now.last == 0 || upfront_arena_at(&s->ends.arena, now.last) != p)
        return UPFRONT_ORDER;
    return step_up(s, &now) ? go_up(s, now) : UPFRONT_CORRUPT;
}

uint64_t upfront_stack_mark(const upfront_stack *s) { return s->ends.arena.cursor; }

uint64_t upfront_stack_mark_far(const upfront_stack *s) { return s->ends.arena.limit; }

int upfront_stack_rewind(upfront_stack *s, uint64_t mark) {
    stack_place now;
    if (s == NULL)
        return UPFRONT_BAD_ARGUMENT;
    now = near_place(s);
    while (now.last != 0 && now.at > mark)
        if (!step_down(s, &now))
            return UPFRONT_CORRUPT;
    return now.at == mark ? go_down(s, now) : UPFRONT_ORDER;
}

int upfront_stack_rewind_far(upfront_stack *s, uint64_t mark) {
    stack_place now;
    if (s == NULL)
        return UPFRONT_BAD_ARGUMENT;
    now = far_place(s);
    while (now.last != 0 && now.at < mark)
        if (!step_up(s, &now))
            return UPFRONT_CORRUPT;
    return now.at == mark ? go_up(s, now) : UPFRONT_ORDER;
}

void upfront_stack_reset(upfront_stack *s) {
    stack_place bottom = {s->ends.arena.start, 0};
    (void)go_down(s, bottom);
    upfront_stack_reset_far(s);
}

void upfront_stack_reset_far(upfront_stack *s) {
    stack_place top = {s->ends.end, 0};
    (void)go_up(s, top);
}
