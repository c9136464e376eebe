/* callbacks.c - tests of callbacks.h: the rules of malloc and its like, counted misuse, and
 * threads. */
#include "callbacks.h"
#include "check.h"

UPFRONT_CALLBACKS(pond, heap)

/* A program that chooses its kind and a name at compile time. */
#define LAKE_KIND buddy
#define LAKE lake
UPFRONT_CALLBACKS(LAKE, LAKE_KIND)

static void callbacks_macros(void) {
    unsigned char *w = window_new(WINDOW);
    void *p;
    lake.arena = upfront_buddy_init(w, WINDOW, 64);
    p = lake_malloc(40);
    CHECK(p != NULL && lake.arena->live == 1);
    CHECK(lake_size(p) >= 40);
    lake_free(p);
    CHECK(lake.misuse.calls == 0 && lake.arena->live == 0);
    lake.arena = NULL;
    UPFRONT_UNPOISON(w, WINDOW);
    window_free(w, WINDOW);
}

static void callbacks_answers(uint64_t parked) {
    unsigned char *w = window_new(WINDOW), *p, *q;
    volatile size_t huge = SIZE_MAX; /* the compiler warns of a constant that large */
    uint64_t room;
    CHECK(pond_malloc(1) == NULL && pond_calloc(1, 1) == NULL); /* no arena so far */
    pond.arena = heap_of(w, WINDOW, parked);
    room = upfront_heap_largest(pond.arena);

    p = (unsigned char *)pond_malloc(0);
    q = (unsigned char *)pond_malloc(0);
    CHECK(p != NULL && q != NULL && p != q && pond_size(p) == 0);
    p = (unsigned char *)pond_realloc(p, 100);
    CHECK((uintptr_t)p % 16 == 0);
    CHECK_EQ(pond_size(p), 100);
    fill(p, 100, 7);
    /* full changes nothing, and isn't misuse */
    CHECK(pond_realloc(p, WINDOW) == NULL && holds(p, 100, 7));
    p = (unsigned char *)pond_realloc(p, 0);
    CHECK(p != NULL && pond_size(p) == 0);
    pond_free(p);
    pond_free(q);
    pond_free(NULL);
    CHECK_EQ(pond_size(NULL), 0);
    p = (unsigned char *)pond_realloc(NULL, 40);
    CHECK_EQ(pond_size(p), 40);
    fill(p, 40, 7);
    pond_free(p);

    p = (unsigned char *)pond_calloc(5, 8);
    CHECK(holds(p, 40, 0) && pond_size(p) == 40);
    pond_free(p);
    CHECK(pond_calloc(huge / 2, 3) == NULL && pond_calloc(huge / 16 + 1, 16) == NULL &&
        pond_calloc(3, huge / 2) == NULL);
    CHECK(pond_malloc(huge) == NULL && pond_calloc(1, huge) == NULL);
    p = (unsigned char *)pond_calloc(huge, 0);
    CHECK_EQ(pond_size(p), 0);
    pond_free(p);
    upfront_heap_flush(pond.arena);
    CHECK(pond.misuse.calls == 0 && pond.arena->live == 0 && upfront_heap_largest(pond.arena) == room);
    pond.arena = NULL;
    UPFRONT_UNPOISON(w, WINDOW);
    window_free(w, WINDOW);
}

/* Reports whether `calls` calls were refused, the last with this name, address and code, and
 * nothing changed. */
static int callbacks_refused(uint64_t calls, const char *call, const void *address, int code) {
    return pond.misuse.calls == calls && strcmp(pond.misuse.call, call) == 0 && pond.misuse.address == address &&
           pond.misuse.code == code && pond.arena->live == 1;
}

static void callbacks_misuse(uint64_t parked) {
    unsigned char *w = window_new(WINDOW), *p, *dead;
    pond.arena = heap_of(w, WINDOW, parked);
    p = (unsigned char *)pond_malloc(200);
    dead = (unsigned char *)pond_malloc(200);
    fill(p, 200, 7);
    pond_free(dead);
    pond_free(dead);
    CHECK(callbacks_refused(1, "free", dead, UPFRONT_DOUBLE));
    pond_free(p + 16);
    CHECK(callbacks_refused(2, "free", p + 16, UPFRONT_MISALIGNED));
    pond_free(&dead);
    CHECK(callbacks_refused(3, "free", &dead, UPFRONT_FOREIGN));
    CHECK(pond_realloc(dead, 8) == NULL && callbacks_refused(4, "realloc", dead, UPFRONT_DOUBLE));
    CHECK(pond_realloc(&dead, 8) == NULL && callbacks_refused(5, "realloc", &dead, UPFRONT_FOREIGN));
    CHECK(pond_size(p + 32) == 0 && callbacks_refused(6, "size", p + 32, UPFRONT_MISALIGNED));
    CHECK(holds(p, 200, 7) && pond_size(p) == 200);
    pond_free(p);
    CHECK(pond.misuse.calls == 6 && pond.arena->live == 0);
    /* A malloc, a free and a realloc that find damage still do their work. */
    p = (unsigned char *)pond_malloc(2000);
    dead = (unsigned char *)pond_malloc(2000);
    pond_free(p);
    UPFRONT_UNPOISON(w, WINDOW);
    memset(p, 'A', 16);
    CHECK(pond_malloc(1900) > (void *)dead && pond.arena->lost == 1);
    CHECK(pond.misuse.calls == 7 && strcmp(pond.misuse.call, "malloc") == 0 && pond.misuse.address == p);
    dead[2000] ^= 0x10;
    pond_free(dead);
    CHECK(callbacks_refused(8, "free", pond.misuse.address, UPFRONT_CORRUPT));
    p = (unsigned char *)pond_malloc(3008);
    UPFRONT_UNPOISON(w, WINDOW);
    p[3008] ^= 0x10;
    CHECK(pond_realloc(p, 3100) != NULL && pond.misuse.calls == 9 && strcmp(pond.misuse.call, "realloc") == 0);
    CHECK(pond.arena->live == 2 && upfront_heap_walk(pond.arena, NULL, 0, NULL) == UPFRONT_OK);
    pond.arena = NULL;
    pond.misuse.calls = pond.misuse.damaged = 0;
    UPFRONT_UNPOISON(w, WINDOW);
    window_free(w, WINDOW);
}

/* A thread keeps some blocks, each filled with its own byte. */
typedef struct callbacks_thread {
    upfront_shared_heap *shared;
    uint64_t seed;
    int name;
    int wrong; /* blocks with other bytes than the thread wrote */
} callbacks_thread;

static void *callbacks_work(void *arg) {
    callbacks_thread *t = (callbacks_thread *)arg;
    unsigned char *kept[16] = {NULL};
    size_t sizes[16] = {0};
    int i;
    for (i = 0; i < 4016; i++) {
        uint64_t random = next_random(&t->seed);
        size_t k = i < 4000 ? (size_t)(random % 16) : (size_t)(i - 4000), size = (size_t)(random >> 8) % 300,
            old = sizes[k];
        unsigned char *p = kept[k];
        if (p != NULL && (upfront_shared_heap_size(t->shared, p) != old || !holds(p, old, t->name)))
            t->wrong++;
        if (i >= 4000 || random % 7 < 3) {
            upfront_shared_heap_free(t->shared, p);
            p = NULL;
        } else if (p == NULL && random % 2 == 0) {
            p = (unsigned char *)upfront_shared_heap_calloc(t->shared, 1, size);
            t->wrong += p != NULL && !holds(p, size, 0);
        } else {
            unsigned char *moved = (unsigned char *)upfront_shared_heap_realloc(t->shared, p, size);
            if (moved == NULL)
                continue; /* full; p is still valid */
            t->wrong += !holds(moved, p == NULL ? 0 : old < size ? old : size, t->name);
            p = moved;
        }
        kept[k] = p;
        sizes[k] = size;
        if (p != NULL)
            fill(p, size, t->name);
    }
    return NULL;
}

static void callbacks_threads(uint64_t parked) {
    enum { THREADS = 4 };
    unsigned char *w = window_new(WINDOW);
    callbacks_thread threads[THREADS];
    pthread_t ids[THREADS];
    upfront_shared_heap shared;
    uint64_t room;
    int i;
    /* the heap is full now and then */
    CHECK_EQ(upfront_shared_heap_init(&shared, upfront_heap_init(w, 4096, parked)), 0);
    room = upfront_heap_largest(shared.arena);
    for (i = 0; i < THREADS; i++) {
        callbacks_thread t = {&shared, 0, 0, 0};
        t.seed = 77 + (uint64_t)i;
        t.name = i + 1;
        threads[i] = t;
        CHECK(pthread_create(&ids[i], NULL, callbacks_work, &threads[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
        CHECK_EQ(threads[i].wrong, 0);
    }
    CHECK(shared.misuse.calls == 0 && shared.arena->live == 0 && shared.arena->failed > 0);
    upfront_heap_flush(shared.arena);
    CHECK_EQ(upfront_heap_walk(shared.arena, NULL, 0, NULL), UPFRONT_OK);
    CHECK_EQ(upfront_heap_largest(shared.arena), room);
    UPFRONT_UNPOISON(w, WINDOW);
    window_free(w, WINDOW);
}

void test_callbacks(void) {
    uint64_t parked;
    callbacks_macros();
    for (parked = 0; parked <= 256; parked += 256) { /* without front lists, and with */
        callbacks_answers(parked);
        callbacks_misuse(parked);
        callbacks_threads(parked);
    }
}
