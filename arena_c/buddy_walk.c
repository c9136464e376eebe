#include "buddy.h"

/* Whether the bytes of all that a block is in say what their halves do, and those below the block
 * nothing. */
static int buddy_is_true(const upfront_buddy *b, uint64_t from, uint64_t order) {
    uint64_t j, at, size = UINT64_C(1) << order;
    for (j = order + 1; j <= upfront_buddy_order(b->root); j++) {
        at = upfront_buddy_at(from, j);
        if (!upfront_buddy_is_inside(b, at))
            continue;
        if (*upfront_buddy_byte(b, at) != upfront_buddy_sum(b, at) ||
            *upfront_buddy_byte(b, at) == upfront_buddy_whole(j)) /* halves that are free have melted */
            return 0;
    }
    for (at = from + 1; at < from + size; at++)
        if (at != from + size / 2 && *upfront_buddy_byte(b, at) != 0)
            return 0;
    return 1;
}

int upfront_buddy_look(const upfront_buddy *b, upfront_buddy_range *out, uint64_t room,
                       uint64_t *count) {
    uint64_t from, high, used = 0, live = 0;
    if (b == NULL)
        return UPFRONT_BAD_ARGUMENT;
    *count = 0;
    if (b->root == 0) /* which nobody made */
        return UPFRONT_CORRUPT;
    high = upfront_buddy_high(b);
    for (from = b->low; from < high; ++*count) {
        upfront_buddy_found f = upfront_buddy_find(b, from);
        uint64_t size = b->smallest << f.order;
        if (f.code == UPFRONT_CORRUPT || !buddy_is_true(b, from, f.order))
            return UPFRONT_CORRUPT;
        if (*count < room) {
            out[*count].offset = b->first + (from - b->low) * b->smallest;
            out[*count].size = size;
            out[*count].live = f.code == UPFRONT_OK;
        }
        if (f.code == UPFRONT_OK) {
            live++;
            used += size;
        }
        from += UINT64_C(1) << f.order;
    }
    if (used != b->used || live != b->live || used > b->phase || b->phase > b->peak ||
        b->scattered > b->failed)
        return UPFRONT_CORRUPT;
    return *count > room && out != NULL ? UPFRONT_FULL : UPFRONT_OK;
}

int upfront_buddy_walk(const upfront_buddy *b, upfront_buddy_range *out, uint64_t room,
                       uint64_t *count) {
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
