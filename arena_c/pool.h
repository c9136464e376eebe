/* pool.h - allocates chunks of one size and frees them in any order, with checks of each free and,
 * as an option, handles that detect a stale reference.
 *
 * Algorithm  The numbers of the free chunks are a stack apart from the chunks, so no free chunk is
 *            read or written. Below chunk 0, each chunk has a byte for its state, so a double put
 *            is detected.
 *            A pool with handles also has a generation for each chunk, and upfront_pool_put_handle
 *            increments it. A handle is an index and a generation; it is valid while the chunk is
 *            live with that generation.
 * Bound      get succeeds exactly while a chunk is free. put succeeds exactly for the address of a
 *            live chunk. A handle is refused for ever after its upfront_pool_put_handle: a chunk
 *            without generations left retires. Fewer than 2^32 chunks.
 * Cost       O(1): 2 comparisons in get, 4 in put. Making a pool is O(count). Space: count *
 *            (stride + 5) bytes, with handles count * (stride + 9), rounded up.
 * Source     Frykholm, "Custom Memory Allocation in C++"; for the handles his "Managing Decoupling
 *            Part 4: The ID Lookup Table" and Llopis, "Managing Data Relationships"; Lemire et al.
 *            for the division by a reciprocal.
 *
 * Damage     Writes to free chunks change nothing. The stack of numbers and the states are before
 *            chunk 0. get has only two comparisons and trusts them: in a release build get returns
 *            the address that an overwritten number leads to, which may be anywhere. In a checked
 *            build get returns NULL if the number isn't a free chunk's, and Go's get panics.
 *            Package budget/save checks all words of a save that comes from outside.
 *
 * put divides by a multiplication: index = high word of offset * inverse, with inverse = ceil(2^64
 * / stride). The index is exact while offset * stride < 2^64; upfront_pool_init refuses larger
 * pools. Example: with a stride of 24 offset 72 gives index 3, and 3 * 24 = 72. Offset 80 also
 * gives index 3, but 3 * 24 isn't 80, so no chunk begins there.
 *
 * Untouched chunks are taken in order of address, and a chunk that was put is taken before an
 * untouched one. So the number of touched chunks is the peak. */
#ifndef UPFRONT_POOL_H
#define UPFRONT_POOL_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

/* States of a chunk. A leaving chunk is neither live nor free: its owner finalizes it, then puts
 * it. */
enum {
    UPFRONT_CHUNK_FRESH = 0,
    UPFRONT_CHUNK_LIVE = 1,
    UPFRONT_CHUNK_FREE = 2,
    UPFRONT_CHUNK_LEAVING = 3,
    UPFRONT_CHUNK_RETIRED = 4
};

/* One cache line. A closed pool's header is zero except for the stride, which shows that it was a
 * pool. */
typedef struct upfront_pool {
    uint64_t gen;     /* the pool's generation; 0: closed, the header may be reused */
    uint64_t free;    /* number of free chunks */
    uint64_t chunks;  /* bytes from this header to chunk 0, modulo 2^64 */
    uint64_t numbers; /* bytes from this header to the stack of numbers; generations follow it */
    uint64_t stride;  /* size of a chunk */
    uint64_t inverse; /* ceil(2^64 / stride) */
    uint32_t count;   /* number of chunks */
    uint32_t retired; /* number of retired chunks */
    uint32_t kind;    /* the owner's number for the chunks' type */
    uint32_t handles; /* mask of a generation's bits that puts by handle count; 0: no handles */
} upfront_pool;

/* the index in a handle; the generation is above it */
#define UPFRONT_HANDLE_INDEX UINT64_C(0xffffffff)

/* Returns the canonical address of a chunk; upfront_pool_chunk returns its position (mirror.h). */
static inline void *upfront_pool_canonical(const upfront_pool *p, uint64_t index) {
    return (char *)(uintptr_t)p + (ptrdiff_t)(p->chunks + index * p->stride);
}

static inline void *upfront_pool_chunk(const upfront_pool *p, uint64_t index) {
    return upfront_position(upfront_pool_canonical(p, index));
}

static inline uint8_t *upfront_pool_state(const upfront_pool *p, uint64_t index) {
    return (uint8_t *)(uintptr_t)p + (ptrdiff_t)(p->chunks - 1 - index);
}

static inline uint32_t *upfront_pool_numbers(const upfront_pool *p) {
    return (uint32_t *)((uintptr_t)p + (uintptr_t)p->numbers);
}

/* pre: the pool has handles. */
static inline uint32_t *upfront_pool_generation(const upfront_pool *p, uint64_t index) {
    return upfront_pool_numbers(p) + p->count + index;
}

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

#ifdef UPFRONT_CHECKED
/* Reports whether the chunk on top of the stack is free. It always is, unless words were
 * overwritten. pre: a chunk is free. */
static inline int upfront_pool_next_is_free(const upfront_pool *p) {
    uint32_t index = upfront_pool_numbers(p)[p->free - 1];
    return index < p->count && (*upfront_pool_state(p, index) == UPFRONT_CHUNK_FRESH ||
                                *upfront_pool_state(p, index) == UPFRONT_CHUNK_FREE);
}
#endif

/* Takes a chunk. NULL: no chunk is free, or the pool with that generation is closed; in a checked
 * build also after damage, or if upfront_refuses refuses the request. */
static inline void *upfront_pool_get(upfront_pool *p, uint64_t gen) {
    uint64_t index;
    if (p->gen != gen || p->free == 0)
        return NULL;
#ifdef UPFRONT_CHECKED
    if (!upfront_pool_next_is_free(p) || upfront_refuses())
        return NULL;
#endif
    index = upfront_pool_numbers(p)[--p->free];
    *upfront_pool_state(p, index) = UPFRONT_CHUNK_LIVE;
    return upfront_mark_live(upfront_pool_canonical(p, index), p->stride);
}

/* Returns the index of the live chunk at `chunk`, or a code: UPFRONT_STALE, _FOREIGN, _MISALIGNED,
 * _DOUBLE. */
int64_t upfront_pool_find(const upfront_pool *p, uint64_t gen, const void *chunk);

/* Puts the live chunk at `chunk`; refuses any other address with the code of upfront_pool_find. The
 * chunk's generation doesn't change, so its handle is valid again when the chunk is taken: see
 * upfront_pool_put_handle. */
static inline int upfront_pool_put(upfront_pool *p, uint64_t gen, void *chunk) {
    uint64_t offset = upfront_place(chunk, p) - p->chunks;
    uint64_t index = upfront_high64(offset, p->inverse);
    if (p->gen != gen || index >= p->count || index * p->stride != offset ||
        *upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE ||
        UPFRONT_IS_ELSEWHERE(upfront_pool_canonical(p, index), chunk))
        return (int)upfront_pool_find(p, gen, chunk);
    upfront_mark_ended(upfront_pool_canonical(p, index), p->stride, UPFRONT_PUT);
    *upfront_pool_state(p, index) = UPFRONT_CHUNK_FREE;
    upfront_pool_numbers(p)[p->free++] = (uint32_t)index;
    return UPFRONT_OK;
}

/* Returns the argument `handles` of upfront_pool_init for pool number `pool` of `pools` on one
 * arena: its first generation, and above it the mask of the bits that count puts. No two of these
 * pools share a handle. pre: pool < pools <= 2^31. Example: pool 1 of 4 has the generations from
 * 2^30 + 1, and the mask 2^30 - 1. */
static inline uint64_t upfront_pool_handles(uint64_t pool, uint64_t pools) {
    uint64_t generations = UINT64_C(1) << 32;
    while (generations * pools > UINT64_C(1) << 32)
        generations /= 2;
    return (generations - 1) << 32 | (pool * generations + 1);
}

/* Returns the present handle of a chunk: plain data that may be in a block, be saved, and go to
 * another machine. It is never 0. pre: index is below the pool's count. */
static inline uint64_t upfront_pool_handle(const upfront_pool *p, uint64_t index) {
    return (uint64_t)*upfront_pool_generation(p, index) << 32 | index;
}

/* Takes a chunk with its handle; the handle is 0 for NULL. */
static inline void *upfront_pool_get_handle(upfront_pool *p, uint64_t gen, uint64_t *handle) {
    void *chunk = upfront_pool_get(p, gen);
    *handle = chunk == NULL ? 0 : upfront_pool_handle(p, upfront_pool_numbers(p)[p->free]);
    return chunk;
}

/* Returns the chunk of a handle. NULL: the chunk was put, the handle isn't of this pool, or the
 * pool is closed. */
static inline void *upfront_pool_at(const upfront_pool *p, uint64_t gen, uint64_t handle) {
    uint64_t index = handle & UPFRONT_HANDLE_INDEX;
    if (p->gen != gen || index >= p->count || upfront_pool_handle(p, index) != handle ||
        *upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE)
        return NULL;
    return upfront_pool_chunk(p, index);
}

/* Puts the chunk of a handle. UPFRONT_STALE: the pool is closed. UPFRONT_FOREIGN: the handle can't
 * be of this pool. UPFRONT_DOUBLE: any other handle, such as one of a chunk that was put. */
int upfront_pool_put_handle(upfront_pool *p, uint64_t gen, uint64_t handle);

/* Returns the alignment of a pool's block and of its chunks. */
static inline uint64_t upfront_pool_align(uint64_t align) {
    return align < sizeof(uint64_t) ? sizeof(uint64_t) : align;
}

/* Returns the size of a block, aligned to upfront_pool_align, for `count` chunks of `size` aligned
 * to `align`; 0 if out of bounds. handles is 0 for a pool without handles. A chunk has at least 8
 * bytes. */
uint64_t upfront_pool_size(uint64_t size, uint64_t align, uint64_t count, uint64_t handles);

/* Makes a pool with its bytes in `block` (upfront_pool_size bytes, aligned to upfront_pool_align)
 * and its header elsewhere: the map keeps headers in its tables. gen isn't 0, and no earlier pool
 * in this header had the same gen. handles is 0, or from upfront_pool_handles. */
int upfront_pool_init(upfront_pool *header, void *block, uint64_t gen, uint64_t size, uint64_t align, uint64_t count,
                      uint64_t handles);

/* Makes a pool of generation 1 with its header at the front of the block and as many chunks as fit,
 * within the bounds of the reciprocal. Returns NULL and leaves the block as it was if no chunk
 * fits. Cost: O(chunks). */
upfront_pool *upfront_pool_make(void *block, uint64_t block_size, uint64_t size, uint64_t align, uint64_t handles);

/* Closes the pool: its generation is stale, and its header and bytes may be reused. */
void upfront_pool_close(upfront_pool *p);

/* Updates the marks before the program restores earlier bytes of the pool: chunks that were live
 * then become alive, and the others end. `states` are the states in these bytes, in order of
 * memory: the last chunk's is first. Cost: O(count). */
void upfront_pool_remark(upfront_pool *p, const uint8_t *states);

/* Returns the index of the first live chunk from `index` on, or count. Cost: O(n) for the n chunks
 * that were ever taken, eight chunks a step. */
uint64_t upfront_pool_next(const upfront_pool *p, uint64_t index);

/* Returns the largest number of chunks that were live at once. Cost: O(log count). */
uint64_t upfront_pool_peak(const upfront_pool *p);

#ifdef __cplusplus
}
#endif
#endif
