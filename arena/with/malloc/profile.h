/* profile.h - a sampled profile of the live blocks of C's malloc, and of other arenas, with their
 * stacks.
 *
 * Algorithm  Some of all allocated bytes are sample points, at distances that have an exponential
 *            distribution (a Poisson process). A block with a sample point in it is
 *            sampled: a table keeps its stack and its weight until the block is freed. The weight
 *            of a block of s bytes is 1 / (1 - exp(-s / rate)), as in Go's heap profile, so sums of
 *            weights estimate sums over all blocks.
 * Bound      The table has capacity samples, and as many stacks. When it is full, a sample is lost
 *            and counted. A new stack replaces one that has no live block; the sums of the replaced
 *            stack go to `gone`.
 * Cost       upfront_profile_add: a hash of the stack, and for each object in it a lookup of
 *            glibc's. upfront_profile_drop: a chain of a hash table.
 * Snapshots  A program may restore an arena from a copy of its bytes. The table isn't in these
 *            bytes. It keeps the sample of a freed block that a restore may bring back, until
 *            another sample needs the entry. The moment of a sample is the number of snapshots
 *            before it.
 * Threads    The caller's lock, except for upfront_profile_walk: it runs before the lock is taken,
 *            because the stack of the thread is its own.
 * Source     von Neumann, "Various techniques used in connection with random digits": the
 *            exponential distribution by comparisons alone. */
#ifndef UPFRONT_PROFILE_H
#define UPFRONT_PROFILE_H

#include <stdint.h>

#define UPFRONT_PROFILE_C 32 /* the most frames of C in a stack: the innermost ones */
#define UPFRONT_PROFILE_GO 24
#define UPFRONT_PROFILE_FRAMES (UPFRONT_PROFILE_C + UPFRONT_PROFILE_GO)
#define UPFRONT_PROFILE_OBJECT UINT64_C(256) /* units of `objects` in an object */
#define UPFRONT_PROFILE_HOLDERS 3

/* Return addresses, the innermost first: those in C, then those in Go. */
typedef struct upfront_trace {
    uint64_t c, go, within; /* within: frames of Go in a callback from C, which come first */
    uintptr_t frames[UPFRONT_PROFILE_FRAMES];
} upfront_trace;

typedef struct upfront_profile_sums {
    uint64_t bytes, objects; /* weighted; objects in units of 1 / UPFRONT_PROFILE_OBJECT */
} upfront_profile_sums;

typedef struct upfront_profile_stack {
    uint64_t hash, holder; /* holder: equal for stacks with the same line of Go, or caller in C */
    uintptr_t line;        /* return address of that line */
    upfront_profile_sums live, all;
    uint64_t held;    /* by the holder; see upfront_profile_holders */
    uint32_t samples; /* of live blocks, and of freed ones that may come back */
    uint32_t next;
    uint32_t arena; /* 0: C's malloc */
    uint8_t c, go, is_go; /* is_go: line is of Go */
    uint8_t object[UPFRONT_PROFILE_C]; /* 1 + number of each C frame's object; 0: unknown */
    uintptr_t frames[UPFRONT_PROFILE_FRAMES];
} upfront_profile_stack;

/* The code of a file that was mapped when a sample was taken. */
typedef struct upfront_profile_object {
    uintptr_t map, from, end; /* start of the whole mapping; addresses of the code */
    uint64_t offset;          /* of the code in the file */
    char name[128];           /* the start of the path; "" is the program */
} upfront_profile_object;

typedef struct upfront_profile_counts {
    uint64_t rate; /* 0: no profile */
    uint64_t capacity, stacks, objects, samples, lost;
    upfront_profile_sums gone; /* all of the replaced stacks */
} upfront_profile_counts;

typedef struct upfront_holder {
    uint64_t bytes;
    uintptr_t line;
    int is_go;
} upfront_holder;

/* Makes the table in `size` bytes of zeros. Samples are `rate` bytes apart on average. A size of 0
 * means no profile. */
void upfront_profile_begin(void *memory, uint64_t size, uint64_t rate);

/* Begins another sequence of random distances. */
void upfront_profile_seed(uint64_t seed);

/* Returns the bytes up to the next sample point, or a number that no program allocates. */
int64_t upfront_profile_gap(void);

/* The same with the caller's own sequence. *random isn't 0. The caller needs no lock. */
int64_t upfront_profile_gap_of(uint64_t *random);

/* Returns the start of a sequence for upfront_profile_gap_of. */
uint64_t upfront_profile_random(void);

/* Reads the stack of this thread, whose call of malloc returns to `caller`. It takes no lock and
 * allocates nothing. With less than 16 KiB of stack left it reads only the caller. If the
 * caller is 0, which is a call from Go, it reads only Go's frames. without_go: the runtime itself
 * makes the call. */
void upfront_profile_walk(upfront_trace *t, uintptr_t caller, int without_go);

/* Keeps the sample of a block of `size` bytes at an address, in C's malloc (arena 0) or in another
 * arena. Returns 0 if it is lost. */
int upfront_profile_add(uint64_t at, uint64_t size, uint32_t arena, const upfront_trace *t);

/* Drops the sample of a freed block, if there is one. A sample of another arena may come back if
 * the block is in a snapshot. */
void upfront_profile_drop(uint64_t at);

/* Returns 0 if the block at an address has no sample. The caller owns the block, but doesn't need
 * the lock: the sample of a block is kept before the block has an owner. */
int upfront_profile_may(uint64_t at);

/* Begins a new moment, for a snapshot, and returns it. */
uint64_t upfront_profile_moment(void);

/* Restores the samples of other arenas in `size` bytes to the moment of a snapshot. Samples of
 * blocks that were made since then end; samples of blocks that were freed since then come back. For
 * moment 0 all end. Cost: O(samples). */
void upfront_profile_rewind(const void *from, uint64_t size, uint64_t moment);

/* Copy the counts, the i-th stack, or the i-th object. */
void upfront_profile_count(upfront_profile_counts *out);
void upfront_profile_stack_at(uint64_t i, upfront_profile_stack *out);
void upfront_profile_object_at(uint64_t i, upfront_profile_object *out);

/* Copies the name of the symbol around pc. Returns 0 if the i-th object isn't at this address any
 * more, 1 if it has no such symbol, and 2 if the name is set. It takes the lock of dl_iterate_phdr,
 * so that the object stays meanwhile. Any thread may call it, without the caller's lock. */
int upfront_profile_symbol(uint64_t i, uintptr_t pc, char *name, uint64_t size);

/* Finds the holders of most live bytes, the largest first, and returns their number. */
uint64_t upfront_profile_holders(upfront_holder out[UPFRONT_PROFILE_HOLDERS]);

#endif
