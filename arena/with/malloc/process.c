//go:build linux && cgo && !asan

#define _GNU_SOURCE
#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "callbacks.h"
#include "caller.h"
#include "profile.h"
#include "sampler.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER ((uintptr_t)__builtin_return_address(0))
#define LISTS (UPFRONT_MALLOC_LARGE / 16)
#define SMALL_LISTS (UPFRONT_HEAP_FRONT / 16)
#define WANTED 8

/* Two copies of this package, such as two major versions, don't link: a process has one malloc. */
const char upfront_malloc_is_linked_twice_keep_one_major_version = 1;

/* A heap and its memory. */
typedef struct place {
    upfront_heap *heap;
    char *base;
    uint64_t size;
    uint64_t looks; /* the heap's word `look` while the fronts are empty */
    uint64_t frees;
    struct place *runtime; /* the part for callers that a refusal ends; NULL: the place is one */
    pthread_mutex_t lock;
} place;

typedef struct front {
    _Alignas(UPFRONT_LINE) unsigned char busy; /* a thread is in it */
    uint64_t parked;
    uint64_t put;  /* put + left is the bytes of the parked blocks */
    int64_t left;  /* bytes that it allocates up to the next sample point; changes with the lock of
                      the range, but for an alloc */
    uint64_t lists[LISTS]; /* offsets of the first blocks' headers */
    uint64_t larges;       /* the lists from SMALL_LISTS + larges on are empty */
    uint64_t wanted[WANTED]; /* lists that large requests found empty, by list % WANTED */
} front;

static char boot_bytes[UPFRONT_MALLOC_STATIC] __attribute__((aligned(65536)));
static char boot_runtime_bytes[UPFRONT_MALLOC_RUNTIME] __attribute__((aligned(65536)));
static place boot_runtime = {
    .base = boot_runtime_bytes, .size = sizeof boot_runtime_bytes, .lock = PTHREAD_MUTEX_INITIALIZER};
static place boot = {
    .base = boot_bytes, .size = sizeof boot_bytes, .runtime = &boot_runtime, .lock = PTHREAD_MUTEX_INITIALIZER};
static place range_runtime = {.lock = PTHREAD_MUTEX_INITIALIZER};
static place range = {.runtime = &range_runtime, .lock = PTHREAD_MUTEX_INITIALIZER};
static int64_t range_left; /* bytes up to the next sample point of blocks that no front serves */
enum { PLACES = 4 };
static place *const places[PLACES] = {&range, &range_runtime, &boot, &boot_runtime};
static place *current = &boot;

/* The kinds of refusal, and the counts and the last one of each. */
enum { FULL, LARGE, RUNTIME, REFUSALS }; /* LARGE: no part of the heap was as large */

typedef struct refusal {
    uint64_t count, size, used, reserve, room, caller; /* room: free bytes that aren't in reserve */
    uint64_t frames;
    uintptr_t go[UPFRONT_MALLOC_FRAMES];
    uint64_t holders; /* of the range, for a line that is due */
    upfront_holder holder[UPFRONT_PROFILE_HOLDERS];
    const place *of;
} refusal;

static front fronts[UPFRONT_MALLOC_FRONTS];
static uint64_t front_count; /* written before `current` leads to the range */
static uint64_t threads;
static __thread front *mine __attribute__((tls_model("initial-exec")));

/* the rest changes under all locks */
static upfront_malloc_plan plan;
static uint64_t trimmed, page;
static int lent, trims;
static pid_t process;

/* The code of ld.so, of libc, and of pthread_create, which older systems have apart. */
typedef struct extent {
    uintptr_t from, end;
} extent;
static extent linker, libc, threads_of_libc;
static refusal refused[REFUSALS];

static place *place_now(void) { return __atomic_load_n(&current, __ATOMIC_ACQUIRE); }

/* Messages: a line in a buffer, because stdio may allocate. */

typedef struct line {
    size_t size;
    char text[768];
} line;

static void add(line *l, const char *text) {
    while (*text != 0 && l->size < sizeof l->text - 1)
        l->text[l->size++] = *text++;
}

static void add_number(line *l, uint64_t n, unsigned base) {
    char text[24];
    size_t at = sizeof text;
    text[--at] = 0;
    do {
        text[--at] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n != 0);
    add(l, text + at);
}

static void add_address(line *l, uintptr_t p) {
    add(l, "0x");
    add_number(l, p, 16);
}

/* The file that was standard error at the start, and at Open. A program that closes it may have
 * another file there later, such as a database: then nothing is written. */
static struct stat standard_error;

static void know_standard_error(void) {
    if (fstat(STDERR_FILENO, &standard_error) != 0)
        memset(&standard_error, 0, sizeof standard_error);
}

/* Writes a line. SIGPIPE, of a pipe that nothing reads, must not end the process. */
static void say(line *l) {
    size_t at = 0;
    struct stat now;
    sigset_t broken, old, pending;
    const struct timespec none = {0, 0};
    ssize_t wrote = 0;
    if (fstat(STDERR_FILENO, &now) != 0 || now.st_dev != standard_error.st_dev || now.st_ino != standard_error.st_ino)
        return;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &broken, &old);
    l->text[l->size++] = '\n';
    for (; at < l->size && (wrote >= 0 || errno == EINTR); at += wrote > 0 ? (size_t)wrote : 0)
        wrote = write(STDERR_FILENO, l->text + at, l->size - at);
    if (wrote < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
        while (sigtimedwait(&broken, NULL, &none) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Adds the size of the block at p or around it, which only a checked build knows. */
static void add_note(line *l, const void *p) {
#ifdef UPFRONT_CHECKED
    upfront_note note;
    if (upfront_note_near(p, &note) == 0)
        return;
    add(l, note.live ? "; next to it is a block of " : "; next to it was a block of ");
    add_number(l, note.asked, 10);
    add(l, " bytes at ");
    add_address(l, note.address);
#else
    (void)l, (void)p;
#endif
}

static const char *why(int code) {
    switch (code) {
    case UPFRONT_DOUBLE:
        return "the block is free already";
    case UPFRONT_FOREIGN:
        return "the address isn't in C's heap";
    case UPFRONT_MISALIGNED:
        return "no block starts at the address, or a write changed the header before it";
    default:
        return "a write changed the header of the block or of a neighbour";
    }
}

/* set when a misuse ends the process: handlers of abort's signal may still allocate */
static int ending;

_Noreturn static void end(line *l) {
    __atomic_store_n(&ending, 1, __ATOMIC_RELAXED);
    say(l);
    abort();
}

_Noreturn static void misuse(const char *call, const void *p, int code, uintptr_t caller) {
    line l = {0};
    add(&l, "upfront: BUG: ");
    add(&l, call);
    add(&l, " of ");
    add_address(&l, (uintptr_t)p);
    add(&l, ": ");
    add(&l, why(code));
    add_note(&l, p);
    add(&l, "; the caller is at ");
    add_address(&l, caller);
    end(&l);
}

_Noreturn static void damage(const void *where, uintptr_t caller) {
    line l = {0};
    add(&l, "upfront: BUG: a write past a block of C's malloc, or after its free, changed the bytes at ");
    add_address(&l, (uintptr_t)where);
    add_note(&l, where);
    add(&l, "; a call from ");
    add_address(&l, caller);
    add(&l, " found it");
    end(&l);
}

/* Returns the place of damage, once. pre: the place's lock */
static const void *damaged(const place *h) {
    if (__atomic_load_n(&ending, __ATOMIC_RELAXED))
        return NULL;
    if (h->heap->damaged != 0)
        return (const char *)h->heap + h->heap->where;
    return NULL;
}

/* The share of the range at which it warns, as bytes. Parked blocks don't count. */
static struct {
    uint64_t at, again;   /* warns at a use of `at`, and again only after it was below `again` */
    uint64_t count, last; /* of crossings; use at the last one */
    int over, event;
} watch = {.at = UINT64_MAX, .event = -1};

/* Wakes the reader of the event. The range's lock is held, so that no event is closed meanwhile. */
static __attribute__((noinline, cold)) void wake(void) {
    const uint64_t one = 1;
    int e = errno;
    (void)!write(watch.event, &one, sizeof one);
    errno = e;
}

static inline uint64_t front_bytes(const front *f) {
    return __atomic_load_n(&f->put, __ATOMIC_RELAXED) + (uint64_t)__atomic_load_n(&f->left, __ATOMIC_RELAXED);
}

/* Compares the use of the range with its share. pre: the range's lock */
static inline void look_at_use(void) {
    uint64_t used = range.heap->used, i;
    if (!watch.over && used < watch.at)
        return;
    for (i = 0; i < front_count; i++)
        used -= front_bytes(&fronts[i]);
    if (watch.over) {
        watch.over = used >= watch.again;
    } else if (used >= watch.at) {
        watch.over = 1;
        watch.count++;
        watch.last = used;
        wake();
    }
}

/* Unlocks a place, and then reports damage: a handler of abort's signal may allocate. */
static void leave(place *h, int taken, uintptr_t caller) {
    const void *where = damaged(h);
    if (h == &range)
        look_at_use();
    upfront_shared_unlock(&h->lock, taken);
    if (where != NULL)
        damage(where, caller);
}

/* Blocks. In a release build the asked size of each block is all of its bytes, so that a front may
 * give it for any request of its size, with the seal that it has. */

static inline uint64_t offset_of(const place *h, const void *p) {
    return upfront_distance(p, h->heap) - UPFRONT_HEAP_HEADER;
}

static inline int has(const place *h, const void *p) { return upfront_distance(p, h->base) < h->size; }

/* The words of the range are valid once it is current. */
static place *place_of(const void *p) {
    int i;
    for (i = place_now() == &range ? 0 : 2; i < PLACES; i++)
        if (has(places[i], p) && places[i]->heap != NULL)
            return places[i];
    return NULL;
}

/* Reports whether a live block starts at an address in the place, without its lock: the words that
 * it reads don't change while the block is live, but for bits that it ignores. */
static inline int is_live(const place *h, const void *p) {
    uint64_t at = offset_of(h, p);
    return upfront_heap_is_inside(h->heap, at) && upfront_heap_off(h->heap, at) == 0 &&
           upfront_heap_is_live(h->heap, at);
}

static inline uint64_t rounded(uint64_t size) {
#ifdef UPFRONT_CHECKED
    return size;
#else
    return size > PTRDIFF_MAX ? size : size <= 16 ? 16 : upfront_round_up(size, 16);
#endif
}

/* Makes all bytes of a new block its asked size. pre: the place's lock */
static void *whole(const place *h, void *p) {
#ifndef UPFRONT_CHECKED
    const uint64_t slack = UINT64_C(63) << UPFRONT_HEAP_SLACK;
    uint64_t at = offset_of(h, p), body;
    if (p == NULL)
        return NULL;
    body = upfront_heap_word(h->heap, at + 8) & ~UPFRONT_HEAP_SEAL_SIZE;
    if ((body & slack) != 0)
        upfront_heap_seal(h->heap, at, upfront_heap_word(h->heap, at) & ~UPFRONT_HEAP_SEAL_BEFORE, body & ~slack);
#else
    (void)h;
#endif
    return p;
}

static inline void turn(upfront_heap *h, uint64_t at) {
    upfront_heap_set(h, at + 8, upfront_heap_word(h, at + 8) ^ UPFRONT_HEAP_SEAL_SIZE);
}

static inline uint64_t size_in(uint64_t list) { return list * 16 + UPFRONT_HEAP_LEAST; }

static inline uint64_t list_of(uint64_t asked) { return (asked - (asked != 0)) / 16; }

/* A parked block has the body of the live block that it was, and may_park permits one. */
static inline int is_parked(const upfront_heap *h, uint64_t at, uint64_t size) {
    return upfront_heap_is_inside(h, at) &&
           upfront_heap_has_body(h, at, size | UPFRONT_HEAP_LIVE, UPFRONT_HEAP_SEAL_SIZE);
}

/* The entry to a front, and its end. A thread that finds a front busy doesn't wait: it takes the
 * next one, or the heap. */
static inline int front_enter(front *f) { return !__atomic_test_and_set(&f->busy, __ATOMIC_ACQUIRE); }

static inline void front_leave(front *f) { __atomic_clear(&f->busy, __ATOMIC_RELEASE); }

/* Enters the thread's front, which becomes the next one if it is busy. NULL: that one is, too. */
static front *front_any(void) {
    if (mine == NULL || front_enter(mine))
        return mine;
    mine = &fronts[(uint64_t)(mine - fronts + 1) % front_count];
    return front_enter(mine) ? mine : NULL;
}

/* Takes the first block of a list that isn't empty. The caller subtracts its bytes. pre: in the
 * front, is_parked */
static inline void *front_pop(front *f, uint64_t list, uint64_t at) {
    f->lists[list] = upfront_heap_word(range.heap, at + UPFRONT_HEAP_HEADER);
    f->parked--;
    turn(range.heap, at);
    return (char *)range.heap + at + UPFRONT_HEAP_HEADER;
}

/* Subtracts the bytes of an alloc from those up to the next sample point, and reports whether the
 * point isn't in them. */
static inline int front_counts(front *f, uint64_t list) { return (f->left -= (int64_t)size_in(list)) >= 0; }

/* Returns a block of a list; NULL: it is empty, damaged, the front is busy, or a sample point is in
 * the block. It calls nothing, so it is fast. */
static inline __attribute__((always_inline)) void *front_get(front *f, uint64_t list) {
    uint64_t at;
    void *p = NULL;
    if (__atomic_load_n(&f->lists[list], __ATOMIC_RELAXED) == 0 || !front_enter(f))
        return NULL;
    at = f->lists[list];
    if (is_parked(range.heap, at, size_in(list))) {
        if (front_counts(f, list))
            p = front_pop(f, list, at);
        else
            f->put += size_in(list); /* it stays */
    }
    front_leave(f);
    return p;
}

/* Takes a block without an effect on sample points. pre: in the front */
static void *front_get_sure(front *f, uint64_t list, uintptr_t caller) {
    uint64_t at = f->lists[list];
    if (at == 0)
        return NULL;
    if (!is_parked(range.heap, at, size_in(list)))
        damage((char *)range.heap + at + UPFRONT_HEAP_HEADER, caller);
    f->put -= size_in(list);
    return front_pop(f, list, at);
}

/* Frees up to `most` blocks of a front into the heap, the largest first. pre: in the front; the
 * range's lock */
static void front_flush(front *f, uint64_t most, uintptr_t caller) {
    uint64_t list = SMALL_LISTS + f->larges;
    while (list != 0 && most != 0) {
        void *p = front_get_sure(f, list - 1, caller);
        if (p == NULL) {
            list--;
            continue;
        }
        if (upfront_heap_free(range.heap, p) != UPFRONT_OK)
            damage(p, caller);
        range.frees++;
        most--;
    }
    f->larges = list > SMALL_LISTS ? list - SMALL_LISTS : 0;
}

/* Reports whether a front may have the block at an offset: it is live, its asked size is at most
 * `most`, and all of its bytes are its asked size. */
static inline int may_park(const upfront_heap *h, uint64_t at, uint64_t most) {
    uint64_t size;
    if (!upfront_heap_is_inside(h, at))
        return 0;
    size = upfront_heap_size(h, at);
    return size <= most + UPFRONT_HEAP_HEADER &&
           upfront_heap_has_body(h, at, size | UPFRONT_HEAP_LIVE, 0) && upfront_heap_before(h, at + size) == size;
}

/* Parks a block. pre: in the front, may_park */
static inline void front_park(front *f, upfront_heap *h, uint64_t at, uint64_t size) {
    uint64_t *list = &f->lists[size / 16 - UPFRONT_HEAP_LEAST / 16];
    upfront_heap_set(h, at + UPFRONT_HEAP_HEADER, *list);
    turn(h, at);
    *list = at;
    f->parked++;
    f->put += size;
}

/* Reports whether it parked a block of up to UPFRONT_HEAP_FRONT bytes. It calls nothing, so it is
 * fast. */
static inline __attribute__((always_inline)) int front_put(front *f, const void *p) {
    upfront_heap *h = range.heap;
    uint64_t at = offset_of(&range, p);
    uint64_t size;
    int parks;
    if (!may_park(h, at, UPFRONT_HEAP_FRONT))
        return 0;
    size = upfront_heap_size(h, at);
    if (!front_enter(f))
        return 0;
    parks = f->parked < UPFRONT_MALLOC_PARKS;
    if (parks)
        front_park(f, h, at, size);
    front_leave(f);
    return parks;
}

/* Reports whether the thread that trims has to start: once there are TRIM_LEAST bytes that were in
 * use and are free. In a Go program a goroutine looks instead. pre: the range's lock */
static inline int wants_trim(void) {
    enum { TRIM_LEAST = 65536 };
    return plan.trim != 0 && !trims && upfront_heap_peak(range.heap) - range.heap->used >= TRIM_LEAST;
}

static void start_trim(uintptr_t caller);

/* A large block is parked only if a request of its size was one of the last that found its list
 * empty. So a program with a few large sizes has them in its fronts. A program with many sizes
 * doesn't pay for blocks that no request takes. Threads may write these words at once. */
static void want(front *f, uint64_t list) {
    if (list >= SMALL_LISTS)
        __atomic_store_n(&f->wanted[list % WANTED], list, __ATOMIC_RELAXED);
}

static int is_wanted(const front *f, uint64_t size) {
    uint64_t list = size / 16 - UPFRONT_HEAP_LEAST / 16;
    return list < SMALL_LISTS || __atomic_load_n(&f->wanted[list % WANTED], __ATOMIC_RELAXED) == list;
}

/* Parks a block of up to UPFRONT_MALLOC_LARGE bytes, and makes room in a full front. */
static int front_put_sure(const void *p, uintptr_t caller) {
    uint64_t at = offset_of(&range, p), size;
    front *f;
    int taken, starts = 0;
    if (mine == NULL || !upfront_heap_is_inside(range.heap, at))
        return 0;
    size = upfront_heap_size(range.heap, at);
    if (!is_wanted(mine, size) || !may_park(range.heap, at, UPFRONT_MALLOC_LARGE) || (f = front_any()) == NULL)
        return 0;
    if (f->parked == UPFRONT_MALLOC_PARKS ||
        (size > UPFRONT_HEAP_FRONT + UPFRONT_HEAP_HEADER && front_bytes(f) + size > UPFRONT_MALLOC_PARKED)) {
        taken = upfront_shared_lock(&range.lock);
        front_flush(f, f->parked / 4 + 1, caller);
        look_at_use();
        starts = wants_trim();
        upfront_shared_unlock(&range.lock, taken);
    }
    if (size / 16 > SMALL_LISTS + f->larges + 1)
        f->larges = size / 16 - SMALL_LISTS - 1;
    front_park(f, range.heap, at, size);
    front_leave(f);
    if (starts)
        start_trim(caller);
    return 1;
}

/* All locks, always in this order. */

static void lock_all(void) {
    uint64_t i;
    const struct timespec moment = {0, 1000};
    int e = errno;
    for (i = 0; i < UPFRONT_MALLOC_FRONTS; i++)
        while (!front_enter(&fronts[i]))
            nanosleep(&moment, NULL);
    errno = e;
    for (i = 0; i < PLACES; i++)
        pthread_mutex_lock(&places[i]->lock);
}

static void unlock_all(void) {
    uint64_t i;
    for (i = PLACES; i-- != 0;)
        pthread_mutex_unlock(&places[i]->lock);
    for (i = UPFRONT_MALLOC_FRONTS; i-- != 0;)
        front_leave(&fronts[i]);
}

static void flush_all(uintptr_t caller) {
    uint64_t i;
    for (i = 0; i < front_count; i++)
        front_flush(&fronts[i], UINT64_MAX, caller);
}

/* pre: the place's lock */
static upfront_heap *heap_of(place *h) {
    if (h->heap == NULL) {
        h->heap = upfront_heap_init(h->base, h->size, 0);
        h->heap->look = UINT64_MAX; /* with blocks in fronts the heap isn't to be looked at */
    }
    return h->heap;
}

static uint64_t usable(const place *h, const void *p) { return upfront_heap_asked(h->heap, offset_of(h, p)); }

/* Samples (profile.h). A block with a sample point in it isn't parked, neither before nor after its
 * life: may_park refuses a header with slack, which no other block has in a release build. So a
 * free through a front needs no question about samples. In a checked build each free asks. */
#ifdef UPFRONT_CHECKED
#define SAMPLE_SLACK 0
#else
#define SAMPLE_SLACK UPFRONT_HEAP_HEADER
#endif

static inline uint64_t block_of(uint64_t size) { return rounded(size) + UPFRONT_HEAP_HEADER; }

/* Reports whether a sample point is in a block for a request that no front serves. pre: the range's
 * lock */
static inline int is_sampled(uint64_t size) {
    if (size > range.size || (range_left -= (int64_t)block_of(size)) >= 0)
        return 0;
    range_left = upfront_profile_gap();
    return 1;
}

/* Marks the new block of a sampled request, and keeps its sample. pre: the range's lock */
static void *sampled(void *p, uint64_t size, const upfront_trace *t) {
    if (p == NULL)
        return NULL;
#ifndef UPFRONT_CHECKED
    {
        uint64_t at = offset_of(&range, p);
        uint64_t body = upfront_heap_word(range.heap, at + 8) & ~UPFRONT_HEAP_SEAL_SIZE;
        uint64_t slack = (body & UPFRONT_HEAP_SIZE) - block_of(size);
        body = (body & ~(UINT64_C(63) << UPFRONT_HEAP_SLACK)) | slack << UPFRONT_HEAP_SLACK;
        upfront_heap_seal(range.heap, at, upfront_heap_word(range.heap, at) & ~UPFRONT_HEAP_SEAL_BEFORE, body);
    }
#endif
    (void)upfront_profile_add((uint64_t)(uintptr_t)p, block_of(size), 0, t);
    return p;
}

/* Reports whether a block may have a sample. pre: the range */
static inline int has_sample(const place *h, uint64_t at) {
#ifdef UPFRONT_CHECKED
    return upfront_heap_is_inside(h->heap, at);
#else
    return upfront_heap_is_inside(h->heap, at) &&
           ((upfront_heap_word(h->heap, at + 8) >> UPFRONT_HEAP_SLACK) & 63) != 0;
#endif
}

/* Drops the sample of a block that is freed or moves. pre: the place's lock; the block is in the
 * place */
static inline void drop_sample(const place *h, const void *p) {
    if (h == &range && has_sample(h, offset_of(h, p)))
        upfront_profile_drop((uint64_t)(uintptr_t)p);
}

/* Resizes a block, as a free and an alloc in the profile. A non-null t is the stack of a request
 * with a sample point in it. pre: the place's lock */
static void *resized(place *h, void *p, uint64_t size, const upfront_trace *t) {
    int had = h == &range && has_sample(h, offset_of(h, p));
    void *q = upfront_heap_realloc(h->heap, p, rounded(size) + (t != NULL ? SAMPLE_SLACK : 0));
    if (q == NULL)
        return NULL;
    if (had)
        upfront_profile_drop((uint64_t)(uintptr_t)p);
    return t != NULL ? sampled(q, size, t) : whole(h, q);
}

/* Requests that a refusal would end the process for: those of Go's runtime and cgo, and of ld.so.
 *
 * The runtime starts threads and sets variables through pointers to C functions; a wrapper of each
 * sets a flag for its thread. C.CString, C.CBytes and C.malloc call the Go function
 * _cgo_cmalloc, which is the first Go frame above the call. No C code of a program runs below
 * either, so none gets a byte of the part. ld.so has an address range. */

enum { NO_HOOK, START_THREAD, SET_VARIABLE, UNSET_VARIABLE, FIND_STACK };
static __thread int hook __attribute__((tls_model("initial-exec")));
static __thread int said_in_hook __attribute__((tls_model("initial-exec")));

static void (*hooked[UPFRONT_MALLOC_HOOKS])(void *);

static void call_hooked(int which, void *arg) {
    hook = which;
    said_in_hook = 0;
    hooked[which - 1](arg);
    hook = NO_HOOK;
}

static void start_thread(void *arg) { call_hooked(START_THREAD, arg); }
static void set_variable(void *arg) { call_hooked(SET_VARIABLE, arg); }
static void unset_variable(void *arg) { call_hooked(UNSET_VARIABLE, arg); }
static void find_stack(void *arg) { call_hooked(FIND_STACK, arg); }

void *upfront_malloc_hook(int i, void *was) {
    void (*const with_flag[UPFRONT_MALLOC_HOOKS])(void *) = {start_thread, set_variable, unset_variable, find_stack};
    void *now;
    memcpy(&hooked[i], &was, sizeof was);
    memcpy(&now, &with_flag[i], sizeof now);
    return now;
}

static int ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

static inline int is_in(extent x, uintptr_t p) { return p - x.from < x.end - x.from; }

/* Returns 0 for a request that may be refused, and 2 for one whose refusal ends the process at
 * once: its line must come first. */
static int is_for_runtime(const refusal *r) {
    upfront_go_place p;
    if (hook != NO_HOOK || is_in(linker, (uintptr_t)r->caller))
        return hook == START_THREAD && !said_in_hook ? 2 : 1;
    return r->frames != 0 && upfront_go_line(r->go[0] - 1, &p) && ends_with(p.function, "._cgo_cmalloc") ? 2 : 0;
}

/* Refusals. */

static void add_size(line *l, uint64_t bytes) {
    unsigned i;
    const char *const units[] = {"GiB", "MiB", "KiB"};
    for (i = 0; i < 3; i++)
        if (bytes != 0 && bytes % (UINT64_C(1) << (30 - 10 * i)) == 0) {
            add_number(l, bytes >> (30 - 10 * i), 10);
            add(l, units[i]);
            return;
        }
    add_number(l, bytes, 10);
}

static const char *base_of(const char *path) {
    const char *last = strrchr(path, '/');
    return last != NULL ? last + 1 : path;
}

/* Adds a symbol of C and the distance from its start, or the address. */
static void add_symbol(line *l, uintptr_t address) {
    upfront_symbol s;
    if (upfront_symbol_of(address, &s)) {
        add(l, s.name);
        add(l, "+");
        add_address(l, (uintptr_t)s.distance);
        add(l, *s.object != 0 ? " in " : "");
        add(l, base_of(s.object));
    } else
        add_address(l, address);
}

static void add_place(line *l, const upfront_go_place *p) {
    add(l, base_of(p->file));
    add(l, ":");
    add_number(l, (uint64_t)p->line, 10);
}

/* Adds the lines of Go, or the callers in C, that have most of the heap in the profile. */
static void add_holders(line *l, const refusal *r) {
    uint64_t i;
    upfront_go_place p;
    for (i = 0; i < r->holders; i++) {
        add(l, i == 0 ? "; the profile's largest users: " : ", ");
        if (r->holder[i].is_go && upfront_go_line(r->holder[i].line - 1, &p))
            add_place(l, &p);
        else
            add_symbol(l, r->holder[i].line);
        add(l, " (");
        add_number(l, (r->holder[i].bytes + 1023) / 1024, 10);
        add(l, "KiB)");
    }
}

/* Adds the caller: its symbol or address, and the lines of Go above it. */
static void add_caller(line *l, const refusal *r) {
    upfront_go_place p;
    uint64_t i;
    const char *between = ", from Go at ";
    add(l, "; the caller is ");
    add_symbol(l, (uintptr_t)r->caller);
    for (i = 0; i < r->frames; i++) {
        uintptr_t at = r->go[i] - 1;
        if (!upfront_go_line(at, &p) || strncmp(p.function, "runtime.", 8) == 0)
            break;
        if (upfront_is_cgo(&p))
            continue;
        for (; at != 0 && upfront_go_line(at, &p); at = upfront_go_parent(at)) {
            add(l, between);
            add_place(l, &p);
            between = " < ";
        }
    }
}

#ifdef UPFRONT_MALLOC_PRELOAD
#define UPFRONT_MALLOC_KEY "UPFRONT_C_HEAP="
#define UPFRONT_MALLOC_NONE "Set UPFRONT_C_HEAP=64MiB, or more"
#else
#define UPFRONT_MALLOC_KEY "c_heap to "
#define UPFRONT_MALLOC_NONE "The plan has no \"c_heap\", or isn't open yet: set it, such as \"c_heap\": \"64MiB\""
#endif

/* Adds the rest of the line of a full range: its use, and a size to try. */
static void add_full_range(line *l, const refusal *r) {
    add(l, "c_heap are used");
    if (r->reserve != 0) {
        add(l, ", with ");
        add_number(l, r->reserve, 10);
        add(l, " in reserve");
    }
    if (r->size + UPFRONT_HEAP_HEADER <= r->room)
        add(l, ", and the free ones are in smaller pieces");
    add(l, "; set " UPFRONT_MALLOC_KEY);
    add_size(l, 2 * plan.size);
}

/* Writes the line of a refusal. pre: no lock is held */
static void say_refused(int kind, const refusal *r) {
    const place *of = kind == RUNTIME ? r->of->runtime : r->of;
    line l = {0};
    int e = errno;
    if (kind == LARGE) {
        add(&l, "upfront: C's malloc refuses a request of ");
        add_number(&l, r->size, 10);
        add(&l, " bytes, more than all ");
        add_number(&l, of->size, 10);
        add(&l, " bytes of c_heap; set " UPFRONT_MALLOC_KEY);
        add_size(&l, upfront_round_up(plan.size + r->size, UINT64_C(1) << 20));
        add(&l, ", or ask for less");
    } else {
        add(&l, "upfront: C's malloc is full");
        if (r->count > 1) {
            add(&l, " (");
            add_number(&l, r->count, 10);
            add(&l, " refusals)");
        }
        add(&l, ": a request of ");
        add_number(&l, r->size, 10);
        add(&l, " bytes, and ");
        add_number(&l, r->used, 10);
        add(&l, " of ");
        add_number(&l, of->size, 10);
        add(&l, " bytes of ");
        if (r->of == &boot)
            add(&l, "the static heap are used. " UPFRONT_MALLOC_NONE);
        else if (kind == RUNTIME) {
            add(&l, "c_heap.runtime, the part for Go's runtime, are used; set c_heap.runtime to ");
            add_size(&l, 2 * plan.runtime);
        } else
            add_full_range(&l, r);
    }
    add_caller(&l, r);
    add_holders(&l, r);
    say(&l);
    errno = e;
}

/* Refuses an alignment that no heap has, with a line for the first one. */
static void *refuse_align(uint64_t align, uint64_t size, uintptr_t caller) {
    static int said;
    refusal r = {.size = size, .caller = caller};
    line l = {0};
    uint64_t within;
    int e = errno;
    if (align > UINT64_C(1) << 30 || __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) != 0)
        return NULL;
    r.frames = upfront_go_frames(r.go, UPFRONT_MALLOC_FRAMES, &within);
    add(&l, "upfront: C's malloc refuses an alignment of ");
    add_number(&l, align, 10);
    add(&l, ": the largest is ");
    add_number(&l, UPFRONT_ALIGN_MAX, 10);
    add_caller(&l, &r);
    say(&l);
    errno = e;
    return NULL;
}

/* Counts a refusal, and returns its kind. A line is due for the first of a kind, when the count has
 * doubled, and for a refusal that ends the process. A request that no plan could hold is a probe of
 * the size of memory, and has no line. pre: all locks */
static int count_refused(refusal *r, int ends, int *due) {
    enum { HOLDERS_EACH = 4 << 20 }; /* a larger table is read for a line alone */
    int kind = FULL;
    if (r->size > UPFRONT_OFFSET_MAX || (r->of == &range && r->size > range.size))
        kind = LARGE;
    else if (ends && r->size <= r->of->runtime->size)
        kind = RUNTIME;
    r->used = kind == RUNTIME ? r->of->runtime->heap->used : r->of->heap->used;
    r->room = r->of->heap->most > r->of->heap->used ? r->of->heap->most - r->of->heap->used : 0;
    r->reserve = lent == 0 ? plan.reserve : 0;
    r->count = refused[kind].count + 1;
    *due = r->size <= UPFRONT_OFFSET_MAX &&
           (r->count == 1 || (kind != LARGE && (r->count & (r->count - 1)) == 0) || ends == 2);
    if (kind == FULL && r->of == &range && (*due || plan.samples < HOLDERS_EACH))
        r->holders = upfront_profile_holders(r->holder);
    else if (kind == FULL)
        memcpy(r->holder, refused[FULL].holder, sizeof r->holder); /* of an earlier line */
    refused[kind] = *r;
    said_in_hook |= *due;
    return kind;
}

/* Allocates from the runtime's part of a place, or moves a block there. pre: all locks */
static void *take_for_runtime(place *h, void *p, uint64_t size, uint64_t align) {
    void *q = whole(h->runtime, upfront_heap_alloc(heap_of(h->runtime), rounded(size), align));
    if (p != NULL && q != NULL) {
        uint64_t old = usable(h, p);
        memcpy(q, p, (size_t)(old < size ? old : size));
        drop_sample(h, p);
        (void)upfront_heap_free(h->heap, p);
        h->frees++;
    }
    return q;
}

/* Allocates, or resizes the block at p, with the fronts empty; counts a refusal. */
static void *last_try(place *of, void *p, uint64_t size, uint64_t align, uintptr_t caller) {
    refusal r = {.size = size, .caller = caller};
    uint64_t within;
    int kind = FULL, due = 0;
    place *h;
    void *q;
    const void *where;
    r.frames = upfront_go_frames(r.go, UPFRONT_MALLOC_FRAMES, &within);
    lock_all();
    r.of = h = of != NULL ? of : place_now();
    flush_all(caller);
    h->heap->look = h->looks;
    q = p != NULL ? resized(h, p, size, NULL) : whole(h, upfront_heap_alloc(h->heap, rounded(size), align));
    h->looks = h->heap->look;
    h->heap->look = UINT64_MAX;
    where = damaged(h);
    if (h == &range)
        look_at_use();
    if (q == NULL && h->runtime != NULL) {
        int ends = is_for_runtime(&r);
        if (ends)
            q = take_for_runtime(h, p, size, align);
        if (q == NULL)
            kind = count_refused(&r, ends, &due);
    }
    unlock_all();
    if (where != NULL)
        damage(where, caller);
    if (due)
        say_refused(kind, &r);
    return q;
}

/* Allocates a block with a sample point in it; NULL: it doesn't fit. The stack is read without a
 * lock. */
static __attribute__((noinline, cold)) void *take_sampled(uint64_t size, uint64_t align, uintptr_t caller) {
    upfront_trace t;
    int taken;
    void *p;
    upfront_profile_walk(&t, caller, hook != NO_HOOK);
    taken = upfront_shared_lock(&range.lock);
    p = sampled(upfront_heap_alloc(range.heap, rounded(size) + SAMPLE_SLACK, align), size, &t);
    leave(&range, taken, caller);
    return p;
}

/* Returns a block of a front for a request that the fast path didn't serve, and sets *point if a
 * sample point is in it; then there is no block. */
static void *take_parked(uint64_t size, uintptr_t caller, int *point) {
    front *f = mine;
    void *p = NULL;
    uint64_t list = list_of(size);
    if (f == NULL)
        return NULL;
    if (__atomic_load_n(&f->lists[list], __ATOMIC_RELAXED) == 0) {
        want(f, list);
        return NULL;
    }
    f = front_any();
    if (f == NULL)
        return NULL;
    if (f->lists[list] != 0) {
        *point = !front_counts(f, list);
        if (*point) {
            int taken = upfront_shared_lock(&range.lock);
            int64_t next = upfront_profile_gap();
            f->put += (uint64_t)f->left + size_in(list) - (uint64_t)next;
            f->left = next;
            upfront_shared_unlock(&range.lock, taken);
        } else {
            f->put += size_in(list);
            p = front_get_sure(f, list, caller);
        }
    }
    front_leave(f);
    return p;
}

static __attribute__((noinline)) void *take(uint64_t size, uint64_t align, uintptr_t caller) {
    place *h = place_now();
    int taken, point = 0;
    void *p = NULL;
    if (h != &boot && mine == NULL && front_count != 0)
        mine = &fronts[__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % front_count];
    if (size <= UPFRONT_MALLOC_LARGE && align == UPFRONT_HEAP_ALIGN)
        p = take_parked(size, caller, &point);
    if (p != NULL)
        return p;
    if (!point) {
        taken = upfront_shared_lock(&h->lock);
        point = h == &range && is_sampled(size);
        if (!point)
            p = whole(h, upfront_heap_alloc(heap_of(h), rounded(size), align));
        leave(h, taken, caller);
    }
    if (point)
        p = take_sampled(size, align, caller);
    return p != NULL ? p : last_try(NULL, NULL, size, align, caller);
}

static inline void *alloc(size_t size, uintptr_t caller) {
    front *f = mine;
    void *p = NULL;
    if (f != NULL && size <= UPFRONT_HEAP_FRONT)
        p = front_get(f, list_of(size));
    return p != NULL ? p : take(size, UPFRONT_HEAP_ALIGN, caller);
}

static __attribute__((noinline)) void release(const char *call, void *p, uintptr_t caller) {
    place *h = place_of(p);
    int taken, code, starts;
    if (h == NULL)
        misuse(call, p, UPFRONT_FOREIGN, caller);
    if (h == &range && front_put_sure(p, caller))
        return;
    taken = upfront_shared_lock(&h->lock);
    drop_sample(h, p);
    code = upfront_heap_free(h->heap, p);
    h->frees++;
    starts = h == &range && wants_trim();
    leave(h, taken, caller);
    if (code != UPFRONT_OK && code != UPFRONT_CORRUPT)
        misuse(call, p, code, caller);
    if (starts)
        start_trim(caller);
}

static inline void give(const char *call, void *p, uintptr_t caller) {
    front *f = mine;
    if (f == NULL || !front_put(f, p))
        release(call, p, caller);
}

/* Returns the place of a live block; aborts if there is none. */
static place *place_live(const char *call, const void *p, uintptr_t caller) {
    place *h = place_of(p);
    int code = UPFRONT_FOREIGN, taken;
    if (h != NULL) {
        if (is_live(h, p))
            return h;
        taken = upfront_shared_lock(&h->lock);
        code = upfront_heap_check(h->heap, p);
        upfront_shared_unlock(&h->lock, taken);
    }
    misuse(call, p, code, caller);
}

static void *resize(const char *call, void *p, size_t size, uintptr_t caller) {
    place *h;
    uint64_t want = rounded(size), old;
    int taken, starts, point;
    upfront_trace t;
    void *q;
    if (p == NULL)
        q = alloc(size, caller);
    else if (size == 0) {
        give(call, p, caller);
        return NULL;
    } else {
        h = place_live(call, p, caller);
        old = usable(h, p);
        if (old == want)
            return p;
        if (h != place_now() && want > old) { /* it moves to the heap that serves */
            q = alloc(size, caller);
            if (q != NULL) {
                memcpy(q, p, (size_t)old);
                release(call, p, caller);
            }
        } else {
            taken = upfront_shared_lock(&h->lock);
            point = h == &range && is_sampled(size);
            if (point) {
                upfront_shared_unlock(&h->lock, taken);
                upfront_profile_walk(&t, caller, hook != NO_HOOK);
                taken = upfront_shared_lock(&h->lock);
            }
            q = resized(h, p, size, point ? &t : NULL);
            h->frees++;
            starts = h == &range && wants_trim();
            leave(h, taken, caller);
            if (q == NULL)
                q = last_try(h, p, size, UPFRONT_HEAP_ALIGN, caller);
            if (starts)
                start_trim(caller);
        }
    }
    if (q == NULL)
        errno = ENOMEM;
    return q;
}

static void *told_full(void *p) {
    if (p == NULL)
        errno = ENOMEM;
    return p;
}

static __attribute__((noinline)) void *take_new(uint64_t size, uintptr_t caller) {
    return told_full(take(size, UPFRONT_HEAP_ALIGN, caller));
}

/* The family. */

EXPORT void *malloc(size_t size) {
    front *f = mine;
    void *p = f != NULL && size <= UPFRONT_HEAP_FRONT ? front_get(f, list_of(size)) : NULL;
    return p != NULL ? p : take_new(size, CALLER);
}

EXPORT void free(void *p) {
    front *f = mine;
    if (p != NULL && (f == NULL || !front_put(f, p)))
        release("free", p, CALLER);
}

EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    void *p = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes))
        p = alloc(bytes, CALLER);
    return p != NULL ? memset(p, 0, bytes) : told_full(p);
}

EXPORT void *realloc(void *p, size_t size) { return resize("realloc", p, size, CALLER); }

/* Functions of another malloc that takes precedence over this one, or NULL. Such a malloc may lack
 * reallocarray and pvalloc, as jemalloc does. Then the process has these two of this file, and its
 * other functions are the other malloc's. */
static struct {
    void *(*resize)(void *, size_t);
    void *(*align)(size_t, size_t);
} other;

EXPORT void *reallocarray(void *p, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return told_full(NULL);
    if (other.resize != NULL)
        return other.resize(p, bytes);
    return resize("reallocarray", p, bytes, CALLER);
}

static inline int is_power(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

static void *aligned(size_t align, size_t size, uintptr_t caller) {
    if (align > UPFRONT_ALIGN_MAX)
        return refuse_align(align, size, caller);
    return align <= UPFRONT_HEAP_ALIGN ? alloc(size, caller) : take(size, align, caller);
}

EXPORT int posix_memalign(void **out, size_t align, size_t size) {
    void *p;
    if (!is_power(align) || align % sizeof(void *) != 0)
        return EINVAL;
    p = aligned(align, size, CALLER);
    if (p == NULL)
        return ENOMEM;
    *out = p;
    return 0;
}

EXPORT void *aligned_alloc(size_t align, size_t size) {
    if (!is_power(align)) {
        errno = EINVAL;
        return NULL;
    }
    return told_full(aligned(align, size, CALLER));
}

/* An alignment that is no power of two becomes the next one, as in glibc. */
EXPORT void *memalign(size_t align, size_t size) {
    size_t power = UPFRONT_HEAP_ALIGN;
    while (power < align && power != 0)
        power *= 2;
    if (power == 0) {
        errno = EINVAL;
        return NULL;
    }
    return told_full(aligned(power, size, CALLER));
}

#ifdef __GLIBC__
/* glibc's other names of these functions, which libraries may call. */
EXPORT void *__libc_malloc(size_t size) { return malloc(size); }
EXPORT void *__libc_calloc(size_t count, size_t size) { return calloc(count, size); }
EXPORT void *__libc_realloc(void *p, size_t size) { return realloc(p, size); }
EXPORT void *__libc_memalign(size_t align, size_t size) { return memalign(align, size); }
EXPORT void *__libc_valloc(size_t size) { return valloc(size); }
EXPORT void *__libc_pvalloc(size_t size) { return pvalloc(size); }
EXPORT void __libc_free(void *p) { free(p); }
#endif

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

EXPORT void *valloc(size_t size) { return told_full(aligned(page_size(), size, CALLER)); }

EXPORT void *pvalloc(size_t size) {
    size_t align = page_size();
    if (size > PTRDIFF_MAX)
        return told_full(NULL);
    size = size == 0 ? align : (size_t)upfront_round_up(size, align);
    return other.align != NULL ? other.align(align, size) : told_full(aligned(align, size, CALLER));
}

EXPORT size_t malloc_usable_size(void *p) {
    return p == NULL ? 0 : (size_t)usable(place_live("malloc_usable_size", p, CALLER), p);
}

/* Trim. */

/* Discards the pages [from, end), also those that are swapped out, and returns the bytes of the
 * resident ones. pre: both are at page bounds */
static uint64_t discard(char *from, char *end) {
    static unsigned char is[4096]; /* under all locks */
    uint64_t bytes = 0, i;
    char *at, *next;
    for (at = from; at < end; at = next) {
        uint64_t pages = (uint64_t)(end - at) / page, present = 0;
        pages = pages < sizeof is ? pages : sizeof is;
        next = at + pages * page;
        if (mincore(at, (size_t)(next - at), is) != 0)
            continue;
        for (i = 0; i < pages; i++)
            present += is[i] & 1;
        if (madvise(at, (size_t)(next - at), MADV_DONTNEED) == 0)
            bytes += present * page;
    }
    return bytes;
}

/* Discards the free blocks' pages, and returns the bytes. With `stamped`, it discards only in
 * blocks of two pages or more that have a stamp, and stamps the others: they are free since this
 * moment at the latest. A stamp is a word after a free block's links. A block that is allocated and
 * freed again may have its old stamp, and its pages go back sooner. pre: all locks; the fronts are
 * empty */
static uint64_t discard_free(int *stamped) {
    const uint64_t mark = UINT64_C(0x7570667265653A21);
    upfront_heap *h = range.heap;
    uint64_t at = 0, size, bytes = 0;
    void *run;
    while ((size = upfront_heap_next_run(h, page, &at, &run)) != 0) {
        uint64_t block = at % UPFRONT_OFFSET_MAX, stamp = mark ^ upfront_heap_size(h, block);
        char *from = (char *)run, *end = from + size;
        if (stamped != NULL) {
            if (upfront_distance(run, h) == block + UPFRONT_HEAP_LEAST)
                from += page; /* the stamp is there */
            if (size < 2 * page)
                continue;
            if (upfront_heap_word(h, block + UPFRONT_HEAP_LEAST) != stamp) {
                upfront_heap_set(h, block + UPFRONT_HEAP_LEAST, stamp);
                *stamped = 1;
                continue;
            }
        }
        bytes += discard(from, end);
    }
    return bytes;
}

static int can_trim(void) {
#ifdef UPFRONT_CHECKED
    return 0;
#else
    return place_now() == &range && !plan.lock;
#endif
}

uint64_t upfront_malloc_trim(void) {
    uint64_t bytes = 0;
    if (!can_trim())
        return 0;
    lock_all();
    flush_all(CALLER);
    look_at_use();
    bytes = discard_free(NULL);
    trimmed += bytes;
    unlock_all();
    return bytes;
}

EXPORT int malloc_trim(size_t keep) {
    (void)keep;
    return upfront_malloc_trim() != 0;
}

int upfront_malloc_look(void) {
    static uint64_t seen;
    static int stamped = 1;
    uint64_t i;
    int goes_on;
    if (!can_trim())
        return 0;
    lock_all();
    for (i = 0; i < front_count; i++)
        stamped |= fronts[i].parked != 0;
    goes_on = stamped || seen != range.frees;
    if (goes_on) {
        flush_all(CALLER);
        look_at_use();
        stamped = 0;
        trimmed += discard_free(&stamped);
        seen = range.frees;
    }
    trims = trims && goes_on;
    unlock_all();
    return goes_on;
}

#ifdef UPFRONT_MALLOC_PRELOAD
/* Reports whether no other thread of the process runs. A main thread that has ended stays in the
 * list. It returns 0 without a /proc. */
static int is_last(void) {
    char list[1024];
    char state[64];
    ssize_t size, at;
    int entries = 0, file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const char *name_end;
    if (file < 0)
        return 0;
    size = read(file, state, sizeof state - 1); /* "4711 (name) Z ...", of the main thread */
    close(file);
    state[size < 0 ? 0 : size] = 0;
    name_end = strrchr(state, ')');
    if (name_end == NULL || name_end[1] != ' ' || name_end[2] != 'Z')
        return 0;
    file = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return 0;
    size = syscall(SYS_getdents64, file, list, sizeof list);
    close(file);
    for (at = 0; at < size; entries++) {
        unsigned short length;
        memcpy(&length, list + at + 16, sizeof length); /* d_reclen */
        at += length;
    }
    return entries == 4; /* ".", "..", the main thread, this one */
}

/* Lives while freed memory waits to go back. It ends if it is the last thread. */
static void *trim_thread(void *unused) {
    const uint64_t second = 1000000000;
    (void)unused;
    do {
        uint64_t left = plan.trim, part;
        for (; left != 0; left -= part) {
            struct timespec wait = {1, 0};
            part = left < second ? left : second;
            if (part < second)
                wait = (struct timespec){0, (long)part};
            nanosleep(&wait, NULL);
            if (is_last())
                return NULL;
        }
    } while (upfront_malloc_look());
    return NULL;
}

/* Starts the thread that trims, with all signals blocked: it must take none from the program. A
 * free of libc's own may hold a lock that pthread_create needs, and the child of a vfork has no
 * threads. Then, and without memory or right for a thread, a later free tries again. pre: no lock
 * is held */
static __attribute__((noinline, cold)) void start_trim(uintptr_t caller) {
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;
    int failed, e = errno;
    if (!can_trim() || is_in(linker, caller) || is_in(libc, caller) || is_in(threads_of_libc, caller) ||
        getpid() != process || __atomic_exchange_n(&trims, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    failed = pthread_attr_init(&attr);
    if (!failed) {
        pthread_attr_setstacksize(&attr, 65536);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        failed = pthread_create(&thread, &attr, trim_thread, NULL);
        if (failed == EINVAL) { /* too small for the thread-local memory of this program */
            pthread_attr_setstacksize(&attr, 1 << 20);
            failed = pthread_create(&thread, &attr, trim_thread, NULL);
        }
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
    }
    if (failed)
        __atomic_store_n(&trims, 0, __ATOMIC_RELEASE);
    errno = e;
}
#else
static void start_trim(uintptr_t caller) { (void)caller; }
#endif

/* Begin. */

/* Reports whether libc allocates here. For a library that was loaded late libc has another malloc;
 * then the copy is left to it. */
static int is_ours(void) {
    char *(*volatile copy)(const char *) = strdup; /* no compiler makes it a malloc of ours */
    char *p = copy("");
    int ours = p == NULL || place_of(p) != NULL;
    if (ours)
        free(p);
    return ours;
}

/* Returns a function of the process, or NULL. A library of Go finds its own symbols first, so the
 * process's are those of a handle. The linker warns of a call of dlopen in a static program, which
 * never comes here. */
static void *function_of_process(const char *name) {
    void *(*open_program)(const char *, int) = NULL;
    void *p = dlsym(RTLD_DEFAULT, "dlopen");
    memcpy(&open_program, &p, sizeof p);
    return open_program != NULL ? dlsym(open_program(NULL, RTLD_LAZY), name) : NULL;
}

/* Finds the functions of another malloc that takes precedence, if there is one. */
static void know_other(void) {
    void *p;
    if (is_ours())
        return;
    p = function_of_process("realloc");
    memcpy(&other.resize, &p, sizeof p);
    p = function_of_process("memalign");
    memcpy(&other.align, &p, sizeof p);
}

const char *upfront_malloc_other(void) {
    Dl_info info;
    void *p = function_of_process("malloc");
    return p != NULL && dladdr(p, &info) != 0 ? info.dli_fname : NULL;
}

/* Makes the pages of the range present. Returns 0 or -1, with errno. */
static int populate(char *base, uint64_t size) {
    uint64_t at;
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
    if (madvise(base, (size_t)size, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (errno != EINVAL)
        return -1;
    for (at = 0; at < size; at += page)
        *(volatile char *)(base + at) = 0;
    return 0;
}

static int unmapped(char *base, uint64_t size, int code) {
    int e = errno;
    munmap(base, (size_t)size);
    errno = e;
    return code;
}

/* Begins the distances to the next sample points. pre: all locks */
static void seed(uint64_t n) {
    uint64_t i;
    upfront_profile_seed(n);
    for (i = 0; i < UPFRONT_MALLOC_FRONTS; i++) {
        front *f = &fronts[i];
        f->put += (uint64_t)f->left;
        f->left = upfront_profile_gap();
        f->put -= (uint64_t)f->left;
    }
    range_left = upfront_profile_gap();
}

void upfront_malloc_seed(uint64_t n) {
    lock_all();
    seed(n);
    unlock_all();
}

void upfront_malloc_profile(upfront_profile_counts *out) {
    pthread_mutex_lock(&range.lock);
    upfront_profile_count(out);
    pthread_mutex_unlock(&range.lock);
}

void upfront_malloc_stack(uint64_t i, upfront_profile_stack *out) {
    pthread_mutex_lock(&range.lock);
    upfront_profile_stack_at(i, out);
    pthread_mutex_unlock(&range.lock);
}

void upfront_malloc_object(uint64_t i, upfront_profile_object *out) {
    pthread_mutex_lock(&range.lock);
    upfront_profile_object_at(i, out);
    pthread_mutex_unlock(&range.lock);
}

/* Samples of other arenas (sampler.h). The caller may hold the lock of its arena. */

static uint64_t arena_random(void) {
    uint64_t random;
    pthread_mutex_lock(&range.lock);
    random = upfront_profile_random();
    pthread_mutex_unlock(&range.lock);
    return random;
}

static void arena_add(const void *p, uint64_t bytes, uint32_t arena, uintptr_t caller) {
    upfront_trace t;
    upfront_profile_walk(&t, caller, hook != NO_HOOK);
    pthread_mutex_lock(&range.lock);
    (void)upfront_profile_add((uint64_t)(uintptr_t)p, bytes, arena, &t);
    pthread_mutex_unlock(&range.lock);
}

static void arena_drop(const void *p) {
    if (!upfront_profile_may((uint64_t)(uintptr_t)p))
        return;
    pthread_mutex_lock(&range.lock);
    upfront_profile_drop((uint64_t)(uintptr_t)p);
    pthread_mutex_unlock(&range.lock);
}

static uint64_t arena_moment(void) {
    uint64_t moment;
    pthread_mutex_lock(&range.lock);
    moment = upfront_profile_moment();
    pthread_mutex_unlock(&range.lock);
    return moment;
}

static void arena_rewind(const void *from, uint64_t size, uint64_t moment) {
    pthread_mutex_lock(&range.lock);
    upfront_profile_rewind(from, size, moment);
    pthread_mutex_unlock(&range.lock);
}

const upfront_sampler *upfront_malloc_sampler(void) {
    static const upfront_sampler sampler = {arena_random, upfront_profile_gap_of, arena_add, arena_drop, arena_moment,
                                            arena_rewind};
    return place_now() == &range && plan.samples != 0 ? &sampler : NULL;
}

int upfront_malloc_begin(const upfront_malloc_plan *p) {
    uint64_t bytes, used, size, rest;
    char *base;
    if (place_now() == &range)
        return UPFRONT_MALLOC_OK;
    if (!is_ours())
        return UPFRONT_MALLOC_OTHER;
    page = page_size();
    pthread_mutex_lock(&boot.lock);
    used = heap_of(&boot)->used;
    pthread_mutex_unlock(&boot.lock);
    if (p->size < used)
        return UPFRONT_MALLOC_TAKEN;
    bytes = upfront_round_up(p->size, page);
    base =
        (char *)mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return UPFRONT_MALLOC_MAP;
    if (p->prefault && populate(base, bytes) != 0)
        return unmapped(base, bytes, UPFRONT_MALLOC_PREFAULT);
    if (p->lock && mlock(base, (size_t)bytes) != 0)
        return unmapped(base, bytes, UPFRONT_MALLOC_LOCK);
    /* the second heap begins there, at a cache line */
    rest = p->size - p->samples;
    size = (rest - upfront_round_up(p->runtime, 16)) & ~UINT64_C(63);
    if (p->runtime > p->size / 2 || p->samples > p->size / 2 || p->runtime + p->samples >= p->size ||
        upfront_heap_init(base, size, 0) == NULL || upfront_heap_init(base + size, rest - size, 0) == NULL)
        return unmapped(base, bytes, UPFRONT_MALLOC_SMALL);
    if (p->samples != 0)
        upfront_c_begin();
    lock_all();
    know_standard_error();
    plan = *p;
    range_runtime.base = base + size;
    range_runtime.size = rest - size;
    range_runtime.heap = (upfront_heap *)(void *)range_runtime.base;
    range_runtime.heap->look = UINT64_MAX;
    range.base = base;
    range.size = size;
    range.heap = (upfront_heap *)(void *)base;
    range.heap->look = UINT64_MAX;
    upfront_heap_reserve(range.heap, p->reserve);
    rest = upfront_round_up(rest, 64);
    upfront_profile_begin(base + rest, p->size > rest ? p->size - rest : 0, p->profile);
    seed(1);
#ifndef UPFRONT_CHECKED
    front_count = p->fronts < UPFRONT_MALLOC_FRONTS ? p->fronts : UPFRONT_MALLOC_FRONTS;
#endif
    __atomic_store_n(&current, &range, __ATOMIC_RELEASE);
    unlock_all();
    return UPFRONT_MALLOC_OK;
}

void upfront_malloc_watch(uint64_t at, uint64_t again, int event) {
    lock_all();
    watch.at = at;
    watch.again = again;
    watch.event = event;
    watch.over = 0;
    watch.count = watch.last = 0;
    if (range.heap != NULL)
        look_at_use();
    unlock_all();
}

int upfront_malloc_event(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

void upfront_malloc_lend(int more) {
    pthread_mutex_lock(&range.lock);
    lent += more;
    if (range.heap != NULL)
        upfront_heap_reserve(range.heap, lent == 0 ? plan.reserve : 0);
    pthread_mutex_unlock(&range.lock);
}

int upfront_malloc_walk(void) {
    int code = UPFRONT_OK, i;
    lock_all();
    flush_all(CALLER);
    for (i = 0; code == UPFRONT_OK && i < PLACES; i++)
        if (places[i]->heap != NULL)
            code = upfront_heap_walk(places[i]->heap, NULL, 0, NULL);
    unlock_all();
    return code;
}

void upfront_malloc_count(upfront_malloc_counts *out) {
    const upfront_heap *h;
    const refusal *last;
    place *now;
    uint64_t i;
    memset(out, 0, sizeof *out);
    lock_all();
    h = range.heap;
    if (h != NULL) {
        out->base = range.base;
        out->size = plan.size;
        out->reserve = plan.reserve;
        out->used = h->used;
        out->live = h->live;
        out->peak = upfront_heap_peak(h);
        for (i = 0; i < front_count; i++) {
            out->used -= front_bytes(&fronts[i]);
            out->live -= fronts[i].parked;
            out->parked += fronts[i].parked;
        }
    }
    last = refused[RUNTIME].count != 0 ? &refused[RUNTIME] : &refused[FULL];
    out->fulls = refused[FULL].count + refused[RUNTIME].count;
    out->full_size = last->size;
    out->full_used = last->used;
    out->full_caller = last->caller;
    out->full_runtime = last == &refused[RUNTIME];
    memcpy(out->full_go, last->go, sizeof last->go);
    memcpy(out->full_holder, refused[FULL].holder, sizeof out->full_holder);
    out->samples = h != NULL ? plan.samples : 0;
    out->larges = refused[LARGE].count;
    out->large_size = refused[LARGE].size;
    out->warnings = watch.count;
    out->warned = watch.last;
    now = place_now()->runtime;
    out->runtime_base = now->base;
    out->runtime = now->size;
    out->runtime_used = heap_of(now)->used;
    out->runtime_peak = upfront_heap_peak(now->heap);
    out->boot = sizeof boot_bytes;
    out->boot_used = heap_of(&boot)->used;
    out->trimmed = trimmed;
    unlock_all();
}

/* fork: the child has the locks' state of this moment, so all are taken, and none is in use. The
 * handlers before a fork run newest first, and may allocate or wait for threads that do, so these
 * must run last: they are the first to be registered. Each library registers through
 * __register_atfork, which is here for that reason. */

static void child(void) {
    unlock_all();
    watch.event = -1; /* the parent's */
    trims = 0;
    process = getpid();
}

#ifdef __GLIBC__
typedef int registering(void (*)(void), void (*)(void), void (*)(void), void *);

static registering *registering_of_libc(void) {
    static registering *found;
    registering *now = __atomic_load_n(&found, __ATOMIC_RELAXED);
    void *p;
    if (now == NULL && (p = dlsym(RTLD_NEXT, "__register_atfork")) != NULL) {
        memcpy(&now, &p, sizeof p);
        __atomic_store_n(&found, now, __ATOMIC_RELAXED);
    }
    return now;
}

/* weak: a static program has libc's, and this file's constructor comes first there */
EXPORT __attribute__((weak)) int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*in_child)(void),
                                                   void *object) {
    static int done;
    registering *with = registering_of_libc();
    if (with == NULL)
        return ENOMEM;
    if (!__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL))
        with(lock_all, unlock_all, child, NULL);
    return prepare == lock_all ? 0 : with(prepare, parent, in_child, object);
}
#endif

#ifdef __GLIBC__
/* ld.so's address is 0 among the kernel's words if the program was started by its name. */
static uintptr_t linker_base(void) {
    uintptr_t base = getauxval(AT_BASE);
    const struct r_debug *d = base == 0 ? (const struct r_debug *)dlsym(RTLD_DEFAULT, "_r_debug") : NULL;
    return d != NULL ? d->r_ldbase : base;
}
#endif

__attribute__((constructor(101))) static void start(void) {
    void *(*volatile copy)(void *, const void *, size_t) = memmove; /* not the compiler's own */
    int (*volatile create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = pthread_create;
    process = getpid();
#ifdef __GLIBC__
    upfront_code_at(linker_base(), &linker.from, &linker.end);
#endif
    upfront_code_around((uintptr_t)copy, &libc.from, &libc.end);
    upfront_code_around((uintptr_t)create, &threads_of_libc.from, &threads_of_libc.end);
    upfront_symbol_of(0, NULL);
    know_standard_error();
    know_other();
    pthread_atfork(lock_all, unlock_all, child);
}

/* Counts in glibc's form. */

EXPORT int mallopt(int parameter, int value) {
    (void)parameter, (void)value;
    return 1; /* accepted, without an effect: the plan has the sizes */
}

static uint64_t all_used(const upfront_malloc_counts *c) { return c->used + c->boot_used; }

#ifdef __GLIBC__
EXPORT struct mallinfo mallinfo(void) {
    struct mallinfo m = {0};
    upfront_malloc_counts c;
    upfront_malloc_count(&c);
    m.arena = (int)(c.size + c.boot);
    m.uordblks = (int)all_used(&c);
    m.fordblks = (int)(c.size + c.boot - all_used(&c));
    return m;
}

#if __GLIBC_PREREQ(2, 33)
EXPORT struct mallinfo2 mallinfo2(void) {
    struct mallinfo2 m = {0};
    upfront_malloc_counts c;
    upfront_malloc_count(&c);
    m.arena = (size_t)(c.size + c.boot);
    m.uordblks = (size_t)all_used(&c);
    m.fordblks = (size_t)(c.size + c.boot - all_used(&c));
    return m;
}
#endif
#endif

static void add_count(line *l, const char *name, uint64_t n) {
    add(l, name);
    add_number(l, n, 10);
}

EXPORT void malloc_stats(void) {
    upfront_malloc_counts c;
    line l = {0};
    upfront_malloc_count(&c);
    add_count(&l, "upfront: C's malloc: size ", c.size);
    add_count(&l, ", used ", c.used);
    add_count(&l, ", peak ", c.peak);
    add_count(&l, ", reserve ", c.reserve);
    add_count(&l, ", blocks ", c.live);
    add_count(&l, ", refused ", c.fulls);
    add_count(&l, ", trimmed ", c.trimmed);
    add_count(&l, "; static heap: size ", c.boot);
    add_count(&l, ", used ", c.boot_used);
    say(&l);
}

EXPORT int malloc_info(int options, FILE *out) {
    upfront_malloc_counts c;
    if (options != 0)
        return EINVAL;
    upfront_malloc_count(&c);
    fprintf(out,
            "<malloc version=\"1\">\n<total type=\"used\" count=\"%llu\" size=\"%llu\"/>\n<system type=\"max\" "
            "size=\"%llu\"/>\n</malloc>\n",
            (unsigned long long)c.live, (unsigned long long)all_used(&c), (unsigned long long)(c.size + c.boot));
    return 0;
}

#ifdef UPFRONT_MALLOC_PRELOAD
typedef struct unit {
    const char *name;
    uint64_t size;
} unit;

/* Returns the number of a text such as 64MiB, or 0. */
static uint64_t read_number(const char *text, const unit *units) {
    uint64_t n = 0;
    for (; *text >= '0' && *text <= '9' && n < UPFRONT_OFFSET_MAX; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    for (; units->name != NULL; units++)
        if (strcmp(text, units->name) == 0)
            return n <= UPFRONT_OFFSET_MAX / units->size ? n * units->size : 0;
    return 0;
}

_Noreturn static void refuse(const char *name, const char *text, const char *why_not) {
    line l = {0};
    add(&l, "upfront: ");
    add(&l, name);
    add(&l, "=");
    add(&l, text);
    add(&l, ": ");
    add(&l, why_not);
    say(&l);
    _exit(127);
}

/* The preloaded library takes its plan from the environment. */
__attribute__((constructor)) static void begin_from_environment(void) {
    static const char size_name[] = "UPFRONT_C_HEAP", trim_name[] = "UPFRONT_C_HEAP_TRIM";
    static const unit bytes[] = {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {NULL, 0}};
    static const unit times[] = {{"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
    const char *size = getenv(size_name), *trim = getenv(trim_name);
    upfront_malloc_plan p = {0};
    if (size == NULL)
        return;
    p.size = read_number(size, bytes);
    p.runtime = p.size / 4 < UPFRONT_MALLOC_RUNTIME ? p.size / 4 : UPFRONT_MALLOC_RUNTIME;
    p.fronts = 4;
    if (trim != NULL) {
        p.trim = read_number(trim, times);
        if (p.trim == 0)
            refuse(trim_name, trim, "give a time such as 500ms or 1s");
    }
    switch (p.size == 0 ? UPFRONT_MALLOC_SMALL : upfront_malloc_begin(&p)) {
    case UPFRONT_MALLOC_OK:
        return;
    case UPFRONT_MALLOC_SMALL:
        refuse(size_name, size, "give a size such as 64MiB");
    case UPFRONT_MALLOC_TAKEN:
        refuse(size_name, size, "the process has more memory already; give more");
    default:
        refuse(size_name, size, "the system refuses the memory or a thread");
    }
}
#endif
