/* pool.h - equal chunks, taken and put back in any order; and handles that name them, as an option.
 *
 * Algorithm  The numbers of the free chunks are a stack beside the chunks, last put on top: nothing of a free chunk is read or written. A
 *            byte per chunk, below chunk 0, says whether it is live: so a double put is told.
 *            A pool with handles has a generation per chunk, too, which each put moves on: a handle, index and generation, is good
 *            while it has the chunk's.
 * Bound      get succeeds exactly while a chunk is free. put succeeds exactly for the address of a live chunk. A handle is refused from the
 *            put of its chunk on, for ever: a chunk whose generations are used up retires. Chunks: below 2^32.
 * Cost       O(1), get: 2 comparisons, put: 4. Space: count * (stride + 5), with handles 9, rounded up. Making it is O(count).
 * Source     Frykholm, "Custom Memory Allocation in C++"; for the handles his "Managing Decoupling Part 4: The ID Lookup Table" and Llopis,
 *            "Managing Data Relationships"; Lemire et al. for the division by a reciprocal.
 *
 * Damage     A free chunk holds no words: a write there changes nothing. The stack of numbers and the states lie before chunk 0. get
 *            doesn't look at what it takes from them, for it has two comparisons: in a release build a number that was overwritten
 *            leads anywhere. In a checked build get gives NULL for one that is no free chunk's, and Go's panics. A save that
 *            comes from outside is looked at whole before (package budget/save).
 *
 * index = high word of offset * ceil(2^64 / stride), exact while offset * stride < 2^64; upfront_pool_init refuses a pool that could
 * go beyond. Chunks are first handed out in order of address, and a put chunk is always reused before an untouched one: so the number
 * of chunks that were ever touched is the peak. */
#ifndef UPFRONT_POOL_H
#define UPFRONT_POOL_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

/* States of a chunk. One that is leaving is neither: its owner finalizes it, and puts it then. */
enum {
    UPFRONT_CHUNK_FRESH = 0,
    UPFRONT_CHUNK_LIVE = 1,
    UPFRONT_CHUNK_FREE = 2,
    UPFRONT_CHUNK_LEAVING = 3,
    UPFRONT_CHUNK_RETIRED = 4
};

/* One line. A closed pool's header is zero but for the stride, which says that it was one. */
typedef struct upfront_pool {
    uint64_t gen;     /* its generation; 0: closed, and the header may be taken for another pool */
    uint64_t free;    /* how many chunks are free */
    uint64_t chunks;  /* from this header to chunk 0 (modulo 2^64) */
    uint64_t numbers; /* and to the stack of the numbers of free chunks, behind which generations lie */
    uint64_t stride;  /* size of a chunk */
    uint64_t inverse; /* ceil(2^64 / stride) */
    uint32_t count;   /* of chunks */
    uint32_t retired; /* of them */
    uint32_t kind;    /* the owner's: what the chunks hold */
    uint32_t handles; /* the bits of a generation that count puts; 0: no handles */
} upfront_pool;

#define UPFRONT_HANDLE_INDEX UINT64_C(0xffffffff) /* the index in a handle; the generation is above */

/* Where a chunk is accounted: upfront_pool_chunk is where its bytes are (mirror.h). */
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

/* How many chunks are taken. */
static inline uint64_t upfront_pool_live(const upfront_pool *p) { return p->count - p->retired - p->free; }

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
/* Whether the next chunk is a free one, as long as nothing has overwritten its number or state. pre: a chunk is free. */
static inline int upfront_pool_next_is_free(const upfront_pool *p) {
    uint32_t index = upfront_pool_numbers(p)[p->free - 1];
    return index < p->count && (*upfront_pool_state(p, index) == UPFRONT_CHUNK_FRESH || *upfront_pool_state(p, index) == UPFRONT_CHUNK_FREE);
}
#endif

/* NULL: all chunks are live, or gen is not the pool's (it was closed). In a checked build also: see Damage. */
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

/* The index of the live chunk at `chunk`, or a code: UPFRONT_STALE, _FOREIGN, _MISALIGNED, _DOUBLE. */
int64_t upfront_pool_find(const upfront_pool *p, uint64_t gen, const void *chunk);

/* Any other address is refused with the code of upfront_pool_find. In a pool with handles the chunk's handle stays good: see
 * upfront_pool_put_handle. */
static inline int upfront_pool_put(upfront_pool *p, uint64_t gen, void *chunk) {
    uint64_t offset = upfront_place(chunk, p) - p->chunks;
    uint64_t index = upfront_high64(offset, p->inverse);
    if (p->gen != gen || index >= p->count || index * p->stride != offset || *upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE ||
        UPFRONT_IS_ELSEWHERE(upfront_pool_canonical(p, index), chunk))
        return (int)upfront_pool_find(p, gen, chunk);
    upfront_mark_ended(upfront_pool_canonical(p, index), p->stride, UPFRONT_PUT);
    *upfront_pool_state(p, index) = UPFRONT_CHUNK_FREE;
    upfront_pool_numbers(p)[p->free++] = (uint32_t)index;
    return UPFRONT_OK;
}

/* What upfront_pool_init takes for a pool with handles, of which no two out of `pools` have one in common: that of number `pool`. Its
 * first generation, and above it the bits that count. pre: pool < pools, pools <= 2^31. */
static inline uint64_t upfront_pool_handles(uint64_t pool, uint64_t pools) {
    uint64_t generations = UINT64_C(1) << 32;
    while (generations * pools > UINT64_C(1) << 32)
        generations /= 2;
    return (generations - 1) << 32 | (pool * generations + 1);
}

/* The handle of the chunk as it is now: plain data, that may lie in a block, be saved, and go to another machine. It is never 0. pre: index
 * is below the pool's count. */
static inline uint64_t upfront_pool_handle(const upfront_pool *p, uint64_t index) {
    return (uint64_t)*upfront_pool_generation(p, index) << 32 | index;
}

/* upfront_pool_get with the chunk's handle; 0 for NULL. */
static inline void *upfront_pool_get_handle(upfront_pool *p, uint64_t gen, uint64_t *handle) {
    void *chunk = upfront_pool_get(p, gen);
    *handle = chunk == NULL ? 0 : upfront_pool_handle(p, upfront_pool_numbers(p)[p->free]);
    return chunk;
}

/* The chunk of a handle; NULL: it was put, or it never was a handle of this pool, or the pool was closed. */
static inline void *upfront_pool_at(const upfront_pool *p, uint64_t gen, uint64_t handle) {
    uint64_t index = handle & UPFRONT_HANDLE_INDEX;
    if (p->gen != gen || index >= p->count || upfront_pool_handle(p, index) != handle ||
        *upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE)
        return NULL;
    return upfront_pool_chunk(p, index);
}

/* UPFRONT_STALE: the pool was closed; UPFRONT_FOREIGN: never a handle of this pool; UPFRONT_DOUBLE: its chunk was put. */
int upfront_pool_put_handle(upfront_pool *p, uint64_t gen, uint64_t handle);

/* The alignment of a pool's block and of its chunks. */
static inline uint64_t upfront_pool_align(uint64_t align) { return align < sizeof(uint64_t) ? sizeof(uint64_t) : align; }

/* Bytes that `count` chunks of `size` aligned to `align` need in a block aligned to upfront_pool_align; 0 when out of bounds. handles is 0
 * without. A chunk is at least 8 bytes. */
uint64_t upfront_pool_size(uint64_t size, uint64_t align, uint64_t count, uint64_t handles);

/* Makes a pool whose bytes lie in `block` (upfront_pool_size bytes, aligned to upfront_pool_align) and whose header lies
 * elsewhere: the map keeps headers in its tables. gen is not 0, and no pool had it that this header was; handles is 0, or of
 * upfront_pool_handles. */
int upfront_pool_init(upfront_pool *header, void *block, uint64_t gen, uint64_t size, uint64_t align, uint64_t count, uint64_t handles);

/* A pool of generation 1 with its header at the front of the block: as many chunks as fit, and as the reciprocal allows. NULL, and the
 * block is as it was, when none does. Cost: O(chunks). */
upfront_pool *upfront_pool_make(void *block, uint64_t block_size, uint64_t size, uint64_t align, uint64_t handles);

/* After it, the generation finds nothing and the header may be taken for another pool. Its bytes are the block's again. */
void upfront_pool_close(upfront_pool *p);

/* Before the bytes of an earlier time are put back: marks what isn't live now and was then, by its states in the order of memory (the
 * last chunk's first), and what is live and wasn't. The states themselves are among those bytes. Cost: O(count). */
void upfront_pool_remark(upfront_pool *p, const uint8_t *states);

/* The index of the live chunk at or after `index`, or count. Cost: O(count), eight chunks that aren't live in a step. */
uint64_t upfront_pool_next(const upfront_pool *p, uint64_t index);

/* The largest number of chunks that were live at once. Cost: O(log count). */
uint64_t upfront_pool_peak(const upfront_pool *p);

#ifdef __cplusplus
}
#endif
#endif
