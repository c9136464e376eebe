#define _GNU_SOURCE
#include "work.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef __GLIBC__ /* musl's headers lack them */
void *pvalloc(size_t size);
int mallopt(int parameter, int value);
#define M_MMAP_THRESHOLD -3
#endif

#define WANT(is)             \
    do {                     \
        if (!(is))           \
            return __LINE__; \
    } while (0)

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * UINT64_C(0x9E3779B97F4A7C15) >> 16;
}

/* Small sizes are likely, and each power of two up to the most. */
static uint64_t some_size(uint64_t *seed, uint64_t most) {
    uint64_t n = next(seed), shift = n % 24;
    n = (next(seed) & ((UINT64_C(16) << shift) - 1)) + 1;
    return n > most ? n % most + 1 : n;
}

/* A block with its size and a value, at both ends. */
typedef struct block {
    uint64_t size;
    unsigned char value;
} block;

static void mark(unsigned char *p, uint64_t from, uint64_t size, unsigned char value) {
    memset(p + from, value, size - from > 64 ? 64 : size - from);
    memset(p + (size > 64 ? size - 64 : 0), value, size > 64 ? 64 : size);
}

static int holds(const unsigned char *p, uint64_t size, unsigned char value) {
    uint64_t i;
    for (i = 0; i < 64 && i < size; i++)
        if (p[i] != value || p[size - 1 - i] != value)
            return 0;
    return 1;
}

/* Stress: a table of blocks, whose first word is the size and the rest a mark. */

enum { CELLS = 1024 };
static unsigned char *cells[CELLS];
static int stress_fault;
static pthread_barrier_t stress_start; /* pthread_create calls malloc, and the jobs fill the heap */

typedef struct job {
    uint64_t steps, most, seed;
} job;

static int drop_cell(unsigned char *p) {
    uint64_t size;
    if (p == NULL)
        return 0;
    memcpy(&size, p, sizeof size);
    WANT(holds(p + sizeof size, size, (unsigned char)size));
    free(p);
    return 0;
}

static unsigned char *new_cell(unsigned char *had, uint64_t size) {
    unsigned char *p = (unsigned char *)realloc(had, size + sizeof size);
    if (p == NULL) {
        free(had);
        return NULL;
    }
    memcpy(p, &size, sizeof size);
    memset(p + sizeof size, 0, size > 128 ? 128 : size);
    mark(p + sizeof size, 0, size, (unsigned char)size);
    return p;
}

static int stress(job *j) {
    uint64_t i;
    for (i = 0; i < j->steps; i++) {
        uint64_t n = next(&j->seed), chain;
        unsigned char *p = NULL;
        int fault;
        if (n % 4 != 0)
            p = new_cell(NULL, some_size(&j->seed, j->most));
        for (chain = n / 4 % 16; p != NULL && chain > 13; chain--)
            p = new_cell(p, some_size(&j->seed, j->most));
        fault = drop_cell(__atomic_exchange_n(&cells[n / 64 % CELLS], p, __ATOMIC_ACQ_REL));
        if (fault != 0)
            return fault;
    }
    return 0;
}

static void *stress_thread(void *arg) {
    int fault;
    pthread_barrier_wait(&stress_start);
    fault = stress((job *)arg);
    if (fault != 0)
        __atomic_store_n(&stress_fault, fault, __ATOMIC_RELAXED);
    return NULL;
}

int work_stress(int threads, uint64_t steps, uint64_t most, uint64_t seed) {
    pthread_t t[64];
    job jobs[64];
    int i, fault;
    WANT(threads >= 1 && threads <= 64);
    stress_fault = 0;
    WANT(pthread_barrier_init(&stress_start, NULL, (unsigned)threads) == 0);
    for (i = 0; i < threads; i++) {
        job j = {steps / (uint64_t)threads, most, seed * 64 + (uint64_t)i + 1};
        jobs[i] = j;
        WANT(pthread_create(&t[i], NULL, stress_thread, &jobs[i]) == 0);
    }
    for (i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    pthread_barrier_destroy(&stress_start);
    fault = work_share_end();
    return stress_fault != 0 ? stress_fault : fault;
}

int work_share(uint64_t steps, uint64_t most, uint64_t seed) {
    job j = {steps, most, seed};
    return stress(&j);
}

int work_share_end(void) {
    int i, fault = 0;
    for (i = 0; i < CELLS; i++) {
        int one = drop_cell(__atomic_exchange_n(&cells[i], NULL, __ATOMIC_ACQ_REL));
        fault = one != 0 ? one : fault;
    }
    return fault;
}

/* Model. */

enum { LIVE = 300 };

/* Allocates with one of the functions, and checks its promise. */
static int make(unsigned char **out, uint64_t size, uint64_t *seed) {
    uint64_t how = next(seed) % 9, align = 16, i;
    void *p = NULL;
    errno = 4711;
    switch (how) {
    case 0:
        p = calloc(size / 3 + 1, 3);
        for (i = 0; p != NULL && i < size; i++)
            WANT(((unsigned char *)p)[i] == 0);
        break;
    case 1:
        align = UINT64_C(16) << next(seed) % 9;
        p = aligned_alloc(align, size);
        break;
    case 2:
        align = UINT64_C(8) << next(seed) % 10;
        if (posix_memalign(&p, align, size) != 0)
            p = NULL;
        break;
    case 3:
        align = next(seed) % 3000;
        p = memalign(align, size);
        align = (align & (align - 1)) == 0 ? align : 16;
        break;
    case 4:
        align = (uint64_t)sysconf(_SC_PAGESIZE);
        p = size % 2 == 0 ? valloc(size) : pvalloc(size);
        break;
    case 5:
        p = realloc(NULL, size);
        break;
    case 6:
        p = reallocarray(NULL, size / 5 + 1, 5);
        break;
    default:
        p = malloc(size);
    }
    *out = (unsigned char *)p;
    if (p == NULL)
        return 0;
    WANT(errno == 4711);
    WANT((uintptr_t)p % 16 == 0 && (align == 0 || (uintptr_t)p % align == 0));
    WANT(malloc_usable_size(p) >= size);
    return 0;
}

static int overlaps(unsigned char **p, const block *b, int n, int but) {
    int i;
    for (i = 0; i < n; i++)
        if (i != but && p[i] != NULL && p[but] < p[i] + b[i].size && p[i] < p[but] + b[but].size)
            return 1;
    return 0;
}

int work_model(uint64_t steps, uint64_t most, uint64_t seed) {
    static unsigned char *p[LIVE];
    static block b[LIVE];
    uint64_t step;
    int i, fault;
    memset(p, 0, sizeof p);
    seed = seed * 2 + 1;
    for (step = 0; step < steps; step++) {
        uint64_t n = next(&seed), size = some_size(&seed, most);
        i = (int)(n % LIVE);
        if (p[i] == NULL) {
            fault = make(&p[i], size, &seed);
            if (fault != 0)
                return fault;
            b[i].size = size;
        } else if (n / LIVE % 3 == 0) {
            unsigned char *q;
            WANT(holds(p[i], b[i].size, b[i].value));
            q = (unsigned char *)(n % 2 ? realloc(p[i], size) : reallocarray(p[i], size, 1));
            if (q == NULL) {
                WANT(errno == ENOMEM && holds(p[i], b[i].size, b[i].value));
                continue;
            }
            WANT(q[0] == b[i].value && (size < 64 || b[i].size < 64 || q[63] == b[i].value));
            WANT(size < b[i].size || holds(q, b[i].size, b[i].value));
            WANT((uintptr_t)q % 16 == 0 && malloc_usable_size(q) >= size);
            p[i] = q;
            b[i].size = size;
        } else {
            WANT(holds(p[i], b[i].size, b[i].value));
            errno = 4712;
            free(p[i]);
            WANT(errno == 4712);
            p[i] = NULL;
        }
        if (p[i] != NULL) {
            WANT(!overlaps(p, b, LIVE, i));
            b[i].value = (unsigned char)n;
            mark(p[i], 0, b[i].size, b[i].value);
            if (malloc_usable_size(p[i]) > b[i].size && n % 5 == 0) { /* they are the caller's */
                b[i].size = malloc_usable_size(p[i]);
                mark(p[i], 0, b[i].size, b[i].value);
            }
        }
    }
    for (i = 0; i < LIVE; i++) {
        WANT(p[i] == NULL || holds(p[i], b[i].size, b[i].value));
        free(p[i]);
    }
    return 0;
}

/* The counts of mallinfo and mallinfo2 add up. AddressSanitizer's are zeros. */
static int counts_in_glibcs_form(void) {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    volatile size_t size = 100000;
    void *p = malloc(size);
    struct mallinfo i = mallinfo();
    WANT(p != NULL && i.uordblks >= (int)size);
    WANT((unsigned)i.arena == (unsigned)i.uordblks + (unsigned)i.fordblks);
#if __GLIBC_PREREQ(2, 33)
    {
        struct mallinfo2 l = mallinfo2();
        WANT(l.uordblks >= size && l.arena == l.uordblks + l.fordblks);
    }
#endif
    free(p);
#pragma GCC diagnostic pop
#endif
    return 0;
}

/* Edges. The sizes are variables, so that no compiler warns. */

int work_edges(void) {
    volatile size_t huge = (size_t)PTRDIFF_MAX + 1, half = (size_t)1 << (4 * sizeof(size_t)), none = 0, three = 3;
    void *p = &p, *q;
    WANT(malloc_usable_size(NULL) == 0);
    free(NULL);
    p = malloc(none);
    q = malloc(none);
    WANT(p != NULL && q != NULL && p != q);
    free(p);
    WANT(realloc(q, none) == NULL); /* freed */
    errno = 0;
    WANT(malloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    WANT(malloc(SIZE_MAX - three) == NULL && errno == ENOMEM);
    errno = 0;
    WANT(calloc(half, half) == NULL && errno == ENOMEM);
    errno = 0;
    WANT(calloc(three, SIZE_MAX / 2) == NULL && errno == ENOMEM);
    p = malloc(100);
    memset(p, 7, 100);
    errno = 0;
    WANT(reallocarray(p, half, half) == NULL && errno == ENOMEM);
    errno = 0;
    WANT(realloc(p, huge) == NULL && errno == ENOMEM);
    WANT(holds((unsigned char *)p, 100, 7));
    free(p);
    errno = 0;
    WANT(aligned_alloc(none, 16) == NULL && errno == EINVAL);
    errno = 0;
    WANT(aligned_alloc(three, 16) == NULL && errno == EINVAL);
    errno = 0;
    WANT(aligned_alloc(huge / 2, 16) == NULL && errno == ENOMEM);
    p = aligned_alloc((size_t)2 << 20, 16); /* NULL, or as asked */
    WANT((uintptr_t)p % ((size_t)2 << 20) == 0);
    free(p);
    errno = 0;
    WANT(memalign(huge + 1, 16) == NULL && errno == EINVAL);
    p = &p;
    errno = 4713;
    WANT(posix_memalign(&p, none, 16) == EINVAL && p == &p);
    WANT(posix_memalign(&p, sizeof(void *) / 2, 16) == EINVAL && p == &p);
    WANT(posix_memalign(&p, 24, 16) == EINVAL && p == &p);
    WANT(posix_memalign(&p, 16, huge) == ENOMEM && p == &p);
    WANT(errno == 4713);
    WANT(posix_memalign(&p, 65536, 100) == 0 && (uintptr_t)p % 65536 == 0);
    free(p);
    errno = 0;
    WANT(pvalloc(huge) == NULL && errno == ENOMEM);
    p = pvalloc(none);
    WANT(p != NULL && malloc_usable_size(p) >= (size_t)sysconf(_SC_PAGESIZE));
    free(p);
    p = calloc(none, half);
    WANT(p != NULL);
    free(p);
    WANT(mallopt(M_MMAP_THRESHOLD, 65536) == 1);
    return counts_in_glibcs_form();
}

/* Fork. */

static int stop_forking;

static void *churn(void *arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    while (!__atomic_load_n(&stop_forking, __ATOMIC_RELAXED))
        free(malloc(some_size(&seed, 5000)));
    return NULL;
}

int work_fork(int children) {
    pthread_t t[3];
    int i, status, fault = 0;
    stop_forking = 0;
    for (i = 0; i < 3; i++)
        WANT(pthread_create(&t[i], NULL, churn, (void *)(uintptr_t)(i + 1)) == 0);
    for (i = 0; i < children && fault == 0; i++) {
        pid_t child = fork();
        if (child == 0) { /* a child that hangs ends, too */
            signal(SIGALRM, SIG_DFL);
            alarm(100);
            _exit(work_model(300, 4000, (uint64_t)i) == 0 ? 0 : 1);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fault = __LINE__;
    }
    __atomic_store_n(&stop_forking, 1, __ATOMIC_RELAXED);
    for (i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return fault;
}

int work_fill(uint64_t size, uint64_t *blocks) {
    void **all = NULL, **one;
    *blocks = 0;
    while ((one = (void **)malloc(size)) != NULL) {
        *one = all;
        all = one;
        ++*blocks;
    }
    WANT(errno == ENOMEM);
    while (all != NULL) {
        one = all;
        all = (void **)*all;
        free(one);
    }
    return 0;
}

int work_split(uint64_t pairs) {
    void *small[1024], *large[1024];
    uint64_t i;
    WANT(pairs <= 1024);
    for (i = 0; i < pairs; i++) {
        small[i] = malloc(1000);
        large[i] = malloc(3040);
        WANT(small[i] != NULL && large[i] != NULL);
        memset(large[i], 1, 3040);
    }
    for (i = 0; i < pairs; i++) {
        free(small[i]);
        free(large[i]);
    }
    return 0;
}

uintptr_t work_fill_address(void) { return (uintptr_t)work_fill; }

/* Adds blocks of sizes that halve, down to the smallest, to a list, until each is refused. */
static void **take_all(uint64_t size) {
    void **all = NULL, **one;
    for (; size != 0; size /= 2)
        while ((one = (void **)malloc(size)) != NULL) {
            *one = all;
            all = one;
        }
    return all;
}

void *work_take_all(void) { return take_all(65536); }

void work_free_all(void *list) {
    while (list != NULL) {
        void *next_one = *(void **)list;
        free(list);
        list = next_one;
    }
}

int work_short(uint64_t room) {
    void **all = take_all(UINT64_C(1) << 30), **one;
    uint64_t seed = room, size;
    int fault;
    while (all != NULL && room > 0) {
        one = all;
        all = (void **)*all;
        size = malloc_usable_size(one) + 16;
        free(one);
        room -= room < size ? room : size;
    }
    fault = work_model(600, 700, seed);
    work_free_all(all);
    return fault;
}

static void *nothing(void *arg) {
    free(malloc(64));
    return arg;
}

int work_spread(uint64_t blocks, uint64_t size) {
    unsigned char **all = (unsigned char **)calloc(blocks, sizeof *all);
    pthread_t t;
    uint64_t i;
    WANT(all != NULL);
    for (i = 0; i < blocks; i++) {
        all[i] = (unsigned char *)malloc(size);
        WANT(all[i] != NULL);
        memset(all[i], 1, size);
        if (i % 64 == 0) {
            WANT(pthread_create(&t, NULL, nothing, NULL) == 0);
            pthread_join(t, NULL);
        }
    }
    for (i = 0; i < blocks; i++)
        free(all[i]);
    free(all);
    return 0;
}

int work_sizes(uint64_t least, uint64_t most) {
    enum { BLOCKS = 1024 };
    void *all[BLOCKS];
    uint64_t size, n = 0;
    for (size = least; size <= most && n < BLOCKS; size += 16) {
        all[n] = malloc(size);
        WANT(all[n++] != NULL);
    }
    while (n != 0)
        free(all[--n]);
    return 0;
}

int work_libc(void) {
    struct addrinfo *list = NULL;
    char *text = NULL;
    size_t room = 0;
    void *library = dlopen("libm.so.6", RTLD_NOW);
    FILE *f = fopen("/proc/self/status", "r");
    time_t now = time(NULL);
    if (library != NULL)
        dlclose(library);
    WANT(f != NULL && localtime(&now) != NULL);
    while (getline(&text, &room, f) > 0)
        WANT(text != NULL);
    free(text);
    fclose(f);
    if (getaddrinfo("127.0.0.1", "80", NULL, &list) == 0)
        freeaddrinfo(list);
    WANT(asprintf(&text, "%d", 4711) == 4);
    free(text);
    return 0;
}

int work_closed(const char *file) {
    int standard = dup(2), other = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    WANT(standard >= 0 && other >= 0 && dup2(other, 2) == 2);
    work_free_all(work_take_all());
    WANT(dup2(standard, 2) == 2);
    return 0;
}

int work_park(uint64_t blocks, uint64_t size) {
    void *all[256];
    uint64_t i;
    WANT(blocks <= 256);
    for (i = 0; i < blocks; i++)
        WANT((all[i] = malloc(size)) != NULL);
    for (i = 0; i < blocks; i++)
        free(all[i]);
    return 0;
}

static char *(*late_data)(void);
static pthread_barrier_t late_loaded;

static void *touch(void *arg) {
    pthread_barrier_wait(&late_loaded);
    late_data()[4000] = 1;
    return arg;
}

static void *function_of(void *library, const char *name) { return dlsym(library, name); }

int work_late(const char *name) {
    pthread_t t;
    void *library, *all, *function;
    WANT(pthread_barrier_init(&late_loaded, NULL, 2) == 0);
    WANT(pthread_create(&t, NULL, touch, NULL) == 0);
    library = dlopen(name, RTLD_NOW);
    WANT(library != NULL);
    function = function_of(library, "late_data");
    WANT(function != NULL);
    memcpy(&late_data, &function, sizeof function);
    all = work_take_all();
    pthread_barrier_wait(&late_loaded);
    pthread_join(t, NULL);
    work_free_all(all);
    return 0;
}

int work_handlers(void) {
    void (*start)(void);
    void *function = function_of(RTLD_DEFAULT, "handlers_start");
    if (function == NULL)
        return 0;
    memcpy(&start, &function, sizeof function);
    start();
    return 1;
}

int work_misuse(const char *name) {
    unsigned char *volatile p = (unsigned char *)malloc(40), *volatile q = (unsigned char *)malloc(2000),
        *volatile next_to;
    uint64_t local = 0;
    if (strcmp(name, "double") == 0) {
        free(p);
        free(p);
    } else if (strcmp(name, "double-large") == 0) {
        free(q);
        free(q);
    } else if (strcmp(name, "foreign") == 0)
        free(&local);
    else if (strcmp(name, "inside") == 0)
        free(q + 16);
    else if (strcmp(name, "uneven") == 0)
        free(q + 3);
    else if (strcmp(name, "realloc") == 0) {
        free(q);
        p = (unsigned char *)realloc(q, 10);
    } else if (strcmp(name, "size") == 0) {
        free(q);
        return (int)malloc_usable_size(q);
    } else if (strcmp(name, "header") == 0) {
        memset(q - 8, 0, 8);
        free(q);
    } else if (strcmp(name, "past") == 0) {
        next_to = (unsigned char *)malloc(2000);
        memset(q, 7, 2032); /* over the next header */
        free(q);
        free(next_to);
    } else if (strcmp(name, "freed") == 0) {
        free(p);
        memset(p - 16, 1, 40);
        p = (unsigned char *)malloc(40);
        fputs("went on\n", stderr);
        for (int i = 0; i < 1000; i++)
            free(malloc(40)); /* until the block has rested */
    } else if (strcmp(name, "byte") == 0) {
        p[40] = 7; /* only a checked build looks at it */
        free(p);
        return -1;
    } else if (strcmp(name, "right") == 0) {
        free(p);
        free(q);
        return 0;
    } else
        return -2;
    sleep(10); /* another thread has found it, and is about to end the process */
    return 0;
}
