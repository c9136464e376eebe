#include "linear.h"

upfront_linear *upfront_linear_init(void *block, uint64_t size) {
    upfront_linear *l = (upfront_linear *)block;
    uint64_t skew = upfront_skew(block);
    if (!upfront_is_block(block, size, 2 * UPFRONT_LINE))
        return NULL;
    UPFRONT_UNPOISON(l, sizeof *l); /* the block may have been the inside of another arena */
    memset(l, 0, sizeof *l);
    l->origin = 0 - skew;
    l->start = l->cursor = l->peak = skew + sizeof *l;
    l->limit = UPFRONT_GENERATION | (skew + size);
    upfront_mark_dead(l + 1, size - sizeof *l);
    return l;
}

void *upfront_linear_alloc(upfront_linear *l, uint64_t size, uint64_t align) {
    /* a limit of 0 is a header that was never made: there, 0 bytes at offset 0 would pass the comparison */
    if (l == NULL || l->limit == 0 || size > UPFRONT_OFFSET_MAX || !upfront_is_align(align))
        return NULL;
    return upfront_linear_bump(l, upfront_tag(l) + size, size, align - 1);
}

int upfront_linear_rewind(upfront_linear *l, uint64_t tag, uint64_t cursor) {
    if (l == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_tag(l) != tag)
        return UPFRONT_STALE;
    if (cursor < l->start || cursor > l->cursor)
        return UPFRONT_ORDER;
    if (l->peak < l->cursor)
        l->peak = l->cursor;
    upfront_mark_dead(upfront_at(l, cursor), l->cursor - cursor);
    l->cursor = cursor;
    l->count = upfront_count_within(l->count, cursor - l->start);
    return UPFRONT_OK;
}

int upfront_linear_resize(upfront_linear *l, uint64_t tag, uint64_t floor, const void *p, uint64_t old, uint64_t size) {
    uint64_t at, top, asked;
    if (l == NULL || p == NULL || old > UPFRONT_OFFSET_MAX || size > UPFRONT_OFFSET_MAX)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_tag(l) != tag)
        return UPFRONT_STALE;
    at = upfront_offset(l, p);
    top = l->limit & UPFRONT_OFFSETS;
    if (at - l->start > l->cursor - l->start)
        return UPFRONT_FOREIGN;
    if (at + old != l->cursor || at < floor || top < l->cursor)
        return UPFRONT_ORDER;
    if (size > top - at) {
        l->refused = tag + size;
        return UPFRONT_FULL;
    }
    if (size > old) {
        upfront_mark_live(upfront_at(l, l->cursor), size - old);
    } else {
        if (l->peak < l->cursor)
            l->peak = l->cursor;
        upfront_mark_dead(upfront_at(l, at + size), old - size);
    }
    l->cursor = at + size;
    asked = upfront_asked(l->count);
    l->count += size - (old < asked ? old : asked); /* `old` may hold padding: a caller may take several blocks for one */
    return UPFRONT_OK;
}
