#include "linear.h"

upfront_arena *upfront_arena_init(void *block, uint64_t size, uint64_t header) {
    upfront_arena *a = (upfront_arena *)block;
    if (!upfront_is_block(block, size, 2 * UPFRONT_LINE) || header < sizeof *a || header > size - UPFRONT_LINE)
        return NULL;
    UPFRONT_UNPOISON(block, header); /* the block may be part of another arena, which poisoned it */
    memset(block, 0, (size_t)header);
    upfront_arena_bound(a, header, size);
    a->gen = a->next = 1;
    upfront_mark_dead((char *)block + header, size - header);
    return a;
}

upfront_linear *upfront_linear_init(void *block, uint64_t size) {
    return upfront_arena_init(block, size, sizeof(upfront_linear));
}

void *upfront_linear_alloc(upfront_linear *l, uint64_t size, uint64_t align) {
    return upfront_arena_may_ask(l, align) ? upfront_arena_bump(l, l->gen, upfront_size(size), align - 1) : NULL;
}

int upfront_linear_rewind(upfront_linear *l, uint64_t gen, uint64_t cursor) {
    if (l == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_arena_is(l, gen))
        return UPFRONT_STALE;
    if (cursor < l->start || cursor > l->cursor)
        return UPFRONT_ORDER;
    upfront_arena_cut(l, cursor);
    return UPFRONT_OK;
}

int upfront_linear_resize(upfront_linear *l, uint64_t gen, uint64_t floor, const void *p, uint64_t old, uint64_t size) {
    uint64_t at;
    if (l == NULL || p == NULL || old >= UPFRONT_OFFSET_MAX)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_arena_is(l, gen))
        return UPFRONT_STALE;
    at = upfront_arena_offset(l, p);
    if (at - l->start > l->cursor - l->start)
        return UPFRONT_FOREIGN;
    if (at + old != l->cursor || at < floor)
        return UPFRONT_ORDER;
    if (size <= old) {
        upfront_arena_cut(l, at + size);
        return UPFRONT_OK;
    }
    return upfront_arena_bump(l, gen, upfront_size(size - old), 0) == NULL ? UPFRONT_FULL : UPFRONT_OK;
}
