#include "buddy.h"

static uint64_t buddy_blocks(uint64_t order) { return UINT64_C(1) << order; }

static uint64_t buddy_bytes(const upfront_buddy *b, uint64_t order) { return b->smallest << order; }

static uint64_t buddy_free(const upfront_buddy *b) { return b->end - b->first - b->used; }

static uint64_t buddy_offset(const upfront_buddy *b, uint64_t from) { return b->first + (from - b->low) * b->smallest; }

static char *buddy_address(const upfront_buddy *b, uint64_t from) {
    return (char *)(uintptr_t)b + buddy_offset(b, from);
}

UPFRONT_COLD static void buddy_inspect(upfront_buddy *b);

UPFRONT_COLD static void buddy_met(upfront_buddy *b, uint64_t where) {
    b->damaged++;
    b->where = where;
}

/* Counts an overwritten byte found for an address that is refused. */
UPFRONT_COLD static void buddy_refused(upfront_buddy *b, upfront_buddy_found f) {
    if (f.code == UPFRONT_CORRUPT)
        buddy_met(b, buddy_offset(b, f.from));
}

/* Computes the bytes of the blocks that contain this one, from `order` up, from their halves.
 * Halves that merge get 0. */
static void buddy_rise(upfront_buddy *b, uint64_t from, uint64_t order) {
    int right;
    for (; order <= upfront_buddy_order(b->root); order++) {
        uint64_t at = upfront_buddy_at(from, order);
        uint8_t byte;
        if (!upfront_buddy_is_inside(b, at))
            continue;
        byte = upfront_buddy_sum(b, at);
        if (byte == *upfront_buddy_byte(b, at))
            return;
        *upfront_buddy_byte(b, at) = byte;
        if (order > 1 && byte == upfront_buddy_whole(order))
            for (right = 0; right < 2; right++)
                *upfront_buddy_byte(b, upfront_buddy_half(b, at, right)) = 0;
    }
}

static void buddy_set(upfront_buddy *b, uint64_t from, uint64_t order, int live) {
    uint8_t *byte = upfront_buddy_byte(b, upfront_buddy_at(from, order + (order == 0)));
    int half = from % 2 == 0 ? UPFRONT_BUDDY_LEFT : UPFRONT_BUDDY_RIGHT;
    if (order > 0)
        *byte = live ? UPFRONT_BUDDY_LIVE : upfront_buddy_whole(order);
    else
        *byte = (uint8_t)(live ? *byte | half : *byte & ~half);
}

/* Cuts a whole block of the order `had` until its first part has `order` and is live; the others
 * are free. */
static void buddy_cut(upfront_buddy *b, uint64_t from, uint64_t had, uint64_t order) {
    uint64_t j;
    for (j = had; j > order; j--) {
        *upfront_buddy_byte(b, upfront_buddy_at(from, j)) = (uint8_t)(UPFRONT_BUDDY_SPLIT + j);
        if (j > 1)
            buddy_set(b, from + buddy_blocks(j - 1), j - 1, 0);
    }
    buddy_set(b, from, order, 1);
    buddy_rise(b, from, had + 1);
}

/* Returns the lowest order of a block that holds `bytes`. */
static uint64_t buddy_order(const upfront_buddy *b, uint64_t bytes) {
    uint64_t more = (bytes - 1) >> __builtin_ctzll(b->smallest);
    return bytes <= b->smallest ? 0 : 64 - (uint64_t)__builtin_clzll(more);
}

/* Reports whether the reserve allows the request. */
static int buddy_may(const upfront_buddy *b, uint64_t bytes) {
    return bytes <= buddy_free(b) && b->reserve <= buddy_free(b) - bytes;
}

/* Counts an allocation and updates the peaks. pre: `used` includes it. */
static void buddy_count(upfront_buddy *b, uint64_t asked, uint64_t order) {
    b->asked += asked;
    b->given += buddy_bytes(b, order);
    if (b->peak < b->used)
        b->peak = b->used;
    if (b->phase < b->used)
        b->phase = b->used;
}

static int buddy_may_have(uint64_t smallest) {
    return upfront_is_align(smallest) && smallest >= UPFRONT_BUDDY_LEAST;
}

upfront_buddy *upfront_buddy_init(void *block, uint64_t size, uint64_t smallest) {
    upfront_buddy *b = (upfront_buddy *)block;
    uint64_t base = (uint64_t)(uintptr_t)block, count, first, low, high, bit;
    if (!buddy_may_have(smallest) || !upfront_is_block(block, size, sizeof *b + 2 + smallest))
        return NULL;
    count = (size - sizeof *b - 1) / (smallest + 1);
    first = upfront_round_up(base + sizeof *b + 1 + count, smallest) - base;
    if (first + count * smallest > size) { /* by less than a smallest block, due to rounding up */
        count--;
        first = upfront_round_up(base + sizeof *b + 1 + count, smallest) - base;
    }
    if (count == 0 || count > UPFRONT_BUDDY_MOST)
        return NULL;
    UPFRONT_UNPOISON(b, first);
    memset(b, 0, sizeof *b);
    b->first = first;
    b->end = first + count * smallest;
    b->smallest = smallest;
    b->low = ((base + first) & (UPFRONT_ALIGN_MAX - 1)) / smallest;
    low = b->low & ~UINT64_C(1);
    high = ((b->low + count + 1) & ~UINT64_C(1)) - 1;
    /* the highest bit that differs between the ends */
    bit = 63 - (uint64_t)__builtin_clzll(low ^ high);
    b->root = high >> bit << bit;
    upfront_buddy_reset(b);
    return b;
}

uint64_t upfront_buddy_size(uint64_t bytes, uint64_t smallest) {
    uint64_t count;
    if (!buddy_may_have(smallest) || bytes > UPFRONT_OFFSET_MAX)
        return 0;
    count = bytes / smallest + (bytes % smallest != 0);
    return sizeof(upfront_buddy) + 1 + count + smallest - 1 + count * smallest;
}

void upfront_buddy_reset(upfront_buddy *b) {
    uint64_t from, high, order;
    if (b == NULL || b->root == 0 || !upfront_enter(&b->busy, &b->raced))
        return;
    high = upfront_buddy_high(b);
    if (UPFRONT_LOOKS(b) && b->peak != 0)
        buddy_inspect(b);
    memset(&b->rest, 0, sizeof b->rest);
    b->padded = 0;
    b->used = b->live = b->given = b->asked = b->look = 0;
    memset(b + 1, 0, (size_t)(((high + 1) & ~UINT64_C(1)) - (b->low & ~UINT64_C(1)) - 1));
    upfront_mark_dead((char *)b + b->first, b->end - b->first);
    if (b->low % 2 != 0)
        buddy_set(b, b->low - 1, 0, 1);
    if (high % 2 != 0)
        buddy_set(b, high, 0, 1);
    for (from = b->low; from < high; from += buddy_blocks(order)) {
        order = 0;
        while (from % buddy_blocks(order + 1) == 0 && buddy_blocks(order + 1) <= high - from)
            order++;
        buddy_set(b, from, order, 0);
        buddy_rise(b, from, order + 1);
    }
    upfront_leave(&b->busy);
}

/* Finds the lowest free block of an order or more. Returns 0 if there is none. */
static int buddy_search(const upfront_buddy *b, uint64_t order, uint64_t *from, uint64_t *had) {
    uint64_t at = b->root, half;
    for (;; at = half) {
        uint64_t j = upfront_buddy_order(at);
        uint8_t byte = *upfront_buddy_byte(b, at);
        if ((byte & UPFRONT_BUDDY_LARGEST) <= order)
            return 0;
        if (byte == upfront_buddy_whole(j) || j == 1) {
            *had = byte == upfront_buddy_whole(j) ? j : 0;
            *from = at - buddy_blocks(j - 1) + (*had == 0 && (byte & UPFRONT_BUDDY_LEFT));
            break;
        }
        half = upfront_buddy_half(b, at, 0);
        if ((*upfront_buddy_byte(b, half) & UPFRONT_BUDDY_LARGEST) <= order)
            half = upfront_buddy_half(b, at, 1);
    }
    /* overwritten bytes must not lead to an allocation */
    return *had >= order && *from >= b->low && *from + buddy_blocks(*had) <= upfront_buddy_high(b) &&
           (*had > 0 || *upfront_buddy_byte(b, at) == upfront_buddy_sum(b, at));
}

#ifdef UPFRONT_CHECKED
static void buddy_meet(upfront_buddy *b, uint64_t dirt) {
    if (dirt != 0)
        buddy_met(b, dirt);
}

/* Checks the fill of a free block that is about to be allocated. */
static void buddy_meet_in(upfront_buddy *b, uint64_t from, uint64_t order) {
    upfront_buddy_found f = {UPFRONT_DOUBLE, from, order};
    buddy_meet(b, upfront_buddy_dirt(b, f));
}

/* Counts overwritten fill bytes and fills them again. */
static void buddy_clean(upfront_buddy *b, upfront_buddy_found f) {
    uint64_t dirt = upfront_buddy_dirt(b, f), end = buddy_offset(b, f.from) + buddy_bytes(b, f.order);
    buddy_meet(b, dirt);
    if (dirt != 0)
        memset((char *)b + dirt, UPFRONT_DEAD, (size_t)(end - dirt));
}

/* Frees the block that rests longest. If the queue was overwritten, all its blocks stay allocated
 * until a reset. */
static void buddy_wake(upfront_buddy *b) {
    uint64_t offset = b->rest.oldest - b->first, from = b->low + offset / b->smallest;
    upfront_buddy_found f = {UPFRONT_CORRUPT, 0, 0};
    if (offset < b->end - b->first && offset % b->smallest == 0)
        f = upfront_buddy_find(b, from);
    if (f.code != UPFRONT_OK || f.from != from) {
        buddy_met(b, b->rest.oldest < b->end ? b->rest.oldest : 0);
        b->live += b->rest.blocks;
        b->padded += b->rest.bytes;
        memset(&b->rest, 0, sizeof b->rest);
        return;
    }
    buddy_clean(b, f);
    upfront_rest_take(&b->rest, b, buddy_bytes(b, f.order));
    memset(buddy_address(b, from), UPFRONT_DEAD, sizeof(uint64_t));
    buddy_set(b, from, f.order, 0);
    buddy_rise(b, from, f.order + 1);
}

/* Gives up redzones and blocks at rest, before a refusal. */
static void buddy_give_way(upfront_buddy *b) {
    uint64_t from, high = upfront_buddy_high(b), natural;
    while (b->rest.blocks != 0)
        buddy_wake(b);
    for (from = b->low; b->padded != 0 && from < high;) {
        upfront_buddy_found f = upfront_buddy_find(b, from);
        if (f.code == UPFRONT_OK && f.from == from && (natural = upfront_buddy_natural(b, from, f.order)) < f.order) {
            buddy_clean(b, f);
            buddy_cut(b, from, f.order, natural);
            b->padded -= buddy_bytes(b, f.order) - buddy_bytes(b, natural);
        }
        from += buddy_blocks(f.order);
    }
}

/* Returns the order for a request: one more than needed if the redzone would be too small. */
static uint64_t buddy_wide(const upfront_buddy *b, uint64_t size, uint64_t order) {
    return order + (UPFRONT_LOOKS(b) && buddy_bytes(b, order) - size < UPFRONT_BUDDY_ZONE);
}

static int buddy_look_for(upfront_buddy *b, uint64_t size, uint64_t order, uint64_t *held, uint64_t *from,
                          uint64_t *had) {
    *held = buddy_wide(b, size, order);
    if (buddy_search(b, *held, from, had))
        return 1;
    *held = order;
    if (buddy_search(b, order, from, had))
        return 1;
    buddy_give_way(b);
    return buddy_search(b, order, from, had);
}

static void buddy_gave(upfront_buddy *b, uint64_t from, uint64_t size, uint64_t order, uint64_t held) {
    char *p = buddy_address(b, from);
    upfront_note_made(p, size);
    if (held > 0)
        *upfront_buddy_byte(b, upfront_buddy_at(from, held)) = held > order ? UPFRONT_BUDDY_PADDED : UPFRONT_BUDDY_LIVE;
    if (!b->plain)
        memset(p + size, UPFRONT_DEAD, (size_t)(buddy_bytes(b, held) - size));
}

/* Frees a block, which then rests. */
static void buddy_retire(upfront_buddy *b, upfront_buddy_found f) {
    uint64_t natural = upfront_buddy_natural(b, f.from, f.order), bytes = buddy_bytes(b, f.order),
             newest = b->rest.newest;
    upfront_note_ended(buddy_address(b, f.from));
    upfront_mark_dead(buddy_address(b, f.from), bytes);
    b->used -= buddy_bytes(b, natural);
    b->padded -= bytes - buddy_bytes(b, natural);
    buddy_set(b, f.from, f.order, 1); /* its redzone too */
    b->live--;
    if (!upfront_rest_add(&b->rest, b, buddy_offset(b, f.from), bytes))
        buddy_met(b, newest);
    while (upfront_rest_is_over(&b->rest, b->end - b->first))
        buddy_wake(b);
}
#else
#define buddy_stays(b, f, order, want) 0
#define buddy_meet_in(b, from, order) ((void)0)
#define buddy_clean(b, f) ((void)0)
#define buddy_wide(b, size, order) (order)
#define buddy_look_for(b, size, order, held, from, had) (*(held) = (order), buddy_search(b, order, from, had))
#define buddy_gave(b, from, size, order, held) ((void)0)
#define buddy_retire(b, f) ((void)0)
#define buddy_give_way(b) ((void)0)
#endif

/* Checks all blocks, counts each overwritten fill and fills it again. */
UPFRONT_COLD static void buddy_inspect(upfront_buddy *b) {
    uint64_t from, high = upfront_buddy_high(b);
    for (from = b->low; UPFRONT_LOOKS(b) && from < high;) {
        upfront_buddy_found f = upfront_buddy_find(b, from);
        if (f.code != UPFRONT_CORRUPT)
            buddy_clean(b, f);
        from += buddy_blocks(f.order);
    }
    if (upfront_buddy_look(b, NULL, 0, &from) != UPFRONT_OK)
        buddy_met(b, 0);
}

/* Checks all bytes before a refusal. After a check, bytes / 64 refusals pass without one. */
UPFRONT_COLD static void buddy_look(upfront_buddy *b) {
    if (b->failed < b->look)
        return;
    b->look = b->failed + 1 + (b->end - b->first) / b->smallest / 64;
    buddy_inspect(b);
}

static void *buddy_alloc(upfront_buddy *b, uint64_t size, uint64_t order) {
    uint64_t from, had, held;
    if (!buddy_may(b, buddy_bytes(b, order)) || !buddy_look_for(b, size, order, &held, &from, &had)) {
        buddy_look(b);
        b->failed++;
        b->scattered += (uint64_t)buddy_may(b, buddy_bytes(b, order));
        b->refused = size;
        return NULL;
    }
    buddy_cut(b, from, had, held);
    buddy_meet_in(b, from, held);
    b->live++;
    b->used += buddy_bytes(b, order);
    if (UPFRONT_LOOKS(b))
        b->padded += buddy_bytes(b, held) - buddy_bytes(b, order);
    buddy_count(b, size, order);
    upfront_mark_live(buddy_address(b, from), buddy_bytes(b, order));
    buddy_gave(b, from, size, order, held);
    return buddy_address(b, from);
}

#ifdef UPFRONT_CHECKED
/* Reports whether a request is refused on purpose. A realloc that fits in its block is no
 * request. */
static int buddy_refuses(upfront_buddy *b, uint64_t had, uint64_t size) {
    if ((had >= size && had != 0) || !upfront_refuses())
        return 0;
    b->failed++;
    b->refused = size;
    return 1;
}
#else
#define buddy_refuses(b, had, size) 0
#endif

void *upfront_buddy_alloc(upfront_buddy *b, uint64_t size, uint64_t align) {
    void *p = NULL;
    if (b == NULL || b->root == 0 || !upfront_is_align(align) || !upfront_enter(&b->busy, &b->raced))
        return NULL;
    size = upfront_size(size);
    if (!buddy_refuses(b, 0, size))
        p = buddy_alloc(b, size, buddy_order(b, size < align ? align : size));
    upfront_leave(&b->busy);
    return p;
}

/* Returns the live block that begins at p, or the code to refuse p. */
static upfront_buddy_found buddy_find(const upfront_buddy *b, const void *p) {
    upfront_buddy_found f = {UPFRONT_FOREIGN, 0, 0};
    uint64_t offset = upfront_distance(p, b) - b->first;
    if (offset >= b->end - b->first)
        return f;
    f = upfront_buddy_find(b, b->low + offset / b->smallest);
    if (f.code == UPFRONT_OK && upfront_buddy_rests(b, f.from))
        f.code = UPFRONT_DOUBLE;
    if (f.code == UPFRONT_OK && buddy_address(b, f.from) != p)
        f.code = UPFRONT_MISALIGNED;
    return f;
}

static int buddy_end(upfront_buddy *b, upfront_buddy_found f) {
    uint64_t from = f.from, order = f.order;
    if (UPFRONT_LOOKS(b)) {
        uint64_t damaged = b->damaged;
        buddy_clean(b, f);
        buddy_retire(b, f);
        return damaged == b->damaged ? UPFRONT_OK : UPFRONT_CORRUPT;
    }
    b->used -= buddy_bytes(b, order);
    b->live--;
    upfront_mark_dead(buddy_address(b, from), buddy_bytes(b, order));
    buddy_set(b, from, order, 0);
    buddy_rise(b, from, order + 1);
    return UPFRONT_OK;
}

int upfront_buddy_free(upfront_buddy *b, void *p) {
    upfront_buddy_found f;
    if (b == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (p == NULL)
        return UPFRONT_OK;
    if (!upfront_enter(&b->busy, &b->raced))
        return UPFRONT_RACED;
    f = buddy_find(b, p);
    if (f.code == UPFRONT_OK)
        f.code = buddy_end(b, f);
    else
        buddy_refused(b, f);
    upfront_leave(&b->busy);
    return f.code;
}

/* Reports whether the other halves up to an order follow the block and are free. */
static int buddy_can_grow(const upfront_buddy *b, uint64_t from, uint64_t had, uint64_t order) {
    if (from % buddy_blocks(order) != 0 || buddy_blocks(order) > upfront_buddy_high(b) - from)
        return 0;
    if (had == 0 && (*upfront_buddy_byte(b, from + 1) & UPFRONT_BUDDY_RIGHT) != 0)
        return 0;
    for (had += had == 0; had < order; had++)
        if (*upfront_buddy_byte(b, upfront_buddy_at(from + buddy_blocks(had), had)) != upfront_buddy_whole(had))
            return 0;
    return 1;
}

static void buddy_grow(upfront_buddy *b, uint64_t from, uint64_t had, uint64_t order) {
    uint64_t j, more = buddy_bytes(b, order) - buddy_bytes(b, had);
    for (j = had; j < order; j++)
        buddy_meet_in(b, from + buddy_blocks(j), j);
    upfront_mark_live(buddy_address(b, from + buddy_blocks(had)), more);
    for (j = had + (had == 0); j < order; j++) {
        *upfront_buddy_byte(b, upfront_buddy_at(from, j)) = 0;
        *upfront_buddy_byte(b, upfront_buddy_at(from + buddy_blocks(j), j)) = 0;
    }
    buddy_set(b, from, order, 1);
    buddy_rise(b, from, order + 1);
}

#ifdef UPFRONT_CHECKED
/* Keeps a block in place without a redzone, if a release build would not move it. Redzones of
 * others and blocks at rest give way if needed. */
static int buddy_stays(upfront_buddy *b, upfront_buddy_found *f, uint64_t order, uint64_t *want) {
    uint64_t from = f->from, at, had;
    if (b->plain)
        return 0;
    if (!buddy_can_grow(b, from, f->order, order)) {
        if (buddy_search(b, order, &at, &had))
            return 0;
        buddy_give_way(b);
        *f = upfront_buddy_find(b, from);
        if (f->code != UPFRONT_OK || f->from != from || !buddy_can_grow(b, from, f->order, order))
            return 0;
    }
    *want = order;
    return 1;
}
#endif

static void *buddy_resize(upfront_buddy *b, upfront_buddy_found f, uint64_t size) {
    uint64_t from = f.from, had = f.order, order = buddy_order(b, size), want = buddy_wide(b, size, order);
    uint64_t bytes = buddy_bytes(b, upfront_buddy_natural(b, from, had));
    char *p = buddy_address(b, from), *q;
    int stays, may;
    if (UPFRONT_LOOKS(b) && order <= had && want > had)
        want = had; /* no move for a redzone */
    may = buddy_bytes(b, order) <= bytes || buddy_may(b, buddy_bytes(b, order) - bytes);
    buddy_clean(b, f);
    stays = may && (want <= had || buddy_can_grow(b, from, had, want) || buddy_stays(b, &f, order, &want));
    had = f.order;
    if (!stays) {
        q = (char *)buddy_alloc(b, size, order);
        if (q != NULL) {
            memcpy(q, p, (size_t)bytes);
            f = upfront_buddy_find(b, from); /* the block may have lost its redzone */
            buddy_end(b, f);
        }
        return q;
    }
    if (UPFRONT_LOOKS(b))
        b->padded += buddy_bytes(b, want) - buddy_bytes(b, had) - buddy_bytes(b, order) + bytes;
    if (want > had) {
        buddy_grow(b, from, had, want);
    } else if (want < had) {
        upfront_mark_dead(p + buddy_bytes(b, want), buddy_bytes(b, had) - buddy_bytes(b, want));
        buddy_cut(b, from, had, want);
    }
    b->used += buddy_bytes(b, order) - bytes;
    buddy_count(b, size, order);
    buddy_gave(b, from, size, order, want);
    return p;
}

void *upfront_buddy_realloc(upfront_buddy *b, void *p, uint64_t size) {
    upfront_buddy_found f;
    void *q = NULL;
    if (p == NULL)
        return upfront_buddy_alloc(b, size, 1);
    if (b == NULL || !upfront_enter(&b->busy, &b->raced))
        return NULL;
    f = buddy_find(b, p);
    if (f.code != UPFRONT_OK)
        buddy_refused(b, f);
    else if (!buddy_refuses(b, buddy_bytes(b, upfront_buddy_natural(b, f.from, f.order)), size))
        q = buddy_resize(b, f, upfront_size(size));
    upfront_leave(&b->busy);
    return q;
}

#ifdef UPFRONT_CHECKED
static void buddy_know(const upfront_buddy *b, upfront_buddy_found f) {
    upfront_note_asked(buddy_address(b, f.from), buddy_bytes(b, f.order));
}
#else
#define buddy_know(b, f) ((void)0)
#endif

int64_t upfront_buddy_size_of(const upfront_buddy *b, const void *p) {
    upfront_buddy_found f;
    if (b == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_enter(&b->busy, &b->raced))
        return UPFRONT_RACED;
    f = buddy_find(b, p);
    if (f.code == UPFRONT_OK)
        f.order = upfront_buddy_natural(b, f.from, f.order);
    if (f.code == UPFRONT_OK && UPFRONT_LOOKS(b))
        buddy_know(b, f); /* from now on the caller may use all of it */
    upfront_leave(&b->busy);
    return f.code != UPFRONT_OK ? f.code : (int64_t)buddy_bytes(b, f.order);
}

uint64_t upfront_buddy_largest(const upfront_buddy *b) {
    uint64_t largest;
    if (b == NULL || b->root == 0)
        return 0;
    largest = *upfront_buddy_byte(b, b->root) & UPFRONT_BUDDY_LARGEST;
    return largest == 0 ? 0 : buddy_bytes(b, largest - 1);
}

void upfront_buddy_reserve(upfront_buddy *b, uint64_t bytes) {
    if (b != NULL && b->root != 0)
        b->reserve = bytes;
}

uint64_t upfront_buddy_phase(upfront_buddy *b) {
    uint64_t peak;
    if (b == NULL)
        return 0;
    peak = b->phase;
    b->phase = b->used;
    return peak;
}

void upfront_buddy_plain(upfront_buddy *b) {
    if (b == NULL || b->root == 0 || !upfront_enter(&b->busy, &b->raced))
        return;
    buddy_give_way(b);
    b->plain = 1;
    upfront_leave(&b->busy);
}

int upfront_buddy_check(const upfront_buddy *b, const void *p) {
    int64_t size = b != NULL && p == NULL ? 0 : upfront_buddy_size_of(b, p);
    return size < 0 ? (int)size : UPFRONT_OK;
}

void *upfront_buddy_hook(void *buddy, void *p, size_t old, size_t size) {
    (void)old;
    if (size != 0)
        return upfront_buddy_realloc((upfront_buddy *)buddy, p, size);
    upfront_buddy_free((upfront_buddy *)buddy, p);
    return NULL;
}
