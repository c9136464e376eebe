#include "heap.h"

#define NONE UINT64_MAX

/* The first list at or above the class that holds something. */
static uint64_t heap_next_class(const upfront_heap *h, uint64_t from) {
    uint64_t row = from / 16, bits, rows;
    if (row >= h->rows)
        return NONE;
    bits = *upfront_heap_bits(h, row) >> (from % 16);
    if (bits != 0)
        return from + (uint64_t)__builtin_ctzll(bits);
    rows = h->map >> row >> 1;
    if (rows == 0)
        return NONE;
    row += 1 + (uint64_t)__builtin_ctzll(rows);
    return row * 16 + (uint64_t)__builtin_ctzll(*upfront_heap_bits(h, row));
}

static void heap_insert(upfront_heap *h, uint64_t at) {
    uint64_t c = upfront_heap_class(upfront_heap_size(h, at)), *list = upfront_heap_list(h, c);
    upfront_heap_set(h, at + 16, *list);
    upfront_heap_set(h, at + 24, 0);
    if (*list != 0)
        upfront_heap_set(h, *list + 24, at);
    *list = at;
    *upfront_heap_bits(h, c / 16) |= UINT64_C(1) << (c % 16);
    h->map |= UINT64_C(1) << (c / 16);
}

static void heap_remove(upfront_heap *h, uint64_t at) {
    uint64_t c = upfront_heap_class(upfront_heap_size(h, at)), *list = upfront_heap_list(h, c), *bits = upfront_heap_bits(h, c / 16);
    uint64_t next = upfront_heap_word(h, at + 16), last = upfront_heap_word(h, at + 24);
    if (next != 0)
        upfront_heap_set(h, next + 24, last);
    if (last != 0) {
        upfront_heap_set(h, last + 16, next);
        return;
    }
    *list = next;
    if (next != 0)
        return;
    *bits &= ~(UINT64_C(1) << (c % 16));
    if (*bits == 0)
        h->map &= ~(UINT64_C(1) << (c / 16));
}

static void heap_set_before(upfront_heap *h, uint64_t at, uint64_t before) {
    uint64_t word = upfront_heap_word(h, at) & UPFRONT_HEAP_BODY & ~UPFRONT_HEAP_SIZE;
    upfront_heap_seal(h, at, word | before, upfront_heap_word(h, at + 8) & UPFRONT_HEAP_BODY);
}

/* Whether a free block's links are those of a list: who wrote to what was freed wrote over them; and whether the header behind it is good,
 * which is sealed anew when this one isn't free any more. pre: at is sealed. */
static int heap_is_whole(const upfront_heap *h, uint64_t at) {
    uint64_t next = upfront_heap_word(h, at + 16), last = upfront_heap_word(h, at + 24), size = upfront_heap_size(h, at);
    if (size > h->end - at || !upfront_heap_sealed(h, at + size) || upfront_heap_before(h, at + size) != size)
        return 0;
    if (next != 0 && (!upfront_heap_is_inside(h, next) || upfront_heap_word(h, next + 24) != at))
        return 0;
    if (last == 0)
        return *upfront_heap_list(h, upfront_heap_class(size)) == at;
    return upfront_heap_is_inside(h, last) && upfront_heap_word(h, last + 16) == at;
}

/* What is no header any more must not pass for one, even where the bytes are never written again. */
static void heap_bury(upfront_heap *h, uint64_t at) { upfront_heap_seal(h, at, 0, UPFRONT_HEAP_BURIED); }

/* pre: live neighbours. */
static void heap_make_free(upfront_heap *h, uint64_t at, uint64_t size, uint64_t before) {
    upfront_heap_seal(h, at, before, size);
    heap_set_before(h, at + size, size);
    heap_insert(h, at);
}

/* Takes the free block behind a block of `size` out of its list: what the two have together. */
static uint64_t heap_absorb(upfront_heap *h, uint64_t at, uint64_t size) {
    uint64_t next = at + size;
    if (upfront_heap_is_live(h, next))
        return size;
    heap_remove(h, next);
    size += upfront_heap_size(h, next);
    heap_bury(h, next);
    return size;
}

static uint64_t heap_need(uint64_t asked) {
    return asked <= 16 ? UPFRONT_HEAP_LEAST : ((asked + 15) & ~UINT64_C(15)) + UPFRONT_HEAP_HEADER;
}

/* From a header to where the header of an aligned block would be: nothing, or enough for a free block. */
static uint64_t heap_gap(const upfront_heap *h, uint64_t at, uint64_t align) {
    uint64_t gap = (0 - ((uint64_t)(uintptr_t)h + at + UPFRONT_HEAP_HEADER)) & (align - 1);
    return gap == 16 ? gap + align : gap;
}

/* A live block at the front of `room` bytes that are nobody's; what is enough for a free block becomes one. */
static void heap_cut(upfront_heap *h, uint64_t at, uint64_t room, uint64_t before, uint64_t asked, uint64_t align) {
    uint64_t size = heap_need(asked), slack;
    if (room - size >= UPFRONT_HEAP_LEAST)
        heap_make_free(h, at + size, room - size, size);
    else
        heap_set_before(h, at + room, size = room);
    slack = size - UPFRONT_HEAP_HEADER - asked;
    upfront_heap_seal(h, at, before | (slack & 15) | ((uint64_t)__builtin_ctzll(align / UPFRONT_HEAP_ALIGN) << 38),
                      size | ((slack >> 4) << 1) | UPFRONT_HEAP_LIVE);
    h->used += size;
    if (h->peak < h->used)
        h->peak = h->used;
}

upfront_heap *upfront_heap_init(void *block, uint64_t size) {
    upfront_heap *h = (upfront_heap *)block;
    uint64_t rows, front;
    if (!upfront_is_block(block, size, UPFRONT_HEAP_BLOCK))
        return NULL;
    rows = upfront_heap_class(size - UPFRONT_HEAP_BLOCK + UPFRONT_HEAP_LEAST) / 16 + 1; /* of the largest that can be free */
    front = (sizeof *h + rows * 17 * sizeof(uint64_t) + 15) & ~UINT64_C(15);
    UPFRONT_UNPOISON(h, front);
    memset(h, 0, sizeof *h);
    h->rows = rows;
    h->first = front;
    h->end = (size & ~UINT64_C(15)) - UPFRONT_HEAP_HEADER;
    upfront_heap_reset(h);
    return h;
}

/* The first block that fits, of those that are looked at in the lists from..to; *cut says that there were more. */
static uint64_t heap_scan(const upfront_heap *h, uint64_t from, uint64_t to, uint64_t need, uint64_t align, int *cut) {
    uint64_t c, at, looks = UPFRONT_HEAP_SCAN;
    for (c = heap_next_class(h, from); c <= to; c = heap_next_class(h, c + 1))
        for (at = *upfront_heap_list(h, c); at != 0 && upfront_heap_is_inside(h, at); at = upfront_heap_word(h, at + 16)) {
            if (looks-- == 0) {
                *cut = 1;
                return 0;
            }
            if (upfront_heap_size(h, at) >= heap_gap(h, at, align) + need)
                return at;
        }
    return 0;
}

/* A free block that has room, or 0. */
static uint64_t heap_search(upfront_heap *h, uint64_t need, uint64_t align) {
    uint64_t low = upfront_heap_class(need), high = upfront_heap_class(align > 16 ? need + align + 16 : need), c, at;
    int cut = 0;
    at = heap_scan(h, low, low, need, align, &cut);
    if (at == 0 && high != low)
        at = heap_scan(h, high, high, need, align, &cut);
    if (at != 0)
        return at;
    c = heap_next_class(h, high + 1);
    if (c != NONE)
        return *upfront_heap_list(h, c);
    at = heap_scan(h, low + 1, high - 1, need, align, &cut);
    h->bounded += at == 0 && cut;
    return at;
}

void *upfront_heap_alloc(upfront_heap *h, uint64_t size, uint64_t align) {
    uint64_t at, room, gap, before;
    char *p;
    if (h == NULL || !upfront_is_align(align))
        return NULL;
    if (align < UPFRONT_HEAP_ALIGN)
        align = UPFRONT_HEAP_ALIGN;
    size = upfront_size(size);
    at = heap_search(h, heap_need(size), align);
    if (at == 0 || !upfront_heap_sealed(h, at) || !heap_is_whole(h, at)) {
        h->failed++;
        h->refused = size;
        return NULL;
    }
    room = upfront_heap_size(h, at);
    gap = heap_gap(h, at, align);
    before = upfront_heap_before(h, at);
    heap_remove(h, at);
    heap_cut(h, at + gap, room - gap, gap == 0 ? before : gap, size, align);
    if (gap != 0)
        heap_make_free(h, at, gap, before);
    h->live++;
    p = (char *)h + at + gap + UPFRONT_HEAP_HEADER;
    upfront_mark_live(p, size);
    return p;
}

/* The offset of the live block at p, or a code. */
static int64_t heap_find(const upfront_heap *h, const void *p) {
    uint64_t at = upfront_distance(p, h) - UPFRONT_HEAP_HEADER, size, before;
    if (h == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (at - h->first >= h->end - h->first)
        return UPFRONT_FOREIGN;
    if (!upfront_heap_is_inside(h, at) || !upfront_heap_sealed(h, at))
        return UPFRONT_MISALIGNED;
    if (!upfront_heap_is_live(h, at))
        return UPFRONT_DOUBLE;
    size = upfront_heap_size(h, at);
    before = upfront_heap_before(h, at);
    if (size > h->end - at || before > at - h->first) /* only forged words can say so */
        return UPFRONT_CORRUPT;
    if (!upfront_heap_sealed(h, at + size) || upfront_heap_before(h, at + size) != size)
        return UPFRONT_CORRUPT;
    if (at != h->first && (!upfront_heap_sealed(h, at - before) || upfront_heap_size(h, at - before) != before))
        return UPFRONT_CORRUPT;
    if ((!upfront_heap_is_live(h, at + size) && !heap_is_whole(h, at + size)) ||
        (before != 0 && !upfront_heap_is_live(h, at - before) && !heap_is_whole(h, at - before)))
        return UPFRONT_CORRUPT;
    return (int64_t)at;
}

int upfront_heap_free(upfront_heap *h, void *p) {
    int64_t found = heap_find(h, p);
    uint64_t at = (uint64_t)found, size, before;
    if (found < 0)
        return (int)found;
    size = upfront_heap_size(h, at);
    before = upfront_heap_before(h, at);
    h->used -= size;
    h->live--;
    upfront_mark_dead(p, size - UPFRONT_HEAP_HEADER);
    size = heap_absorb(h, at, size);
    if (before != 0 && !upfront_heap_is_live(h, at - before)) {
        heap_bury(h, at);
        at -= before;
        size += before;
        before = upfront_heap_before(h, at);
        heap_remove(h, at);
    }
    heap_make_free(h, at, size, before);
    return UPFRONT_OK;
}

/* Grows the block at `at` down into the free block before it. NULL, and nothing has changed, when there is none or it doesn't do. */
static void *heap_grow_down(upfront_heap *h, uint64_t at, uint64_t room, uint64_t asked) {
    uint64_t before = upfront_heap_before(h, at), size = upfront_heap_size(h, at), align = upfront_heap_align(h, at);
    uint64_t old = upfront_heap_asked(h, at), low = at - before, gap, beyond;
    char *p, *end = (char *)h + at + room;
    if (before == 0 || upfront_heap_is_live(h, low))
        return NULL;
    gap = heap_gap(h, low, align);
    if (before + room < gap + heap_need(asked))
        return NULL;
    p = (char *)h + low + gap + UPFRONT_HEAP_HEADER;
    beyond = upfront_heap_before(h, low);
    heap_remove(h, low);
    heap_absorb(h, at, size);
    heap_bury(h, at);
    UPFRONT_UNPOISON(p, end - p);
    memmove(p, (char *)h + at + UPFRONT_HEAP_HEADER, (size_t)old);
    upfront_mark_dead(p + old, (uint64_t)(end - p) - old);
    upfront_mark_live(p + old, asked - old);
    h->used -= size;
    heap_cut(h, low + gap, before + room - gap, gap == 0 ? beyond : gap, asked, align);
    if (gap != 0)
        heap_make_free(h, low, gap, beyond);
    return p;
}

void *upfront_heap_realloc(upfront_heap *h, void *p, uint64_t size) {
    int64_t found = heap_find(h, p);
    uint64_t at = (uint64_t)found, had, old, room;
    void *q;
    if (p == NULL)
        return upfront_heap_alloc(h, size, UPFRONT_HEAP_ALIGN);
    if (found < 0)
        return NULL;
    size = upfront_size(size);
    had = room = upfront_heap_size(h, at);
    old = upfront_heap_asked(h, at);
    if (!upfront_heap_is_live(h, at + had))
        room += upfront_heap_size(h, at + had);
    if (room < heap_need(size)) {
        q = heap_grow_down(h, at, room, size);
        if (q != NULL)
            return q;
        q = upfront_heap_alloc(h, size, upfront_heap_align(h, at));
        if (q != NULL) {
            memcpy(q, p, (size_t)old);
            upfront_heap_free(h, p);
        }
        return q;
    }
    heap_absorb(h, at, had);
    if (size > old)
        upfront_mark_live((char *)p + old, size - old);
    else
        upfront_mark_dead((char *)p + size, had - UPFRONT_HEAP_HEADER - size);
    h->used -= had;
    heap_cut(h, at, room, upfront_heap_before(h, at), size, upfront_heap_align(h, at));
    return p;
}

int64_t upfront_heap_size_of(const upfront_heap *h, const void *p) {
    int64_t found = heap_find(h, p);
    return found < 0 ? found : (int64_t)upfront_heap_asked(h, (uint64_t)found);
}

void upfront_heap_reset(upfront_heap *h) {
    if (h == NULL || h->rows == 0)
        return;
    h->epoch++;
    h->map = h->used = h->live = 0;
    memset(h + 1, 0, (size_t)(h->rows * 17 * sizeof(uint64_t)));
    upfront_mark_dead((char *)h + h->first, h->end + UPFRONT_HEAP_HEADER - h->first);
    upfront_heap_seal(h, h->end, 0, UPFRONT_HEAP_LIVE);
    heap_make_free(h, h->first, h->end - h->first, 0);
}

void *upfront_heap_hook(void *heap, void *p, size_t old, size_t size) {
    (void)old;
    if (size != 0)
        return upfront_heap_realloc((upfront_heap *)heap, p, size);
    upfront_heap_free((upfront_heap *)heap, p);
    return NULL;
}
