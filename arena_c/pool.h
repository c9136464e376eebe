/* pool.h - equal chunks, taken and put back in any order.
 *
 * Algorithm  A free list runs through the free chunks by index, last put first. A byte per chunk, below the chunks, says whether it is
 *            live: a live chunk may hold any bytes, so without such a byte a double put could not be told.
 * Bound      get succeeds exactly while fewer than `count` chunks are live. put succeeds exactly for the address of a live chunk.
 * Cost       O(1), get: 1 comparison, put: 3. Space: count * (stride + 1), rounded up. Making it is O(count).
 * Source     Frykholm, "Custom Memory Allocation in C++"; Lemire et al. for the division by a reciprocal.
 *
 * index = high word of offset * ceil(2^64 / stride), exact while offset * stride < 2^64; upfront_pool_init refuses a pool that could
 * go beyond. Chunks are first handed out in order of address, and a put chunk is always reused before an untouched one: so the number
 * of chunks that were ever touched is the peak.
 *
 * `free` and `bound` both carry the generation, as a limit does (linear.h): full or closed is one comparison in get, foreign or closed
 * is one in put. */
#ifndef UPFRONT_POOL_H
#define UPFRONT_POOL_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* States of a chunk. One that is leaving is neither: its owner finalizes it, and puts it then. */
enum { UPFRONT_CHUNK_FRESH = 0, UPFRONT_CHUNK_LIVE = 1, UPFRONT_CHUNK_FREE = 2, UPFRONT_CHUNK_LEAVING = 3 };

typedef struct upfront_pool {
    uint64_t free;    /* generation | index + 1 of the chunk to take next; 0: all are live */
    uint64_t chunks;  /* from this header to chunk 0 (modulo 2^64) */
    uint64_t stride;  /* size of a chunk */
    uint64_t inverse; /* ceil(2^64 / stride) */
    uint64_t bound;   /* generation | number of chunks */
    uint64_t live;    /* chunks taken */
    uint64_t kind;    /* the owner's: what the chunks hold */
    uint64_t open;    /* 1 between init and close */
} upfront_pool;

static inline void *upfront_pool_chunk(const upfront_pool *p, uint64_t index) {
    return (char *)(uintptr_t)p + (ptrdiff_t)(p->chunks + index * p->stride);
}

static inline uint8_t *upfront_pool_state(const upfront_pool *p, uint64_t index) {
    return (uint8_t *)(uintptr_t)p + (ptrdiff_t)(p->chunks - 1 - index);
}

static inline uint64_t upfront_pool_count(const upfront_pool *p) { return p->bound & UPFRONT_OFFSETS; }

static inline uint64_t upfront_high64(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 upfront_u128;
    return (uint64_t)(((upfront_u128)a * b) >> 64);
#else
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl, mid1 = ah * bl + (low >> 32), mid2 = al * bh + (uint32_t)mid1;
    return ah * bh + (mid1 >> 32) + (mid2 >> 32);
#endif
}

/* NULL: all chunks are live, or the tag is not the pool's (it was closed). */
static inline void *upfront_pool_get(upfront_pool *p, uint64_t tag) {
    uint64_t next = p->free - tag;
    void *chunk;
    if (next - 1 >= UPFRONT_OFFSET_MAX)
        return NULL;
    chunk = upfront_pool_chunk(p, next - 1);
    UPFRONT_UNPOISON(chunk, sizeof(uint64_t));
    p->free = tag + *(uint64_t *)chunk;
    *upfront_pool_state(p, next - 1) = UPFRONT_CHUNK_LIVE;
    p->live++;
    upfront_mark_live(chunk, p->stride);
    return chunk;
}

/* The index of the live chunk at `chunk`, or a code: UPFRONT_STALE, _FOREIGN, _MISALIGNED, _DOUBLE. */
int64_t upfront_pool_find(const upfront_pool *p, uint64_t tag, const void *chunk);

/* Any other address is refused with the code of upfront_pool_find. */
static inline int upfront_pool_put(upfront_pool *p, uint64_t tag, void *chunk) {
    uint64_t offset = upfront_distance(chunk, p) - p->chunks;
    uint64_t index = upfront_high64(offset, p->inverse);
    /* `| index`: an address far away has an index that could make up for a difference of generations */
    if (((p->bound - tag - 1 - index) | index) >= UPFRONT_OFFSET_MAX || index * p->stride != offset ||
        *upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE)
        return (int)upfront_pool_find(p, tag, chunk);
    upfront_mark_dead(upfront_pool_chunk(p, index), p->stride);
    UPFRONT_UNPOISON(chunk, sizeof(uint64_t));
    *(uint64_t *)chunk = p->free - tag;
    UPFRONT_POISON(chunk, sizeof(uint64_t));
    *upfront_pool_state(p, index) = UPFRONT_CHUNK_FREE;
    p->free = tag + index + 1;
    p->live--;
    return UPFRONT_OK;
}

/* The alignment of a pool's block and of its chunks: a free chunk holds a link. */
static inline uint64_t upfront_pool_align(uint64_t align) { return align < sizeof(uint64_t) ? sizeof(uint64_t) : align; }

/* Bytes that `count` chunks of `size` aligned to `align` need in a block aligned to upfront_pool_align; 0 when out of bounds.
 * A chunk is at least 8 bytes. */
uint64_t upfront_pool_size(uint64_t size, uint64_t align, uint64_t count);

/* Makes a pool whose bytes lie in `block` (upfront_pool_size bytes, aligned to upfront_pool_align) and whose header lies
 * elsewhere: the map keeps headers in its tables. The header's generation is kept. */
int upfront_pool_init(upfront_pool *header, void *block, uint64_t size, uint64_t align, uint64_t count);

/* A pool with its header at the front of the block: as many chunks as fit, and as the reciprocal allows. NULL, and the block is as it
 * was, when none does. */
upfront_pool *upfront_pool_make(void *block, uint64_t block_size, uint64_t size, uint64_t align);

/* After it, the tag finds nothing and the header may be taken for another pool. Its bytes are the block's again. */
void upfront_pool_close(upfront_pool *p);

/* The index of the live chunk at or after `index`, or count. Cost: O(count). */
uint64_t upfront_pool_next(const upfront_pool *p, uint64_t index);

/* The largest number of chunks that were live at once. Cost: O(log count). */
uint64_t upfront_pool_peak(const upfront_pool *p);

#ifdef __cplusplus
}
#endif
#endif
