#include "heap.h"

uint64_t upfront_heap_largest(const upfront_heap *h) {
    uint64_t at, largest = UPFRONT_HEAP_HEADER;
    if (h == NULL)
        return 0;
    for (at = h->first; at != h->end; at += upfront_heap_size(h, at))
        if (!upfront_heap_is_live(h, at) && upfront_heap_size(h, at) > largest)
            largest = upfront_heap_size(h, at);
    return largest - UPFRONT_HEAP_HEADER;
}

/* A header in the chain: sealed, of a possible size, and at peace with the block before it. */
static int heap_header_ok(const upfront_heap *h, uint64_t at, uint64_t before) {
    uint64_t size;
    if (!upfront_heap_sealed(h, at) || upfront_heap_before(h, at) != before)
        return 0;
    size = upfront_heap_size(h, at);
    if (size < UPFRONT_HEAP_LEAST || size > h->end - at)
        return 0;
    if (upfront_heap_is_live(h, at))
        return upfront_heap_asked(h, at) < size && upfront_heap_align(h, at) <= UPFRONT_ALIGN_MAX;
    return before == 0 || upfront_heap_is_live(h, at - before);
}

/* The free blocks in a list, each linked both ways and of the list's class; more than there can be when they aren't. A list that runs in
 * a ring has a block whose link back is not to where it was reached from. */
static uint64_t heap_listed(const upfront_heap *h, uint64_t list) {
    uint64_t at, last = 0, count = 0;
    for (at = *upfront_heap_list(h, list); at != 0; at = upfront_heap_word(h, at + 16)) {
        if (!upfront_heap_is_inside(h, at) || !upfront_heap_sealed(h, at) || upfront_heap_is_live(h, at) ||
            upfront_heap_class(upfront_heap_size(h, at) | 1) != list || upfront_heap_word(h, at + 24) != last)
            return h->end;
        last = at;
        count++;
    }
    return count;
}

/* Whether the lists hold so many free blocks, and the bits say which lists hold any. */
static int heap_lists_ok(const upfront_heap *h, uint64_t count) {
    uint64_t row, c, listed = 0, map = 0;
    for (row = 0; row < h->rows; row++) {
        uint64_t bits = 0;
        for (c = 0; c < 16; c++) {
            uint64_t in = heap_listed(h, row * 16 + c);
            listed += in;
            bits |= (uint64_t)(in != 0) << c;
        }
        if (bits != *upfront_heap_bits(h, row))
            return 0;
        map |= (uint64_t)(bits != 0) << row;
    }
    return listed == count && map == h->map;
}

int upfront_heap_walk(const upfront_heap *h, upfront_heap_range *out, uint64_t room, uint64_t *count) {
    uint64_t at, before = 0, used = 0, live = 0;
    if (h == NULL || count == NULL || (out == NULL && room != 0))
        return UPFRONT_BAD_ARGUMENT;
    *count = 0;
    if (h->rows == 0) /* which nobody made, and whose words agree */
        return UPFRONT_CORRUPT;
    for (at = h->first; at != h->end; at += before) {
        uint64_t is_live;
        if (!heap_header_ok(h, at, before))
            return UPFRONT_CORRUPT;
        before = upfront_heap_size(h, at);
        is_live = upfront_heap_is_live(h, at);
        live += is_live;
        used += is_live * before;
        if (*count < room) {
            upfront_heap_range *b = &out[*count];
            b->offset = at;
            b->size = before;
            b->asked = is_live != 0 ? upfront_heap_asked(h, at) : 0;
            b->align = is_live != 0 ? upfront_heap_align(h, at) : UPFRONT_HEAP_ALIGN;
            b->live = is_live;
        }
        ++*count;
    }
    if (!upfront_heap_sealed(h, at) || upfront_heap_before(h, at) != before || used != h->used || live != h->live || used > h->peak)
        return UPFRONT_CORRUPT;
    if (!heap_lists_ok(h, *count - live))
        return UPFRONT_CORRUPT;
    return *count > room ? UPFRONT_FULL : UPFRONT_OK;
}
