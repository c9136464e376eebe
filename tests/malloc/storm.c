//go:build linux && cgo && !asan

#define _GNU_SOURCE
#include "storm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../arena/with/malloc/process.h"
#include "work.h"

#define WANT(is)             \
    do {                     \
        if (!(is))           \
            return __LINE__; \
    } while (0)

typedef struct storm {
    int rounds;
    int (*throws)(int);
    uint64_t (*deep)(int);
    int (*edge)(void *, uintptr_t);
    const char *library;
} storm;

enum { STACK = 1 << 18 };

static int signals; /* handled */

/* Interrupts malloc too, so it doesn't call it. */
static void on_signal(int n) {
    volatile char frame[2000];
    frame[0] = (char)n;
    __atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
}

static int opens(const storm *s) {
    int i;
    for (i = 0; i < s->rounds; i++) {
        int (*again)(int);
        void *p = dlopen(s->library, RTLD_NOW | RTLD_LOCAL), *f;
        WANT(p != NULL && (f = dlsym(p, "storm_throw")) != NULL);
        memcpy(&again, &f, sizeof f);
        WANT(again(i % 9) == 0);
        WANT(dlclose(p) == 0);
    }
    return 0;
}

static int throws_and_sinks(const storm *s) {
    int i;
    for (i = 0; i < s->rounds; i++) {
        WANT(s->throws(i % 30) == 0);
        WANT(s->deep(i % 400) != 0);
        pthread_kill(pthread_self(), SIGUSR2);
    }
    return 0;
}

static int forks(const storm *s) {
    int i, status;
    for (i = 0; i < s->rounds / 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(100);
            if (s->deep(300) == 0)
                _exit(1);
            _exit(work_share_end() == 0 && work_share(300, 20000, (uint64_t)i + 1) == 0 ? 0 : 2);
        }
        WANT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}

static int shares(const storm *s) {
    int i, fault = 0;
    for (i = 0; i < s->rounds && fault == 0; i++) {
        fault = work_share(500, 20000, (uint64_t)(uintptr_t)&i + (uint64_t)i);
        if (fault == 0 && i % 16 == 15)
            fault = work_share_end();
    }
    return fault;
}

typedef struct job {
    const storm *s;
    int (*run)(const storm *);
    void *end; /* of the stack, for the job at the edge */
    int fault, over;
} job;

static void *start(void *arg) {
    job *j = (job *)arg;
    int i;
    if (j->run != NULL)
        j->fault = j->run(j->s);
    for (i = 0; j->run == NULL && i < j->s->rounds && j->fault == 0; i++)
        j->fault = j->s->edge(j->end, 2300);
    __atomic_store_n(&j->over, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Sends signals to the jobs until all have ended. The stack at the edge has no room for one. */
static void send_signals(const job *jobs, const pthread_t *t, unsigned n) {
    unsigned i, over;
    do {
        for (i = over = 0; i < n; i++) {
            if (__atomic_load_n(&jobs[i].over, __ATOMIC_ACQUIRE))
                over++;
            else if (jobs[i].run != NULL)
                pthread_kill(t[i], SIGUSR2);
        }
        usleep(200);
    } while (over < n);
}

int storm_run(const char *library, int rounds) {
    /* the stack at whose edge NULL works has the other stacks below it */
    static int (*const runs[])(const storm *) = {NULL,  opens,  opens,  throws_and_sinks, throws_and_sinks,
                                                 forks, shares, shares, shares,           NULL};
    enum { JOBS = sizeof runs / sizeof runs[0] };
    job jobs[JOBS];
    pthread_t t[JOBS];
    storm s = {rounds, NULL, NULL, NULL, library};
    void *p = dlopen(library, RTLD_NOW | RTLD_LOCAL), *f[3];
    char copy[4096];
    struct sigaction a;
    unsigned i;
    int fault = 0;
    WANT(p != NULL);
    f[0] = dlsym(p, "storm_throw");
    f[1] = dlsym(p, "storm_deep");
    f[2] = dlsym(p, "storm_edge");
    WANT(f[0] != NULL && f[1] != NULL && f[2] != NULL);
    memcpy(&s.throws, &f[0], sizeof f[0]);
    memcpy(&s.deep, &f[1], sizeof f[1]);
    memcpy(&s.edge, &f[2], sizeof f[2]);
    /* the jobs open a copy, which goes away each time */
    WANT(strlen(library) + 6 < sizeof copy);
    strcpy(copy, library);
    strcat(copy, ".copy");
    s.library = copy;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    a.sa_flags = SA_ONSTACK | SA_RESTART;
    sigaction(SIGUSR2, &a, NULL);
    for (i = 0; i < JOBS; i++) {
        pthread_attr_t attr;
        char *stack = (char *)mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        WANT(stack != MAP_FAILED && mprotect(stack, 4096, PROT_NONE) == 0);
        jobs[i] = (job){&s, runs[i], stack + 4096, 0, 0};
        WANT(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, stack, STACK) == 0);
        WANT(pthread_create(&t[i], &attr, start, &jobs[i]) == 0);
        pthread_attr_destroy(&attr);
    }
    send_signals(jobs, t, JOBS);
    for (i = 0; i < JOBS; i++) {
        pthread_join(t[i], NULL);
        fault = fault != 0 ? fault : jobs[i].fault;
    }
    WANT(fault != 0 || __atomic_load_n(&signals, __ATOMIC_RELAXED) > rounds);
    return fault != 0 ? fault : work_share_end();
}

static void *keeps(void *all) {
    int i;
    for (i = 0; i < 2000; i++) {
        void **one = (void **)malloc(1000);
        if (one == NULL)
            return all;
        *one = all;
        all = one;
    }
    return all;
}

void *storm_thread(void) {
    pthread_t t;
    void *all = NULL;
    if (pthread_create(&t, NULL, keeps, NULL) == 0)
        pthread_join(t, &all);
    return all;
}

void *storm_around(int n) { return storm_back(n); }

/* Lets a library keep blocks by one of its functions. Returns the function's address, or 0. */
static uintptr_t keeps_in(void *library, const char *function) {
    void *(*keep)(int);
    void *f = library != NULL ? dlsym(library, function) : NULL;
    memcpy(&keep, &f, sizeof f);
    if (f != NULL)
        keep(1000);
    return (uintptr_t)f;
}

int storm_closes(const char *first, const char *second) {
    void *library = dlopen(first, RTLD_NOW | RTLD_LOCAL);
    uintptr_t was = keeps_in(library, "alpha_keep"), is;
    WANT(was != 0 && dlclose(library) == 0);
    is = keeps_in(dlopen(second, RTLD_NOW | RTLD_LOCAL), "other_keep");
    WANT(is != 0);
    return was == is ? 0 : -1;
}

int storm_table(void) {
    enum { RATE = 1 << 20, SIZE = 64 * 1024, BLOCK = 1 << 26 };
    static uint64_t table[SIZE / 8];
    const uint64_t far = UINT64_C(1) << 50; /* no block of the heap is there */
    upfront_trace t = {.c = 1};
    upfront_profile_counts c;
    upfront_profile_stack s;
    uint64_t i, all, live = 0;
    upfront_profile_begin(table, SIZE, RATE);
    upfront_profile_count(&c);
    WANT(c.capacity > 50 && c.capacity < SIZE / 500);
    for (i = 0; i < c.capacity + 5; i++) { /* as many stacks as samples */
        t.frames[0] = 4096 + i;
        WANT(upfront_profile_add(far + 16 * i, BLOCK, 0, &t) == (i < c.capacity));
    }
    upfront_profile_count(&c);
    WANT(c.lost == 5 && c.samples == c.capacity && c.stacks == c.capacity && c.gone.bytes == 0);
    for (i = 0; i < 10; i++)
        upfront_profile_drop(far + 16 * 3 * i);
    upfront_profile_drop(far + 7); /* no sample */
    for (i = 0; i < 10; i++) { /* new stacks replace those without live blocks */
        t.frames[0] = 1 << 20 | (uintptr_t)i;
        WANT(upfront_profile_add(far * 2 + 16 * i, BLOCK, 0, &t));
    }
    upfront_profile_count(&c);
    WANT(c.lost == 5 && c.samples == c.capacity && c.stacks == c.capacity);
    WANT(c.gone.bytes == 10 * (uint64_t)BLOCK && c.gone.objects == 10 * UPFRONT_PROFILE_OBJECT);
    for (i = 0, all = 0; i < c.stacks; i++) {
        upfront_profile_stack_at(i, &s);
        all += s.all.bytes;
        live += s.live.bytes;
        WANT(s.samples == 1 && s.live.bytes == BLOCK);
    }
    WANT(live == c.capacity * BLOCK && all == live);
    return 0;
}

int storm_moments(void) {
    enum { RATE = 1 << 20, SIZE = 64 * 1024, BLOCK = 1 << 26 };
    static uint64_t table[SIZE / 8];
    const uint64_t far = UINT64_C(1) << 50;
    const void *from = (const void *)(uintptr_t)far;
    upfront_trace t = {.c = 1, .frames = {4096}};
    upfront_profile_counts c;
    upfront_holder holders[UPFRONT_PROFILE_HOLDERS];
    uint64_t i, n, first, second;
    upfront_profile_begin(table, SIZE, RATE);
    upfront_profile_count(&c);
    n = c.capacity;
    for (i = 0; i < n; i++)
        WANT(upfront_profile_add(far + 16 * i, BLOCK, 1, &t));
    first = upfront_profile_moment();
    for (i = 0; i < n; i++)
        upfront_profile_drop(far + 16 * i);
    upfront_profile_count(&c);
    WANT(c.samples == 0);
    upfront_profile_rewind(from, 16 * n, first);
    upfront_profile_count(&c);
    WANT(c.samples == n);
    for (i = 0; i < n / 2; i++)
        upfront_profile_drop(far + 16 * i);
    second = upfront_profile_moment();
    for (; i < n; i++)
        upfront_profile_drop(far + 16 * i);
    /* C's malloc needs an entry: the blocks that were freed first make room */
    WANT(upfront_profile_add(1 << 20, BLOCK, 0, &t));
    upfront_profile_rewind(from, 16 * n, first);
    upfront_profile_count(&c);
    WANT(c.samples == n - n / 2 + 1 && c.lost == 0);
    for (i = n / 2; i < n; i++)
        WANT(upfront_profile_may(far + 16 * i));
    /* only C's malloc has holders */
    WANT(upfront_profile_holders(holders) == 1 && holders[0].bytes == BLOCK);
    /* a block that was made since a snapshot ends with its restore, elsewhere it stays */
    WANT(upfront_profile_add(far, BLOCK, 1, &t) && upfront_profile_add(far * 2, BLOCK, 1, &t));
    upfront_profile_rewind(from, 16 * n, second);
    upfront_profile_count(&c);
    WANT(c.samples == n - n / 2 + 2);
    /* a new sample replaces one whose block went without a drop */
    WANT(upfront_profile_add(far * 2, BLOCK, 1, &t));
    upfront_profile_rewind(from, 16 * n, 0);
    upfront_profile_count(&c);
    WANT(c.samples == 2);
    return 0;
}

int storm_child_keeps(void) {
    upfront_profile_counts before, after;
    int status;
    pid_t child;
    upfront_malloc_profile(&before);
    child = fork();
    if (child == 0) {
        int i;
        alarm(100);
        upfront_malloc_profile(&after);
        if (memcmp(&before, &after, sizeof before) != 0)
            _exit(1);
        for (i = 0; i < 3000; i++)
            if (malloc(1000) == NULL)
                _exit(2);
        upfront_malloc_profile(&after);
        _exit(after.samples > before.samples ? 0 : 3);
    }
    WANT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

void *storm_hold(uint64_t bytes, uint64_t most, uint64_t seed) {
    void **all = NULL, **one = NULL;
    uint64_t got = 0, size, n = 0;
    upfront_malloc_seed(seed);
    for (; got < bytes; got += size, n++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size = 8 + (seed >> 33) % most;
        switch (n % 8) {
        case 0:
            one = (void **)calloc(1, size);
            break;
        case 1: /* a block that grows: a free and an alloc in the profile */
            one = (void **)realloc(malloc(size / 2 + 1), size);
            break;
        case 2:
            if (posix_memalign((void **)&one, 256, size) != 0)
                one = NULL;
            break;
        case 3: /* a block that doesn't stay */
            free(malloc(size));
            one = (void **)malloc(size);
            break;
        default:
            one = (void **)malloc(size);
        }
        if (one == NULL)
            return all;
        *one = all;
        all = one;
    }
    return all;
}
