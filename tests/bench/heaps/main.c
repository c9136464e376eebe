/* main.c - heaps ROUNDS pairs LIVE MOST [NAME...] | flush | memory [NAME...] | unflushed | times |
 * one-size [NAME...] | numbers [NAME...]:
 * prints lines of fields, separated by tabs. */
#define _GNU_SOURCE
#include "heaps.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

upfront_heap *heap;
uint64_t parked = PARKED;
upfront_buddy *pages;
tlsf_t two_level;
library jemalloc, mimalloc;
uint32_t victims[STEPS], sizes[STEPS];
void *things[LIVE_MOST];

void fail(const char *who, const char *what) {
    fprintf(stderr, "%s: %s\n", who, what);
    exit(1);
}

void *room(void) {
    static char *block;
    if (block == NULL)
        block = mmap(NULL, ROOM + UPFRONT_ALIGN_MAX, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        fail("room", "no memory");
    return block + (0 - (uintptr_t)block) % UPFRONT_ALIGN_MAX;
}

int wanted(const char *name, char **who) {
    if (*who == NULL)
        return 1;
    while (*who != NULL && strcmp(*who, name) != 0)
        who++;
    return *who != NULL;
}

/* DEEPBIND: a library calls its own malloc. */
int library_open(library *l, const char *file, const char *prefix) {
    char name[32];
    void *p, *handle;
    if (l->malloc != NULL)
        return 1;
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (handle == NULL) {
        fprintf(stderr, "%s; its rows are missing\n", dlerror());
        return 0;
    }
#define OPEN(what)                                    \
    snprintf(name, sizeof name, "%s" #what, prefix);  \
    p = dlsym(handle, name);                          \
    if (p == NULL)                                    \
        fail(file, name);                             \
    memcpy(&l->what, &p, sizeof p);
    OPEN(malloc)
    OPEN(free)
    OPEN(realloc)
    return 1;
}

void program_make(uint32_t live, uint32_t most) {
    uint64_t s = UINT64_C(88172645463325252);
    for (int i = 0; i < STEPS; i++) {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        victims[i] = (uint32_t)(s >> 32) % live;
        sizes[i] = 16 + (uint32_t)s % (most - 15);
    }
}

int main(int count, char **words) {
    int rounds = count > 2 ? atoi(words[1]) : 0;
    const char *what = count > 2 ? words[2] : "";
    if (strcmp(what, "pairs") == 0 && count > 4)
        pairs(rounds, (uint32_t)atoi(words[3]), (uint32_t)atoi(words[4]), words + 5);
    else if (strcmp(what, "flush") == 0)
        flush(rounds);
    else if (strcmp(what, "memory") == 0)
        memory(words + 3);
    else if (strcmp(what, "unflushed") == 0)
        unflushed();
    else if (strcmp(what, "times") == 0)
        times();
    else if (strcmp(what, "one-size") == 0 || strcmp(what, "numbers") == 0)
        shapes(rounds, what[0] == 'n', words + 3);
    else
        fail(words[0], "see main.c");
    return 0;
}
