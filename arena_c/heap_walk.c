#include "heap.h"

/* Reports whether a header is right about the block before it. */
static int heap_before_ok(const upfront_heap *h, uint64_t at, uint64_t before) {
    uint64_t hole = before != 0 && !upfront_heap_is_live(h, at - before) ? UPFRONT_HEAP_HOLE : 0;
    return (upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE) == (before | hole);
}

/* Reports whether a header in the chain is sealed, of a possible size and right about the block
 * before it. */
static int heap_header_ok(const upfront_heap *h, uint64_t at, uint64_t before) {
    if (!upfront_heap_stands(h, at) || !heap_before_ok(h, at, before))
        return 0;
    return upfront_heap_is_live(h, at) || before == 0 || upfront_heap_is_live(h, at - before);
}

/* Counts the free blocks in a list, each linked both ways and of the list's class; if one isn't,
 * returns more than there can be. In a list that runs in a circle some block's link back is
 * wrong. */
static uint64_t heap_listed(const upfront_heap *h, uint64_t list) {
    uint64_t at, last = 0, count = 0;
    for (at = *upfront_heap_list(h, list); at != 0; at = upfront_heap_word(h, at + 16)) {
        if (!upfront_heap_is_inside(h, at) || upfront_heap_off(h, at) != 0 || upfront_heap_is_live(h, at) ||
            upfront_heap_class(upfront_heap_size(h, at)) != list || upfront_heap_word(h, at + 24) != last)
            return h->end;
        last = at;
        count++;
    }
    return count;
}

/* Reports whether the lists hold `count` free blocks and the bits match. */
static int heap_lists_ok(const upfront_heap *h, uint64_t count) {
    uint64_t word, c, listed = 0, map = 0;
    for (word = 0; word < 8; word++) {
        uint64_t bits = 0;
        for (c = 0; c < 64 && word * 64 + c < h->lists; c++) {
            uint64_t in = heap_listed(h, word * 64 + c);
            listed += in;
            bits |= (uint64_t)(in != 0) << c;
        }
        if (bits != h->bits[word])
            return 0;
        map |= (uint64_t)(bits != 0) << word;
    }
    return listed == count && map == h->map;
}

#ifdef UPFRONT_CHECKED
/* Reports whether the queue holds the blocks at rest. */
static int heap_rest_ok(const upfront_heap *h) {
    uint64_t at, last = 0, listed = 0, bytes = 0;
    for (at = h->rest.oldest; at != 0; at = upfront_heap_word(h, at)) {
        uint64_t header = at - UPFRONT_HEAP_HEADER;
        if (!upfront_heap_is_inside(h, header) || upfront_heap_off(h, header) != UPFRONT_HEAP_TURNED ||
            listed++ == h->rest.blocks)
            return 0;
        bytes += upfront_heap_size(h, header);
        last = at;
    }
    return listed == h->rest.blocks && bytes == h->rest.bytes && (listed == 0 || last == h->rest.newest);
}

static uint64_t heap_dead(const upfront_heap *h, uint64_t at, uint64_t size) {
    return upfront_dead_bytes((const char *)h + at, size);
}

uint64_t upfront_heap_dirt(const upfront_heap *h, uint64_t at) {
    uint64_t size = upfront_heap_size(h, at), off = upfront_heap_off(h, at), from, cell;
    if (h->plain || off == UPFRONT_HEAP_SHUT)
        return 0;
    /* live, or parked: after the asked size, or after the link */
    if (off != 0 || upfront_heap_is_live(h, at)) {
        from = at + UPFRONT_HEAP_HEADER + (off == 0 ? upfront_heap_asked(h, at) : sizeof(uint64_t));
        cell = from + heap_dead(h, from, at + size - from);
        return cell == at + size ? 0 : cell;
    }
    return upfront_heap_dirt_in(h, at + UPFRONT_HEAP_LEAST, at + size);
}

uint64_t upfront_heap_dirt_in(const upfront_heap *h, uint64_t from, uint64_t end) {
    for (; from < end; from += 16)
        if (upfront_heap_off(h, from) != UPFRONT_HEAP_BURIED && heap_dead(h, from, 16) != 16)
            return from + heap_dead(h, from, 16);
    return 0;
}
#else
#define heap_rest_ok(h) 1
#endif

/* Reports whether the front lists hold `count` parked blocks and the bits match. */
static int heap_fronts_ok(const upfront_heap *h, uint64_t count) {
    uint64_t size, at, listed = 0, sizes = 0;
    for (size = UPFRONT_HEAP_LEAST; h->fronts != 0 && size <= UPFRONT_HEAP_FRONT + UPFRONT_HEAP_HEADER; size += 16)
        for (at = *upfront_heap_front(h, size); at != 0; at = upfront_heap_word(h, at + 16)) {
            if (!upfront_heap_is_inside(h, at) || upfront_heap_off(h, at) != UPFRONT_HEAP_TURNED ||
                upfront_heap_size(h, at) != size || listed++ == count)
                return 0;
            sizes |= UINT64_C(1) << (size / 16 - 2);
        }
    return listed == count && h->parked == count && h->sizes == sizes;
}

int upfront_heap_look(const upfront_heap *h, upfront_block *out, uint64_t room, uint64_t *count) {
    uint64_t at, before = 0, used = 0, live = 0, parked = 0, lost = 0, lost_bytes = 0, named = 0;
    if (h == NULL)
        return UPFRONT_BAD_ARGUMENT;
    *count = 0;
    /* a header of zeros agrees with itself, and first > end leads nowhere */
    if (h->lists == 0 || h->first > h->end)
        return UPFRONT_CORRUPT;
    for (at = h->first; at != h->end; at += before) {
        uint64_t off, is_live, is_parked, is_lost;
        if (!heap_header_ok(h, at, before))
            return UPFRONT_CORRUPT;
        if (upfront_heap_dirt(h, at) != 0)
            return UPFRONT_CORRUPT;
        before = upfront_heap_size(h, at);
        off = upfront_heap_off(h, at);
        is_parked = off == UPFRONT_HEAP_TURNED;
        is_lost = off == UPFRONT_HEAP_SHUT;
        is_live = off == 0 && upfront_heap_is_live(h, at);
        live += is_live;
        parked += is_parked;
        lost += is_lost;
        lost_bytes += is_lost * before;
        used += is_live * before;
        if (named < room) {
            upfront_block *b = &out[named];
            b->offset = at;
            b->size = before;
            b->asked = is_live != 0 ? upfront_heap_asked(h, at) : 0;
            b->align = is_live != 0 ? upfront_heap_align(h, at) : UPFRONT_HEAP_ALIGN;
            b->live = is_parked * UPFRONT_HEAP_PARKED + is_lost * UPFRONT_HEAP_LOST + is_live;
        }
        *count = ++named;
    }
    if (upfront_heap_off(h, at) != 0 || !heap_before_ok(h, at, before) || used != h->used || live != h->live ||
        used > h->phase)
        return UPFRONT_CORRUPT;
    if (lost != h->lost || lost_bytes != h->lost_bytes)
        return UPFRONT_CORRUPT;
    if (!heap_lists_ok(h, named - live - parked - lost) || !heap_fronts_ok(h, parked - h->rest.blocks) ||
        !heap_rest_ok(h))
        return UPFRONT_CORRUPT;
    return named > room && out != NULL ? UPFRONT_FULL : UPFRONT_OK;
}

int upfront_heap_walk(const upfront_heap *h, upfront_block *out, uint64_t room, uint64_t *count) {
    uint64_t none;
    int checks = out == NULL && room == 0, code;
    if (h == NULL || (count == NULL && !checks) || (out == NULL && room != 0))
        return UPFRONT_BAD_ARGUMENT;
    if (count == NULL)
        count = &none;
    *count = 0;
    if (!upfront_enter(&h->busy, &h->raced))
        return UPFRONT_RACED;
    code = upfront_heap_look(h, out, room, count);
    upfront_leave(&h->busy);
    return code;
}

/* Copies units of 16 bytes, which AddressSanitizer may have poisoned. */
static inline void heap_copy(char *to, const upfront_heap *h, uint64_t at, uint64_t size) {
#ifndef UPFRONT_ASAN
    if (size > 256) {
        memcpy(to, (const char *)h + at, (size_t)size);
        return;
    }
#endif
    for (; size != 0; size -= 16, at += 16, to += 16) {
        uint64_t words[2];
        words[0] = upfront_heap_word(h, at);
        words[1] = upfront_heap_word(h, at + 8);
        memcpy(to, words, sizeof words);
    }
}

static void heap_put_run(char *out, uint64_t run, uint64_t from, uint64_t end) {
    uint64_t words[2];
    words[0] = from;
    words[1] = end - run - UPFRONT_HEAP_RUN;
    memcpy(out + run, words, sizeof words);
}

/* Of a live block, or one out of service, an image keeps all bytes; of a free or parked one the
 * header and the links. Bytes at the end of these that have no meaning are zeros in it: those after
 * the asked size, and the second link of a parked block, whose list has one link. */
int upfront_heap_pack(const upfront_heap *h, void *out, uint64_t room, uint64_t *size) {
    char *to = (char *)out;
    uint64_t at, block, before = 0, run = 0, from = 0, end = UPFRONT_HEAP_RUN;
    if (h == NULL || size == NULL || (out == NULL && room != 0) || UPFRONT_LOOKS(h))
        return UPFRONT_BAD_ARGUMENT;
    *size = 0;
    if (h->lists == 0 || h->first > h->end)
        return UPFRONT_CORRUPT;
    if (end + h->first <= room)
        memcpy(to + end, h, (size_t)h->first);
    end += h->first;
    for (at = h->first; at != h->end; at += block) {
        uint64_t word = upfront_heap_word(h, at + 8), off = upfront_heap_off(h, at), kept, slack = 0;
        block = kept = word & UPFRONT_HEAP_SIZE;
        if ((upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE) != before || block > h->end - at ||
            block < UPFRONT_HEAP_HEADER)
            return UPFRONT_CORRUPT;
        before = block;
        if (off == 0 && (word & UPFRONT_HEAP_LIVE) != 0) {
            slack = (word >> UPFRONT_HEAP_SLACK) & 63;
        } else if (off == 0) {
            before |= UPFRONT_HEAP_HOLE;
            kept = UPFRONT_HEAP_LEAST;
        } else if (off == UPFRONT_HEAP_TURNED) {
            kept = UPFRONT_HEAP_LEAST;
            slack = sizeof(uint64_t);
        } else if (off != UPFRONT_HEAP_SHUT) {
            return UPFRONT_CORRUPT;
        }
        if (kept > block || slack + UPFRONT_HEAP_HEADER > kept)
            return UPFRONT_CORRUPT;
        if (end + kept <= room) {
            heap_copy(to + end, h, at, kept);
            if (slack != 0)
                memset(to + end + kept - slack, 0, (size_t)slack);
        }
        end += kept;
        if (kept == block)
            continue;
        if (end + UPFRONT_HEAP_RUN <= room)
            heap_put_run(to, run, from, end);
        from = at + block;
        run = end;
        end += UPFRONT_HEAP_RUN;
    }
    if (upfront_heap_off(h, at) != 0 || (upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE) != before)
        return UPFRONT_CORRUPT;
    *size = end + UPFRONT_HEAP_HEADER;
    if (*size > room)
        return UPFRONT_FULL;
    heap_copy(to + end, h, at, UPFRONT_HEAP_HEADER);
    heap_put_run(to, run, from, *size);
    return UPFRONT_OK;
}

int upfront_heap_erase(upfront_heap *h, const void *image) {
    upfront_heap then;
    uint64_t at, size;
    if (h == NULL || h->lists == 0 || image == NULL)
        return UPFRONT_BAD_ARGUMENT;
    memcpy(&then, (const char *)image + UPFRONT_HEAP_RUN, sizeof then);
    if (((then.first ^ h->first) | (then.end ^ h->end) | (then.epoch ^ h->epoch)) != 0)
        return UPFRONT_CORRUPT;
    for (at = h->first; at != h->end; at += size) {
        if (!upfront_heap_stands(h, at))
            return UPFRONT_CORRUPT;
        size = upfront_heap_size(h, at);
        upfront_heap_set(h, at, 0);
        upfront_heap_set(h, at + 8, 0);
    }
    return UPFRONT_OK;
}
