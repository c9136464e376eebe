/* shared.c - shared ROUNDS: the instructions, and the time, of a malloc and a free of a block that
 * the heap parks. The functions are those of an arena.Shared without a profile. */
#define _GNU_SOURCE
#include "count.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../../arena_c/callbacks.h"

enum { PAIRS = 100000, SIZE = 1 << 20 };

static upfront_shared_heap shared;
static void *(*volatile allocate)(void *context, size_t size) = upfront_shared_heap_malloc;
static void (*volatile release)(void *context, void *p) = upfront_shared_heap_free;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pairs(int n) {
    while (n-- > 0)
        release(&shared, allocate(&shared, 64));
}

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 1;
    void *block = aligned_alloc(64, SIZE);
    if (block == NULL || upfront_shared_heap_init(&shared, upfront_heap_init(block, SIZE, 256)) != 0)
        return 1;
    pairs(100);
    while (rounds-- > 0) {
        double start;
        char label[64];
        CALLGRIND_ZERO_STATS;
        start = now();
        pairs(PAIRS);
        start = now() - start;
        snprintf(label, sizeof label, "upfront|%d|1", PAIRS);
        CALLGRIND_DUMP_STATS_AT(label);
        printf("upfront\t%.2f\n", start / PAIRS);
    }
    return 0;
}
