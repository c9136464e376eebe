/* callbacks.h - malloc, calloc, realloc, free and size over a heap or a buddy, for C libraries that
 * take such functions.
 *
 *     #include <upfront/callbacks.h>
 *     UPFRONT_CALLBACKS(pond, heap)    at file scope: static pond_malloc ... pond_size, no context
 *     pond.arena = upfront_heap_init(block, size, 256);
 *
 * For libraries that pass a context as first argument there are upfront_shared_heap_malloc and so
 * on; the context is an upfront_shared_heap. upfront.h doesn't include this header, and the core
 * doesn't need it.
 *
 * Promised   One lock encloses every call, also of size. A library may call from any thread, also
 *            while it holds locks of its own. While glibc reports that the process has one thread,
 *            the lock isn't taken. The arena's costs hold inside of the lock. No call takes memory
 *            from elsewhere. NULL means full, and nothing has changed. Addresses are multiples of
 *            16.
 *              malloc of 0         an address of its own, to be freed
 *              calloc              zeros; NULL if count * size overflows
 *              realloc of NULL     malloc
 *              realloc to 0        a block of no bytes, to be freed: it frees nothing
 *              free of NULL        nothing
 *              size                the last asked size (in a buddy the block's size); 0 for NULL
 * Misuse     An address that isn't a live block's start is refused: free does nothing, realloc
 *            returns NULL, size 0. Libraries don't notice, so `misuse` counts such calls and keeps
 *            the name, address and code (base.h) of the last one. It also counts calls that found
 *            damage by a stray write, with the code UPFRONT_CORRUPT and the address of the damage,
 *            or of the arena if that is unknown. Such a malloc or free still does its work if it
 *            can.
 * Direct use The program may use the arena itself while it holds `lock`: lift a reserve for a
 *            clean-up, walk, read counts. No function is for signal handlers. In a child after fork
 *            only exec may follow, unless no other thread was in a call. The words of this header
 *            are addresses, so they can't move to another process. If C makes an arena in the state
 *            of a Go program, it must announce the arena: room.h.
 * Libraries  How some libraries take the functions; tests/c/clients has the code.
 *   SQLite  sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) before all else. Sizes are int, so each
 *           of the five functions needs a one-line wrapper; xRoundup rounds up to 8, xInit and
 *           xShutdown do nothing. With a full heap even DROP fails: keep a reserve.
 *   ENet    ENetCallbacks c = {pond_malloc, pond_free, no_memory};
 *           enet_initialize_with_callbacks(ENET_VERSION, &c); where no_memory is a function of
 *           yours that returns, because ENet's own aborts.
 *   PhysFS  PHYSFS_setAllocator(&allocator) before PHYSFS_init. Sizes are 64 bits, so malloc and
 *           realloc need a one-line wrapper; Init and Deinit do nothing. PhysFS 3.0.2 crashes if
 *           the heap is full while it mounts an archive: lift a reserve before.
 *   zlib    stream.opaque = &shared; stream.zfree = upfront_shared_heap_free; zalloc is a one-line
 *           wrapper of ..._calloc.
 *   Lua     lua_newstate(upfront_heap_hook, heap) for a heap of one state. A shared heap needs a
 *           hook that frees for size 0 and calls ..._realloc otherwise. */
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

/* Calls with an address that isn't a live block's start, and calls that found damage. */
typedef struct upfront_misuse {
    uint64_t calls;
    const char *call;    /* name of the last call: "malloc", "realloc", "free" or "size" */
    const void *address; /* the argument, or the place of the damage */
    int code;
    uint64_t damaged; /* the arena's `damaged` at the last call */
} upfront_misuse;

static inline void upfront_misuse_note(upfront_misuse *m, const char *call, const void *address, int64_t code) {
    m->calls++;
    m->call = call;
    m->address = address;
    m->code = (int)code;
}

/* Counts the call if it found damage. `damaged` and `where` are the arena's words. */
static inline void upfront_misuse_look(upfront_misuse *m, const char *call, const void *arena, uint64_t damaged,
                                       uint64_t where) {
    if (m->damaged == damaged)
        return;
    m->damaged = damaged;
    upfront_misuse_note(m, call, (const char *)arena + where, UPFRONT_CORRUPT);
}

/* Takes the lock unless the process has one thread, as glibc's malloc does. Returns 1 if it took
 * the lock. */
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

/* Defines, for a kind of arena that frees in any order, upfront_shared_KIND (an arena with a lock)
 * and its functions. The context of the functions is the address of an upfront_shared_KIND.
 * upfront_shared_KIND_init initializes it and returns 0, or the error of pthread_mutex_init. */
#define UPFRONT_SHARED(kind) \
    typedef struct upfront_shared_##kind { \
        upfront_##kind *arena; \
        upfront_misuse misuse; \
        pthread_mutex_t lock; \
    } upfront_shared_##kind; \
\
    static inline void upfront_shared_##kind##_look(upfront_shared_##kind *s, const char *call) { \
        if (s->arena != NULL) \
            upfront_misuse_look(&s->misuse, call, s->arena, s->arena->damaged, s->arena->where); \
    } \
\
    static inline int upfront_shared_##kind##_init(upfront_shared_##kind *s, upfront_##kind *arena) { \
        memset(s, 0, sizeof *s); \
        s->arena = arena; \
        return pthread_mutex_init(&s->lock, NULL); \
    } \
\
    /* the caller holds the lock */ \
    static inline void *upfront_shared_##kind##_malloc_in(upfront_shared_##kind *s, size_t size) { \
        void *p = upfront_##kind##_alloc(s->arena, size, UPFRONT_HEAP_ALIGN); \
        upfront_shared_##kind##_look(s, "malloc"); \
        return p; \
    } \
\
    static inline void *upfront_shared_##kind##_realloc_in(upfront_shared_##kind *s, void *p, size_t size) { \
        void *q = upfront_##kind##_realloc(s->arena, p, size); \
        if (q == NULL && p != NULL) { /* full, or p is why */ \
            int code = upfront_##kind##_check(s->arena, p); \
            if (code < 0) \
                upfront_misuse_note(&s->misuse, "realloc", p, code); \
        } \
        upfront_shared_##kind##_look(s, "realloc"); \
        return q; \
    } \
\
    static inline int upfront_shared_##kind##_free_in(upfront_shared_##kind *s, void *p) { \
        int code = upfront_##kind##_free(s->arena, p); \
        if (code != UPFRONT_OK && (s->arena == NULL || s->arena->damaged == s->misuse.damaged)) \
            upfront_misuse_note(&s->misuse, "free", p, code); \
        upfront_shared_##kind##_look(s, "free"); \
        return code; \
    } \
\
    static inline void *upfront_shared_##kind##_malloc(void *context, size_t size) { \
        upfront_shared_##kind *s = (upfront_shared_##kind *)context; \
        int taken = upfront_shared_lock(&s->lock); \
        void *p = upfront_shared_##kind##_malloc_in(s, size); \
        upfront_shared_unlock(&s->lock, taken); \
        return p; \
    } \
\
    static inline void *upfront_shared_##kind##_calloc(void *context, size_t count, size_t size) { \
        void *p = NULL; \
        if (size == 0 || count <= SIZE_MAX / size) \
            p = upfront_shared_##kind##_malloc(context, count * size); \
        return p == NULL ? NULL : memset(p, 0, count * size); \
    } \
\
    static inline void *upfront_shared_##kind##_realloc(void *context, void *p, size_t size) { \
        upfront_shared_##kind *s = (upfront_shared_##kind *)context; \
        int taken = upfront_shared_lock(&s->lock); \
        void *q = upfront_shared_##kind##_realloc_in(s, p, size); \
        upfront_shared_unlock(&s->lock, taken); \
        return q; \
    } \
\
    static inline void upfront_shared_##kind##_free(void *context, void *p) { \
        upfront_shared_##kind *s = (upfront_shared_##kind *)context; \
        int taken; \
        if (p == NULL) \
            return; \
        taken = upfront_shared_lock(&s->lock); \
        (void)upfront_shared_##kind##_free_in(s, p); \
        upfront_shared_unlock(&s->lock, taken); \
    } \
\
    static inline size_t upfront_shared_##kind##_size(void *context, void *p) { \
        upfront_shared_##kind *s = (upfront_shared_##kind *)context; \
        int64_t size; \
        int taken; \
        if (p == NULL) \
            return 0; \
        taken = upfront_shared_lock(&s->lock); \
        size = upfront_##kind##_size_of(s->arena, p); \
        if (size < 0) \
            upfront_misuse_note(&s->misuse, "size", p, size); \
        upfront_shared_unlock(&s->lock, taken); \
        return size < 0 ? 0 : (size_t)size; \
    }

UPFRONT_SHARED(heap)
UPFRONT_SHARED(buddy)

#define UPFRONT_UNUSED __attribute__((unused)) /* a library takes only some of the functions */

/* UPFRONT_CALLBACKS takes no semicolon. It defines, for one file, an upfront_shared_KIND `name` and
 * the functions name_malloc, name_calloc, name_realloc, name_free and name_size. The program sets
 * name.arena before the first call; without an arena every malloc returns NULL. Both arguments may
 * be macros. */
/* expands the arguments before ## pastes them */
#define UPFRONT_CALLBACKS(name, kind) UPFRONT_CALLBACKS_OF(name, kind)
#define UPFRONT_CALLBACKS_OF(name, kind) \
    static upfront_shared_##kind name = {NULL, {0, NULL, NULL, 0, 0}, PTHREAD_MUTEX_INITIALIZER}; \
    UPFRONT_UNUSED static inline void *name##_malloc(size_t size) { \
        return upfront_shared_##kind##_malloc(&name, size); \
    } \
    UPFRONT_UNUSED static inline void *name##_calloc(size_t count, size_t size) { \
        return upfront_shared_##kind##_calloc(&name, count, size); \
    } \
    UPFRONT_UNUSED static inline void *name##_realloc(void *p, size_t size) { \
        return upfront_shared_##kind##_realloc(&name, p, size); \
    } \
    UPFRONT_UNUSED static inline void name##_free(void *p) { upfront_shared_##kind##_free(&name, p); } \
    UPFRONT_UNUSED static inline size_t name##_size(void *p) { return upfront_shared_##kind##_size(&name, p); }

#ifdef __cplusplus
}
#endif
#endif
