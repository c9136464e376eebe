/* process.h - malloc, free and their family for the whole process, over one heap of a fixed size.
 *
 * Algorithm  A static heap serves all calls until upfront_malloc_begin. After it a heap in a range
 *            of its own serves them. A free finds its heap by address. Each thread has one of the
 *            fronts, in turn; a front has a lock and lists of freed blocks, by exact size up to
 *            UPFRONT_MALLOC_LARGE. Such a block keeps its place in the heap, and has a parked
 *            block's seal (heap.h). A front that is full frees a quarter of its blocks, the largest
 *            ones, into the heap.
 * Bound      That of the heap (heap.h). Before a refusal all fronts' blocks are freed into the
 *            heap.
 * Runtime    A part of the range is a heap of its own. Its blocks are only for calls whose refusal
 *            would end the process: those of Go's runtime and cgo (a new thread, setenv, C.CString,
 *            C.malloc), and of ld.so. These calls get them only after the heap has refused.
 * Profile    The heap's blocks are sampled (profile.h), but for those of Go's runtime. A block with
 *            a sample point in it takes 16 bytes more and no front has it.
 * Refusal    The first refusal writes a line on standard error, with the size, the caller, the use
 *            and a size to set. So does each refusal that doubles their number. Writing the line
 *            takes no memory.
 * Cost       A block from a front: a lock, and the check of a header. Others: the heap's lock and
 *            the heap's cost. A refusal takes all locks and frees the fronts' blocks.
 * Threads    Any. A fork waits for the locks, so the child's heap is whole. In the preloaded
 *            library a thread trims. The thread starts when there is freed memory to return, and
 *            ends when there is none, or when it is the process's last thread.
 * Misuse     A line on standard error, then abort(): a double free, an address at which no block
 *            starts, an overwritten header. Not detected: two frees of one block at the same
 *            moment, until the block is allocated again.
 * Checked    Blocks go to the heap, not to fronts, and heap.h's checks of bytes hold: a write
 *            after a free or past a block's end aborts when the heap finds it. Nothing is trimmed,
 *            because a freed block's bytes are checked. */
#ifndef UPFRONT_PROCESS_H
#define UPFRONT_PROCESS_H

#include "profile.h"

#define UPFRONT_MALLOC_FRONTS 64     /* the most fronts */
#define UPFRONT_MALLOC_PARKS 256     /* the most blocks of a front */
#define UPFRONT_MALLOC_LARGE 8192    /* the largest size that has a list in a front */
/* The most bytes of a front after it takes a block of over UPFRONT_HEAP_FRONT bytes. */
#define UPFRONT_MALLOC_PARKED (UINT64_C(256) << 10)
#define UPFRONT_MALLOC_FRAMES 8      /* the most Go frames that a refusal keeps */
#define UPFRONT_MALLOC_HOOKS 4       /* pointers to C functions in Go's runtime */
#define UPFRONT_MALLOC_RUNTIME 65536 /* usual bytes of the runtime's part */

#ifndef UPFRONT_MALLOC_STATIC
#define UPFRONT_MALLOC_STATIC (1 << 20) /* bytes of the static heap */
#endif

typedef struct upfront_malloc_plan {
    uint64_t size, reserve, runtime; /* bytes; reserve and runtime are parts of size */
    uint64_t profile, samples;       /* bytes between sample points, 0: none; of their table */
    uint64_t fronts;
    uint64_t trim; /* nanoseconds between looks of the preloaded library's thread; 0: never */
    int prefault, lock;
} upfront_malloc_plan;

typedef struct upfront_malloc_counts {
    uint64_t size, used, peak, reserve, live, fulls, full_size, full_used, full_caller, full_runtime;
    uint64_t runtime, runtime_used, runtime_peak, larges, large_size, warnings, warned;
    uint64_t boot, boot_used, trimmed, parked, samples;
    upfront_holder full_holder[UPFRONT_PROFILE_HOLDERS]; /* at the last refusal; 0 bytes: fewer */
    uintptr_t full_go[UPFRONT_MALLOC_FRAMES]; /* Go's frames above the last refused call, then 0 */
    const void *base, *runtime_base;          /* of the range, or null; of the runtime's part */
} upfront_malloc_counts;

enum {
    UPFRONT_MALLOC_OK,
    UPFRONT_MALLOC_OTHER,    /* the process has another malloc */
    UPFRONT_MALLOC_TAKEN,    /* more than the size is in use already */
    UPFRONT_MALLOC_SMALL,    /* too small for a heap */
    UPFRONT_MALLOC_MAP,      /* the system refused, with errno: the addresses, */
    UPFRONT_MALLOC_PREFAULT, /* the pages, */
    UPFRONT_MALLOC_LOCK      /* or that they stay */
};

/* Makes a range the heap of the process, once, and returns a code. Another call changes nothing.
 * One call at a time. */
int upfront_malloc_begin(const upfront_malloc_plan *p);

/* Returns the file with the process's malloc, after UPFRONT_MALLOC_OTHER, or NULL. */
const char *upfront_malloc_other(void);

void upfront_malloc_count(upfront_malloc_counts *out);

/* Frees the fronts' blocks into the heap, and discards the whole pages of its free blocks. Returns
 * the bytes of the pages that were resident. */
uint64_t upfront_malloc_trim(void);

/* Looks for free pages, and returns to the system those that were already free at the last look.
 * Returns 0 if it had nothing to do: no block was freed since a look that found no newly free
 * pages. */
int upfront_malloc_look(void);

/* Writes to an event each time that the use of the range reaches `at` bytes, and again only after
 * the use was below `again`. Parked blocks don't count. An `at` of UINT64_MAX ends the watch. */
void upfront_malloc_watch(uint64_t at, uint64_t again, int event);

/* Returns a new event (eventfd), or -1 with errno. */
int upfront_malloc_event(void);

/* Returns the function to store in Go's runtime in the place of `was`, which it calls. i is 0 to
 * start a thread, 1 and 2 to set and unset a variable, 3 to find a thread's stack. */
void *upfront_malloc_hook(int i, void *was);

/* Lends the reserve to all threads (more = 1), or ends one such loan (-1). */
void upfront_malloc_lend(int more);

/* Copy the counts of the profile, its i-th stack, or its i-th object. */
void upfront_malloc_profile(upfront_profile_counts *out);
void upfront_malloc_stack(uint64_t i, upfront_profile_stack *out);
void upfront_malloc_object(uint64_t i, upfront_profile_object *out);

/* Returns the functions by which other arenas have their blocks in the profile (sampler.h in
 * arena_c), or NULL without a profile. */
const struct upfront_sampler *upfront_malloc_sampler(void);

/* Begins another sequence of sample points, for tests. */
void upfront_malloc_seed(uint64_t n);

/* Checks all blocks, as upfront_heap_walk does, of the static heap and the other. */
int upfront_malloc_walk(void);

#endif
