#include "stack.h"

#define STACK_MASK (sizeof(upfront_stack_below) - 1)

upfront_stack *upfront_stack_init(void *block, uint64_t size) {
    return (upfront_stack *)upfront_ends_init(block, size);
}

void *upfront_stack_alloc(upfront_stack *s, uint64_t size, uint64_t align) {
    if (!upfront_arena_may_ask((upfront_arena *)s, align))
        return NULL;
    return upfront_stack_push(s, s->ends.arena.gen, upfront_size(size), (align - 1) | STACK_MASK);
}

void *upfront_stack_alloc_far(upfront_stack *s, uint64_t size, uint64_t align) {
    if (!upfront_arena_may_ask((upfront_arena *)s, align))
        return NULL;
    return upfront_stack_push_far(s, s->ends.arena.gen, upfront_size(size), (align - 1) | STACK_MASK);
}

/* A state of an end, now or before an allocation: its position and last block. */
typedef struct stack_place {
    int is_far;
    uint64_t at, last;
} stack_place;

static stack_place stack_now(const upfront_stack *s, int is_far) {
    stack_place now = {is_far, s->ends.arena.cursor, s->ends.last};
    if (is_far) {
        now.at = s->ends.arena.limit;
        now.last = s->ends.far_last;
    }
    return now;
}

/* Reports whether the words before the last block are possible. At the near end each block is above
 * the position before it; the far end's position is always its last block's words. Words that break
 * this were overwritten. */
UPFRONT_UNCHECKED static int stack_can_be(const upfront_stack *s, const upfront_stack_below *below, stack_place now) {
    uint64_t was = below->cursor, start = s->ends.arena.start, end = s->ends.end;
    if (now.is_far)
        return was >= now.last && was <= end &&
               (was == end ? below->last == 0 : below->last == was + sizeof *below && was % sizeof *below == 0);
    return was >= start && was <= now.last - sizeof *below && below->last <= was &&
           (below->last == 0 || (below->last >= start + sizeof *below && below->last % sizeof *below == 0));
}

/* Steps back over the last block; returns 0 if the words before it are impossible. */
UPFRONT_UNCHECKED static int stack_step(const upfront_stack *s, stack_place *now) {
    const upfront_stack_below *below = (const upfront_stack_below *)upfront_arena_at(&s->ends.arena, now->last) - 1;
    if (!stack_can_be(s, below, *now))
        return 0;
    now->at = below->cursor;
    now->last = below->last;
    return 1;
}

static int stack_cut(upfront_stack *s, stack_place to) {
    if (to.is_far) {
        s->ends.far_last = to.last;
        upfront_ends_cut_far(&s->ends, to.at);
    } else {
        s->ends.last = to.last;
        upfront_ends_cut(&s->ends, to.at);
    }
    return UPFRONT_OK;
}

uint64_t upfront_stack_padding(const upfront_stack *s) {
    stack_place now;
    uint64_t padding = 0, block;
    if (s == NULL)
        return 0;
    now = stack_now(s, 0);
    block = now.last;
    while (block != 0 && stack_step(s, &now)) {
        padding += block - now.at; /* from the position before it */
        block = now.last;
    }
    return padding;
}

static int stack_free(upfront_stack *s, const void *p, int is_far) {
    stack_place now;
    uint64_t from, to;
    if (s == NULL || p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    now = stack_now(s, is_far);
    from = is_far ? now.at : s->ends.arena.start;
    to = is_far ? s->ends.end : now.at;
    if (upfront_arena_offset(&s->ends.arena, p) - from > to - from)
        return UPFRONT_FOREIGN;
    if (now.last == 0 || upfront_arena_at(&s->ends.arena, now.last) != p)
        return UPFRONT_ORDER;
    return stack_step(s, &now) ? stack_cut(s, now) : UPFRONT_CORRUPT;
}

int upfront_stack_free(upfront_stack *s, const void *p) { return stack_free(s, p, 0); }

int upfront_stack_free_far(upfront_stack *s, const void *p) { return stack_free(s, p, 1); }

uint64_t upfront_stack_mark(const upfront_stack *s) { return s == NULL ? 0 : s->ends.arena.cursor; }

uint64_t upfront_stack_mark_far(const upfront_stack *s) { return s == NULL ? 0 : s->ends.arena.limit; }

static int stack_rewind(upfront_stack *s, uint64_t mark, int is_far) {
    stack_place now;
    if (s == NULL)
        return UPFRONT_BAD_ARGUMENT;
    now = stack_now(s, is_far);
    while (now.last != 0 && (is_far ? now.at < mark : now.at > mark))
        if (!stack_step(s, &now))
            return UPFRONT_CORRUPT;
    /* a header of zeros has no marks */
    return now.at == mark && s->ends.arena.gen != 0 ? stack_cut(s, now) : UPFRONT_ORDER;
}

int upfront_stack_rewind(upfront_stack *s, uint64_t mark) { return stack_rewind(s, mark, 0); }

int upfront_stack_rewind_far(upfront_stack *s, uint64_t mark) { return stack_rewind(s, mark, 1); }

void upfront_stack_reset(upfront_stack *s) {
    stack_place bottom = {0, 0, 0};
    if (s == NULL)
        return;
    bottom.at = s->ends.arena.start;
    (void)stack_cut(s, bottom);
    upfront_stack_reset_far(s);
}

void upfront_stack_reset_far(upfront_stack *s) {
    stack_place top = {1, 0, 0};
    if (s == NULL)
        return;
    top.at = s->ends.end;
    (void)stack_cut(s, top);
}
