#include "pool.h"

static uint64_t stride_of(uint64_t size, uint64_t align) {
    return upfront_round_up(size < sizeof(uint64_t) ? sizeof(uint64_t) : size, upfront_pool_align(align));
}

/* Returns the bytes of numbers, generations and states, which end at chunk 0. */
static uint64_t beside(uint64_t count, uint64_t handles) {
    return upfront_round_up(count * ((handles == 0 ? 1 : 2) * sizeof(uint32_t) + 1), sizeof(uint64_t));
}

/* Returns the highest number of chunks of a pool; 0 if size or align is out of bounds. */
static uint64_t count_max(uint64_t size, uint64_t align) {
    uint64_t stride, exact;
    if (size >= UPFRONT_OFFSET_MAX || !upfront_is_align(align))
        return 0;
    stride = stride_of(size, align);
    exact = UINT64_MAX / stride / stride; /* offset * stride < 2^64 keeps the reciprocal exact */
    if (exact > UPFRONT_OFFSET_MAX / stride)
        exact = UPFRONT_OFFSET_MAX / stride;
    return exact < UINT32_MAX ? exact : UINT32_MAX;
}

uint64_t upfront_pool_size(uint64_t size, uint64_t align, uint64_t count, uint64_t handles) {
    if (count > count_max(size, align))
        return 0;
    return upfront_round_up(beside(count, handles), upfront_pool_align(align)) + stride_of(size, align) * count;
}

/* pre: all arguments are in bounds. */
static void lay_out_pool(upfront_pool *p, char *first, uint64_t gen, uint64_t stride, uint64_t count,
                         uint64_t handles) {
    uint32_t *numbers = (uint32_t *)(void *)(first - beside(count, handles));
    uint64_t i;
    p->gen = gen;
    p->free = count;
    p->chunks = upfront_distance(first, p);
    p->numbers = upfront_distance(numbers, p);
    p->stride = stride;
    p->inverse = UINT64_MAX / stride + 1;
    p->count = (uint32_t)count;
    p->retired = p->kind = 0;
    p->handles = (uint32_t)(handles >> 32);
    UPFRONT_UNPOISON(numbers, beside(count, handles));
    memset(numbers, 0, (size_t)beside(count, handles)); /* all states are UPFRONT_CHUNK_FRESH */
    for (i = 0; i < count; i++)
        numbers[i] = (uint32_t)(count - 1 - i);
    for (i = 0; i < count && handles != 0; i++)
        numbers[count + i] = (uint32_t)handles;
    upfront_mark_dead(first, stride * count);
}

int upfront_pool_init(upfront_pool *p, void *block, uint64_t gen, uint64_t size, uint64_t align, uint64_t count,
                      uint64_t handles) {
    uint64_t bytes = upfront_pool_size(size, align, count, handles), stride;
    if (p == NULL || block == NULL || gen == 0 || count_max(size, align) == 0 || count > count_max(size, align) ||
        (uintptr_t)block % upfront_pool_align(align) != 0)
        return UPFRONT_BAD_ARGUMENT;
    stride = stride_of(size, align);
    lay_out_pool(p, (char *)block + (bytes - stride * count), gen, stride, count, handles);
    return UPFRONT_OK;
}

/* Returns the offset of chunk 0 in a block with a header and `count` chunks. */
static uint64_t front_of(const void *block, uint64_t align, uint64_t count, uint64_t handles) {
    uint64_t from = (uint64_t)(uintptr_t)block;
    return upfront_round_up(from + sizeof(upfront_pool) + beside(count, handles), upfront_pool_align(align)) - from;
}

upfront_pool *upfront_pool_make(void *block, uint64_t block_size, uint64_t size, uint64_t align, uint64_t handles) {
    upfront_pool *p = (upfront_pool *)block;
    uint64_t most = count_max(size, align), count = 0, step = UINT64_C(1) << 31, stride;
    if (block == NULL || (uintptr_t)block % UPFRONT_LINE != 0 || block_size >= UPFRONT_OFFSET_MAX || most == 0)
        return NULL;
    stride = stride_of(size, align);
    for (; step != 0; step /= 2)
        if (count + step <= most &&
            front_of(block, align, count + step, handles) + (count + step) * stride <= block_size)
            count += step;
    if (count == 0)
        return NULL;
    UPFRONT_UNPOISON(p, sizeof *p);
    lay_out_pool(p, (char *)block + front_of(block, align, count, handles), 1, stride, count, handles);
    return p;
}

void upfront_pool_close(upfront_pool *p) {
    uint64_t stride;
    if (p == NULL)
        return;
    stride = p->stride;
    /* chunks of an arena's block end with that block */
    upfront_mark_apart(upfront_pool_canonical(p, 0), p->count * stride);
    memset(p, 0, sizeof *p);
    p->stride = stride;
}

int64_t upfront_pool_find(const upfront_pool *p, uint64_t gen, const void *chunk) {
    uint64_t offset, index;
    if (p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (p->gen != gen || gen == 0)
        return UPFRONT_STALE;
    offset = upfront_place(chunk, p) - p->chunks;
    index = offset / p->stride;
    if (index >= p->count)
        return UPFRONT_FOREIGN;
    if (index * p->stride != offset)
        return UPFRONT_MISALIGNED;
    if (*upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE ||
        UPFRONT_IS_ELSEWHERE(upfront_pool_canonical(p, index), chunk))
        return UPFRONT_DOUBLE; /* also the old position of a chunk that was put and taken again */
    return (int64_t)index;
}

int upfront_pool_put_handle(upfront_pool *p, uint64_t gen, uint64_t handle) {
    uint64_t index = handle & UPFRONT_HANDLE_INDEX;
    uint32_t puts, *generation;
    void *chunk;
    if (p == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (p->gen != gen || gen == 0)
        return UPFRONT_STALE;
    puts = (uint32_t)(handle >> 32) & p->handles;
    chunk = upfront_pool_at(p, gen, handle);
    if (chunk == NULL) {
        if (index >= p->count || puts == 0 || ((handle >> 32 ^ *upfront_pool_generation(p, index)) & ~p->handles) != 0)
            return UPFRONT_FOREIGN;
        return UPFRONT_DOUBLE;
    }
    generation = upfront_pool_generation(p, index);
    (void)upfront_pool_put(p, gen, chunk);
    if (puts != p->handles) {
        ++*generation;
    } else { /* no generation is left: the chunk isn't taken again */
        *upfront_pool_state(p, index) = UPFRONT_CHUNK_RETIRED;
        p->free--;
        p->retired++;
    }
    return UPFRONT_OK;
}

void upfront_pool_remark(upfront_pool *p, const uint8_t *states) {
    uint64_t i;
    for (i = 0; p != NULL && i < p->count; i++) {
        int lives = states[p->count - 1 - i] == UPFRONT_CHUNK_LIVE;
        if (lives == (*upfront_pool_state(p, i) == UPFRONT_CHUNK_LIVE))
            continue;
        if (lives)
            upfront_mark_live(upfront_pool_canonical(p, i), p->stride);
        else
            upfront_mark_ended(upfront_pool_canonical(p, i), p->stride, UPFRONT_PUT);
    }
}

/* Reports whether none of the eight chunks from index on is live. pre: there are eight. */
static int pool_none_lives(const upfront_pool *p, uint64_t index) {
    const uint64_t each = UINT64_MAX / 255, low = 127 * each;
    uint64_t states;
    memcpy(&states, upfront_pool_state(p, index + 7), sizeof states);
    states ^= UPFRONT_CHUNK_LIVE * each;
    return (((states & low) + low) | states | low) == UINT64_MAX;
}

uint64_t upfront_pool_next(const upfront_pool *p, uint64_t index) {
    if (p == NULL)
        return 0;
    while (index < p->count && *upfront_pool_state(p, index) != UPFRONT_CHUNK_LIVE) {
        if (*upfront_pool_state(p, index) == UPFRONT_CHUNK_FRESH)
            return p->count; /* and so are all after it */
        index = index % 8 == 0 && index + 8 <= p->count && pool_none_lives(p, index) ? index + 8 : index + 1;
    }
    return index < p->count ? index : p->count;
}

uint64_t upfront_pool_peak(const upfront_pool *p) {
    uint64_t low = 0, high = p == NULL ? 0 : p->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (*upfront_pool_state(p, middle) == UPFRONT_CHUNK_FRESH)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
