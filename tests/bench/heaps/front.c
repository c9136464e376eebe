/* front.c - front ROUNDS front [profiled|large]: the instructions, and the time, of a malloc and a
 * free of C's malloc of a process (arena/with/malloc), of a block that a front has. With "profiled"
 * the heap has its profile, with "large" the block has 2 KiB and not 64 bytes. */
#define _GNU_SOURCE
#include "rounds.h"

#include <stdlib.h>
#include <string.h>

#include "../../../arena/with/malloc/process.h"

enum { PAIRS = 100000 };

static size_t size = 64;

static void pairs(int n) {
    while (n-- > 0) {
        void *volatile p = malloc(size);
        free(p);
    }
}

int main(int count, char **words) {
    upfront_malloc_plan plan = {.size = 64 << 20, .runtime = UPFRONT_MALLOC_RUNTIME, .fronts = 4};
    if (count > 3 && strcmp(words[3], "profiled") == 0) {
        plan.profile = 512 << 10;
        plan.samples = 512 << 10;
    }
    if (count > 3 && strcmp(words[3], "large") == 0)
        size = 2048;
    if (upfront_malloc_begin(&plan) != UPFRONT_MALLOC_OK)
        return 1;
    rounds(count > 1 ? atoi(words[1]) : 1, PAIRS, pairs);
    return 0;
}
