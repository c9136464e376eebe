#include "buddy.h"

/* Reports whether the bytes of all blocks that contain this one match their halves, and those
 * inside it are 0. */
static int buddy_is_true(const upfront_buddy *b, uint64_t from, uint64_t order) {
    uint64_t j, at, size = UINT64_C(1) << order;
    for (j = order + 1; j <= upfront_buddy_order(b->root); j++) {
        at = upfront_buddy_at(from, j);
        if (!upfront_buddy_is_inside(b, at))
            continue;
        if (*upfront_buddy_byte(b, at) != upfront_buddy_sum(b, at) ||
            *upfront_buddy_byte(b, at) == upfront_buddy_whole(j)) /* free halves have merged */
            return 0;
    }
    for (at = from + 1; at < from + size; at++)
        if (at != from + size / 2 && *upfront_buddy_byte(b, at) != 0)
            return 0;
    return 1;
}

#ifdef UPFRONT_CHECKED
static char *buddy_at(const upfront_buddy *b, uint64_t from) {
    return (char *)(uintptr_t)b + b->first + (from - b->low) * b->smallest;
}

uint64_t upfront_buddy_natural(const upfront_buddy *b, uint64_t from, uint64_t order) {
    return order - (order > 0 && *upfront_buddy_byte(b, upfront_buddy_at(from, order)) == UPFRONT_BUDDY_PADDED);
}

int upfront_buddy_rests(const upfront_buddy *b, uint64_t from) {
    uint64_t i, at = b->rest.oldest, offset = (uint64_t)(buddy_at(b, from) - (const char *)b);
    for (i = 0; i < b->rest.blocks && at >= b->first && at < b->end && at % 8 == 0; i++) {
        if (at == offset)
            return 1;
        at = *(const uint64_t *)((uintptr_t)b + (uintptr_t)at);
    }
    return 0;
}

uint64_t upfront_buddy_dirt(const upfront_buddy *b, upfront_buddy_found f) {
    const char *bytes = buddy_at(b, f.from);
    uint64_t size = b->smallest << f.order, from = 0, dead;
    upfront_note note;
    if (b->plain)
        return 0;
    if (f.code == UPFRONT_OK) {
        if (upfront_buddy_rests(b, f.from))
            from = sizeof(uint64_t);
        else
            from = upfront_note_of(bytes, &note) && note.live && note.asked < size ? note.asked : size;
    }
    dead = upfront_dead_bytes(bytes + from, size - from);
    return dead == size - from ? 0 : (uint64_t)(bytes - (const char *)b) + from + dead;
}
#endif

int upfront_buddy_look(const upfront_buddy *b, upfront_block *out, uint64_t room, uint64_t *count) {
    uint64_t from, high, used = 0, live = 0, redzones = 0;
    if (b == NULL)
        return UPFRONT_BAD_ARGUMENT;
    *count = 0;
    if (b->root == 0) /* a header of zeros */
        return UPFRONT_CORRUPT;
    high = upfront_buddy_high(b);
    for (from = b->low; from < high; ++*count) {
        upfront_buddy_found f = upfront_buddy_find(b, from);
        uint64_t size = b->smallest << f.order;
        if (f.code == UPFRONT_CORRUPT || !buddy_is_true(b, from, f.order) || upfront_buddy_dirt(b, f) != 0)
            return UPFRONT_CORRUPT;
        if (*count < room) {
            upfront_block block = {0, 0, 0, 0, 0};
            block.offset = b->first + (from - b->low) * b->smallest;
            block.size = size;
            block.live = f.code == UPFRONT_OK && !upfront_buddy_rests(b, from);
            out[*count] = block;
        }
        if (f.code == UPFRONT_OK) {
            live++;
            used += size;
            redzones += size - (b->smallest << upfront_buddy_natural(b, from, f.order));
        }
        from += UINT64_C(1) << f.order;
    }
#ifdef UPFRONT_CHECKED
    /* an overwritten queue counts as padded */
    if (redzones > b->padded || (redzones < b->padded && b->damaged == 0))
        return UPFRONT_CORRUPT;
#else
    (void)redzones;
#endif
    if (used != b->used + b->padded + b->rest.bytes || live != b->live + b->rest.blocks || b->used > b->phase ||
        b->phase > b->peak || b->scattered > b->failed)
        return UPFRONT_CORRUPT;
    return *count > room && out != NULL ? UPFRONT_FULL : UPFRONT_OK;
}

int upfront_buddy_walk(const upfront_buddy *b, upfront_block *out, uint64_t room, uint64_t *count) {
    uint64_t named;
    int checks = out == NULL && room == 0, code;
    if (count == NULL && checks)
        count = &named;
    if (b == NULL || count == NULL || (out == NULL && !checks))
        return UPFRONT_BAD_ARGUMENT;
    *count = 0;
    if (!upfront_enter(&b->busy, &b->raced))
        return UPFRONT_RACED;
    code = upfront_buddy_look(b, out, room, count);
    upfront_leave(&b->busy);
    return code;
}
