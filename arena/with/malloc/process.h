/* process.h - malloc, free and their family for the whole process, over one heap of a fixed size.
 *
 * Algorithm  A static heap serves until upfront_malloc_begin. Then a heap in a range of its own
 *            does. A free finds its heap by address. Each thread has one of the fronts, in turn; a
 *            front has a lock and lists of freed blocks, by exact size up to UPFRONT_HEAP_FRONT.
 *            Such a block keeps its place in the heap, and has a parked block's seal (heap.h). A
 *            front that is full frees a part of its blocks into the heap.
 * Bound      The heap's (heap.h). Before a refusal all fronts' blocks are freed into the heap.
 * Cost       A block from a front: a lock, and the check of a header. Others: the heap's lock and
 *            the heap's cost. A refusal takes all locks and frees the fronts' blocks.
 * Threads    Any. A fork waits for the locks, so the child's heap is whole.
 * Misuse     A line on standard error, then abort(): a double free, an address at which no block
 *            starts, an overwritten header. Not detected: two frees of one block at the same
 *            moment, until the block is allocated again.
 * Checked    Blocks go to the heap, not to fronts, and heap.h's checks of bytes hold: a write
 *            after a free or past a block's end aborts when the heap finds it. Nothing is trimmed,
 *            because a freed block's bytes are checked. */
#ifndef UPFRONT_PROCESS_H
#define UPFRONT_PROCESS_H

#include <stdint.h>

#define UPFRONT_MALLOC_FRONTS 64  /* the most fronts */
#define UPFRONT_MALLOC_PARKS 256  /* the most blocks of a front */

#ifndef UPFRONT_MALLOC_STATIC
#define UPFRONT_MALLOC_STATIC (1 << 20) /* bytes of the static heap */
#endif

typedef struct upfront_malloc_plan {
    uint64_t size, reserve; /* bytes */
    uint64_t fronts;
    uint64_t trim; /* nanoseconds; 0: never */
    int prefault, lock;
} upfront_malloc_plan;

typedef struct upfront_malloc_counts {
    uint64_t size, used, peak, reserve, live, fulls, full_size, full_used, full_caller;
    uint64_t boot, boot_used, trimmed, parked;
    const void *base; /* of the range; null before it */
} upfront_malloc_counts;

enum {
    UPFRONT_MALLOC_OK,
    UPFRONT_MALLOC_OTHER,    /* the process has another malloc */
    UPFRONT_MALLOC_TAKEN,    /* more than the size is in use already */
    UPFRONT_MALLOC_SMALL,    /* too small for a heap */
    UPFRONT_MALLOC_MAP,      /* the system refused, with errno: the addresses, */
    UPFRONT_MALLOC_PREFAULT, /* the pages, */
    UPFRONT_MALLOC_LOCK,     /* or that they stay */
    UPFRONT_MALLOC_THREAD    /* the thread that trims didn't start; the heap serves */
};

/* Makes a range the heap of the process, once, and returns a code. Another call only starts the
 * thread that trims, if it didn't start. One call at a time. */
int upfront_malloc_begin(const upfront_malloc_plan *p);

void upfront_malloc_count(upfront_malloc_counts *out);

/* Frees the fronts' blocks into the heap, and discards the whole pages of its free blocks. Returns
 * the bytes of those that were resident. */
uint64_t upfront_malloc_trim(void);

/* One look of the thread that trims: gives back the pages that were free at the last look, too. It
 * does nothing if no block was freed since a look that found no newly free pages. */
void upfront_malloc_look(void);

/* Lends the reserve to all threads (more = 1), or ends one such loan (-1). */
void upfront_malloc_lend(int more);

/* Checks all blocks, as upfront_heap_walk does, of the static heap and the other. */
int upfront_malloc_walk(void);

#endif
