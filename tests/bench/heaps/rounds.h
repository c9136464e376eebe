#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdio.h>
#include <time.h>

#include "count.h"

/* Runs pairs of a malloc and a free, warm, and reports each round's instructions to callgrind and
 * its time to standard output. */
static void rounds(int n, int pairs, void (*run)(int pairs)) {
    run(100);
    while (n-- > 0) {
        struct timespec start, end;
        double time;
        char label[64];
        CALLGRIND_ZERO_STATS;
        clock_gettime(CLOCK_MONOTONIC, &start);
        run(pairs);
        clock_gettime(CLOCK_MONOTONIC, &end);
        snprintf(label, sizeof label, "upfront|%d|1", pairs);
        CALLGRIND_DUMP_STATS_AT(label);
        time = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
        printf("upfront\t%.2f\n", time / pairs);
    }
}

#endif
