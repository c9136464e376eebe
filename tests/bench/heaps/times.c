/* times.c - work T: the time of each operation of each arena, without interruptions.
 *
 * A program of one arena is deterministic. It is played repeatedly from the same state, and the
 * least time of an operation in any play is its time. So the time of interruptions is removed,
 * and the time of the operation itself stays. An arena starts in the same block each time. A
 * contestant that takes memory from the system plays in processes forked from the same one. The
 * time to read the clock is subtracted; a step of the clock may be longer than an operation. */
#define _GNU_SOURCE
#include "heaps.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t begun(void) {
    uint64_t t;
    _mm_lfence();
    t = __rdtsc();
    _mm_lfence();
    return t;
}
static inline uint64_t ended(void) {
    unsigned processor;
    uint64_t t = __rdtscp(&processor);
    _mm_lfence();
    return t;
}
#elif defined(__aarch64__)
static inline uint64_t begun(void) {
    uint64_t t;
    __asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(t) : : "memory");
    return t;
}
static inline uint64_t ended(void) { return begun(); }
#else
static inline uint64_t begun(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
static inline uint64_t ended(void) { return begun(); }
#endif

enum { PLAYS = 15, FORKED_PLAYS = 7, OPERATIONS = 5, SAMPLES = 20000, WARM = 200 };

/* In memory that is shared with the forked processes. */
static struct results {
    uint32_t least[OPERATIONS][SAMPLES];
    uint32_t counts[OPERATIONS];
    int missing;
} * results;

static uint32_t done[OPERATIONS];

static inline void note(int operation, uint64_t took) {
    uint32_t i = done[operation]++ - WARM;
    if (i < SAMPLES && took < results->least[operation][i])
        results->least[operation][i] = (uint32_t)took;
}

#define TIME(operation, call)                    \
    do {                                         \
        uint64_t from_ = begun();                \
        call;                                    \
        note(operation, ended() - from_);        \
    } while (0)

/* Not 0 if a request was refused: then nothing was measured. */
static int refused;

static uint64_t state;

static uint32_t below(uint32_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 32) % n;
}

enum { SIZE = 1 << 20, MAP_SIZE = 4 * SIZE };

static void clock_alone(void) {
    for (int i = 0; i < SAMPLES; i++)
        TIME(0, __asm__ volatile("" ::: "memory"));
}

static void linear(void) {
    upfront_linear *l = upfront_linear_init(room(), SIZE);
    for (int i = 0; i < SAMPLES; i++) {
        void *p;
        uint32_t n = 16 + below(240);
        TIME(0, p = upfront_linear_alloc(l, n, 16));
        TIME(1, refused |= upfront_linear_resize(l, 1, l->start, p, n, n + 16));
        if (i % 16 == 15)
            TIME(2, refused |= upfront_linear_rewind(l, 1, l->start));
    }
}

static void ends(void) {
    upfront_ends *e = upfront_ends_init(room(), SIZE);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t near = upfront_ends_mark(e), far = upfront_ends_mark_far(e);
        uint32_t n = 16 + below(240);
        void *p;
        TIME(0, p = upfront_ends_alloc(e, n, 16));
        TIME(1, refused |= NULL == upfront_ends_alloc_far(e, n, 16));
        TIME(2, refused |= upfront_ends_resize(e, 1, p, n, n + 16));
        TIME(3, refused |= upfront_ends_rewind(e, 1, near));
        TIME(4, refused |= upfront_ends_rewind_far(e, 1, far));
    }
}

/* 64 blocks at each end, freed one by one, or 16 at once. */
static void stack(void) {
    upfront_stack *s = upfront_stack_init(room(), SIZE);
    void *near[64], *far[64];
    for (int i = 0; i < SAMPLES; i += 64) {
        uint64_t mark = 0;
        for (int k = 0; k < 64; k++) {
            if (k == 48)
                mark = upfront_stack_mark(s);
            TIME(0, near[k] = upfront_stack_alloc(s, 16 + below(240), 16));
            TIME(1, far[k] = upfront_stack_alloc_far(s, 16 + below(240), 16));
        }
        TIME(4, refused |= upfront_stack_rewind(s, mark));
        for (int k = 63; k >= 0; k--) {
            if (k < 48)
                TIME(2, refused |= upfront_stack_free(s, near[k]));
            TIME(3, refused |= upfront_stack_free_far(s, far[k]));
        }
    }
}

static void pool(void) {
    upfront_pool *p = upfront_pool_make(room(), SIZE, 64, 16, 0);
    for (uint32_t i = 0; i < 8192; i++)
        things[i] = upfront_pool_get(p, p->gen);
    for (int i = 0; i < SAMPLES; i++) {
        uint32_t k = below(8192);
        TIME(0, refused |= upfront_pool_put(p, p->gen, things[k]));
        TIME(1, things[k] = upfront_pool_get(p, p->gen));
    }
}

static void handles(void) {
    static uint64_t named[8192];
    upfront_pool *p = upfront_pool_make(room(), SIZE, 64, 16, upfront_pool_handles(0, 1));
    void *volatile at;
    for (uint32_t i = 0; i < 8192; i++)
        upfront_pool_get_handle(p, p->gen, &named[i]);
    for (int i = 0; i < SAMPLES; i++) {
        uint32_t k = below(8192);
        TIME(0, at = upfront_pool_at(p, p->gen, named[k]));
        TIME(1, refused |= upfront_pool_put_handle(p, p->gen, named[k]));
        TIME(2, at = upfront_pool_get_handle(p, p->gen, &named[k]));
    }
    (void)at;
}

/* About 5000 live blocks. When the ring is full, the oldest are overwritten. */
static void ring(void) {
    upfront_ring *r = upfront_ring_init(room(), SIZE);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t size;
        void *p;
        TIME(0, p = upfront_ring_alloc(r, 16 + below(240), 16));
        if (p == NULL)
            TIME(2, refused |= NULL == upfront_ring_overwrite(r, 16 + below(240), 16));
        if (i % 2 == 0) {
            p = upfront_ring_front(r, &size);
            TIME(1, refused |= upfront_ring_free(r, p));
        }
    }
}

static void frame(void) {
    upfront_frame *f = upfront_frame_init(room(), SIZE, 2);
    for (int i = 0; i < SAMPLES; i++) {
        TIME(0, refused |= NULL == upfront_frame_alloc(f, 16 + below(240), 16));
        if (i % 16 == 15)
            TIME(1, upfront_frame_next(f));
    }
}

static void finalize(void *arg) { ++*(int *)arg; }

static void scopes(void) {
    const upfront_map_arena plan = {"level", UPFRONT_REGION, SIZE, 1, 0, 0};
    upfront_scopes *h;
    int finalized = 0;
    memset(room(), 0, MAP_SIZE);
    h = &upfront_map_row(upfront_map_init(room(), MAP_SIZE, &plan, 1, 8, 2, 0), 0)->arena;
    for (int i = 0; i < SAMPLES; i++) {
        upfront_scope s;
        TIME(0, s = upfront_scope_open(h));
        TIME(1, refused |= NULL == upfront_scope_alloc(s, 16 + below(240), 16));
        TIME(2, refused |= upfront_scope_defer(s, finalize, &finalized));
        TIME(3, refused |= NULL == upfront_scope_temp(s, 16 + below(240)).arena);
        TIME(4, refused |= upfront_scope_close(s));
    }
    if (finalized != SAMPLES)
        fail("scope", "a finalizer didn't run");
}

/* A hundred thousand live blocks; every second realloc makes its block larger. */
enum { BLOCKS = 100000, MOST = 4096 };

#define PLAY(id, name, begin, take, give, resize)                                     \
    FUNCTIONS(id, name, begin, take, give, resize)                                    \
    static void id##_play(void) {                                                     \
        if (!id##_begin(room(), ROOM)) {                                              \
            results->missing = 1;                                                     \
            return;                                                                   \
        }                                                                             \
        for (uint32_t i = 0; i < BLOCKS; i++)                                         \
            memset(things[i] = id##_take(sizes[STEPS - 1 - i]), 1, 16);              \
        for (int i = 0; i < SAMPLES; i++) {                                           \
            uint32_t k = victims[i], other = victims[STEPS / 2 + i];                  \
            void *p;                                                                  \
            TIME(0, id##_give(things[k]));                                            \
            TIME(1, p = id##_take(sizes[i]));                                        \
            if (p == NULL)                                                            \
                fail(name, "full");                                                   \
            memset(things[k] = p, 1, 16);                                             \
            if (i % 4 != 0)                                                           \
                continue;                                                             \
            TIME(2, p = id##_resize(things[other], sizes[STEPS / 2 + i]));           \
            if (p == NULL)                                                            \
                fail(name, "full");                                                   \
            memset(things[other] = p, 1, 16);                                         \
        }                                                                             \
    }
IN_BLOCK(PLAY)
OUTSIDE(PLAY)

static const struct program {
    const char *arena;
    void (*play)(void);
    const char *operations[OPERATIONS];
    int forked;
} programs[] = {
    {"clock", clock_alone, {"nothing"}, 0},
    {"linear", linear, {"alloc", "resize", "rewind"}, 0},
    {"ends", ends, {"alloc", "alloc, far", "resize", "rewind", "rewind, far"}, 0},
    {"stack", stack, {"alloc", "alloc, far", "free", "free, far", "rewind of 16"}, 0},
    {"pool", pool, {"put", "get"}, 0},
    {"pool with handles", handles, {"at", "put", "get"}, 0},
    {"ring", ring, {"alloc", "free", "overwrite"}, 0},
    {"frame", frame, {"alloc", "next"}, 0},
    {"scope", scopes, {"open", "alloc", "defer", "temp", "close"}, 0},
#define OF_HEAP {"free", "alloc", "realloc"}
#define MADE(id, name, begin, take, give, resize) {name, id##_play, OF_HEAP, 0},
#define FORKED(id, name, begin, take, give, resize) {name, id##_play, OF_HEAP, 1},
    IN_BLOCK(MADE) OUTSIDE(FORKED)};

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Returns the nanoseconds of a tick of the clock. */
static double nanoseconds(void) {
    struct timespec a, b;
    uint64_t from, to;
    clock_gettime(CLOCK_MONOTONIC, &a);
    from = begun();
    do {
        clock_gettime(CLOCK_MONOTONIC, &b);
        to = ended();
    } while (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) * 1e-9 < 0.05);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
           (double)(to - from);
}

static void play(const struct program *p) {
    memset(done, 0, sizeof done);
    state = UINT64_C(88172645463325252);
    p->play();
    memcpy(results->counts, done, sizeof done);
    if (refused != 0)
        fail(p->arena, "something was refused");
}

static void repeat(const struct program *p) {
    memset(results->least, 0xff, sizeof results->least);
    results->missing = 0;
    for (int i = 0; i < (p->forked ? FORKED_PLAYS : PLAYS) && !results->missing; i++) {
        int status = 0;
        pid_t child = p->forked ? fork() : -1;
        if (!p->forked || child == 0)
            play(p);
        if (child == 0)
            _exit(0);
        if (p->forked && (child < 0 || waitpid(child, &status, 0) != child || status != 0))
            fail(p->arena, "didn't end well");
    }
}

/* Prints ARENA, OPERATION, and the most nanoseconds of 50 %, 99.9 %, 99.99 % and all of them. */
void times(void) {
    static const double parts[] = {0.5, 0.999, 0.9999, 1};
    double tick = nanoseconds();
    uint32_t alone = 0;
    results = mmap(NULL, sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                   0);
    if (results == MAP_FAILED)
        fail("times", "no memory");
    program_make(BLOCKS, MOST);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        const char *const *names = programs[i].operations;
        repeat(&programs[i]);
        for (int k = 0; k < OPERATIONS && names[k] != NULL && !results->missing; k++) {
            uint32_t count = results->counts[k] - WARM;
            if (results->counts[k] <= WARM)
                fail(names[k], "hardly ever happens");
            if (count > SAMPLES)
                count = SAMPLES;
            qsort(results->least[k], count, sizeof(uint32_t), compare);
            if (i == 0)
                alone = results->least[k][0];
            printf("%s\t%s", programs[i].arena, names[k]);
            for (size_t j = 0; j < sizeof parts / sizeof parts[0]; j++) {
                uint32_t took = results->least[k][(uint32_t)((count - 1) * parts[j])];
                if (i > 0)
                    took = took > alone ? took - alone : 0;
                printf("\t%.1f", took * tick);
            }
            printf("\n");
        }
    }
}
