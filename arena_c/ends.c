#include "ends.h"

upfront_ends *upfront_ends_init(void *block, uint64_t size) {
    upfront_ends *e = (upfront_ends *)block;
    upfront_linear *l;
    if (size < sizeof *e + UPFRONT_LINE || upfront_linear_init(block, size) == NULL)
        return NULL;
    l = &e->linear;
    UPFRONT_UNPOISON(&e->far_end, sizeof e->far_end);
    memset(&e->far_end, 0, sizeof e->far_end);
    l->start += sizeof e->far_end;
    l->cursor = l->peak = l->start;
    e->far_end.end = e->far_end.low = e->far_end.far_mark = upfront_far_at(l);
    e->far_end.mark = l->start;
    return e;
}

void *upfront_ends_alloc(upfront_ends *e, uint64_t size, uint64_t align) {
    return e == NULL ? NULL : upfront_linear_alloc(&e->linear, size, align);
}

void *upfront_ends_alloc_far(upfront_ends *e, uint64_t size, uint64_t align) {
    if (e == NULL || e->linear.limit == 0 || size > UPFRONT_OFFSET_MAX || !upfront_is_align(align))
        return NULL;
    return upfront_ends_bump_far(e, upfront_tag(&e->linear), size, align - 1);
}

int upfront_ends_rewind(upfront_ends *e, uint64_t tag, uint64_t mark) {
    int code;
    if (e == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_tag(&e->linear) == tag && mark > e->far_end.mark)
        return UPFRONT_ORDER;
    code = upfront_linear_rewind(&e->linear, tag, mark);
    if (code == UPFRONT_OK)
        e->far_end.mark = mark;
    return code;
}

int upfront_ends_rewind_far(upfront_ends *e, uint64_t tag, uint64_t mark) {
    uint64_t at;
    if (e == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_tag(&e->linear) != tag)
        return UPFRONT_STALE;
    if (mark < e->far_end.far_mark || mark > e->far_end.end)
        return UPFRONT_ORDER;
    at = upfront_far_at(&e->linear);
    if (e->far_end.low > at)
        e->far_end.low = at;
    upfront_mark_dead(upfront_at(&e->linear, at), mark - at);
    e->linear.limit = tag | mark;
    e->far_end.far_mark = mark;
    e->far_end.count = upfront_count_within(e->far_end.count, e->far_end.end - mark);
    return UPFRONT_OK;
}

int upfront_ends_resize(upfront_ends *e, uint64_t tag, const void *p, uint64_t old, uint64_t size) {
    return e == NULL ? UPFRONT_BAD_ARGUMENT : upfront_linear_resize(&e->linear, tag, e->far_end.mark, p, old, size);
}

void upfront_ends_reset(upfront_ends *e) {
    uint64_t tag = upfront_tag(&e->linear);
    (void)upfront_ends_rewind(e, tag, e->linear.start);
    (void)upfront_ends_rewind_far(e, tag, e->far_end.end);
}
