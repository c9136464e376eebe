/* stress.c - stress THREADS OPERATIONS: runs operations on the malloc of the process in so many
 * threads. A quarter of the blocks is freed by another thread, and an eighth of the steps lets a
 * block grow by realloc, several times. It prints the nanoseconds of an operation. It is a program
 * of its own because a contestant is preloaded. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 1000, EXCHANGED = 4096, THREADS_MOST = 64, SIZE_MOST = 1 << 20 };

/* A block begins with its size, and ends with the last byte of the size. */
typedef struct block {
    uint64_t size;
} block;

static _Atomic(block *) exchange[EXCHANGED];
static pthread_barrier_t start;
static uint64_t operations; /* of a thread */

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "stress: %s\n", what);
    exit(1);
}

static uint64_t next(uint64_t *s) {
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s >> 11;
}

/* Nine of ten sizes are at most 256 bytes; one of a thousand is up to 1 MiB. */
static size_t size_of(uint64_t *s) {
    uint64_t kind = next(s) % 1000;
    uint64_t most = kind < 900 ? 256 : kind < 990 ? 8192 : kind < 999 ? 65536 : SIZE_MOST;
    return 16 + next(s) % (most - 15);
}

static block *mark(block *b, size_t size) {
    if (b == NULL)
        fail("full");
    b->size = size;
    ((unsigned char *)b)[size - 1] = (unsigned char)size;
    return b;
}

static void check(const block *b) {
    if (b->size < 16 || b->size > SIZE_MOST ||
        ((const unsigned char *)b)[b->size - 1] != (unsigned char)b->size)
        fail("two blocks overlap");
}

static void drop(block *b) {
    if (b != NULL) {
        check(b);
        free(b);
    }
}

static void *work(void *seed) {
    block *live[LIVE] = {NULL};
    uint64_t s = (uint64_t)(uintptr_t)seed * UINT64_C(0x9E3779B97F4A7C15);
    pthread_barrier_wait(&start);
    for (uint64_t done = 0; done < operations; done++) {
        block **at = &live[next(&s) % LIVE];
        switch (next(&s) % 8) {
        case 0: /* grows in steps */
            for (int step = 0; *at != NULL && step < 4 && (*at)->size < SIZE_MOST / 2; step++) {
                size_t size = (*at)->size + (*at)->size / 2 + next(&s) % 32;
                check(*at);
                *at = mark(realloc(*at, size), size);
                done++;
            }
            break;
        case 1:
        case 2: /* another thread will free it */
            *at = atomic_exchange(&exchange[next(&s) % EXCHANGED], *at);
            /* fall through */
        default:
            drop(*at);
            size_t size = size_of(&s);
            *at = mark(malloc(size), size);
        }
    }
    for (int i = 0; i < LIVE; i++)
        drop(live[i]);
    return NULL;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int count, char **words) {
    int threads = count > 2 ? atoi(words[1]) : 0;
    pthread_t thread[THREADS_MOST];
    double took;
    if (threads < 1 || threads > THREADS_MOST)
        fail("see stress.c");
    operations = (uint64_t)(atoi(words[2]) / threads);
    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(i + 1)) != 0)
            fail("no thread");
    pthread_barrier_wait(&start);
    took = now();
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    took = now() - took;
    for (int i = 0; i < EXCHANGED; i++)
        drop(exchange[i]);
    printf("%.3f\n", took / (double)(operations * (uint64_t)threads));
    return 0;
}
