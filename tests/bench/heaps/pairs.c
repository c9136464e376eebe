/* pairs.c - work H: the cost of a pair of free and malloc, and the memory needed to refuse none. */
#define _GNU_SOURCE
#include "count.h"
#include "heaps.h"

#include <stdio.h>
#include <time.h>

static uint32_t live;

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void counted(const char *who, int n) {
    char label[64];
    snprintf(label, sizeof label, "%s|%d|1", who, n);
    CALLGRIND_DUMP_STATS_AT(label);
}

/* Each block is written to, and checked when all are freed: no two blocks overlap. */
#define PAIRS(id, name, begin, take, give, resize)                                       \
    FUNCTIONS(id, name, begin, take, give, resize)                                       \
    static int id##_steps(uint32_t from, uint32_t to) {                                  \
        for (uint32_t i = from; i < to; i++) {                                           \
            void *p;                                                                     \
            id##_give(things[victims[i]]);                                               \
            things[victims[i]] = p = id##_take(sizes[i]);                               \
            if (p == NULL)                                                               \
                return 0;                                                                \
            *(uint32_t *)p = victims[i];                                                 \
        }                                                                                \
        return 1;                                                                        \
    }                                                                                    \
    static int id##_fill(void) {                                                         \
        for (uint32_t i = 0; i < live; i++) {                                            \
            void *p = things[i] = id##_take(sizes[STEPS - 1 - i]);                      \
            if (p == NULL)                                                               \
                return 0;                                                                \
            *(uint32_t *)p = i;                                                          \
        }                                                                                \
        return 1;                                                                        \
    }                                                                                    \
    static void id##_drain(void) {                                                       \
        for (uint32_t i = 0; i < live; i++) {                                            \
            if (*(uint32_t *)things[i] != i)                                             \
                fail(name, "two blocks overlap");                              \
            id##_give(things[i]);                                                        \
        }                                                                                \
    }                                                                                    \
    static double id##_pairs(void) {                                                     \
        double took;                                                                     \
        if (!id##_begin(room(), ROOM))                                                   \
            return -1;                                                                   \
        if (!id##_fill() || !id##_steps(0, STEPS / 4))                                   \
            fail(name, "full");                                                          \
        CALLGRIND_ZERO_STATS;                                                            \
        took = now();                                                                    \
        if (!id##_steps(STEPS / 4, STEPS))                                               \
            fail(name, "full");                                                          \
        took = (now() - took) / (STEPS - STEPS / 4);                                     \
        counted(name, STEPS - STEPS / 4);                                                \
        id##_drain();                                                                    \
        return took;                                                                     \
    }
IN_BLOCK(PAIRS)
OUTSIDE(PAIRS)

#define FITS(id, name, begin, take, give, resize) \
    static int id##_fits(size_t size) {                                          \
        return id##_begin(room(), size) && id##_fill() && id##_steps(0, STEPS);  \
    }
IN_BLOCK(FITS)

static const struct contestant {
    const char *name;
    double (*pairs)(void);
    int (*fits)(size_t size); /* NULL: it has no block of its own */
} contestants[] = {
#define INSIDE(id, name, begin, take, give, resize) {name, id##_pairs, id##_fits},
#define WITHOUT(id, name, begin, take, give, resize) {name, id##_pairs, NULL},
    IN_BLOCK(INSIDE) OUTSIDE(WITHOUT)};

enum { COUNT = sizeof contestants / sizeof contestants[0] };

/* Each contestant runs once a round, starting with another one each time. A round of 200 MB is
 * slow. */
void pairs(int rounds, uint32_t things_live, uint32_t most, char **who) {
    int out[COUNT] = {0};
    live = things_live;
    if (live > LIVE_MOST)
        fail("pairs", "that many don't live");
    if (live == LIVE_MOST && rounds > 5)
        rounds = 5;
    program_make(live, most);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < COUNT; i++) {
            int k = (i + round) % COUNT;
            double ns;
            if (out[k] || !wanted(contestants[k].name, who))
                continue;
            ns = contestants[k].pairs();
            out[k] = ns < 0;
            if (ns >= 0)
                printf("%s\t%.3f\n", contestants[k].name, ns);
        }
}

/* Returns the most bytes that the program has allocated at once. */
static uint64_t asked(void) {
    static uint32_t had[LIVE_MOST];
    uint64_t sum = 0, peak;
    for (uint32_t i = 0; i < live; i++)
        sum += had[i] = sizes[STEPS - 1 - i];
    peak = sum;
    for (uint32_t i = 0; i < STEPS; i++) {
        sum = sum - had[victims[i]] + sizes[i];
        had[victims[i]] = sizes[i];
        if (peak < sum)
            peak = sum;
    }
    return peak;
}

/* Measures a flush for each parked block, with a hundred thousand live ones. */
void flush(int rounds) {
    live = LIVE_MOST;
    program_make(live, 256);
    if (!parking_begin(room(), ROOM) || !parking_fill())
        fail("flush", "full");
    for (int round = 0; round < rounds; round++) {
        uint32_t from = (uint32_t)round * 5000 % (STEPS - 5000), freed = from;
        double took;
        if (!parking_steps(from, from + 4000))
            fail("flush", "full");
        for (freed = from + 4000; heap->parked < PARKED; freed++)
            parking_give(things[victims[freed]]), things[victims[freed]] = NULL;
        CALLGRIND_ZERO_STATS;
        took = now();
        upfront_heap_flush(heap);
        took = now() - took;
        counted("upfront", PARKED);
        if (heap->parked != 0)
            fail("flush", "blocks are parked behind it");
        printf("upfront\t%.3f\n", took / PARKED);
        while (freed-- > from + 4000)
            if (things[victims[freed]] == NULL)
                things[victims[freed]] = parking_take(sizes[freed]);
    }
}

/* Reports whether no request was refused, and none had to flush parked blocks first. */
static int fits_unflushed(size_t size) {
    if (!parking_begin(room(), size) || !parking_fill())
        return 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t parked;
        parking_give(things[victims[i]]);
        parked = heap->parked;
        things[victims[i]] = parking_take(sizes[i]);
        if (things[victims[i]] == NULL || heap->parked + 1 < parked)
            return 0;
    }
    return 1;
}

/* Finds the smallest sufficient block by halving, to a thousandth, as a multiple of the
 * requested bytes. */
static void needed(const char *who, uint64_t need, int (*fits)(size_t size)) {
    uint64_t low = need, high = 4 * need;
    while (high - low > need / 1000) {
        uint64_t middle = (low + high) / 2 / 64 * 64;
        if (fits((size_t)middle))
            high = middle;
        else
            low = middle;
    }
    printf("%s\t%.4f\n", who, (double)high / (double)need);
}

/* Measures the smallest block for the whole program. */
void memory(char **who) {
    live = 10000;
    program_make(live, 4096);
    for (int k = 0; k < COUNT; k++)
        if (contestants[k].fits != NULL && wanted(contestants[k].name, who))
            needed(contestants[k].name, asked(), contestants[k].fits);
}

void unflushed(void) {
    live = 10000;
    program_make(live, 4096);
    needed("upfront", asked(), fits_unflushed);
}
