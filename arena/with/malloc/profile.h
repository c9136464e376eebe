/* profile.h - a sampled profile of the live blocks of C's malloc, with their stacks.
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
    uint32_t samples; /* live ones */
    uint32_t next;
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

/* Reads the stack of this thread, whose call of malloc returns to `caller`. It takes no lock and
 * allocates nothing. With less than 16 KiB of stack left it reads only the caller. without_go: the
 * runtime itself makes the call. */
void upfront_profile_walk(upfront_trace *t, uintptr_t caller, int without_go);

/* Keeps the sample of a block of `size` bytes at an offset of the heap. Returns 0 if it is lost. */
int upfront_profile_add(uint64_t at, uint64_t size, const upfront_trace *t);

/* Drops the sample of a block, if there is one. */
void upfront_profile_drop(uint64_t at);

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
