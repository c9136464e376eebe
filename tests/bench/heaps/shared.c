/* shared.c - shared ROUNDS: the instructions, and the time, of a malloc and a free of a block that
 * the heap parks. The functions are those of an arena.Shared without a profile. */
#define _GNU_SOURCE
#include "rounds.h"

#include <stdlib.h>

#include "../../../arena_c/callbacks.h"

enum { PAIRS = 100000, SIZE = 1 << 20 };

static upfront_shared_heap shared;
static void *(*volatile allocate)(void *context, size_t size) = upfront_shared_heap_malloc;
static void (*volatile release)(void *context, void *p) = upfront_shared_heap_free;

static void pairs(int n) {
    while (n-- > 0)
        release(&shared, allocate(&shared, 64));
}

int main(int count, char **words) {
    void *block = aligned_alloc(64, SIZE);
    if (block == NULL || upfront_shared_heap_init(&shared, upfront_heap_init(block, SIZE, 256)) != 0)
        return 1;
    rounds(count > 1 ? atoi(words[1]) : 1, PAIRS, pairs);
    return 0;
}
