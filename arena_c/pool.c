#include "pool.h"

#define LINK_SIZE sizeof(uint64_t)

static uint64_t stride_of(uint64_t size, uint64_t align) {
    return upfront_round_up(size < LINK_SIZE ? LINK_SIZE : size, upfront_pool_align(align));
}

/* The state bytes come first, so that chunk 0 is aligned behind them. */
static uint64_t states_size(uint64_t count, uint64_t align) { return upfront_round_up(count, upfront_pool_align(align)); }

/* The most chunks that a pool of such chunks may have; 0 when size or align is out of bounds. */
static uint64_t count_max(uint64_t size, uint64_t align) {
    uint64_t stride, exact;
    if (size > UPFRONT_OFFSET_MAX || !upfront_is_align(align))
        return 0;
    stride = stride_of(size, align);
    exact = UINT64_MAX / stride / stride; /* offset * stride < 2^64 keeps the reciprocal exact */
    return exact < UPFRONT_OFFSET_MAX / stride ? exact : UPFRONT_OFFSET_MAX / stride;
}

uint64_t upfront_pool_size(uint64_t size, uint64_t align, uint64_t count) {
    if (count > count_max(size, align))
        return 0;
    return states_size(count, align) + stride_of(size, align) * count;
}

int upfront_pool_init(upfront_pool *p, void *block, uint64_t size, uint64_t align, uint64_t count) {
    uint64_t i, front;
    if (p == NULL || block == NULL || count > count_max(size, align) || count_max(size, align) == 0 ||
        (uintptr_t)block % upfront_pool_align(align) != 0)
        return UPFRONT_BAD_ARGUMENT;
    front = states_size(count, align);
    p->free = (p->free & ~UPFRONT_OFFSETS) | (count == 0 ? 0 : 1);
    p->chunks = upfront_distance(block, p) + front;
    p->stride = stride_of(size, align);
    p->inverse = UINT64_MAX / p->stride + 1;
    p->bound = (p->free & ~UPFRONT_OFFSETS) | count;
    p->live = 0;
    p->open = 1;
    UPFRONT_UNPOISON(block, front + p->stride * count);
    memset(block, UPFRONT_CHUNK_FRESH, (size_t)front);
    for (i = 0; i < count; i++) {
        void *chunk = upfront_pool_chunk(p, i);
        upfront_mark_dead(chunk, p->stride);
        UPFRONT_UNPOISON(chunk, LINK_SIZE);
        *(uint64_t *)chunk = i + 1 < count ? i + 2 : 0;
        UPFRONT_POISON(chunk, LINK_SIZE);
    }
    return UPFRONT_OK;
}

upfront_pool *upfront_pool_make(void *block, uint64_t block_size, uint64_t size, uint64_t align) {
    upfront_pool *p = (upfront_pool *)block;
    uint64_t front, count;
    if (block == NULL || (uintptr_t)block % UPFRONT_LINE != 0 || block_size >= UPFRONT_OFFSET_MAX || count_max(size, align) == 0)
        return NULL;
    front = upfront_round_up((uint64_t)(uintptr_t)block + sizeof *p, align) - (uint64_t)(uintptr_t)block;
    if (front >= block_size)
        return NULL;
    count = (block_size - front) / (stride_of(size, align) + 1);
    if (count > count_max(size, align))
        count = count_max(size, align);
    while (upfront_pool_size(size, align, count) > block_size - front)
        count--;
    if (count == 0)
        return NULL;
    UPFRONT_UNPOISON(p, sizeof *p);
    memset(p, 0, sizeof *p);
    p->free = UPFRONT_GENERATION;
    upfront_pool_init(p, (char *)block + front, size, align, count);
    return p;
}

void upfront_pool_close(upfront_pool *p) {
    p->free = p->bound = (p->free & ~UPFRONT_OFFSETS) + UPFRONT_GENERATION;
    p->live = 0;
    p->open = 0;
}

int64_t upfront_pool_find(const upfront_pool *p, uint64_t tag, const void *chunk) {
    uint64_t offset, index;
    if (p->stride == 0 || (p->free & ~UPFRONT_OFFSETS) != tag)
        return UPFRONT_STALE;
    offset = upfront_distance(chunk, p) - p->chunks;
    index = offset / p->stride;
    if (index >= upfront_pool_count(p))
        return UPFRONT_FOREIGN;
    if (index * p->stride != offset)
        return UPFRONT_MISALIGNED;
    if (*upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE)
        return UPFRONT_DOUBLE;
    return (int64_t)index;
}

uint64_t upfront_pool_next(const upfront_pool *p, uint64_t index) {
    while (index < upfront_pool_count(p) && *upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE)
        index++;
    return index;
}

uint64_t upfront_pool_peak(const upfront_pool *p) {
    uint64_t low = 0, high = upfront_pool_count(p);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (*upfront_pool_state(p, middle) == UPFRONT_CHUNK_FRESH)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
