/* callbacks.h - malloc, calloc, realloc, free and size over a heap or a buddy, for C libraries that take such functions.
 *
 *     #include <upfront/callbacks.h>
 *     UPFRONT_CALLBACKS(pond, heap)      at file scope: pond_malloc ... pond_size, static and without a context
 *     pond.arena = upfront_heap_init(block, size, 256);
 *
 * The same with a context in front are upfront_shared_heap_malloc ... of an upfront_shared_heap. upfront.h doesn't include this header,
 * and the core doesn't need it.
 *
 * Promised   One lock around every call, size included: a library may call on any thread, and while it holds locks of its own. It isn't
 *            taken while glibc says that the process has one thread. What the arena promises, as to steps, holds inside of the lock. No
 *            call asks anybody else for memory; NULL is full, and changed nothing. Addresses are multiples of 16.
 *              malloc of 0         an address of its own, to be freed
 *              calloc              zeros; NULL where count * size has no value
 *              realloc of NULL     malloc
 *              realloc to 0        a block of no bytes, to be freed: it frees nothing
 *              free of NULL        nothing
 *              size                what was asked for last (a buddy: what its block has); 0 of NULL
 * Misuse     An address that is no live block's start is refused and changes nothing: free does nothing, realloc gives NULL, size 0. No C
 *            library looks, so `misuse` counts such calls, and says of the last which it was, of what address, and its code (base.h).
 *            It counts calls that met what a stray write had overwritten, too: the code is UPFRONT_CORRUPT, the address the overwritten
 *            block's (that of the arena, if nobody knows). Such a malloc or free did what it is for all the same, while anything is whole.
 * The rest   The program may use the arena itself while it holds `lock`: a reserve lifted for a clean-up, the walk, counts. Nothing is for
 *            signal handlers. In a child after fork only exec may follow, unless no other thread was in a call. The words hold addresses,
 *            so an arena and its lock stay in the process that made them. An arena that C makes in the state of a Go program
 *            is noted there: room.h.
 * Given as   SQLite  sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) before anything else: sizes are int, so a line around each of the five;
 *                    xRoundup rounds up to 8, xInit and xShutdown do nothing. What is full can't even DROP: keep a reserve.
 *            ENet    ENetCallbacks c = {pond_malloc, pond_free, no_memory}; enet_initialize_with_callbacks(ENET_VERSION, &c);
 *                    a no_memory of your own that returns, as ENet's aborts
 *            PhysFS  PHYSFS_setAllocator(&allocator) before PHYSFS_init: sizes are 64 bits, so a line around malloc and realloc; Init and
 *                    Deinit do nothing. 3.0.2 dies when a mount of an archive is out of memory: lift a reserve for that.
 *            zlib    stream.opaque = &shared; stream.zfree = upfront_shared_heap_free; zalloc is a line around ..._calloc
 *            Lua     lua_newstate(upfront_heap_hook, heap) for a heap that one state has; in a shared one a hook that frees for size 0
 *                    and is ..._realloc for the rest
 *            Tests of these: tests/c/clients. */
#ifndef UPFRONT_CALLBACKS_H
#define UPFRONT_CALLBACKS_H

#include <pthread.h>

#include "upfront.h"

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define UPFRONT_ALONE __libc_single_threaded
#endif
#endif
#ifndef UPFRONT_ALONE
#define UPFRONT_ALONE 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Calls with an address that is no live block's start, and calls that met damage. */
typedef struct upfront_misuse {
    uint64_t calls;
    const char *call;    /* the last one's: "malloc", "realloc", "free" or "size" */
    const void *address; /* of the argument, or of the block that was overwritten */
    int code;
    uint64_t damaged; /* how often the arena had met damage then */
} upfront_misuse;

static inline void upfront_misuse_note(upfront_misuse *m, const char *call, const void *address, int64_t code) {
    m->calls++;
    m->call = call;
    m->address = address;
    m->code = (int)code;
}

/* After a call: notes the damage that it met. `damaged` and `where` are the arena's. */
static inline void upfront_misuse_look(upfront_misuse *m, const char *call, const void *arena, uint64_t damaged, uint64_t where) {
    if (m->damaged == damaged)
        return;
    m->damaged = damaged;
    upfront_misuse_note(m, call, (const char *)arena + where, UPFRONT_CORRUPT);
}

/* Whether the lock was taken: while the process has one thread it isn't. glibc's malloc does the same. */
static inline int upfront_shared_lock(pthread_mutex_t *lock) {
    if (UPFRONT_ALONE)
        return 0;
    pthread_mutex_lock(lock);
    return 1;
}

static inline void upfront_shared_unlock(pthread_mutex_t *lock, int taken) {
    if (taken)
        pthread_mutex_unlock(lock);
}

/* upfront_shared_KIND, an arena with a lock, and its functions, for each kind of arena that frees in any order. Their context is the
 * address of one, which upfront_shared_KIND_init makes: 0, or the system's error. */
#define UPFRONT_SHARED(kind)                                                                                  \
    typedef struct upfront_shared_##kind {                                                                    \
        upfront_##kind *arena;                                                                                \
        upfront_misuse misuse;                                                                                \
        pthread_mutex_t lock;                                                                                 \
    } upfront_shared_##kind;                                                                                  \
                                                                                                              \
    static inline void upfront_shared_##kind##_look(upfront_shared_##kind *s, const char *call) {             \
        if (s->arena != NULL)                                                                                 \
            upfront_misuse_look(&s->misuse, call, s->arena, s->arena->damaged, s->arena->where);              \
    }                                                                                                         \
                                                                                                              \
    static inline int upfront_shared_##kind##_init(upfront_shared_##kind *s, upfront_##kind *arena) {         \
        memset(s, 0, sizeof *s);                                                                              \
        s->arena = arena;                                                                                     \
        return pthread_mutex_init(&s->lock, NULL);                                                            \
    }                                                                                                         \
                                                                                                              \
    static inline void *upfront_shared_##kind##_malloc(void *context, size_t size) {                          \
        upfront_shared_##kind *s = (upfront_shared_##kind *)context;                                          \
        int taken;                                                                                            \
        void *p;                                                                                              \
        taken = upfront_shared_lock(&s->lock);                                                                \
        p = upfront_##kind##_alloc(s->arena, size, UPFRONT_HEAP_ALIGN);                                       \
        upfront_shared_##kind##_look(s, "malloc");                                                            \
        upfront_shared_unlock(&s->lock, taken);                                                               \
        return p;                                                                                             \
    }                                                                                                         \
                                                                                                              \
    static inline void *upfront_shared_##kind##_calloc(void *context, size_t count, size_t size) {            \
        void *p = NULL;                                                                                       \
        if (size == 0 || count <= SIZE_MAX / size)                                                            \
            p = upfront_shared_##kind##_malloc(context, count * size);                                        \
        return p == NULL ? NULL : memset(p, 0, count * size);                                                 \
    }                                                                                                         \
                                                                                                              \
    static inline void *upfront_shared_##kind##_realloc(void *context, void *p, size_t size) {                \
        upfront_shared_##kind *s = (upfront_shared_##kind *)context;                                          \
        int taken;                                                                                            \
        void *q;                                                                                              \
        taken = upfront_shared_lock(&s->lock);                                                                \
        q = upfront_##kind##_realloc(s->arena, p, size);                                                      \
        if (q == NULL && p != NULL) { /* full, or p is why */                                                 \
            int code = upfront_##kind##_check(s->arena, p);                                                   \
            if (code < 0)                                                                                     \
                upfront_misuse_note(&s->misuse, "realloc", p, code);                                          \
        }                                                                                                     \
        upfront_shared_##kind##_look(s, "realloc");                                                           \
        upfront_shared_unlock(&s->lock, taken);                                                               \
        return q;                                                                                             \
    }                                                                                                         \
                                                                                                              \
    static inline void upfront_shared_##kind##_free(void *context, void *p) {                                 \
        upfront_shared_##kind *s = (upfront_shared_##kind *)context;                                          \
        int code, taken;                                                                                      \
        if (p == NULL)                                                                                        \
            return;                                                                                           \
        taken = upfront_shared_lock(&s->lock);                                                                \
        code = upfront_##kind##_free(s->arena, p);                                                            \
        if (code != UPFRONT_OK && (s->arena == NULL || s->arena->damaged == s->misuse.damaged))               \
            upfront_misuse_note(&s->misuse, "free", p, code);                                                 \
        upfront_shared_##kind##_look(s, "free");                                                              \
        upfront_shared_unlock(&s->lock, taken);                                                               \
    }                                                                                                         \
                                                                                                              \
    static inline size_t upfront_shared_##kind##_size(void *context, void *p) {                               \
        upfront_shared_##kind *s = (upfront_shared_##kind *)context;                                          \
        int64_t size;                                                                                         \
        int taken;                                                                                            \
        if (p == NULL)                                                                                        \
            return 0;                                                                                         \
        taken = upfront_shared_lock(&s->lock);                                                                \
        size = upfront_##kind##_size_of(s->arena, p);                                                         \
        if (size < 0)                                                                                         \
            upfront_misuse_note(&s->misuse, "size", p, size);                                                 \
        upfront_shared_unlock(&s->lock, taken);                                                               \
        return size < 0 ? 0 : (size_t)size;                                                                   \
    }

UPFRONT_SHARED(heap)
UPFRONT_SHARED(buddy)

#define UPFRONT_UNUSED __attribute__((unused)) /* a library takes some of them */

/* UPFRONT_CALLBACKS, without a semicolon, declares for one file the arena with a lock called `name`, and name_malloc, name_calloc,
 * name_realloc, name_free and name_size. The program sets name.arena before the first call; without one everything is full.
 * Both arguments may be macros. */
#define UPFRONT_CALLBACKS(name, kind) UPFRONT_CALLBACKS_OF(name, kind) /* expands them, before ## pastes */
#define UPFRONT_CALLBACKS_OF(name, kind)                                                                      \
    static upfront_shared_##kind name = {NULL, {0, NULL, NULL, 0, 0}, PTHREAD_MUTEX_INITIALIZER};                \
    UPFRONT_UNUSED static inline void *name##_malloc(size_t size) {                                           \
        return upfront_shared_##kind##_malloc(&name, size);                                                   \
    }                                                                                                         \
    UPFRONT_UNUSED static inline void *name##_calloc(size_t count, size_t size) {                             \
        return upfront_shared_##kind##_calloc(&name, count, size);                                            \
    }                                                                                                         \
    UPFRONT_UNUSED static inline void *name##_realloc(void *p, size_t size) {                                 \
        return upfront_shared_##kind##_realloc(&name, p, size);                                               \
    }                                                                                                         \
    UPFRONT_UNUSED static inline void name##_free(void *p) { upfront_shared_##kind##_free(&name, p); }        \
    UPFRONT_UNUSED static inline size_t name##_size(void *p) { return upfront_shared_##kind##_size(&name, p); }

#ifdef __cplusplus
}
#endif
#endif
