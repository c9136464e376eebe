/* damage.c - one stray write into free memory, at each place and with several values. Afterwards
 * all whole blocks are still allocated, no live block's bytes change, and the damage is
 * reported. */
#if defined(__linux__)
#define _DEFAULT_SOURCE 1
#include <sys/mman.h>
#endif

#include "check.h"

enum { DAMAGE_SIZE = 8192, DAMAGE_BLOCKS = 20, DAMAGE_GIVEN = 512 };

static struct {
    unsigned char *window;
    upfront_heap *h;
    unsigned char *live[DAMAGE_BLOCKS];
    uint64_t size[DAMAGE_BLOCKS];
    unsigned char before[DAMAGE_SIZE];
    upfront_block at[64]; /* the blocks before the write */
    uint64_t blocks, served;
} damage;

static unsigned char *damage_given[DAMAGE_GIVEN];

/* Live blocks with free blocks between them: several in one list, and some alone in theirs. With
 * front lists the freed blocks are parked. */
static void damage_make(uint64_t parked) {
    static const uint64_t sizes[] = {16, 80, 112, 80, 500, 80, 16, 1000, 16, 528};
    uint64_t i;
    damage.window = window_new(WINDOW);
    damage.h = heap_of(damage.window, DAMAGE_SIZE, parked);
    for (i = 0; i < DAMAGE_BLOCKS; i++) {
        damage.size[i] = sizes[i / 2 % 10];
        damage.live[i] = (unsigned char *)upfront_heap_alloc(damage.h, damage.size[i], 16);
        fill(damage.live[i], damage.size[i], (int)i + 1);
    }
    for (i = 1; i < DAMAGE_BLOCKS; i += 2) {
        CHECK_EQ(upfront_heap_free(damage.h, damage.live[i]), UPFRONT_OK);
        damage.live[i] = NULL;
    }
    UPFRONT_UNPOISON(damage.window, WINDOW);
    memcpy(damage.before, damage.h, DAMAGE_SIZE);
    CHECK_EQ(upfront_heap_walk(damage.h, damage.at, 64, &damage.blocks), UPFRONT_OK);
}

static void damage_restore(void) {
    UPFRONT_UNPOISON(damage.window, WINDOW);
    memcpy(damage.h, damage.before, DAMAGE_SIZE);
}

/* Allocates until nothing is left, and writes all of it: no byte is shared. */
static uint64_t damage_drain(uint64_t size) {
    uint64_t n = 0, i;
    unsigned char *p;
    while ((p = (unsigned char *)upfront_heap_alloc(damage.h, size, 16)) != NULL) {
        CHECK(n < DAMAGE_GIVEN && p > damage.window + damage.h->first && p + size <= damage.window + damage.h->end);
        fill(p, size, (int)n);
        damage_given[n++] = p;
    }
    for (i = 0; i < n; i++)
        CHECK(holds(damage_given[i], size, (int)i));
    for (i = 0; i < DAMAGE_BLOCKS; i++)
        CHECK(damage.live[i] == NULL || holds(damage.live[i], damage.size[i], (int)i + 1));
    return n;
}

static int damage_free(void *p) {
    int code = upfront_heap_free(damage.h, p);
    CHECK(code == UPFRONT_OK || code == UPFRONT_CORRUPT);
    return code;
}

/* The program after the write begins with a drain, with frees, or with reallocs. */
static void damage_after(uint64_t b, uint64_t way, int control) {
    upfront_heap *h = damage.h;
    uint64_t n = 0, i, had;
    if (way == 1)
        for (i = 0; i < DAMAGE_BLOCKS; i++)
            if (damage.live[i] != NULL)
                damage_free(damage.live[i]);
    if (way == 2)
        for (i = 0; i < DAMAGE_BLOCKS; i++)
            if (damage.live[i] != NULL) {
                unsigned char *p = (unsigned char *)upfront_heap_realloc(h, damage.live[i], damage.size[i] + 100);
                CHECK(p != NULL && holds(p, damage.size[i], (int)i + 1));
                damage_free(p);
            }
    if (way == 3)
        upfront_heap_flush(h);
    if (way == 4)
        CHECK(upfront_heap_largest(h) > 1000);
    if (way == 1 || way == 2)
        CHECK(h->used == 0 && h->live == 0);
    if (way != 1 && way != 2) {
        n = damage_drain(16);
        CHECK(n + h->lost_bytes / 32 + h->lost >= damage.served && h->lost_bytes <= damage.at[b].size);
        CHECK(!control || h->damaged > 0);
        for (i = 0; i < n; i++)
            damage_free(damage_given[i]);
        for (i = 0; i < DAMAGE_BLOCKS; i++)
            if (damage.live[i] != NULL)
                damage_free(damage.live[i]);
    }
    upfront_heap_flush(h);
    had = h->damaged;
    CHECK(upfront_heap_largest(h) > 2000);
    CHECK(had > 0 || h->damaged == 0 || way == 1 || way == 2);
    /* the link may have been overwritten before it was read */
    CHECK(!control || h->damaged > 0 || way == 1 || way == 2);
    CHECK(h->lost <= 1 && (h->lost == 0 || h->where != 0));
    CHECK(h->most == h->end - h->first - h->lost_bytes && h->used == 0 && h->live == 0);
    CHECK_EQ(upfront_heap_walk(h, NULL, 0, NULL), UPFRONT_OK);
    upfront_heap_reset(h);
    CHECK(h->lost == 0 && h->most == h->end - h->first && upfront_heap_walk(h, NULL, 0, NULL) == UPFRONT_OK);
}

static void damage_words(uint64_t parked) {
    uint64_t i, b, word, v, way, values[9] = {0, UINT64_MAX, UINT64_C(0x4141414141414141), 16, 0, 0, 0, 0, 0};
    damage_make(parked);
    damage.served = damage_drain(16);
    damage_restore();
    values[4] = damage.h->end;
    values[5] = damage.at[0].offset;
    for (i = 0, v = 6; i < damage.blocks && v < 9; i++)
        if (damage.at[i].live != 1)
            values[v++] = damage.at[i].offset;
    for (b = 0; b < damage.blocks; b++) {
        if (damage.at[b].live == 1)
            continue;
        for (word = 0; word < damage.at[b].size; word += word < 48 ? 8 : damage.at[b].size / 5 / 8 * 8 + 8)
            for (v = 0; v < 9; v++)
                for (way = 0; way < 5; way++) {
                    int control = word < (damage.at[b].live == UPFRONT_HEAP_PARKED ? 24 : 32);
                    damage_restore();
                    if (upfront_heap_word(damage.h, damage.at[b].offset + word) == values[v])
                        continue;
                    upfront_heap_set(damage.h, damage.at[b].offset + word, values[v]);
                    damage_after(b, way, control);
                }
    }
    damage_restore();
    window_free(damage.window, WINDOW);
}

/* Writes up to 64 bytes at once. */
static void damage_runs(uint64_t parked) {
    uint64_t b, from, size, way, i;
    damage_make(parked);
    damage.served = damage_drain(16);
    damage_restore();
    for (b = 0; b < damage.blocks; b++) {
        if (damage.at[b].live == 1)
            continue;
        for (from = 0; from < damage.at[b].size && from < 40; from++)
            for (size = 1; size <= 64 && size <= damage.at[b].size - from; size = size * 3 / 2 + 1)
                for (way = 0; way < 5; way++) {
                    damage_restore();
                    for (i = 0; i < size; i++)
                        damage.window[damage.at[b].offset + from + i] ^= (unsigned char)(way + size);
                    damage_after(b, way, 0);
                }
    }
    damage_restore();
    window_free(damage.window, WINDOW);
}

/* A write to a block that merged into the rest of the heap: the rest is still used, except for a
 * short front. */
static void damage_of_the_rest(void) {
    unsigned char *w = window_new(WINDOW), *p;
    upfront_heap *h = heap_of(w, WINDOW, 0);
    uint64_t i, all = h->end - h->first;
    CHECK(upfront_heap_alloc(h, 100, 16) != NULL);
    p = (unsigned char *)upfront_heap_alloc(h, 4096, 16);
    CHECK_EQ(upfront_heap_free(h, p), UPFRONT_OK);
    UPFRONT_UNPOISON(w, WINDOW);
    fill(p, 16, 'A');
    for (i = 0; i < 50; i++)
        CHECK(upfront_heap_alloc(h, 1000, 16) != NULL);
    CHECK(h->lost == 1 && h->lost_bytes == UPFRONT_HEAP_CUT && h->damaged == 1);
    CHECK_EQ(h->where, (uint64_t)(p - w));
    CHECK_EQ(upfront_heap_largest(h), all - 128 - UPFRONT_HEAP_CUT - 50 * 1024 - 16);
    UPFRONT_UNPOISON(w, WINDOW);
    window_free(w, WINDOW);
}

/* A link of a list is zero, so the list has lost its end, and looks whole. A refusal finds the end
 * first. */
static void damage_of_a_link(int grows) {
    unsigned char *w = window_new(WINDOW), *p[6];
    upfront_heap *h = heap_of(w, 2048, 0);
    uint64_t i;
    for (i = 0; i < 6; i++)
        p[i] = (unsigned char *)upfront_heap_alloc(h, i == 5 ? 16 : 80, 16);
    while (upfront_heap_alloc(h, 1, 16) != NULL)
        ;
    CHECK(upfront_heap_free(h, p[1]) == UPFRONT_OK && upfront_heap_free(h, p[3]) == UPFRONT_OK);
    UPFRONT_UNPOISON(w, WINDOW);
    memset(p[3], 0, 8);
    CHECK(upfront_heap_alloc(h, 80, 16) == p[3]);
    CHECK((grows ? upfront_heap_realloc(h, p[5], 80) : upfront_heap_alloc(h, 80, 16)) == p[1]);
    CHECK(h->damaged == 1 && h->lost == 0);
    window_free(w, WINDOW);
}

enum { DAMAGE_RING = 512, DAMAGE_RUN = 6, DAMAGE_PAGE = 1 << 16 };

static struct {
    unsigned char *pages; /* unreadable pages follow the block */
    upfront_ring *r;
    unsigned char *live[DAMAGE_RUN]; /* oldest first */
    uint64_t blocks, size;
    unsigned char before[DAMAGE_RING];
} loop;

static int loop_holds(const unsigned char *p, uint64_t size) {
    return p == NULL || (p >= (unsigned char *)(loop.r + 1) && p + size <= (unsigned char *)loop.r + loop.size);
}

static unsigned char *loop_in(unsigned char *p, uint64_t size) {
    CHECK(loop_holds(p, size));
    if (p != NULL)
        fill(p, size, 0xEE);
    return p;
}

static void loop_add(uint64_t size, uint64_t align) {
    loop.live[loop.blocks] = loop_in((unsigned char *)upfront_ring_alloc(loop.r, size, align), size);
    CHECK(loop.live[loop.blocks++] != NULL);
}

/* The last block ends too close to the ring's end for another word. */
static void loop_make(int wrapped, uint64_t size) {
    loop.size = size;
    loop.r = upfront_ring_init(loop.pages + DAMAGE_PAGE - DAMAGE_RING, size);
    loop.blocks = 0;
    loop_add(wrapped ? 120 : 40, 8);
    loop_add(75, 32);
    if (wrapped) {
        CHECK_EQ(upfront_ring_free(loop.r, loop.live[0]), UPFRONT_OK);
        loop.live[0] = loop.live[1];
        loop.blocks = 1;
    }
    loop_add(0, 8);
    if (!wrapped)
        loop_add(40, 8);
    loop_add(DAMAGE_RING - 6 - upfront_ring_up(loop.r->arena.cursor) - UPFRONT_RING_WORD, 8);
    if (wrapped) {
        loop_add(20, 8);
        loop_add(33, 8);
    }
    CHECK(upfront_ring_stop(loop.r) == DAMAGE_RING - 6 && (loop.r->seam != 0) == wrapped);
    UPFRONT_UNPOISON(loop.r, DAMAGE_RING);
    memcpy(loop.before, loop.r, DAMAGE_RING);
}

/* For any words, no access is outside of the block, and a reset makes the ring whole. */
static void loop_goes_on(void) {
    upfront_ring *r = loop.r;
    uint64_t i, size = 0, room, count;
    for (i = 0; i < 12; i++) {
        unsigned char *p = (unsigned char *)upfront_ring_front(r, &size);
        CHECK(loop_holds(p, size));
        if (i % 3 != 0)
            (void)upfront_ring_free(r, p);
        room = upfront_ring_room(r);
        CHECK(room < DAMAGE_RING);
        loop_in((unsigned char *)upfront_ring_alloc(r, i < 6 ? room : i, 8), i < 6 ? room : i);
        loop_in((unsigned char *)upfront_ring_overwrite(r, 5 * i, 1), 5 * i);
        CHECK(upfront_ring_least(r) <= upfront_ring_size(r));
    }
    CHECK_EQ(upfront_ring_reset(r, r->arena.gen), UPFRONT_OK);
    CHECK(upfront_ring_walk(r, NULL, 0, &count) == UPFRONT_OK && count == 0);
    CHECK_EQ(upfront_ring_room(r), upfront_ring_size(r) - UPFRONT_RING_WORD);
}

/* Frees all blocks, or damage is reported: by the walk at once, and by the free that finds it. */
static void loop_after(uint64_t freed_first) {
    upfront_ring *r = loop.r;
    uint64_t i, count;
    int told = upfront_ring_walk(r, NULL, 0, &count), code = UPFRONT_OK;
    for (i = 0; i < loop.blocks && i < freed_first && code == UPFRONT_OK; i++) {
        code = upfront_ring_free(r, loop.live[i]);
        /* a block of less padding contains p */
        CHECK(code == UPFRONT_OK || code == (told == UPFRONT_OK ? UPFRONT_ORDER : UPFRONT_CORRUPT));
    }
    if (i == loop.blocks && code == UPFRONT_OK && told == UPFRONT_OK)
        CHECK(r->count == 0 && upfront_ring_used(r) == 0);
    if (code == UPFRONT_CORRUPT)
        CHECK_EQ(upfront_ring_find(r, r->arena.gen, r), UPFRONT_CORRUPT);
    loop_goes_on();
}

static void damage_rings(int wrapped, uint64_t size) {
    static const uint64_t values[] = {UINT64_MAX, UINT64_C(0x4141414141414141), UPFRONT_RING_PADDING,
        24 * UPFRONT_RING_PADDING,
                                      200 * UPFRONT_RING_PADDING | 3, UPFRONT_RING_PADDING - 1};
    enum { FIXED = sizeof values / sizeof *values };
    uint64_t at, v, freed;
    loop_make(wrapped, size);
    for (at = sizeof(upfront_ring); at + 8 <= size; at += 8)
        for (v = 0; v < FIXED + DAMAGE_RING; v++)
            for (freed = 0; freed <= loop.blocks; freed++) {
                UPFRONT_UNPOISON(loop.r, DAMAGE_RING);
                memcpy(loop.r, loop.before, DAMAGE_RING);
                *(uint64_t *)((uintptr_t)loop.r + (uintptr_t)at) = v < FIXED ? values[v] : v - FIXED;
                loop_after(freed);
            }
    UPFRONT_UNPOISON(loop.r, DAMAGE_RING);
}

/* Memory with unreadable pages after it, on Linux. */
static unsigned char *damage_pages(void) {
#if defined(__linux__)
    void *pages = mmap(NULL, 2 * DAMAGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect((char *)pages + DAMAGE_PAGE, DAMAGE_PAGE, PROT_NONE) == 0);
    return (unsigned char *)pages;
#else
    return window_new(DAMAGE_PAGE);
#endif
}

static void damage_pages_end(unsigned char *pages) {
#if defined(__linux__)
    CHECK_EQ(munmap(pages, 2 * DAMAGE_PAGE), 0);
#else
    window_free(pages, DAMAGE_PAGE);
#endif
}

static void damage_of_rings(void) {
    loop.pages = damage_pages();
    damage_rings(0, DAMAGE_RING);
    damage_rings(1, DAMAGE_RING);
    damage_rings(0, DAMAGE_RING - 6);
    damage_rings(1, DAMAGE_RING - 6);
    damage_pages_end(loop.pages);
}

/* One stray write before a pool's chunks: in a checked build no chunk outside is taken, and none
 * twice. */
static void damage_of_pools(void) {
#ifdef UPFRONT_CHECKED
    static const uint64_t values[] = {0, UINT64_MAX, UINT64_C(0x0101010101010101), UINT64_C(0x0202020202020202),
        UINT64_C(0x500000005)};
    enum { CHUNKS = 12 };
    unsigned char *w = window_new(WINDOW), *first, *p, before[1024];
    upfront_pool *pool = upfront_pool_make(w, 1024, 40, 8, 0);
    uint64_t at, v, i, free, state;
    int live[64];
    for (i = 0; i < CHUNKS; i++)
        CHECK(upfront_pool_get(pool, 1) != NULL);
    first = (unsigned char *)upfront_pool_chunk(pool, 0);
    for (i = 0; i < CHUNKS; i += 2)
        CHECK_EQ(upfront_pool_put(pool, 1, first + i * pool->stride), UPFRONT_OK);
    free = pool->free;
    memcpy(before, w, sizeof before);
    for (at = sizeof *pool; at < (uint64_t)(first - w); at += 8)
        for (v = 0; v < sizeof values / sizeof *values; v++) {
            memcpy(w, before, sizeof before);
            *(uint64_t *)(void *)(w + at) = values[v];
            for (i = 0; i < pool->count; i++) {
                state = *upfront_pool_state(pool, i);
                live[i] = state != UPFRONT_CHUNK_FRESH && state != UPFRONT_CHUNK_FREE;
            }
            for (i = 0; (p = (unsigned char *)upfront_pool_get(pool, 1)) != NULL; i++) {
                uint64_t index = (uint64_t)(p - first) / pool->stride;
                CHECK(i < free && index < pool->count && !live[index]);
                live[index] = 1;
            }
            CHECK(i == free || !upfront_pool_next_is_free(pool));
        }
    window_free(w, WINDOW);
#endif
}

void test_damage(void) {
    damage_of_pools();
    damage_of_rings();
    damage_of_the_rest();
    damage_of_a_link(0);
    damage_of_a_link(1);
    damage_words(0);
    damage_words(64);
    damage_runs(0);
    damage_runs(64);
}
