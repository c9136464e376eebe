/* client.h - common code of the tests of C libraries: each library runs with its memory in a heap,
 * and again in smaller and smaller ones until the heap refuses.
 *
 * -DIN_BUDDY uses a buddy. The arguments are the capacity of the heap's front lists and the number
 * of sizes. At each size the library works, or ends with an error of its own. Then the reserve is
 * lifted, everything is closed, and the heap must be one free block again. */
#ifndef UPFRONT_CLIENT_H
#define UPFRONT_CLIENT_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "callbacks.h"

#ifdef IN_BUDDY
#define CLIENT(verb) upfront_buddy_##verb
UPFRONT_CALLBACKS(client, buddy)
#else
#define CLIENT(verb) upfront_heap_##verb
UPFRONT_CALLBACKS(client, heap)
#endif

#ifndef MOST /* the largest heap */
#define MOST (8u << 20)
#endif

static _Alignas(64) unsigned char client_block[MOST];
static uint64_t client_parked, client_room;
static int client_failures;

static inline void check(int condition, const char *what) {
    if (!condition && client_failures++ < 20)
        printf("FAILED: %s (heap of %llu)\n", what, client.arena == NULL ? 0 : (unsigned long long)client.arena->end);
}

/* The last `reserve` bytes are refused until client_clean_up. */
static inline void client_begin(uint64_t size, uint64_t reserve) {
#ifdef IN_BUDDY
    client.arena = upfront_buddy_init(client_block, size, 64);
#else
    client.arena = upfront_heap_init(client_block, size, client_parked);
#endif
    client_room = CLIENT(largest)(client.arena);
    CLIENT(reserve)(client.arena, reserve);
}

static inline void client_clean_up(void) { CLIENT(reserve)(client.arena, 0); }

static inline void client_flush(void) {
#ifndef IN_BUDDY
    upfront_heap_flush(client.arena);
#endif
}

static inline void client_end(void) {
    client_clean_up();
    check(client.arena->live == 0, "everything is freed");
    client_flush();
    check(CLIENT(walk)(client.arena, NULL, 0, NULL) == UPFRONT_OK, "the walk");
    CLIENT(plain)(client.arena); /* frees the checked build's blocks at rest */
    check(client.arena->used == 0 && CLIENT(largest)(client.arena) == client_room, "all is free again");
    check(client.misuse.calls == 0, "no call is refused");
}

/* Tries `sizes` sizes from the largest down, each smaller by the same factor. `run` reports whether
 * the library did all its work; both answers must occur. */
static inline void client_shrink(int sizes, uint64_t largest, uint64_t smallest, int (*run)(uint64_t size)) {
    int i, worked = 0;
    double size = (double)largest, factor = 1;
    if (sizes > 1) { /* the (sizes-1)th root, without libm */
        double low = 0, high = 1;
        int step, k;
        for (step = 0; step < 60; step++) {
            double power = 1;
            factor = (low + high) / 2;
            for (k = 1; k < sizes; k++)
                power *= factor;
            if (power * (double)largest > (double)smallest)
                high = factor;
            else
                low = factor;
        }
    }
    for (i = 0; i < sizes; i++, size *= factor)
        worked += run((uint64_t)size & ~UINT64_C(63));
    printf("%d sizes from %llu down to %llu: %d worked, %d ended with an error\n", sizes, (unsigned long long)largest,
           (unsigned long long)smallest, worked, sizes - worked);
    check(worked > 0 && worked < sizes, "the largest does, the smallest doesn't");
}

static inline int client_sizes(int argc, char **argv) {
    client_parked = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    return argc > 2 ? atoi(argv[2]) : 100;
}

/* For timings: nanoseconds of the processor, so that other processes matter less. */
static inline uint64_t client_ns(void) { return (uint64_t)clock() * (1000000000u / CLOCKS_PER_SEC); }

static inline int client_done(void) {
    puts(client_failures == 0 ? "ok" : "FAILED");
    return client_failures != 0;
}

#endif
