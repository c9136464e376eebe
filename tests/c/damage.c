/* damage.c - one stray write into free memory, at each place and of several values: all that is whole is given afterwards, nobody else's
 * bytes change, and the damage is told. */
#include "check.h"

enum { DAMAGE_SIZE = 8192, DAMAGE_BLOCKS = 20, DAMAGE_GIVEN = 512 };

static struct {
    unsigned char *window;
    upfront_heap *h;
    unsigned char *live[DAMAGE_BLOCKS];
    uint64_t size[DAMAGE_BLOCKS];
    unsigned char before[DAMAGE_SIZE];
    upfront_heap_range at[64]; /* the blocks before the write */
    uint64_t blocks, served;
} damage;

static unsigned char *damage_given[DAMAGE_GIVEN];

/* Live blocks with free ones between them: several in a list, and of some sizes one. With front lists those are parked. */
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

/* Allocates until nothing is left; all is written to and nobody's else. */
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

/* What comes after the write: first a drain, or frees, or reallocs. */
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
    CHECK(!control || h->damaged > 0 || way == 1 || way == 2); /* a link may have been written anew before it was read */
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

/* Up to 64 bytes at once. */
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

/* A block that melted into the rest of the heap: the rest is still served, but for a front of bounded size. */
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

void test_damage(void) {
    damage_of_the_rest();
    damage_words(0);
    damage_words(64);
    damage_runs(0);
    damage_runs(64);
}
