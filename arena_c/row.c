#include "row.h"

void upfront_row_init(upfront_row *r, const void *origin, const char *name, uint64_t start, uint64_t end, uint64_t slots,
                      uint64_t pools) {
    const char *last;
    uint64_t i;
    memset(r, 0, sizeof *r);
    last = (const char *)memchr(name, 0, UPFRONT_NAME_SIZE - 1);
    memcpy(r->name, name, last == NULL ? UPFRONT_NAME_SIZE - 1 : (size_t)(last - name));
    r->start = start;
    r->end = r->edge = end;
    r->slots = slots;
    r->pools = pools;
    for (i = 0; i <= slots; i++) {
        upfront_linear *slot = upfront_row_slot(r, i);
        slot->limit = upfront_tag(slot) + UPFRONT_GENERATION;
        slot->origin = upfront_distance(origin, slot);
        slot->cursor = slot->start = start;
        slot->peak = ~i; /* upfront_row_index */
        slot->count = slot->chain = slot->refused = 0;
    }
    for (i = 0; i < pools; i++) {
        upfront_row_pool(r, i)->open = 0; /* what it had before has nothing to say any more */
        upfront_pool_close(upfront_row_pool(r, i));
    }
#ifdef UPFRONT_ASAN
    upfront_row_slot(r, 0)->count = UPFRONT_UNMARKED;
#endif
}

uint64_t upfront_row_far_open(upfront_row *r) {
    upfront_linear *far_slot = upfront_row_far(r);
    r->far_of = r->open;
    far_slot->cursor = far_slot->start = r->end;
    far_slot->count = far_slot->chain = far_slot->refused = 0;
    return upfront_tag(far_slot);
}

int upfront_row_far_grow(upfront_row *r, uint64_t size, uint64_t align) {
    upfront_linear *far_slot = upfront_row_far(r);
    upfront_linear *top;
    uint64_t room, piece, edge;
    if (!upfront_is_align(align))
        return UPFRONT_BAD_ARGUMENT;
    if (r->far_of == 0)
        return UPFRONT_ORDER;
    top = upfront_row_slot(r, r->open - 1);
    room = r->edge - top->cursor;
    if (size > room)
        return UPFRONT_FULL;
    piece = room / 4 < UPFRONT_PIECE ? room / 4 : UPFRONT_PIECE;
    piece = piece < size ? size : piece;
    edge = (r->edge - piece) & ~(align - 1);
    if (edge < top->cursor)
        edge = (r->edge - size) & ~(align - 1);
    if (edge < top->cursor)
        return UPFRONT_FULL;
    far_slot->cursor = edge;
    far_slot->limit = upfront_tag(far_slot) | r->edge;
    if (top->limit != upfront_tag(top))
        top->limit = upfront_tag(top) | edge;
    r->edge = edge;
    upfront_row_note_peak(r);
    return UPFRONT_OK;
}

void upfront_row_far_close(upfront_row *r) {
    upfront_linear *far_slot = upfront_row_far(r), *top;
    if (r->far_of == 0)
        return;
    top = upfront_row_slot(r, r->open - 1);
    upfront_row_note_peak(r);
    upfront_mark_dead(upfront_at(far_slot, r->edge), r->end - r->edge);
    far_slot->limit = upfront_tag(far_slot) + UPFRONT_GENERATION;
    far_slot->cursor = r->end;
    r->edge = r->end;
    r->far_of = 0;
    if (top->limit != upfront_tag(top))
        top->limit = upfront_tag(top) | r->edge;
}

void upfront_row_rewind(upfront_row *r, const upfront_linear *was) {
    upfront_linear *top = upfront_row_slot(r, r->open - 1);
    upfront_row_note_peak(r);
    upfront_mark_dead(upfront_at(top, was->cursor), top->cursor - was->cursor);
    top->cursor = was->cursor;
    top->count = was->count;
}

int upfront_row_pool_open(upfront_linear *slot, uint64_t tag, uint64_t size, uint64_t align, uint64_t count, uint64_t kind,
                          upfront_pool **out) {
    upfront_row *r = upfront_row_of(slot);
    uint64_t bytes = upfront_pool_size(size, align, count);
    uint64_t i = 0;
    upfront_pool *p;
    void *block;
    *out = NULL;
    if (upfront_pool_size(size, align, count == 0 ? 1 : count) == 0)
        return UPFRONT_BAD_ARGUMENT;
    while (i < r->pools && upfront_row_pool(r, i)->open)
        i++;
    if (i == r->pools)
        return UPFRONT_TABLE_FULL;
    block = upfront_linear_bump(slot, tag + bytes, bytes, upfront_pool_align(align) - 1);
    if (block == NULL)
        return UPFRONT_FULL;
    p = upfront_row_pool(r, i);
    p->kind = kind;
    (void)upfront_pool_init(p, block, size, align, count);
    *out = p;
    return UPFRONT_OK;
}
