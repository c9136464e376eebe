#include "heap.h"

#define NONE UINT64_MAX

/* Returns the first class from `from` on whose list isn't empty. */
static inline uint64_t heap_next_class(const upfront_heap *h, uint64_t from) {
    uint64_t word = from / 64, bits, words;
    if (from >= h->lists)
        return NONE;
    bits = h->bits[word] >> (from % 64);
    if (bits != 0)
        return from + (uint64_t)__builtin_ctzll(bits);
    words = h->map >> word >> 1;
    if (words == 0)
        return NONE;
    word += 1 + (uint64_t)__builtin_ctzll(words);
    return word * 64 + (uint64_t)__builtin_ctzll(h->bits[word]);
}

static inline void heap_insert(upfront_heap *h, uint64_t at, uint64_t size) {
    uint64_t c = upfront_heap_class(size), *list = upfront_heap_list(h, c);
    upfront_heap_set(h, at + 16, *list);
    upfront_heap_set(h, at + 24, 0);
    upfront_heap_set(h, *list + 24, at);
    *list = at;
    h->bits[c / 64] |= UINT64_C(1) << (c % 64);
    h->map |= UINT64_C(1) << (c / 64);
}

/* Returns the offset of the word that leads to a free block: the link before it, or its list. */
static inline uint64_t heap_link(const upfront_heap *h, uint64_t at, uint64_t last) {
    return last != 0 ? last + 16 : sizeof *h + 8 * upfront_heap_class(upfront_heap_size(h, at));
}

/* The ends of a list lead to offset 0, whose links may be written. */
static inline void heap_remove(upfront_heap *h, uint64_t at) {
    uint64_t next = upfront_heap_word(h, at + 16), last = upfront_heap_word(h, at + 24), c;
    upfront_heap_set(h, next + 24, last);
    upfront_heap_set(h, heap_link(h, at, last), next);
    if ((next | last) != 0)
        return;
    c = upfront_heap_class(upfront_heap_size(h, at));
    h->bits[c / 64] &= ~(UINT64_C(1) << (c % 64));
    if (h->bits[c / 64] == 0)
        h->map &= ~(UINT64_C(1) << (c / 64));
}

/* Sets the size of the block before `at` and whether it is free. */
static inline void heap_set_before(upfront_heap *h, uint64_t at, uint64_t before) {
    upfront_heap_set(h, at, (upfront_heap_word(h, at) & UPFRONT_HEAP_SEAL_BEFORE) | before);
}

/* Inverts the part of a seal that marks a parked block, or restores it. */
static void heap_turn(upfront_heap *h, uint64_t at) {
    upfront_heap_set(h, at + 8, upfront_heap_word(h, at + 8) ^ UPFRONT_HEAP_SEAL_SIZE);
}

/* Marks a header that merged: its stale bytes must not pass for a header, even if they are never
 * overwritten. */
static void heap_bury(upfront_heap *h, uint64_t at) {
    upfront_heap_set(h, at, upfront_heap_word(h, at) ^ UPFRONT_HEAP_SEAL_BEFORE);
}

/* Reports whether a header has the seal of any state. The checked build checks the whole header
 * after a block. */
static inline int heap_sealed(const upfront_heap *h, uint64_t at) {
    uint64_t off = upfront_heap_off(h, at);
    return off == 0 || off == UPFRONT_HEAP_TURNED || off == UPFRONT_HEAP_SHUT;
}

/* Reports whether the header after a block agrees on its size. An overflow hits that word first. */
static int heap_agrees(const upfront_heap *h, uint64_t at) {
    uint64_t size = upfront_heap_size(h, at);
    if (UPFRONT_LOOKS(h) && size <= h->end - at && !heap_sealed(h, at + size))
        return 0;
    return size <= h->end - at && upfront_heap_before(h, at + size) == size;
}

/* Reports whether a free block is whole: its header, the header after it, and its links, which
 * others confirm. */
static inline int heap_is_whole(const upfront_heap *h, uint64_t at) {
    uint64_t next = upfront_heap_word(h, at + 16), last = upfront_heap_word(h, at + 24);
    if (upfront_heap_off(h, at) != 0 || !heap_agrees(h, at) || !(upfront_heap_is_inside(h, next) | (next == 0)) ||
        !(upfront_heap_is_inside(h, last) | (last == 0)))
        return 0;
    return ((next == 0) | (upfront_heap_word(h, next + 24) == at)) &
           (int)(upfront_heap_word(h, heap_link(h, at, last)) == at);
}

/* pre: both neighbours are live. */
static inline void heap_make_free(upfront_heap *h, uint64_t at, uint64_t size, uint64_t before) {
    upfront_heap_seal(h, at, before, size);
    heap_set_before(h, at + size, size | UPFRONT_HEAP_HOLE);
    heap_insert(h, at, size);
}

/* Fills the links of a block that merged: in a checked build all free bytes have the dead fill,
 * except headers and buried headers. */
static inline void heap_fill_links(upfront_heap *h, uint64_t at) {
    if (UPFRONT_LOOKS(h))
        memset((char *)h + at + UPFRONT_HEAP_HEADER, UPFRONT_DEAD, 16);
}

/* Takes the free block after a block of `size` bytes, if any, out of its list. Returns the size of
 * both. */
static inline uint64_t heap_absorb(upfront_heap *h, uint64_t at, uint64_t size) {
    uint64_t next = at + size;
    if (upfront_heap_is_live(h, next))
        return size;
    heap_remove(h, next);
    size += upfront_heap_size(h, next);
    heap_bury(h, next);
    heap_fill_links(h, next);
    return size;
}

/* Returns the size of the free block before, or 0. */
static inline uint64_t heap_hole(const upfront_heap *h, uint64_t at) {
    uint64_t word = upfront_heap_word(h, at);
    return (word & UPFRONT_HEAP_HOLE) != 0 ? word & UPFRONT_HEAP_SIZE : 0;
}

/* Reports whether a block may merge with its free neighbours: they are whole. pre: heap_agrees. */
static inline int heap_may_melt(const upfront_heap *h, uint64_t at) {
    uint64_t behind = at + upfront_heap_size(h, at), hole = heap_hole(h, at);
    if (!upfront_heap_is_live(h, behind) && !heap_is_whole(h, behind))
        return 0;
    return hole == 0 || (hole <= at - h->first && upfront_heap_size(h, at - hole) == hole &&
                         !upfront_heap_is_live(h, at - hole) && heap_is_whole(h, at - hole));
}

/* Frees a block together with its free neighbours. pre: heap_may_melt. */
static inline void heap_melt(upfront_heap *h, uint64_t at) {
    uint64_t size = heap_absorb(h, at, upfront_heap_size(h, at)), hole = heap_hole(h, at);
    if (hole != 0) {
        heap_bury(h, at);
        heap_fill_links(h, at);
        at -= hole;
        size += hole;
        heap_remove(h, at);
    }
    heap_make_free(h, at, size, upfront_heap_before(h, at));
}

/* Returns the code of an address at which no live block begins. */
static int heap_why(const upfront_heap *h, uint64_t at) {
    uint64_t off;
    if (at - h->first >= h->end - h->first)
        return UPFRONT_FOREIGN;
    if (at % 16 != 0)
        return UPFRONT_MISALIGNED;
    off = upfront_heap_off(h, at);
    if (off == UPFRONT_HEAP_TURNED || off == UPFRONT_HEAP_BURIED || off == 0)
        return UPFRONT_DOUBLE;
    return off == UPFRONT_HEAP_SHUT ? UPFRONT_CORRUPT : UPFRONT_MISALIGNED;
}

/* Reports whether a live block's header is at `at`. */
static inline int heap_has(const upfront_heap *h, uint64_t at) {
    return upfront_heap_is_inside(h, at) && upfront_heap_off(h, at) == 0 && upfront_heap_is_live(h, at);
}

static inline uint64_t heap_need(uint64_t asked) {
    return asked <= 16 ? UPFRONT_HEAP_LEAST : ((asked + 15) & ~UINT64_C(15)) + UPFRONT_HEAP_HEADER;
}

/* Returns the word `size` of a live block, without its seal. */
static inline uint64_t heap_body(uint64_t size, uint64_t asked, uint64_t align) {
    return size | UPFRONT_HEAP_LIVE | ((size - UPFRONT_HEAP_HEADER - asked) << UPFRONT_HEAP_SLACK) |
           ((uint64_t)__builtin_ctzll(align / UPFRONT_HEAP_ALIGN) << UPFRONT_HEAP_LOG);
}

static inline void heap_use(upfront_heap *h, uint64_t size) {
    h->used += size;
    if (h->phase < h->used)
        h->phase = h->used;
}

/* Returns the bytes from a free block's header to the header of an aligned block in it: 0, or
 * enough for a free block. */
static uint64_t heap_gap(const upfront_heap *h, uint64_t at, uint64_t align) {
    uint64_t gap = (0 - ((uint64_t)(uintptr_t)h + at + UPFRONT_HEAP_HEADER)) & (align - 1);
    return gap == 16 ? gap + align : gap;
}

/* Makes a live block at the front of `room` bytes, and a free block of the rest if that is large
 * enough. */
static void heap_cut(upfront_heap *h, uint64_t at, uint64_t room, uint64_t before, uint64_t asked, uint64_t align) {
    uint64_t size = heap_need(asked);
    if (room - size >= UPFRONT_HEAP_LEAST)
        heap_make_free(h, at + size, room - size, size);
    else
        heap_set_before(h, at + room, size = room);
    upfront_heap_seal(h, at, before, heap_body(size, asked, align));
    heap_use(h, size);
}

upfront_heap *upfront_heap_init(void *block, uint64_t size, uint64_t parked) {
    upfront_heap *h = (upfront_heap *)block;
    uint64_t fronts = parked != 0 ? UPFRONT_HEAP_FRONT_BYTES : 0, least = UPFRONT_HEAP_BLOCK + fronts, lists, front;
    if (!upfront_is_block(block, size, least))
        return NULL;
    /* enough for the largest free block */
    lists = upfront_round_up(upfront_heap_class(size - least + UPFRONT_HEAP_LEAST) + 1, 16);
    front = sizeof *h + lists * sizeof(uint64_t);
    UPFRONT_UNPOISON(h, front + fronts);
    memset(h, 0, sizeof *h);
    h->lists = lists;
    h->first = front + fronts;
    h->end = (size & ~UINT64_C(15)) - UPFRONT_HEAP_HEADER;
    h->most = h->end - h->first;
    h->parks = parked;
    h->fronts = fronts != 0 ? front : 0;
    upfront_heap_reset(h);
    return h;
}

/* Returns a block that fits, of the first UPFRONT_HEAP_SCAN blocks in the classes [from, below); 0:
 * none. */
static uint64_t heap_look(upfront_heap *h, uint64_t from, uint64_t below, uint64_t need, uint64_t align) {
    uint64_t looks = UPFRONT_HEAP_SCAN, c, at;
    for (c = heap_next_class(h, from); c < below; c = heap_next_class(h, c + 1))
        for (at = *upfront_heap_list(h, c); at != 0 && upfront_heap_is_inside(h, at);
             at = upfront_heap_word(h, at + 16)) {
            if (looks-- == 0) {
                h->bounded += h->sizes == 0; /* parked blocks may still serve the request */
                return 0;
            }
            if (upfront_heap_size(h, at) >= heap_gap(h, at, align) + need)
                return at;
        }
    return 0;
}

/* Returns the lowest class whose blocks all have at least `size` bytes. */
static inline uint64_t heap_sure(uint64_t size) {
    return upfront_heap_class(size + (UINT64_C(1) << (59 - __builtin_clzll(size | 256))) - 1);
}

/* Returns a free block that is large enough, or 0. */
static inline uint64_t heap_search(upfront_heap *h, uint64_t need, uint64_t align) {
    uint64_t sure = heap_sure(align > UPFRONT_HEAP_ALIGN ? need + align + 16 : need), c = heap_next_class(h, sure);
    return c != NONE ? *upfront_heap_list(h, c) : heap_look(h, upfront_heap_class(need), sure, need, align);
}

/* Returns the first parked block of a size; 0 if there is none, or its header or the link to it was
 * overwritten. */
static inline uint64_t heap_parked(const upfront_heap *h, uint64_t size) {
    uint64_t at = *upfront_heap_front(h, size);
    return upfront_heap_is_inside(h, at) && upfront_heap_off(h, at) == UPFRONT_HEAP_TURNED &&
                   upfront_heap_size(h, at) == size
               ? at
               : 0;
}

static inline uint64_t heap_bit(uint64_t size) { return UINT64_C(1) << (size / 16 - 2); }

/* Takes the first block, at `at`, out of the front list of a size. */
static inline void heap_pop(upfront_heap *h, uint64_t size, uint64_t at) {
    uint64_t next = upfront_heap_word(h, at + 16);
    *upfront_heap_front(h, size) = next;
    if (next == 0)
        h->sizes ^= heap_bit(size);
    h->parked--;
}

static inline void heap_park(upfront_heap *h, uint64_t at, uint64_t size) {
    uint64_t *list = upfront_heap_front(h, size);
    upfront_heap_set(h, at + 16, *list);
    *list = at;
    h->sizes |= heap_bit(size);
    h->parked++;
    heap_turn(h, at);
}

/* Follows the headers back from the end, and returns the lowest one above `low` that they lead
 * to. */
static uint64_t heap_back(const upfront_heap *h, uint64_t low) {
    uint64_t at = h->end, before;
    for (;; at -= before) {
        before = upfront_heap_before(h, at);
        if (before >= at - low || !upfront_heap_stands(h, at - before) || upfront_heap_size(h, at - before) != before)
            return at;
    }
}

/* pre: upfront_heap_stands. */
static int heap_lives(const upfront_heap *h, uint64_t at) {
    return upfront_heap_off(h, at) == 0 && upfront_heap_is_live(h, at);
}

/* Returns the end of the overwritten block at `at`. From *sure on the headers are good again.
 * Between the two, where several headers were overwritten, only live blocks are believed: bytes of
 * an earlier heap may look like a free block. */
static uint64_t heap_resume(const upfront_heap *h, uint64_t at, uint64_t *sure) {
    uint64_t to;
    *sure = heap_back(h, at);
    if (upfront_heap_before(h, *sure) == *sure - at)
        return *sure;
    for (to = at + 16; to < *sure; to += 16)
        if (upfront_heap_stands(h, to) && heap_lives(h, to) && upfront_heap_size(h, to) <= *sure - to)
            break;
    return to;
}

/* Reports whether a link is possible. If the links of two blocks contradict each other, both stay
 * in service, because either may be right. */
static int heap_may_lead(const upfront_heap *h, uint64_t to) { return to == 0 || upfront_heap_is_inside(h, to); }

/* Reports whether the links of a free or parked block are possible. */
static int heap_may_link(const upfront_heap *h, uint64_t at) {
    return heap_may_lead(h, upfront_heap_word(h, at + 16)) &&
           (upfront_heap_is_live(h, at) || heap_may_lead(h, upfront_heap_word(h, at + 24)));
}

static void heap_met(upfront_heap *h, uint64_t at) {
    h->damaged++;
    h->where = at + UPFRONT_HEAP_HEADER;
}

/* Reports whether the block with the overwritten header was free, by the header after it. */
static int heap_was_free(const upfront_heap *h, uint64_t at, uint64_t next) { return heap_hole(h, next) == next - at; }

/* Puts an overwritten block out of service, so that its neighbours don't merge with it. Of a large
 * free block only the front goes out of service: its header and links are there, and the rest had
 * no contents. */
static void heap_shut(upfront_heap *h, uint64_t at, uint64_t size, int was_free) {
    if (was_free && size >= UPFRONT_HEAP_CUT + UPFRONT_HEAP_LEAST) {
        upfront_heap_seal(h, at + UPFRONT_HEAP_CUT, UPFRONT_HEAP_CUT, size - UPFRONT_HEAP_CUT);
        heap_set_before(h, at + size, (size - UPFRONT_HEAP_CUT) | UPFRONT_HEAP_HOLE);
        size = UPFRONT_HEAP_CUT;
    } else {
        heap_set_before(h, at + size, size);
    }
    upfront_heap_seal(h, at, 0, size | UPFRONT_HEAP_LIVE);
    heap_turn(h, at);
    heap_bury(h, at);
    heap_met(h, at);
}

static inline int heap_has_front(const upfront_heap *h, uint64_t size) {
    return h->fronts != 0 && size <= UPFRONT_HEAP_FRONT + UPFRONT_HEAP_HEADER;
}

/* Reports whether a block that isn't live may stay as it is: its links are possible, and it may be
 * parked or at rest. */
static int heap_may_stay(const upfront_heap *h, uint64_t at) {
    if (upfront_heap_is_live(h, at) && !UPFRONT_LOOKS(h) && !heap_has_front(h, upfront_heap_size(h, at)))
        return 0;
    return heap_may_link(h, at);
}

/* Puts each block whose header or links were overwritten out of service. */
static void heap_shut_all(upfront_heap *h) {
    uint64_t at, next, sure = 0;
    for (at = h->first; at != h->end; at = next) {
        int stands = upfront_heap_stands(h, at);
        next = stands ? at + upfront_heap_size(h, at) : heap_resume(h, at, &sure);
        if (stands &&
            (heap_lives(h, at) || upfront_heap_off(h, at) == UPFRONT_HEAP_SHUT || (at >= sure && heap_may_stay(h, at))))
            continue;
        heap_shut(h, at, next - at, stands ? at >= sure && !upfront_heap_is_live(h, at) : heap_was_free(h, at, next));
    }
}

/* Puts a block to rest. It has the seal of a parked one, but is in no front list. */
static inline void heap_rest(upfront_heap *h, uint64_t at, uint64_t size) {
#ifdef UPFRONT_CHECKED
    uint64_t newest = h->rest.newest;
    if (!upfront_rest_add(&h->rest, h, at + UPFRONT_HEAP_HEADER, size)) {
        h->damaged++;
        h->where = newest;
    }
#else
    (void)h, (void)at, (void)size;
#endif
}

/* Corrects the size and state of the block before, in the header at `at`. */
static void heap_tell_before(upfront_heap *h, uint64_t at, uint64_t before) {
    if ((upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE) == before)
        return;
    heap_set_before(h, at, before);
    if (upfront_heap_off(h, at) != UPFRONT_HEAP_SHUT)
        heap_met(h, at);
}

/* Returns the size of a block. A free block merges with the free blocks after it first: an
 * overwritten block may have kept them apart. */
static uint64_t heap_join(upfront_heap *h, uint64_t at) {
    uint64_t size = upfront_heap_size(h, at);
    if (upfront_heap_is_live(h, at))
        return size;
    while (at + size != h->end && !upfront_heap_is_live(h, at + size)) {
        uint64_t next = at + size;
        size += upfront_heap_size(h, next);
        heap_bury(h, next);
        heap_fill_links(h, next);
        upfront_heap_seal(h, at, upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE, size);
    }
    return size;
}

#ifdef UPFRONT_CHECKED
/* Counts a stray write that hit no header and no link, and fills its bytes again. */
static void heap_clean(upfront_heap *h, uint64_t at) {
    uint64_t dirt = upfront_heap_dirt(h, at), end = at + upfront_heap_size(h, at), cell;
    if (dirt == 0)
        return;
    h->damaged++;
    h->where = dirt;
    if (upfront_heap_is_live(h, at))
        memset((char *)h + dirt, UPFRONT_DEAD, (size_t)(end - dirt));
    else
        for (cell = dirt / 16 * 16; cell < end; cell += 16)
            if (upfront_heap_off(h, cell) != UPFRONT_HEAP_BURIED)
                memset((char *)h + cell, UPFRONT_DEAD, 16);
}
#else
#define heap_clean(h, at) ((void)0)
#endif

static void heap_count(upfront_heap *h, uint64_t at, uint64_t size) {
    uint64_t off = upfront_heap_off(h, at);
    heap_clean(h, at);
    if (off == UPFRONT_HEAP_SHUT) {
        h->lost++;
        h->lost_bytes += size;
    } else if (UPFRONT_LOOKS(h) && off != 0 && !heap_has_front(h, size)) {
        heap_rest(h, at, size);
    } else if (off != 0) {
        heap_turn(h, at);
        heap_park(h, at, size);
    } else if (upfront_heap_is_live(h, at)) {
        h->live++;
        h->used += size;
    } else {
        heap_insert(h, at, size);
    }
}

/* Repairs the heap after a call found damage: puts all overwritten blocks out of service and
 * rebuilds the lists. `met` is the offset of the damaged block's bytes, or 0. A sealed header leads
 * to the next one; past an unsealed one the headers are followed back from the end. Cost:
 * O(blocks). */
UPFRONT_COLD static void heap_mend(upfront_heap *h, uint64_t met) {
    uint64_t at, size = 0, hole = 0, damaged = h->damaged, lost_bytes = h->lost_bytes;
    heap_shut_all(h);
    h->map = h->sizes = h->parked = h->used = h->live = h->lost = h->lost_bytes = 0;
    memset(&h->rest, 0, sizeof h->rest);
    memset(h->bits, 0, sizeof h->bits);
    memset(h + 1, 0, (size_t)h->first - sizeof *h);
    for (at = h->first; at != h->end; at += size) {
        heap_tell_before(h, at, size | hole);
        size = heap_join(h, at);
        hole = upfront_heap_is_live(h, at) ? 0 : UPFRONT_HEAP_HOLE;
        heap_count(h, at, size);
    }
    if (upfront_heap_off(h, at) != 0)
        upfront_heap_seal(h, at, 0, UPFRONT_HEAP_LIVE);
    heap_tell_before(h, at, size | hole);
    lost_bytes = h->lost_bytes - lost_bytes;
    h->most = lost_bytes < h->most ? h->most - lost_bytes : 0;
    if (h->damaged == damaged) {
        h->damaged++;
        h->where = met;
    }
}

/* Merges the first parked block of a size. Returns 0, with nothing changed, if it or a neighbour
 * was overwritten. */
static int heap_unpark(upfront_heap *h, uint64_t size) {
    uint64_t at = heap_parked(h, size);
    if (at == 0 || !heap_agrees(h, at) || !heap_may_melt(h, at))
        return 0;
    heap_pop(h, size, at);
    heap_turn(h, at);
    heap_melt(h, at);
    return 1;
}

/* Returns the size of the first front list, from the hand on, that isn't empty. pre: there is
 * one. */
static uint64_t heap_next_size(uint64_t sizes, uint64_t hand) {
    uint64_t from = sizes >> hand << hand;
    return ((uint64_t)__builtin_ctzll(from != 0 ? from : sizes) + 2) * 16;
}

/* Frees a place in the front lists, in one free of eight, and reports whether it did. Each size in
 * turn gives up a block, so that unused sizes don't stay. Merging the freed block itself is faster.
 * After damage all lists may be empty. */
static int heap_make_way(upfront_heap *h) {
    uint64_t size;
    if (h->sizes == 0 || h->hand++ % 8 != 0)
        return 0;
    size = heap_next_size(h->sizes, h->hand / 8 % 64);
    return heap_unpark(h, size);
}

static void heap_wake_all(upfront_heap *h);

static void heap_unpark_all(upfront_heap *h) {
    uint64_t sizes, size;
    for (sizes = h->sizes; sizes != 0; sizes &= sizes - 1) {
        size = heap_next_size(sizes, 0);
        while (heap_unpark(h, size))
            ;
    }
}

/* Merges all parked blocks and reports whether there were any. A block that doesn't merge, or is in
 * no list, was overwritten. */
static int heap_flush(upfront_heap *h) {
    uint64_t parked = h->parked + h->rest.blocks;
    heap_wake_all(h);
    heap_unpark_all(h);
    if (h->parked != 0) {
        heap_mend(h, 0);
        heap_unpark_all(h);
    }
    return parked != 0;
}

/* Checks all blocks, repairs the heap if needed, and returns the number of blocks checked. */
UPFRONT_COLD static uint64_t heap_inspect(upfront_heap *h) {
    uint64_t count;
    if (upfront_heap_look(h, NULL, 0, &count) != UPFRONT_OK)
        heap_mend(h, 0);
    return count;
}

/* Before a refusal, checks all blocks and reports whether it found damage: then the request is
 * tried again. After a check, blocks / 64 refusals pass without one. */
UPFRONT_COLD static int heap_looks(upfront_heap *h) {
    uint64_t count;
    if (h->lists == 0 || h->failed < h->look)
        return 0;
    count = h->damaged;
    h->look = h->failed + 1 + heap_inspect(h) / 64;
    return count != h->damaged;
}

/* Reports whether a front list has blocks for a request. */
static inline int heap_serves(const upfront_heap *h, uint64_t size, uint64_t align) {
    return size <= UPFRONT_HEAP_FRONT && align <= UPFRONT_HEAP_ALIGN && (h->sizes & heap_bit(heap_need(size))) != 0;
}

/* Allocates the parked block of exactly that size; NULL: none. It calls nothing, so it is fast.
 * pre: heap_serves. */
static inline void *heap_again(upfront_heap *h, uint64_t asked) {
    uint64_t need = heap_need(asked), at = heap_parked(h, need);
    if (at == 0 || h->used + need > h->most)
        return NULL;
    heap_clean(h, at);
    heap_pop(h, need, at);
    h->live++;
    heap_use(h, need);
    upfront_heap_seal(h, at, upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE,
                      heap_body(need, asked, UPFRONT_HEAP_ALIGN));
    return upfront_mark_live((char *)h + at + UPFRONT_HEAP_HEADER, asked);
}

UPFRONT_COLD static void *heap_take_mended(upfront_heap *h, uint64_t size, uint64_t align, uint64_t found);

#ifdef UPFRONT_CHECKED
/* Checks the fill of the bytes about to be allocated in a free block, and of the header after
 * them. */
static void heap_meet(upfront_heap *h, uint64_t at, uint64_t bytes) {
    uint64_t size = upfront_heap_size(h, at),
             end = bytes + UPFRONT_HEAP_LEAST < size ? bytes + UPFRONT_HEAP_LEAST : size;
    uint64_t dirt = h->plain ? 0 : upfront_heap_dirt_in(h, at + UPFRONT_HEAP_LEAST, at + end);
    if (dirt != 0) {
        h->damaged++;
        h->where = dirt;
    }
}
#else
#define heap_meet(h, at, bytes) ((void)0)
#endif

static void *heap_take(upfront_heap *h, uint64_t size, uint64_t align) {
    uint64_t need = heap_need(size), at, room, gap, before;
    if (h->used + need > h->most)
        return NULL;
    at = heap_search(h, need, align);
    if (at == 0)
        return NULL;
    if (!heap_is_whole(h, at))
        return heap_take_mended(h, size, align, at);
    room = upfront_heap_size(h, at);
    gap = heap_gap(h, at, align);
    before = upfront_heap_before(h, at);
    heap_meet(h, at, gap + need);
    heap_remove(h, at);
    heap_cut(h, at + gap, room - gap, gap == 0 ? before : gap | UPFRONT_HEAP_HOLE, size, align);
    if (gap != 0)
        heap_make_free(h, at, gap, before);
    h->live++;
    return upfront_mark_live((char *)h + at + gap + UPFRONT_HEAP_HEADER, size);
}

static void *heap_take_mended(upfront_heap *h, uint64_t size, uint64_t align, uint64_t found) {
    heap_mend(h, found + UPFRONT_HEAP_HEADER);
    return heap_take(h, size, align);
}

static void *heap_refuse(upfront_heap *h, uint64_t size) {
    h->failed++;
    h->refused = size;
    return NULL;
}

static void *heap_alloc(upfront_heap *h, uint64_t size, uint64_t align) {
    void *p;
    if (heap_serves(h, size, align) && heap_parked(h, heap_need(size)) == 0)
        heap_mend(h, 0);
    p = heap_take(h, size, align);
    if (p == NULL && heap_flush(h))
        p = heap_take(h, size, align);
    if (p == NULL && heap_looks(h))
        p = heap_take(h, size, align);
    return p != NULL ? p : heap_refuse(h, size);
}

#ifdef UPFRONT_CHECKED
/* Notes the call that made a block, and fills its bytes after the asked size. */
static void heap_gave(const upfront_heap *h, void *p) {
    uint64_t at = upfront_distance(p, h) - UPFRONT_HEAP_HEADER, asked;
    if (p == NULL)
        return;
    asked = upfront_heap_asked(h, at);
    upfront_note_made(p, asked);
    if (!h->plain)
        memset((char *)p + asked, UPFRONT_DEAD, (size_t)(upfront_heap_size(h, at) - UPFRONT_HEAP_HEADER - asked));
}
#else
#define heap_gave(h, p) ((void)0)
#endif

static __attribute__((noinline)) void *heap_alloc_new(upfront_heap *h, uint64_t size, uint64_t align) {
    void *p = heap_alloc(h, upfront_size(size), align < UPFRONT_HEAP_ALIGN ? UPFRONT_HEAP_ALIGN : align);
    heap_gave(h, p);
    upfront_leave(&h->busy);
    return p;
}

void *upfront_heap_alloc(upfront_heap *h, uint64_t size, uint64_t align) {
    void *p;
    if (h == NULL || !upfront_is_align(align) || !upfront_enter(&h->busy, &h->raced))
        return NULL;
    if (upfront_refuses()) {
        upfront_leave(&h->busy);
        return heap_refuse(h, upfront_size(size));
    }
    if (!heap_serves(h, size, align))
        return heap_alloc_new(h, size, align);
    p = heap_again(h, size);
    if (p == NULL)
        return heap_alloc_new(h, size, align);
    heap_gave(h, p);
    upfront_leave(&h->busy);
    return p;
}

UPFRONT_COLD static int heap_free_mended(upfront_heap *h, uint64_t at);

/* pre: a live block is at `at`, and heap_agrees. */
static int heap_free(upfront_heap *h, uint64_t at) {
    uint64_t size = upfront_heap_size(h, at);
    if (heap_has_front(h, size) && (h->parked < h->parks || heap_make_way(h))) {
        upfront_mark_dead((char *)h + at + UPFRONT_HEAP_HEADER, size - UPFRONT_HEAP_HEADER);
        heap_park(h, at, size);
    } else {
        if (!heap_may_melt(h, at))
            return heap_free_mended(h, at);
        upfront_mark_dead((char *)h + at + UPFRONT_HEAP_HEADER, size - UPFRONT_HEAP_HEADER);
        heap_melt(h, at);
    }
    h->used -= size;
    h->live--;
    return UPFRONT_OK;
}

/* Frees a block next to damage and reports it. If its seal was forged, the repaired heap has no
 * block there to free. */
static int heap_free_mended(upfront_heap *h, uint64_t at) {
    heap_mend(h, 0);
    if (heap_has(h, at) && heap_may_melt(h, at))
        heap_free(h, at);
    return UPFRONT_CORRUPT;
}

#ifdef UPFRONT_CHECKED
/* Takes the oldest block out of the queue and frees it. If the queue is damaged, the repair finds
 * all blocks again. */
static void heap_wake(upfront_heap *h) {
    uint64_t at = h->rest.oldest - UPFRONT_HEAP_HEADER, size;
    if (!upfront_heap_is_inside(h, at) || upfront_heap_off(h, at) != UPFRONT_HEAP_TURNED) {
        heap_mend(h, 0);
        return;
    }
    heap_clean(h, at);
    size = upfront_heap_size(h, at);
    upfront_rest_take(&h->rest, h, size);
    heap_turn(h, at);
    h->used += size;
    h->live++;
    if (heap_agrees(h, at))
        heap_free(h, at);
    else
        heap_free_mended(h, at);
}

static void heap_wake_all(upfront_heap *h) {
    while (h->rest.blocks != 0)
        heap_wake(h);
}

/* Frees a block, which then rests. Checks its bytes after the asked size and the header after it
 * first. */
static int heap_retire(upfront_heap *h, uint64_t at) {
    uint64_t size = upfront_heap_size(h, at), damaged = h->damaged;
    int code = UPFRONT_OK;
    heap_clean(h, at);
    if (h->plain || !heap_agrees(h, at)) {
        code = heap_agrees(h, at) ? heap_free(h, at) : heap_free_mended(h, at);
    } else {
        upfront_mark_dead((char *)h + at + UPFRONT_HEAP_HEADER, size - UPFRONT_HEAP_HEADER);
        heap_turn(h, at);
        h->used -= size;
        h->live--;
        heap_rest(h, at, size);
        while (upfront_rest_is_over(&h->rest, h->end - h->first))
            heap_wake(h);
    }
    upfront_note_ended((char *)h + at + UPFRONT_HEAP_HEADER);
    return damaged == h->damaged ? code : (int)UPFRONT_CORRUPT;
}
#define heap_moved(h, at) heap_retire(h, at)
#define heap_took(h, at) ((void)(at), 0)
#else
static void heap_wake_all(upfront_heap *h) { (void)h; }
#define heap_moved(h, at) heap_free(h, at)
#define heap_retire(h, at) (heap_agrees(h, at) ? heap_free(h, at) : heap_free_mended(h, at))

/* Parks a live, whole block. It calls nothing, so it is fast. Returns 0 if there is no such block,
 * or no room. */
static inline int heap_took(upfront_heap *h, uint64_t at) {
    uint64_t size;
    if (h->parked >= h->parks || !upfront_heap_is_inside(h, at))
        return 0;
    size = upfront_heap_size(h, at);
    if (size > UPFRONT_HEAP_FRONT + UPFRONT_HEAP_HEADER || !heap_has(h, at) || !heap_agrees(h, at))
        return 0;
    upfront_mark_dead((char *)h + at + UPFRONT_HEAP_HEADER, size - UPFRONT_HEAP_HEADER);
    heap_park(h, at, size);
    h->used -= size;
    h->live--;
    return 1;
}
#endif

static __attribute__((noinline)) int heap_free_other(upfront_heap *h, const void *p) {
    uint64_t at = upfront_distance(p, h) - UPFRONT_HEAP_HEADER;
    int code;
    if (p == NULL)
        return UPFRONT_OK;
    if (!upfront_enter(&h->busy, &h->raced))
        return UPFRONT_RACED;
    code = heap_has(h, at) ? heap_retire(h, at) : heap_why(h, at);
    upfront_leave(&h->busy);
    return code;
}

int upfront_heap_free(upfront_heap *h, void *p) {
    uint64_t at = upfront_distance(p, h) - UPFRONT_HEAP_HEADER;
    if (h == NULL)
        return UPFRONT_BAD_ARGUMENT;
    return heap_took(h, at) ? UPFRONT_OK : heap_free_other(h, p);
}

/* Grows the block at `at` down into the free block before it. Returns NULL, with nothing changed,
 * if there is none or it is too small. */
static void *heap_grow_down(upfront_heap *h, uint64_t at, uint64_t room, uint64_t asked) {
    uint64_t before = heap_hole(h, at), size = upfront_heap_size(h, at), align = upfront_heap_align(h, at);
    uint64_t old = upfront_heap_asked(h, at), low = at - before, gap, beyond;
    char *p, *end = (char *)h + at + room;
    if (before == 0)
        return NULL;
    gap = heap_gap(h, low, align);
    if (before + room < gap + heap_need(asked))
        return NULL;
    p = (char *)h + low + gap + UPFRONT_HEAP_HEADER;
    beyond = upfront_heap_before(h, low);
    heap_meet(h, low, before);
    heap_meet(h, at + size, room - size);
    heap_remove(h, low);
    heap_absorb(h, at, size);
    heap_bury(h, at);
    UPFRONT_UNPOISON(p, end - p);
    memmove(p, (char *)h + at + UPFRONT_HEAP_HEADER, (size_t)old);
    upfront_mark_dead(p + old, (uint64_t)(end - p) - old);
    upfront_mark_live(p + old, asked - old);
    h->used -= size;
    heap_cut(h, low + gap, before + room - gap, gap == 0 ? beyond : gap | UPFRONT_HEAP_HOLE, asked, align);
    if (gap != 0)
        heap_make_free(h, low, gap, beyond);
    return p;
}

/* Returns the block's new address; NULL: it doesn't fit. */
static void *heap_resize(upfront_heap *h, uint64_t at, uint64_t size) {
    char *p = (char *)h + at + UPFRONT_HEAP_HEADER, *q;
    uint64_t had = upfront_heap_size(h, at), room = had, old = upfront_heap_asked(h, at);
    if (heap_need(size) > had && h->used - had + heap_need(size) > h->most)
        return NULL;
    if (!upfront_heap_is_live(h, at + had))
        room += upfront_heap_size(h, at + had);
    if (room < heap_need(size)) {
        q = (char *)heap_grow_down(h, at, room, size);
        if (q != NULL)
            return q;
        q = (char *)heap_take(h, size, upfront_heap_align(h, at));
        if (q != NULL) {
            memcpy(q, p, (size_t)old);
            heap_moved(h, at);
        }
        return q;
    }
    if (heap_need(size) > had)
        heap_meet(h, at + had, heap_need(size) - had);
    heap_absorb(h, at, had);
    if (size > old)
        upfront_mark_live(p + old, size - old);
    else
        upfront_mark_dead(p + size, had - UPFRONT_HEAP_HEADER - size);
    h->used -= had;
    heap_cut(h, at, room, upfront_heap_word(h, at) & ~UPFRONT_HEAP_SEAL_BEFORE, size, upfront_heap_align(h, at));
    return p;
}

static int64_t heap_find(const upfront_heap *h, const void *p) {
    uint64_t at = upfront_distance(p, h) - UPFRONT_HEAP_HEADER;
    return heap_has(h, at) ? (int64_t)at : (int64_t)heap_why(h, at);
}

#ifdef UPFRONT_CHECKED
/* Reports whether a block is refused to grow, on purpose. A block that shrinks is no request. */
static int heap_refuses_more(upfront_heap *h, uint64_t at, uint64_t size) {
    if (size <= upfront_heap_asked(h, at) || !upfront_refuses())
        return 0;
    (void)heap_refuse(h, size);
    return 1;
}

static void heap_regave(const upfront_heap *h, const void *p, void *q) {
    if (q != NULL && q != p)
        upfront_note_ended(p);
    heap_gave(h, q);
}
#else
#define heap_refuses_more(h, at, size) 0
#define heap_regave(h, p, q) ((void)0)
#endif

void *upfront_heap_realloc(upfront_heap *h, void *p, uint64_t size) {
    int64_t found;
    void *q = NULL;
    if (p == NULL)
        return upfront_heap_alloc(h, size, UPFRONT_HEAP_ALIGN);
    if (h == NULL || !upfront_enter(&h->busy, &h->raced))
        return NULL;
    found = heap_find(h, p);
    if (found >= 0) {
        size = upfront_size(size);
        if (!heap_agrees(h, (uint64_t)found) || !heap_may_melt(h, (uint64_t)found))
            heap_mend(h, 0);
        found = heap_find(h, p); /* a block with a forged seal may be gone */
    }
    if (found >= 0 && !heap_refuses_more(h, (uint64_t)found, size)) {
        heap_clean(h, (uint64_t)found);
        q = heap_resize(h, (uint64_t)found, size);
        if (q == NULL && heap_flush(h))
            q = heap_resize(h, (uint64_t)found, size);
        if (q == NULL && heap_looks(h))
            q = heap_resize(h, (uint64_t)found, size);
        if (q == NULL)
            q = heap_refuse(h, size);
        heap_regave(h, p, q);
    }
    upfront_leave(&h->busy);
    return q;
}

int64_t upfront_heap_size_of(const upfront_heap *h, const void *p) {
    uint64_t at = upfront_distance(p, h) - UPFRONT_HEAP_HEADER;
    int64_t found;
    if (h == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_enter(&h->busy, &h->raced))
        return UPFRONT_RACED;
    found = heap_has(h, at) ? (int64_t)upfront_heap_asked(h, at) : heap_why(h, at);
    upfront_leave(&h->busy);
    return found;
}

int upfront_heap_check(const upfront_heap *h, const void *p) {
    int64_t found;
    if (h == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (p == NULL)
        return UPFRONT_OK;
    if (!upfront_enter(&h->busy, &h->raced))
        return UPFRONT_RACED;
    found = heap_find(h, p);
    upfront_leave(&h->busy);
    return found < 0 ? (int)found : UPFRONT_OK;
}

void upfront_heap_reset(upfront_heap *h) {
    if (h == NULL || h->lists == 0 || !upfront_enter(&h->busy, &h->raced))
        return;
    if (UPFRONT_LOOKS(h) && upfront_heap_peak(h) != 0)
        heap_inspect(h);
    memset(&h->rest, 0, sizeof h->rest);
    h->epoch += UINT64_C(1) << 43;
    h->most += h->lost_bytes;
    h->map = h->used = h->live = h->parked = h->sizes = h->hand = h->lost = h->lost_bytes = h->look = 0;
    memset(h->bits, 0, sizeof h->bits);
    memset(h + 1, 0, (size_t)h->first - sizeof *h);
    upfront_mark_dead((char *)h + h->first, h->end + UPFRONT_HEAP_HEADER - h->first);
    upfront_heap_seal(h, h->end, 0, UPFRONT_HEAP_LIVE);
    heap_make_free(h, h->first, h->end - h->first, 0);
    upfront_leave(&h->busy);
}

void upfront_heap_reserve(upfront_heap *h, uint64_t bytes) {
    uint64_t all;
    if (h == NULL)
        return;
    all = h->end - h->first - h->lost_bytes;
    h->most = bytes < all ? all - bytes : 0;
}

void upfront_heap_plain(upfront_heap *h) {
    if (h == NULL || h->lists == 0 || !upfront_enter(&h->busy, &h->raced))
        return;
    heap_wake_all(h);
    h->plain = 1;
    upfront_leave(&h->busy);
}

uint64_t upfront_heap_phase(upfront_heap *h) {
    uint64_t phase;
    if (h == NULL)
        return 0;
    phase = h->phase;
    h->past = upfront_heap_peak(h);
    h->phase = h->used;
    return phase;
}

/* Adjacent free and parked blocks count as one: a refusal would merge them first. */
uint64_t upfront_heap_largest(upfront_heap *h) {
    uint64_t at, room = 0, largest = UPFRONT_HEAP_HEADER;
    if (h == NULL || h->lists == 0 || !upfront_enter(&h->busy, &h->raced))
        return 0;
    heap_inspect(h);
    for (at = h->first; at != h->end; at += upfront_heap_size(h, at)) {
        if (heap_lives(h, at) || upfront_heap_off(h, at) == UPFRONT_HEAP_SHUT)
            room = 0;
        else
            room += upfront_heap_size(h, at);
        if (room > largest)
            largest = room;
    }
    upfront_leave(&h->busy);
    return largest - UPFRONT_HEAP_HEADER;
}

void upfront_heap_flush(upfront_heap *h) {
    if (h != NULL && upfront_enter(&h->busy, &h->raced)) {
        heap_flush(h);
        if (UPFRONT_LOOKS(h) && h->lists != 0)
            heap_inspect(h);
        upfront_leave(&h->busy);
    }
}

/* *at holds the class of the last block and its offset. A class of 0 begins. */
static uint64_t heap_next_run(const upfront_heap *h, uint64_t page, uint64_t *at, void **run) {
    uint64_t c = *at / UPFRONT_OFFSET_MAX, block = *at % UPFRONT_OFFSET_MAX, last, from, end;
    if (c == 0)
        c = upfront_heap_class(page + UPFRONT_HEAP_LEAST) - 1;
    for (;;) {
        last = block;
        block = last != 0 ? upfront_heap_word(h, last + 16) : 0;
        if (block == 0) {
            c = heap_next_class(h, c + 1);
            if (c == NONE)
                return 0;
            block = *upfront_heap_list(h, c);
            last = 0;
        }
        /* also the link back: in a list that runs in a circle some block's is wrong */
        if (!upfront_heap_is_inside(h, block) || !heap_is_whole(h, block) || upfront_heap_word(h, block + 24) != last) {
            block = 0;
            continue;
        }
        from = upfront_round_up((uint64_t)(uintptr_t)h + block + UPFRONT_HEAP_LEAST, page);
        end = ((uint64_t)(uintptr_t)h + block + upfront_heap_size(h, block)) & ~(page - 1);
        if (from < end) {
            *at = c * UPFRONT_OFFSET_MAX + block;
            *run = (void *)(uintptr_t)from;
            return end - from;
        }
    }
}

uint64_t upfront_heap_next_run(const upfront_heap *h, uint64_t page, uint64_t *at, void **run) {
    uint64_t bytes = 0;
    if (h == NULL || at == NULL || run == NULL || !upfront_is_align(page) || !upfront_enter(&h->busy, &h->raced))
        return 0;
    if (!UPFRONT_LOOKS(h))
        bytes = heap_next_run(h, page, at, run);
    upfront_leave(&h->busy);
    return bytes;
}

void *upfront_heap_hook(void *heap, void *p, size_t old, size_t size) {
    (void)old;
    if (size != 0)
        return upfront_heap_realloc((upfront_heap *)heap, p, size);
    upfront_heap_free((upfront_heap *)heap, p);
    return NULL;
}
