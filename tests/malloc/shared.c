#include "shared.h"

#include <pthread.h>

static uint64_t next(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

void *shared_hold(shared_functions f, uint64_t bytes, uint64_t most, uint64_t seed) {
    void **all = NULL, **one = NULL;
    uint64_t got = 0, size, n = 0;
    for (; got < bytes; got += size, n++) {
        size = 8 + next(&seed) % most;
        switch (n % 4) {
        case 0:
            one = (void **)f.calloc(f.context, 1, size);
            break;
        case 1: /* a block that grows: a free and an alloc in the profile */
            one = (void **)f.realloc(f.context, f.malloc(f.context, size / 2 + 1), size);
            break;
        case 2: /* a block that doesn't stay */
            f.free(f.context, f.malloc(f.context, size));
            one = (void **)f.malloc(f.context, size);
            break;
        default:
            one = (void **)f.realloc(f.context, NULL, size);
        }
        if (one == NULL)
            break;
        *one = all;
        all = one;
    }
    return all;
}

void shared_free_all(shared_functions f, void *list) {
    void **one = (void **)list, **next_one;
    for (; one != NULL; one = next_one) {
        next_one = (void **)*one;
        f.free(f.context, one);
    }
}

__attribute__((noinline)) void *shared_keep(shared_functions f, uint64_t size) {
    void *volatile p = f.malloc(f.context, size); /* no tail call: this frame is in the stack */
    return p;
}

enum { BOXES = 64 };

typedef struct worker {
    shared_functions f;
    uint64_t steps, seed;
    void **boxes;
} worker;

static void *work(void *arg) {
    worker *w = (worker *)arg;
    const shared_functions f = w->f;
    while (w->steps-- != 0) {
        uint64_t n = next(&w->seed), size = 1 + n % 6000;
        void *p = __atomic_exchange_n(&w->boxes[n / 8192 % BOXES], NULL, __ATOMIC_ACQ_REL);
        switch (n % 3) {
        case 0:
            f.free(f.context, p);
            p = f.malloc(f.context, size);
            break;
        case 1: {
            void *q = f.realloc(f.context, p, size);
            p = q != NULL ? q : p;
            break;
        }
        default:
            f.free(f.context, p);
            p = f.calloc(f.context, 3, size / 3);
        }
        f.free(f.context, __atomic_exchange_n(&w->boxes[n / 512 % BOXES], p, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

int shared_threads(shared_functions f, int threads, uint64_t steps) {
    enum { MOST = 16 };
    pthread_t thread[MOST];
    worker workers[MOST];
    void *boxes[BOXES] = {NULL};
    int i, started = 0;
    for (; started < threads && started < MOST; started++) {
        workers[started] = (worker){f, steps, (uint64_t)started + 1, boxes};
        if (pthread_create(&thread[started], NULL, work, &workers[started]) != 0)
            break;
    }
    for (i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    for (i = 0; i < BOXES; i++)
        f.free(f.context, boxes[i]);
    return started == threads ? 0 : __LINE__;
}
