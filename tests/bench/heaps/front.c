/* front.c - front ROUNDS front [profiled]: the instructions, and the time, of a malloc and a free
 * of C's malloc of a process (arena/with/malloc), of a block that a front has. With "profiled" the
 * heap has its profile. */
#define _GNU_SOURCE
#include "count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../arena/with/malloc/process.h"

enum { PAIRS = 100000 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pairs(int n) {
    while (n-- > 0) {
        void *volatile p = malloc(64);
        free(p);
    }
}

int main(int count, char **words) {
    upfront_malloc_plan plan = {.size = 64 << 20, .runtime = UPFRONT_MALLOC_RUNTIME, .fronts = 4};
    int rounds = count > 1 ? atoi(words[1]) : 1;
    if (count > 3 && strcmp(words[3], "profiled") == 0) {
        plan.profile = 512 << 10;
        plan.samples = 512 << 10;
    }
    if (upfront_malloc_begin(&plan) != UPFRONT_MALLOC_OK)
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
