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
#ifdef UPFRONT_ASAN
    for (; size != 0; size -= 16, at += 16, to += 16) {
        uint64_t words[2];
        words[0] = upfront_heap_word(h, at);
        words[1] = upfront_heap_word(h, at + 8);
        memcpy(to, words, sizeof words);
    }
#else
    memcpy(to, (const char *)h + at, (size_t)size);
#endif
}

/* An image in the making has `end` bytes. Its last run begins at `run`, and at `from` in the heap.
 */
typedef struct heap_packing {
    char *out;
    uint64_t room, end, run, from;
} heap_packing;

/* Appends `kept` bytes of a block, with the last `slack` of them zeros, if there is room. Writes
 * the words of the run. A small block's copy has a fixed size, so that no branch depends on the
 * block's size. The bytes after it are written again with the next block. */
static inline void heap_put(heap_packing *i, const upfront_heap *h, uint64_t at, uint64_t kept, uint64_t slack) {
    static const uint64_t keeps[4] = {UINT64_MAX, UINT64_MAX, 0, 0};
    const uint64_t small = 128;
    char *to = i->out + i->end + kept;
    uint64_t words[2];
    i->end += kept;
    if (kept <= small && i->end + small <= i->room && at + small <= h->end)
        heap_copy(to - kept, h, at, small);
    else if (i->end <= i->room)
        heap_copy(to - kept, h, at, kept);
    else
        return;
    if (slack <= sizeof words) {
        memcpy(words, (const char *)keeps + slack, sizeof words);
        words[0] &= upfront_heap_word(h, at + kept - 16);
        words[1] &= upfront_heap_word(h, at + kept - 8);
        memcpy(to - sizeof words, words, sizeof words);
    } else {
        memset(to - slack, 0, (size_t)slack);
    }
    words[0] = i->from;
    words[1] = i->end - i->run - UPFRONT_HEAP_RUN;
    memcpy(i->out + i->run, words, sizeof words);
}

/* Of a live block, or one out of service, an image keeps all bytes; of a free or parked one the
 * header and the links. Bytes at the end of these that have no meaning are zeros in it: those after
 * the asked size, and the second link of a parked block, whose list has one link.
 *
 * No branch depends on which blocks are free: blocks are freed in any order, so the processor can't
 * guess it. Masks take the place of branches, and each block writes its run's words. */
int upfront_heap_pack(const upfront_heap *h, void *out, uint64_t room, uint64_t *size) {
    heap_packing i;
    uint64_t at, block, before = 0;
    if (h == NULL || size == NULL || (out == NULL && room != 0) || UPFRONT_LOOKS(h))
        return UPFRONT_BAD_ARGUMENT;
    *size = 0;
    if (h->lists == 0 || h->first > h->end)
        return UPFRONT_CORRUPT;
    i.out = (char *)out;
    i.room = room;
    i.run = i.from = 0;
    i.end = UPFRONT_HEAP_RUN;
    heap_put(&i, h, 0, h->first, 0);
    for (at = h->first; at != h->end; at += block) {
        uint64_t word = upfront_heap_word(h, at + 8), body = word & ~UPFRONT_HEAP_SEAL_SIZE, kept, slack, mask;
        uint64_t digest = upfront_heap_digest(h, at, body);
        block = word & UPFRONT_HEAP_SIZE;
        mask = (word & UPFRONT_HEAP_LIVE) - 1; /* all bits of a free block */
        kept = (block & ~mask) | (UPFRONT_HEAP_LEAST & mask);
        slack = (word >> UPFRONT_HEAP_SLACK) & 63 & ~mask;
        if (upfront_heap_word(h, at) != (before | digest >> 38 << 38) ||
            word != (body | digest >> 23 << UPFRONT_HEAP_SEAL)) {
            uint64_t off = upfront_heap_off(h, at);
            if ((upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE) != before)
                return UPFRONT_CORRUPT;
            if (off == UPFRONT_HEAP_TURNED)
                kept = UPFRONT_HEAP_LEAST, slack = sizeof(uint64_t);
            else if (off == UPFRONT_HEAP_SHUT)
                slack = 0;
            else
                return UPFRONT_CORRUPT;
        }
        if (block > h->end - at || kept > block || slack + UPFRONT_HEAP_HEADER > kept)
            return UPFRONT_CORRUPT;
        before = block | (mask & UPFRONT_HEAP_HOLE);
        heap_put(&i, h, at, kept, slack);
        mask = (uint64_t)(kept == block) - 1; /* all bits if a run ends */
        i.from = (i.from & ~mask) | ((at + block) & mask);
        i.run = (i.run & ~mask) | (i.end & mask);
        i.end += UPFRONT_HEAP_RUN & mask;
    }
    if (upfront_heap_off(h, at) != 0 || (upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE) != before)
        return UPFRONT_CORRUPT;
    heap_put(&i, h, at, UPFRONT_HEAP_HEADER, 0);
    *size = i.end;
    return i.end > room ? UPFRONT_FULL : UPFRONT_OK;
}

/* Erases the headers from the one at `at` on, below `to`. Returns the offset of the next one, or 0
 * if one was overwritten. */
static uint64_t heap_erase(upfront_heap *h, uint64_t at, uint64_t to) {
    uint64_t size;
    for (; at < to && at != h->end; at += size) {
        uint64_t body = upfront_heap_word(h, at + 8) & ~UPFRONT_HEAP_SEAL_SIZE;
        size = body & UPFRONT_HEAP_SIZE;
        if ((!upfront_heap_has_body(h, at, body, 0) && !upfront_heap_stands(h, at)) || size < UPFRONT_HEAP_HEADER ||
            size > h->end - at)
            return 0;
        upfront_heap_set(h, at, 0);
        upfront_heap_set(h, at + 8, 0);
    }
    return at;
}

/* The headers below a run's end are erased before the run is copied, so the heap passes through the
 * caches once. After an overwritten header, the bytes after the last run are erased instead. */
int upfront_heap_unpack(upfront_heap *h, uint64_t bytes, const void *image, uint64_t size) {
    const char *run = (const char *)image;
    upfront_heap then;
    uint64_t words[2], at, done = 0;
    if (h == NULL || image == NULL || bytes < UPFRONT_HEAP_BLOCK || size < UPFRONT_HEAP_RUN + sizeof then)
        return UPFRONT_BAD_ARGUMENT;
    memcpy(&then, run + UPFRONT_HEAP_RUN, sizeof then);
    UPFRONT_UNPOISON(h, bytes);
    at = then.first;
    if (h->lists == 0 || h->first != then.first || h->end != then.end || h->epoch != then.epoch ||
        then.end > bytes - UPFRONT_HEAP_HEADER)
        at = 0;
    for (; size > UPFRONT_HEAP_RUN; run += UPFRONT_HEAP_RUN + words[1], size -= UPFRONT_HEAP_RUN + words[1]) {
        memcpy(words, run, sizeof words);
        if (words[0] < done || words[0] > bytes || words[1] > bytes - words[0] || words[1] > size - UPFRONT_HEAP_RUN)
            return UPFRONT_CORRUPT;
        if (at != 0)
            at = heap_erase(h, at, words[0] + words[1]);
        if (at == 0) {
            memset((char *)h + done, 0, (size_t)(bytes - done));
            at = bytes;
        }
        memcpy((char *)h + words[0], run + UPFRONT_HEAP_RUN, (size_t)words[1]);
        done = words[0] + words[1];
    }
    return size == 0 ? UPFRONT_OK : UPFRONT_CORRUPT;
}
