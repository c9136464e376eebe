#include "handles.h"

/* The bytes from the front of the block to the states of a pool of so many chunks. */
static uint64_t handles_front(const void *block, uint64_t align, uint64_t count) {
    uint64_t base = (uint64_t)(uintptr_t)block;
    return upfront_round_up(base + sizeof(upfront_handles) + sizeof(uint32_t) * count, upfront_pool_align(align)) - base;
}

/* Whether so many chunks fit. upfront_pool_size is 0 when they are too many for a pool. */
static int handles_fit(const void *block, uint64_t block_size, uint64_t size, uint64_t align, uint64_t count) {
    uint64_t bytes = upfront_pool_size(size, align, count);
    return bytes != 0 && handles_front(block, align, count) + bytes <= block_size;
}

upfront_handles *upfront_handles_make(void *block, uint64_t block_size, uint64_t size, uint64_t align) {
    upfront_handles *h = (upfront_handles *)block;
    uint64_t count = 0, step = UINT64_C(1) << 31, i;
    if (block == NULL || (uintptr_t)block % UPFRONT_LINE != 0 || block_size >= UPFRONT_OFFSET_MAX)
        return NULL;
    for (; step != 0; step /= 2)
        if (handles_fit(block, block_size, size, align, count + step))
            count += step;
    if (count == 0)
        return NULL;
    UPFRONT_UNPOISON(h, handles_front(block, align, count));
    memset(h, 0, sizeof *h);
    h->pool.free = UPFRONT_GENERATION;
    for (i = 0; i < count; i++)
        *upfront_handles_generation(h, i) = 1;
    (void)upfront_pool_init(&h->pool, (char *)block + handles_front(block, align, count), size, align, count);
    return h;
}
