/* buddy.h - blocks of 2^k bytes, aligned to themselves, given back in any order: pages for arenas,
 * chunks of a world, textures.
 *
 * Algorithm  Binary buddies. A block is the smallest block times a power of two, and begins at a
 *            multiple of its size. A larger free block is halved until it fits; a block that is
 *            freed melts at once with its other half while that is free. A request is served at the
 *            lowest address where it can be. A byte for each boundary between smallest blocks says
 *            it all: the halves of exactly one block meet there, and the byte says whether that
 *            block is free, live or split, and the largest free block in it. So the bytes are a
 *            tree without links, and a block needs no header: all its bytes are its caller's.
 *            What there is need be no power of two, nor begin at a multiple of one: it is as many
 *            smallest blocks as fit.
 * Bound      A request is served exactly when a free block of its size or a larger one exists, and
 *            the reserve allows it. A program that has at most M bytes, in blocks of at most n
 *            times the smallest, and calls alloc and free alone, is never refused if there are
 *            upfront_buddy_robson_bound bytes: M * (1 + log2(n) / 2) when 2n smallest blocks divide
 *            M. That takes the lowest address for every request. realloc gives it up: what it cuts
 *            in place lies where it lay, and what it moves is there twice meanwhile.
 * Cost       O(log2 of the smallest blocks), at most 31 levels down and up: alloc, free, size_of,
 *            and realloc but for the bytes it moves. largest is O(1). Space: 208 bytes in front, at
 *            most one byte more than there are smallest blocks, and what lies before the first
 *            multiple of the smallest block and behind the last.
 * Threads    As a heap: one at a time, upfront_buddy_size_of included. The checked build refuses
 *            who comes second, and counts it in `raced`.
 * When not   For odd sizes: where a heap (heap.h) takes 1.04 times the bytes that are asked for,
 *            this takes 1.41 (sizes from 16 to 4096, each power of two as often, full after many
 *            frees), and 2 where they are 2^k + 1. Nor where thousands come and go in a moment: a free
 *            and an alloc take some 200 ns together, a heap's 60. For many things of one size: pool.h.
 * Source     Knuth, TAOCP 1, 2.5, for the buddy system of Markowitz and Knowlton. Robson, "An
 *            Estimate of the Store Size Necessary for Dynamic Storage Allocation" (1971), for the
 *            bound and its program; "Bounds for Some Functions Concerning Dynamic Storage
 *            Allocation" (1974).
 *
 * Misuse     The bytes know every block, so in every build an address is refused as
 *              UPFRONT_FOREIGN     outside of the blocks,
 *              UPFRONT_MISALIGNED  inside a live block, not at its start,
 *              UPFRONT_DOUBLE      where a free block begins, or inside of one,
 *              UPFRONT_CORRUPT     where a byte was overwritten, if that is met on the way.
 *            What it can't tell: an old address at which a new block begins; and a write past the
 *            end of a block, where no header lies. AddressSanitizer sees one into a free block.
 * Damage     Nothing in free blocks matters. Where the bytes that say what is free were overwritten
 *            nothing outside of the blocks is given or written; a free or realloc that meets it
 *            answers UPFRONT_CORRUPT, and a refusal looks at all bytes before, one in 1 + smallest
 *            blocks / 64. `damaged` counts it, and `where` is the last. Nothing is mended: what is
 *            given then may be somebody's.
 * Checked    UPFRONT_CHECKED. As a heap: fills are looked at, and what is freed rests. A block's
 *            bytes beyond the asked size are a redzone, and a request that would have fewer than 16
 *            gets the next order, while there is room: `padded` bytes, which are given up before
 *            anything is refused. Who asks upfront_buddy_size_of has all that a release build says. */
#ifndef UPFRONT_BUDDY_H
#define UPFRONT_BUDDY_H

#include "notes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_BUDDY_LEAST UINT64_C(64)       /* the smallest block that may be chosen */
#define UPFRONT_BUDDY_MOST (UINT64_C(1) << 30) /* smallest blocks of one buddy: 64 GiB, of 64 */

/* Words of the header may be read at any time: bytes that are free are end - first - used. */
typedef struct upfront_buddy {
    uint64_t first;     /* offset of the first block, from this header */
    uint64_t end;       /* and of the end of the last */
    uint64_t smallest;  /* size of the smallest block */
    uint64_t low;       /* smallest blocks from a multiple of UPFRONT_ALIGN_MAX to the first */
    uint64_t root;      /* the boundary whose byte is of all */
    uint64_t used;      /* bytes of live blocks */
    uint64_t peak;      /* highest `used` */
    uint64_t phase;     /* highest `used` since upfront_buddy_phase */
    uint64_t reserve;   /* free bytes that nobody gets */
    uint64_t live;      /* live blocks */
    uint64_t given;     /* bytes of all blocks that were handed out since init or reset, mod 2^64 */
    uint64_t asked;     /* and of what was asked for: the rest is internal waste, of them all. Of
                           what is live now nobody knows it */
    uint64_t failed;    /* requests refused for want of room */
    uint64_t scattered; /* of these, refused while as many bytes were free, in smaller blocks: that
                           is external waste */
    uint64_t refused;   /* size of the last refusal */
    uint64_t damaged;   /* how often bytes were met that a stray write had overwritten */
    uint64_t where;     /* of the last: offset of the smallest block that they are about; 0: nobody
                           knows */
    uint64_t look;      /* refusals, `failed`, before which the bytes aren't looked at again */
    uint64_t plain;     /* checked build: as in a release build, nothing rests, no redzones */
    uint64_t padded;    /* checked build: bytes of live blocks that are redzones */
    upfront_rest rest;  /* checked build: freed blocks that nobody gets yet */
    uint64_t busy;      /* checked build: somebody is inside */
    uint64_t raced;     /* checked build: who came meanwhile, and was refused: there is no lock */
} upfront_buddy;

/* A block as the walk names it. They lie one behind the other from the offset first to end. */
typedef struct upfront_buddy_range {
    uint64_t offset;
    uint64_t size;
    uint64_t live; /* 1, or 0 for a free block */
} upfront_buddy_range;

/* Makes a buddy of the block: header and bytes at its front, then as many smallest blocks as fit.
 * NULL when the block is null, not aligned to 64, too large, or has no room for one smallest block;
 * when there would be more than UPFRONT_BUDDY_MOST; and when `smallest` is no power of two from
 * UPFRONT_BUDDY_LEAST to UPFRONT_ALIGN_MAX. What was in the block is not looked at.
 *
 * Blocks are aligned to their size up to UPFRONT_ALIGN_MAX. So which there are depends on where the
 * first lies modulo that, and on nothing else of the address. */
upfront_buddy *upfront_buddy_init(void *block, uint64_t size, uint64_t smallest);

/* The size of a block that is enough, wherever it lies, for `bytes` bytes in smallest blocks.
 * Modulo 2^64. */
uint64_t upfront_buddy_size(uint64_t bytes, uint64_t smallest);

/* NULL: full, or null, or align out of bounds, which alone is not counted as failed. An align above
 * the size takes a block of that size. Size 0 is a smallest block. */
void *upfront_buddy_alloc(upfront_buddy *b, uint64_t size, uint64_t align);

/* A null p is nothing to do. */
int upfront_buddy_free(upfront_buddy *b, void *p);

/* Another size for a block, its contents kept. In place while it is rounded up to the same power of
 * two; when it is smaller, the rest becomes free blocks; when it is larger, in place if the other
 * halves are free and lie behind it; else it moves. It is aligned to its new size, no more. NULL,
 * and p is as it was: full, or p is no live block: upfront_buddy_check says which code. A null p
 * is an allocation. Size 0 gives a smallest block and doesn't free. */
void *upfront_buddy_realloc(upfront_buddy *b, void *p, uint64_t size);

/* The size of the block, all of which is the caller's, or a code. What was asked for isn't kept. */
int64_t upfront_buddy_size_of(const upfront_buddy *b, const void *p);

/* As upfront_heap_check. */
int upfront_buddy_check(const upfront_buddy *b, const void *p);

/* As upfront_heap_plain and upfront_heap_made. */
void upfront_buddy_plain(upfront_buddy *b);
uint32_t upfront_buddy_made(const upfront_buddy *b, const void *p);

/* Frees every block. Peaks, counts of refusals and the reserve stay. Cost: O(smallest blocks). */
void upfront_buddy_reset(upfront_buddy *b);

/* The largest block that is free, whatever the reserve. */
uint64_t upfront_buddy_largest(const upfront_buddy *b);

/* Keeps so many bytes back: a request that needs any of them is full. 0 lifts it, for clean-up.
 * What is kept may lie in small blocks. More than there is keeps all. */
void upfront_buddy_reserve(upfront_buddy *b, uint64_t bytes);

/* The highest `used` since the last call; a new phase begins with what is used now. */
uint64_t upfront_buddy_phase(upfront_buddy *b);

/* The highest `used` of all phases. pre: a buddy. */
static inline uint64_t upfront_buddy_peak(const upfront_buddy *b) { return b->peak; }

/* Names every block in order of address, and checks every byte and the counts. Writes at most
 * `room` blocks; *count is the number there is. UPFRONT_CORRUPT when they contradict each other;
 * *count is then how many were named before. UPFRONT_FULL when `room` is too small. With null for
 * out and room 0 it only checks, and count may be null, too; any other null is
 * UPFRONT_BAD_ARGUMENT. Cost: O(blocks * log2 of the smallest blocks), and a look at each byte.
 *
 * What it trusts: first, end, smallest, low and root. What it can't tell: peaks, sums, and counts
 * of refusals that are wrong but possible. */
int upfront_buddy_walk(const upfront_buddy *b, upfront_buddy_range *out, uint64_t room,
                       uint64_t *count);

/* As upfront_heap_hook. */
void *upfront_buddy_hook(void *buddy, void *p, size_t old, size_t size);

/* Bytes that are enough. A program that has at most `live` bytes at a time, in blocks of `smallest`
 * to `largest` (of blocks, not of what was asked for), and calls alloc and free alone, is never
 * refused by a buddy that has so many bytes, the first at a multiple of `largest`; from elsewhere
 * it is `largest` more. It is exact: with one smallest block less there is a program that is
 * refused. 0: a size that is no power of two, or not in that order, or `live` above
 * UPFRONT_OFFSET_MAX.
 *
 * Proof. Count in smallest blocks. One of order 0 lies where all below it is live, so it ends at or
 * below L0 = live. One of order i lies in a window of 2^i, behind windows that each hold something
 * live: where a window begins below L0, one smallest block at least; behind that and below L1, a
 * block of order 1; and so on, until from L(i-1) on a window is filled. As many windows as live -
 * 2^i can block like that are before it, at most; that gives Li. The program that frees all but the
 * smallest block in each window, and then takes what it may, comes as far. It is Robson's (1971):
 * of any allocator at all, one like it needs live * (1 + log2(n) / 2) - n + 1. */
uint64_t upfront_buddy_robson_bound(uint64_t live, uint64_t largest, uint64_t smallest);

/* What follows is the inside of buddy.c and buddy_walk.c.
 *
 * Smallest blocks are numbered from a multiple of UPFRONT_ALIGN_MAX, boundaries by the block behind
 * them. The halves of a block of order j > 0 meet at the boundary whose lowest bit is 2^(j-1): so a
 * boundary is a block. There are bytes for the boundaries between `low` and `high`, both rounded
 * outwards to even numbers, so that each smallest block has its pair.
 *
 * A byte: of a block that is whole and free, SPLIT and its order + 1; of one that is whole and
 * live, LIVE; below one of these, 0; else SPLIT and the order + 1 of the largest free block below,
 * 0 for none. A pair that is split has a bit for each half that isn't free; what lies outside
 * isn't. The checked build has PADDED for LIVE where a release build's block would be of the order
 * below: the other half is a redzone. */
#define UPFRONT_BUDDY_SPLIT 0x80
#define UPFRONT_BUDDY_LIVE 0x60
#define UPFRONT_BUDDY_PADDED 0x40
#define UPFRONT_BUDDY_LEFT 0x20
#define UPFRONT_BUDDY_RIGHT 0x40
#define UPFRONT_BUDDY_LARGEST 0x1F

static inline uint64_t upfront_buddy_high(const upfront_buddy *b) {
    return b->low + ((b->end - b->first) >> __builtin_ctzll(b->smallest));
}

/* Whether a boundary has a byte. */
static inline int upfront_buddy_is_inside(const upfront_buddy *b, uint64_t at) {
    uint64_t low = b->low & ~UINT64_C(1);
    return at - low - 1 < ((upfront_buddy_high(b) + 1) & ~UINT64_C(1)) - low - 1;
}

static inline uint8_t *upfront_buddy_byte(const upfront_buddy *b, uint64_t at) {
    return (uint8_t *)(uintptr_t)(b + 1) + (at - (b->low & ~UINT64_C(1)) - 1);
}

/* The order of the block whose halves meet there. */
static inline uint64_t upfront_buddy_order(uint64_t at) {
    return (uint64_t)__builtin_ctzll(at) + 1;
}

/* The boundary of the block of an order, above 0, that has the smallest block. */
static inline uint64_t upfront_buddy_at(uint64_t smallest, uint64_t order) {
    return (smallest >> order << order) | (UINT64_C(1) << (order - 1));
}

static inline uint8_t upfront_buddy_whole(uint64_t order) {
    return (uint8_t)(UPFRONT_BUDDY_SPLIT + order + 1);
}

/* The boundary of the half on one side, of a block of order 2 or more; where that reaches beyond
 * the bytes, of the part that doesn't. */
static inline uint64_t upfront_buddy_half(const upfront_buddy *b, uint64_t at, int right) {
    uint64_t step = (at & (0 - at)) >> 1;
    at += right ? step : 0 - step;
    while (!upfront_buddy_is_inside(b, at)) {
        step >>= 1;
        at += right ? 0 - step : step;
    }
    return at;
}

/* What the byte of a block that isn't whole must be, by its halves. Two that are whole and free
 * make it so. */
static inline uint8_t upfront_buddy_sum(const upfront_buddy *b, uint64_t at) {
    uint64_t order = upfront_buddy_order(at);
    uint8_t left, right;
    if (order == 1) {
        int taken = *upfront_buddy_byte(b, at) & UPFRONT_BUDDY_LIVE;
        int halves = !(taken & UPFRONT_BUDDY_LEFT) + !(taken & UPFRONT_BUDDY_RIGHT);
        return (uint8_t)(UPFRONT_BUDDY_SPLIT + taken + halves); /* two are the order, and 1 */
    }
    left = *upfront_buddy_byte(b, upfront_buddy_half(b, at, 0)) & UPFRONT_BUDDY_LARGEST;
    right = *upfront_buddy_byte(b, upfront_buddy_half(b, at, 1)) & UPFRONT_BUDDY_LARGEST;
    if (left == order && right == order)
        return upfront_buddy_whole(order);
    return (uint8_t)(UPFRONT_BUDDY_SPLIT + (left > right ? left : right));
}

static inline int upfront_buddy_is_live(uint8_t byte) {
#ifdef UPFRONT_CHECKED
    if (byte == UPFRONT_BUDDY_PADDED)
        return 1;
#endif
    return byte == UPFRONT_BUDDY_LIVE;
}

/* A live block, a free one, or a code: the one that has the smallest block. */
typedef struct upfront_buddy_found {
    int code; /* UPFRONT_OK: live, UPFRONT_DOUBLE: free, UPFRONT_CORRUPT */
    uint64_t from, order;
} upfront_buddy_found;

static inline upfront_buddy_found upfront_buddy_find(const upfront_buddy *b, uint64_t smallest) {
    upfront_buddy_found f = {UPFRONT_CORRUPT, smallest, 0};
    uint64_t order, at;
    uint8_t byte = 0;
    for (order = 1; order <= upfront_buddy_order(b->root) && byte == 0; order++) {
        at = upfront_buddy_at(smallest, order);
        if (!upfront_buddy_is_inside(b, at) || (byte = *upfront_buddy_byte(b, at)) == 0)
            continue; /* below it, or no block */
        if (upfront_buddy_is_live(byte) || byte == upfront_buddy_whole(order)) {
            f.order = order;
            f.from = smallest >> order << order;
            if (f.from >= b->low && f.from + (UINT64_C(1) << order) <= upfront_buddy_high(b))
                f.code = upfront_buddy_is_live(byte) ? UPFRONT_OK : UPFRONT_DOUBLE;
        } else if (order == 1 && byte >= UPFRONT_BUDDY_SPLIT) {
            int half = smallest < at ? UPFRONT_BUDDY_LEFT : UPFRONT_BUDDY_RIGHT;
            f.code = byte & half ? UPFRONT_OK : UPFRONT_DOUBLE;
        }
    }
    return f;
}

/* The checked build: the order of the block that a live one would have in a release build, and the
 * offset of the first byte beyond what was asked for that somebody wrote to, or of such a byte in a
 * block that is free or rests. 0: there is none. */
#ifdef UPFRONT_CHECKED
#define UPFRONT_BUDDY_ZONE 16 /* the least redzone behind a block, where there is room */
uint64_t upfront_buddy_natural(const upfront_buddy *b, uint64_t from, uint64_t order);
uint64_t upfront_buddy_dirt(const upfront_buddy *b, upfront_buddy_found f);
int upfront_buddy_rests(const upfront_buddy *b, uint64_t from);
#else
#define upfront_buddy_natural(b, from, order) (order)
#define upfront_buddy_dirt(b, f) ((uint64_t)0)
#define upfront_buddy_rests(b, from) 0
#endif

/* upfront_buddy_walk from within a call. */
int upfront_buddy_look(const upfront_buddy *b, upfront_buddy_range *out, uint64_t room,
                       uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
