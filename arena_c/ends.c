#include "ends.h"

upfront_ends *upfront_ends_init(void *block, uint64_t size) {
    upfront_ends *e = (upfront_ends *)upfront_arena_init(block, size, sizeof *e);
    if (e == NULL)
        return NULL;
    e->end = e->low = e->far_mark = e->arena.limit;
    e->high = e->mark = e->arena.start;
    return e;
}

void *upfront_ends_alloc(upfront_ends *e, uint64_t size, uint64_t align) {
    uint64_t from;
    void *p;
    if (e == NULL)
        return NULL;
    from = e->arena.cursor;
    p = upfront_linear_alloc(&e->arena, size, align);
#ifdef UPFRONT_CHECKED
    if (p != NULL)
        e->lost += e->arena.cursor - from - size;
#else
    (void)from;
#endif
    return p;
}

void *upfront_ends_alloc_far(upfront_ends *e, uint64_t size, uint64_t align) {
    return upfront_arena_may_ask((upfront_arena *)e, align)
               ? upfront_ends_bump_far(e, e->arena.gen, upfront_size(size), align - 1)
               : NULL;
}

static void ends_note(upfront_ends *e) {
    if (e->high < e->arena.cursor)
        e->high = e->arena.cursor;
    if (e->low > e->arena.limit)
        e->low = e->arena.limit;
}

void upfront_ends_cut(upfront_ends *e, uint64_t to) {
    if (e == NULL)
        return;
    ends_note(e);
    upfront_arena_cut(&e->arena, to);
}

void upfront_ends_cut_far(upfront_ends *e, uint64_t to) {
    if (e == NULL)
        return;
    ends_note(e);
    upfront_arena_note(&e->arena);
    upfront_mark_dead(upfront_arena_at(&e->arena, e->arena.limit), to - e->arena.limit);
    e->arena.limit = to;
}

int upfront_ends_rewind(upfront_ends *e, uint64_t gen, uint64_t mark) {
    if (e == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_arena_is(&e->arena, gen))
        return UPFRONT_STALE;
    if (mark < e->arena.start || mark > e->mark)
        return UPFRONT_ORDER;
    upfront_ends_cut(e, mark);
    e->mark = mark;
    return UPFRONT_OK;
}

int upfront_ends_rewind_far(upfront_ends *e, uint64_t gen, uint64_t mark) {
    if (e == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_arena_is(&e->arena, gen))
        return UPFRONT_STALE;
    if (mark < e->far_mark || mark > e->end)
        return UPFRONT_ORDER;
    upfront_ends_cut_far(e, mark);
    e->far_mark = mark;
    return UPFRONT_OK;
}

int upfront_ends_resize(upfront_ends *e, uint64_t gen, const void *p, uint64_t old, uint64_t size) {
    if (e == NULL)
        return UPFRONT_BAD_ARGUMENT;
    ends_note(e);
    return upfront_linear_resize(&e->arena, gen, e->mark, p, old, size);
}

void upfront_ends_reset(upfront_ends *e) {
    if (e == NULL)
        return;
    upfront_ends_cut(e, e->mark = e->arena.start);
    upfront_ends_cut_far(e, e->far_mark = e->end);
    e->lost = 0;
}
