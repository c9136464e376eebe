/* heap.h - blocks of any size, given back in any order: what C libraries ask of an allocator.
 *
 * Algorithm  Two-level segregated fit. Free blocks lie in lists by class: multiples of 16 below 256 bytes, then 16 classes to each power
 *            of two; a bit per class and a bit per power say which lists hold something. A block's header names its neighbours, so that
 *            what is freed melts with the free blocks beside it. At most UPFRONT_HEAP_SCAN blocks of the request's own class are looked
 *            at; in a higher class the first block will do.
 * Bound      Align 16: a request is served when a free block of a higher class exists, or one that fits is among the first
 *            UPFRONT_HEAP_SCAN of its own list. A larger alignment adds itself and 16 bytes to what makes a class certain; below that
 *            class the same number of blocks is looked at in the lowest class, in the highest, and between. A refusal after which lists
 *            had more than was looked at is counted in `bounded`: a block that fits may lie deeper. Any other means that none fits.
 * Cost       O(1): alloc, free, size_of, and realloc but for the bytes it moves. Space: 16 bytes a block, sizes rounded up to 16, at least
 *            32 in all; a block is never cut to less. In front 88 bytes, and 136 for each power of two from 128 to the size.
 * Source     Masmano, Ripoll, Crespo, Real, "TLSF: a New Dynamic Memory Allocator for Real-Time Systems"; Frykholm, "Custom Memory
 *            Allocation in C++".
 *
 * Misuse     A header is sealed: 42 bits of it are a digest of its other bits, its offset and the heap's epoch. free, realloc and size_of
 *            take an address only when the seal before it holds, and the headers on both sides hold and agree; a header that melts into
 *            another is buried under a seal that says so. So an address is refused as
 *              UPFRONT_FOREIGN     outside of the heap,
 *              UPFRONT_MISALIGNED  inside a block, or its header was overwritten: no seal there,
 *              UPFRONT_DOUBLE      of a free block, or of one that was freed and melted, until something is written over its header,
 *              UPFRONT_CORRUPT     of a live block whose neighbour's header, or links while it is free, were overwritten.
 *            An allocation doesn't take a free block of which something was overwritten: it says full.
 *            What it can't tell: an old address at which a new block begins; bytes inside a live block that are such a seal, by chance
 *            (1 in 2^42, and they must agree with both neighbours) or by intent; and, on a block where another heap was made before,
 *            that heap's addresses. upfront_heap_reset has no such gap: it begins a new epoch. */
#ifndef UPFRONT_HEAP_H
#define UPFRONT_HEAP_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_HEAP_SCAN 8
#define UPFRONT_HEAP_ALIGN UINT64_C(16)
#define UPFRONT_HEAP_BLOCK 272 /* the smallest block of a heap: room for one allocation of 16 bytes */

/* Followed by a word of bits for each power of two, then by the lists' first offsets. Words of the header may be read at any time: bytes
 * that are free are end - first - used. */
typedef struct upfront_heap {
    uint64_t first;   /* offset of the first block's header, from this header */
    uint64_t end;     /* offset of the closing header, which is live and has no bytes */
    uint64_t rows;    /* powers of two that have lists */
    uint64_t epoch;   /* resets, and 1 */
    uint64_t map;     /* bit per row: one of its lists holds something */
    uint64_t used;    /* bytes of live blocks, headers included */
    uint64_t peak;    /* highest `used` */
    uint64_t live;    /* live blocks */
    uint64_t failed;  /* requests refused for want of room */
    uint64_t bounded; /* of these, refused by the bound: not every block that might fit was looked at */
    uint64_t refused; /* size of the last refusal */
} upfront_heap;

/* A block as the walk names it. The blocks lie one behind the other from the offset heap->first to heap->end. */
typedef struct upfront_heap_range {
    uint64_t offset; /* of its header; its bytes begin 16 further */
    uint64_t size;   /* header included */
    uint64_t asked;  /* what was asked for; 0 for a free block */
    uint64_t align;  /* what was asked for, at least 16 */
    uint64_t live;   /* 1, or 0 for a free block */
} upfront_heap_range;

/* Makes a heap of the block: header and lists at its front, the rest one free block. NULL when the block is null, not aligned to 64, too
 * large, or smaller than UPFRONT_HEAP_BLOCK. What was in the block is not looked at. */
upfront_heap *upfront_heap_init(void *block, uint64_t size);

/* NULL: full, or null, or size or align out of bounds, which alone is not counted as failed. An align below 16 is 16. Size 0 gives an
 * address of its own. */
void *upfront_heap_alloc(upfront_heap *h, uint64_t size, uint64_t align);

int upfront_heap_free(upfront_heap *h, void *p);

/* Another size for a block, its contents and its alignment kept. It shrinks in place; grows in place into the free block behind it, into
 * the one before it (its bytes move down), or both; else it moves. NULL, and p is as it was: full, size out of bounds, or p is no live
 * block: upfront_heap_size_of says which code. A null p is an allocation. Size 0 gives a block of no bytes and doesn't free. */
void *upfront_heap_realloc(upfront_heap *h, void *p, uint64_t size);

/* The size that was asked for, or a code. The block may have some bytes more: realloc asks for them. */
int64_t upfront_heap_size_of(const upfront_heap *h, const void *p);

/* Frees every block. The counts of refusals and the peak stay. Addresses from before are refused. */
void upfront_heap_reset(upfront_heap *h);

/* The largest size that a free block could serve at align 16. Cost: O(blocks). pre: the walk says ok. */
uint64_t upfront_heap_largest(const upfront_heap *h);

/* Names every block in order of address, and checks the chain of headers, the lists, the bits and the counts. Writes at most `room`
 * blocks; *count is the number there is. UPFRONT_CORRUPT when they contradict each other; *count is then how many were named before.
 * UPFRONT_FULL when `room` is too small, UPFRONT_BAD_ARGUMENT for null. Cost: O(blocks).
 *
 * What it trusts: first, end, rows and epoch. What it can't tell: peak, failed and bounded that are wrong but possible. */
int upfront_heap_walk(const upfront_heap *h, upfront_heap_range *out, uint64_t room, uint64_t *count);

/* For libraries with an allocator callback, as Lua's lua_Alloc: size 0 frees and gives NULL, a null p allocates, anything else is realloc.
 * `old` is not needed: the header knows. Align is 16. */
void *upfront_heap_hook(void *heap, void *p, size_t old, size_t size);

/* What follows is the inside of heap.c and heap_walk.c.
 *
 * A block begins with two words: `before`, the size of the block before it (0 for the first), and `size`. Both are multiples of 16 below
 * 2^38. The bits below and above hold: before: slack & 15, and log2 of align / 16 from bit 38; size: live, slack >> 4 (2 bits),
 * buried. Slack is what a live block has beyond the asked size. The 21 bits from 43 up are the seal. In a free block two links follow, to
 * the next and to the one before in its list, 0 for none. */
#define UPFRONT_HEAP_HEADER 16
#define UPFRONT_HEAP_LEAST 32
#define UPFRONT_HEAP_LIVE 1
#define UPFRONT_HEAP_BURIED 8
#define UPFRONT_HEAP_SEAL 43
#define UPFRONT_HEAP_BODY ((UINT64_C(1) << UPFRONT_HEAP_SEAL) - 1)
#define UPFRONT_HEAP_SIZE (UPFRONT_OFFSET_MAX - 16)

/* Headers and free blocks are poisoned for everybody but these two: what runs over the end of a block is seen. */
UPFRONT_UNCHECKED static inline uint64_t upfront_heap_word(const upfront_heap *h, uint64_t offset) {
    return *(const uint64_t *)((uintptr_t)h + (uintptr_t)offset);
}

UPFRONT_UNCHECKED static inline void upfront_heap_set(upfront_heap *h, uint64_t offset, uint64_t value) {
    *(uint64_t *)((uintptr_t)h + (uintptr_t)offset) = value;
}

/* 42 bits are used: the upper 21 in the word `before`, the 21 below them in `size`. */
static inline uint64_t upfront_heap_digest(const upfront_heap *h, uint64_t offset, uint64_t before, uint64_t size) {
    uint64_t m = (offset ^ (h->epoch << UPFRONT_HEAP_SEAL)) * UINT64_C(0x9E3779B97F4A7C15) + before;
    m = ((m ^ (m >> 32)) + size) * UINT64_C(0xBF58476D1CE4E5B9);
    m = (m ^ (m >> 29)) * UINT64_C(0x94D049BB133111EB);
    return m ^ (m >> 32);
}

static inline void upfront_heap_seal(upfront_heap *h, uint64_t offset, uint64_t before, uint64_t size) {
    uint64_t digest = upfront_heap_digest(h, offset, before, size);
    upfront_heap_set(h, offset, before | (digest & ~UPFRONT_HEAP_BODY));
    upfront_heap_set(h, offset + 8, size | ((digest << 21) & ~UPFRONT_HEAP_BODY));
}

static inline int upfront_heap_sealed(const upfront_heap *h, uint64_t offset) {
    uint64_t before = upfront_heap_word(h, offset), size = upfront_heap_word(h, offset + 8);
    uint64_t digest = upfront_heap_digest(h, offset, before & UPFRONT_HEAP_BODY, size & UPFRONT_HEAP_BODY);
    return (((before ^ digest) | (size ^ (digest << 21))) & ~UPFRONT_HEAP_BODY) == 0;
}

/* Whether a header may be there. */
static inline int upfront_heap_is_inside(const upfront_heap *h, uint64_t offset) {
    return offset % 16 == 0 && offset - h->first < h->end - h->first;
}

static inline uint64_t upfront_heap_before(const upfront_heap *h, uint64_t offset) {
    return upfront_heap_word(h, offset) & UPFRONT_HEAP_SIZE;
}

static inline uint64_t upfront_heap_size(const upfront_heap *h, uint64_t offset) {
    return upfront_heap_word(h, offset + 8) & UPFRONT_HEAP_SIZE;
}

static inline uint64_t upfront_heap_is_live(const upfront_heap *h, uint64_t offset) {
    return upfront_heap_word(h, offset + 8) & UPFRONT_HEAP_LIVE;
}

static inline uint64_t upfront_heap_asked(const upfront_heap *h, uint64_t offset) {
    uint64_t slack = (upfront_heap_word(h, offset) & 15) | ((upfront_heap_word(h, offset + 8) & 6) << 3);
    return upfront_heap_size(h, offset) - UPFRONT_HEAP_HEADER - slack;
}

static inline uint64_t upfront_heap_align(const upfront_heap *h, uint64_t offset) {
    return UPFRONT_HEAP_ALIGN << ((upfront_heap_word(h, offset) >> 38) & 31);
}

/* Below 256 a row of its own with steps of 16, then a row for each power of two, 16 steps each. */
static inline uint64_t upfront_heap_class(uint64_t size) {
    uint64_t log = 63 - (uint64_t)__builtin_clzll(size);
    return log < 8 ? size / 16 : (log - 7) * 16 + ((size >> (log - 4)) & 15);
}

static inline uint64_t *upfront_heap_bits(const upfront_heap *h, uint64_t row) { return (uint64_t *)(uintptr_t)(h + 1) + row; }

static inline uint64_t *upfront_heap_list(const upfront_heap *h, uint64_t class_of) {
    return (uint64_t *)(uintptr_t)(h + 1) + h->rows + class_of;
}

#ifdef __cplusplus
}
#endif
#endif
