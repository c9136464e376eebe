/* intrusive.h - allocates chunks of one size without additional bytes: the list of free chunks is
 * in the chunks.
 *
 * Algorithm  The first word of a free chunk is the offset of the next free one; the last chunk put
 *            is the first one taken. Chunks that were never taken are not in the list: they are all
 *            chunks from the offset `fresh` on. So making a pool touches no chunk.
 * Bound      get succeeds exactly while fewer chunks are live than exist. put checks nothing: a
 *            double put, or an address that is no chunk, breaks the list. pool.h detects both, for
 *            5 bytes a chunk.
 * Cost       O(1), initialization included. Space: only the chunks.
 * Source     "Alternatives to malloc and new" (#AltDevBlogADay) for the pool; Kenwright, "Fast
 *            Efficient Fixed-Size Memory Pool", for chunks that join the list when they are first
 *            put. */
#ifndef UPFRONT_INTRUSIVE_H
#define UPFRONT_INTRUSIVE_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The header, which the caller keeps outside of the block. Offsets count from it, modulo 2^64. */
typedef struct upfront_intrusive {
    uint64_t free;   /* of the free chunk that is taken next; 0: none */
    uint64_t fresh;  /* of the first chunk that was never taken */
    uint64_t end;    /* past the last chunk */
    uint64_t stride; /* size of a chunk: at least 8, and a multiple of its alignment */
} upfront_intrusive;

/* Makes a pool of as many chunks as fit; of none if the block is null or the stride is 0 or no
 * multiple of 8. pre: the block is aligned for the chunks and doesn't contain the header. */
static inline void upfront_intrusive_init(upfront_intrusive *p, void *block, uint64_t size, uint64_t stride) {
    if (p == NULL)
        return;
    p->free = 0;
    p->fresh = p->end = upfront_distance(block, p);
    if (block == NULL || stride == 0 || stride % 8 != 0)
        return;
    p->end += size / stride * stride;
    p->stride = stride;
    upfront_mark_dead(block, p->end - p->fresh);
}

/* Takes a chunk. NULL: all chunks are live. */
static inline void *upfront_intrusive_get(upfront_intrusive *p) {
    uint64_t at = p->free;
    void *chunk;
    if (at == 0 && p->fresh == p->end)
        return NULL;
    chunk = (void *)((uintptr_t)p + (uintptr_t)(at == 0 ? p->fresh : at));
    UPFRONT_UNPOISON(chunk, sizeof(uint64_t));
    if (at == 0)
        p->fresh += p->stride;
    else
        p->free = *(uint64_t *)chunk;
    upfront_mark_live(chunk, p->stride);
    return chunk;
}

/* Puts a chunk. pre: it is live. */
static inline void upfront_intrusive_put(upfront_intrusive *p, void *chunk) {
    upfront_mark_dead(chunk, p->stride);
    UPFRONT_UNPOISON(chunk, sizeof(uint64_t));
    *(uint64_t *)chunk = p->free;
    UPFRONT_POISON(chunk, sizeof(uint64_t));
    p->free = upfront_distance(chunk, p);
}

#ifdef __cplusplus
}
#endif
#endif
