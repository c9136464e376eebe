/* sampler.h - how a Shared (callbacks.go) has its blocks in the profile of C's malloc.
 *
 * The arena counts the bytes up to its next sample point, under its lock. The samples are in the
 * profile: no byte of the arena depends on them. Package arena/with/malloc has the functions.
 *
 * Threads    Any. The caller may hold its arena's lock, but not during add: it walks the stack. */
#ifndef UPFRONT_SAMPLER_H
#define UPFRONT_SAMPLER_H

#include <stdint.h>

typedef struct upfront_sampler {
    /* returns the start of a sequence of gaps */
    uint64_t (*random)(void);
    /* returns the bytes up to the next sample point */
    int64_t (*gap)(uint64_t *random);
    /* keeps the sample of a new block; caller: return address in C, or 0 for a call from Go */
    void (*add)(const void *p, uint64_t bytes, uint32_t arena, uintptr_t caller);
    /* ends the sample of a freed block, if it has one, before the lock is unlocked */
    void (*drop)(const void *p);
    /* begins a new moment, for a snapshot of arenas, and returns it */
    uint64_t (*moment)(void);
    /* restores the samples of a range to a moment; at moment 0 there are none */
    void (*rewind)(const void *from, uint64_t size, uint64_t moment);
} upfront_sampler;

#endif
