/* handles.h - a pool whose chunks are named by index and generation, so that who kept a name of what was put is told so.
 *
 * Algorithm  The pool of pool.h, and a table of 32-bit generations between its header and its states. A put moves the chunk's generation
 *            on; a handle is good while it has the chunk's.
 * Bound      A handle is refused from the put of its chunk on, until that one chunk was put 2^32 - 1 times more: then it is taken for a
 *            new one. (Seven bits beside the state bit would need no table, but a free list hands the chunk that was put last out first:
 *            127 puts of one chunk are an instant.) Chunks: below 2^32.
 * Cost       O(1): that of the pool, and one load more; 4 bytes a chunk more.
 * Source     Frykholm, "Managing Decoupling Part 4: The ID Lookup Table"; Llopis, "Managing Data Relationships".
 *
 * A handle is plain data: it may lie in a block, be saved, and go to another machine. It is never 0. Chunks are put by their handle:
 * upfront_pool_put would leave the generation where it is. */
#ifndef UPFRONT_HANDLES_H
#define UPFRONT_HANDLES_H

#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_HANDLE_INDEX UINT64_C(0xffffffff) /* the index in a handle; the generation is above */

typedef struct upfront_handles {
    upfront_pool pool;
} upfront_handles;

static inline uint32_t *upfront_handles_generation(const upfront_handles *h, uint64_t index) {
    return (uint32_t *)(uintptr_t)(h + 1) + index;
}

/* The handle of the chunk as it is now. pre: index is below the pool's count. */
static inline uint64_t upfront_handles_name(const upfront_handles *h, uint64_t index) {
    return (uint64_t)*upfront_handles_generation(h, index) << 32 | index;
}

/* NULL: all chunks are live, or the tag is not the pool's; *handle is then 0. */
static inline void *upfront_handles_get(upfront_handles *h, uint64_t tag, uint64_t *handle) {
    uint64_t index = h->pool.free - tag - 1;
    void *chunk = upfront_pool_get(&h->pool, tag);
    *handle = chunk == NULL ? 0 : upfront_handles_name(h, index);
    return chunk;
}

/* The chunk of a handle; NULL: it was put, or it never was a handle of this pool, or the pool was closed. */
static inline void *upfront_handles_at(const upfront_handles *h, uint64_t tag, uint64_t handle) {
    uint64_t index = handle & UPFRONT_HANDLE_INDEX;
    if (h->pool.bound - tag - 1 - index >= UPFRONT_OFFSET_MAX || upfront_handles_name(h, index) != handle ||
        *upfront_pool_state(&h->pool, index) != UPFRONT_CHUNK_LIVE)
        return NULL;
    return upfront_pool_chunk(&h->pool, index);
}

/* UPFRONT_STALE: the chunk was put, or the pool closed; UPFRONT_FOREIGN: no chunk of this pool has such an index. */
static inline int upfront_handles_put(upfront_handles *h, uint64_t tag, uint64_t handle) {
    void *chunk = upfront_handles_at(h, tag, handle);
    uint32_t *generation;
    if (chunk == NULL) {
        uint64_t count = h->pool.bound - tag;
        return count < UPFRONT_OFFSET_MAX && (handle & UPFRONT_HANDLE_INDEX) >= count ? UPFRONT_FOREIGN : UPFRONT_STALE;
    }
    generation = upfront_handles_generation(h, handle & UPFRONT_HANDLE_INDEX);
    *generation += *generation == UINT32_MAX ? 2 : 1; /* never 0 */
    return upfront_pool_put(&h->pool, tag, chunk);
}

/* A pool with its header at the front of the block: as many chunks as fit. NULL, and the block is as it was, when none does. Cost:
 * O(chunks). upfront_pool_close, _next and _peak are for it too. */
upfront_handles *upfront_handles_make(void *block, uint64_t block_size, uint64_t size, uint64_t align);

#ifdef __cplusplus
}
#endif
#endif
