/* buddy.h - allocates blocks of 2^k bytes, aligned to their size, and frees them in any order:
 * pages for arenas, chunks of a world, textures.
 *
 * Algorithm  Binary buddies. A block is the smallest block times a power of two, and begins at a
 *            multiple of its size. A larger free block is halved until it fits. The other half of
 *            the larger block is a block's buddy. A freed block merges at once with its buddy, if
 *            the buddy is free. A request takes the lowest address that fits. The state is a byte
 *            for each boundary between smallest blocks. The halves of exactly one block meet at a
 *            boundary; its byte says whether that block is free, live or split, and how large the
 *            largest free block in it is. So the bytes are a tree without links, and a block needs
 *            no header: all its bytes are the caller's. As many smallest blocks as fit are used,
 *            not only a power of two.
 * Bound      A request succeeds exactly when a free block of its size or a larger one exists and
 *            the reserve allows it. Take a program with at most M live bytes, in blocks of at most
 *            n times the smallest, that only calls alloc and free. If M is a multiple of 2n
 *            smallest blocks, and the first block is aligned to the largest, a buddy of
 *            M * (1 + log2(n) / 2) bytes never refuses it. tests/c/buddy.c has the bound of other M
 *            and the proof. This needs the lowest address for every request.
 *            realloc breaks the bound: a block cut in place keeps its address, and a moving block
 *            exists twice meanwhile.
 * Cost       O(log2 of the smallest blocks), at most 31 levels down and up: alloc, free, size_of,
 *            and realloc without its copy. largest is O(1). Space: 208 bytes; a byte for each
 *            smallest block, and at most one more; and the bytes that rounding to smallest blocks
 *            leaves at both ends.
 * Threads    One call at a time, as for a heap. The checked build refuses a second call and counts
 *            it in `raced`.
 * When not   Arbitrary sizes: a heap (heap.h) takes 1.04 times the asked bytes, a buddy 1.41 times
 *            (sizes from 16 to 4096, as many from each 2^k to 2^(k+1); full after many frees). For
 *            sizes of 2^k + 1 a buddy takes 2 times the bytes. Thousands of blocks that come and go
 *            quickly: a free and an alloc together take some 200 ns, in a heap 60. For objects of
 *            one size use pool.h.
 * Source     Knuth, TAOCP 1, 2.5, for the buddy system of Markowitz and Knowlton. Robson, "An
 *            Estimate of the Store Size Necessary for Dynamic Storage Allocation" (1971), for the
 *            bound and its program; "Bounds for Some Functions Concerning Dynamic Storage
 *            Allocation" (1974).
 *
 * Misuse     The bytes describe every block, so every build refuses an address as
 *              UPFRONT_FOREIGN     outside of the blocks,
 *              UPFRONT_MISALIGNED  inside a live block, not at its start,
 *              UPFRONT_DOUBLE      in a free block or at its start,
 *              UPFRONT_CORRUPT     in a block whose state bytes were overwritten.
 *            Not detected: a stale address at which a new block begins, and a write past the end of
 *            a block, which has no header there. AddressSanitizer detects such a write into a free
 *            block.
 * Damage     Writes to free blocks change nothing. After a write to the state bytes no call
 *            allocates or writes outside of the blocks. A free that finds damage returns
 *            UPFRONT_CORRUPT, a realloc NULL. Of 1 + N / 64 refusals, N the number of smallest
 *            blocks, one checks all bytes. Nothing is repaired: a later allocation may overlap a
 *            live block.
 * Checked    In a checked build fills are checked and freed blocks rest, as in a heap. The bytes
 *            after the asked size are a redzone. A request whose redzone would have fewer than 16
 *            bytes gets the next order if that is free. Before a refusal these added bytes, counted
 *            in `padded`, become free blocks again. After upfront_buddy_size_of the caller may use
 *            the whole block that a release build would return. */
#ifndef UPFRONT_BUDDY_H
#define UPFRONT_BUDDY_H

#include "notes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_BUDDY_LEAST UINT64_C(64)       /* the least size of a smallest block */
#define UPFRONT_BUDDY_MOST (UINT64_C(1) << 30) /* maximum of smallest blocks; 64 GiB at 64 bytes */

/* The header. Its words may be read at any time. The free bytes are end - first - used. */
typedef struct upfront_buddy {
    uint64_t first;     /* offset of the first block, from this header */
    uint64_t end;       /* offset past the last block */
    uint64_t smallest;  /* size of the smallest block */
    uint64_t low;       /* number of the first block; 0 is at a multiple of UPFRONT_ALIGN_MAX */
    uint64_t root;      /* the boundary of the block that contains all others */
    uint64_t used;      /* bytes of live blocks */
    uint64_t peak;      /* highest `used` */
    uint64_t phase;     /* highest `used` since the phase began */
    uint64_t reserve;   /* free bytes withheld by the reserve */
    uint64_t live;      /* live blocks */
    uint64_t given;     /* bytes of all blocks allocated or resized since init or reset, mod 2^64 */
    uint64_t asked;     /* bytes asked for them; given - asked is the internal waste */
    uint64_t failed;    /* requests refused as full */
    uint64_t scattered; /* of these, with enough bytes free in smaller blocks: external waste */
    uint64_t refused;   /* size of the last refusal */
    uint64_t damaged;   /* findings of damage */
    uint64_t where;     /* offset of the last finding; 0: unknown */
    uint64_t look;      /* refusals check no bytes while `failed` is below this */
    uint64_t plain;     /* checked build: nothing rests, and there are no redzones */
    uint64_t padded;    /* checked build: bytes of live blocks above a release build's blocks */
    upfront_rest rest;  /* checked build: freed blocks at rest */
    uint64_t busy;      /* checked build: a call is running */
    uint64_t raced;     /* checked build: calls refused because another was running */
} upfront_buddy;

/* Makes a buddy in the memory at `block`: header and bytes, then as many smallest blocks as fit, 1
 * to UPFRONT_BUDDY_MOST. NULL also if `smallest` isn't a power of two from UPFRONT_BUDDY_LEAST to
 * UPFRONT_ALIGN_MAX.
 *
 * Blocks are aligned to their size up to UPFRONT_ALIGN_MAX, so the possible blocks depend on the
 * address of the first one modulo UPFRONT_ALIGN_MAX. */
upfront_buddy *upfront_buddy_init(void *block, uint64_t size, uint64_t smallest);

/* Returns the size of memory that is enough, at any address, for `bytes` bytes in smallest blocks,
 * 0 if an argument is out of bounds. */
uint64_t upfront_buddy_size(uint64_t bytes, uint64_t smallest);

/* Allocates a block. Returns NULL for an align out of bounds, which isn't counted in `failed`. If
 * align is above size, the block is one for `align` bytes. A request of size 0 takes a smallest
 * block. */
void *upfront_buddy_alloc(upfront_buddy *b, uint64_t size, uint64_t align);

/* Frees a block and returns a code; UPFRONT_OK for a null p. */
int upfront_buddy_free(upfront_buddy *b, void *p);

/* Changes the size of a block and keeps its contents. The block stays in place while the size
 * rounds up to the same power of two. If it shrinks, the rest becomes free blocks. It grows in
 * place if each buddy that it needs follows it and is free, else it moves. The block is aligned to
 * its new size. Returns NULL and leaves p as it was if the buddy is full or p isn't a live block
 * (upfront_buddy_check returns the code). A null p is an allocation. Size 0 makes a smallest block
 * and doesn't free. */
void *upfront_buddy_realloc(upfront_buddy *b, void *p, uint64_t size);

/* Returns the size of the block, which the caller may use whole, or a code. The asked size isn't
 * kept. */
int64_t upfront_buddy_size_of(const upfront_buddy *b, const void *p);

/* As upfront_heap_check. In a checked build the caller may then use the whole block, as after
 * upfront_buddy_size_of. */
int upfront_buddy_check(const upfront_buddy *b, const void *p);

/* As upfront_heap_plain. */
void upfront_buddy_plain(upfront_buddy *b);

/* Frees every block. Peaks, counts of refusals and the reserve stay. Cost: O(smallest blocks). */
void upfront_buddy_reset(upfront_buddy *b);

/* Returns the size of the largest free block, ignoring the reserve. */
uint64_t upfront_buddy_largest(const upfront_buddy *b);

/* Withholds `bytes` free bytes, possibly in small blocks. A request that needs a withheld byte is
 * refused. 0 lifts the reserve, for a clean-up. If the buddy has fewer bytes, all are withheld. */
void upfront_buddy_reserve(upfront_buddy *b, uint64_t bytes);

/* Returns the highest `used` since the last call, and begins a new phase at the present use. */
uint64_t upfront_buddy_phase(upfront_buddy *b);

/* Returns the highest `used` of all phases. pre: a buddy. */
static inline uint64_t upfront_buddy_peak(const upfront_buddy *b) { return b->peak; }

/* Lists every block, and checks every byte and the counts, as upfront_heap_walk does. Cost:
 * O(blocks * log2 of the smallest blocks), and a test of each byte.
 *
 * Trusted: first, end, smallest, low and root. Not detected: wrong but possible values of peaks,
 * sums and the counts of refusals. */
int upfront_buddy_walk(const upfront_buddy *b, upfront_block *out, uint64_t room, uint64_t *count);

/* As upfront_heap_hook. */
void *upfront_buddy_hook(void *buddy, void *p, size_t old, size_t size);

/* The rest is internal to buddy.c and buddy_walk.c.
 *
 * Smallest blocks are numbered from a multiple of UPFRONT_ALIGN_MAX, and a boundary has the number
 * of the block after it. The halves of a block of order j > 0 meet at a boundary whose lowest bit
 * is 2^(j-1), so each boundary stands for exactly one block. Boundaries between `low` and `high`,
 * the number after the last block, have bytes. `low` is rounded down to an even number and `high`
 * up, so that each smallest block has its pair.
 *
 * The byte of a whole free block is SPLIT + order + 1, that of a whole live block LIVE; bytes
 * inside either are 0. The byte of a split block is SPLIT + order + 1 of the largest free block in
 * it, or only SPLIT. In the byte of a split pair of smallest blocks, a bit for each half says that
 * the half isn't free; a half outside of the buddy isn't free. A checked build has PADDED instead
 * of LIVE if a release build's block is one order lower: the other half is a redzone.
 *
 * Example: four smallest blocks, numbers 4 to 7. Boundary 6 stands for all four, 5 and 7 for the
 * pairs.
 *
 *                                  byte 5   byte 6   byte 7
 *    all free                       0x00     0x83     0x00
 *    after an alloc of one block    0xA1     0x82     0x82    4 is live, 5 and both of 6, 7 free
 *    after an alloc of two          0xA1     0x81     0x60    6 and 7 are one live block
 *    after a free of 4              0x82     0x82     0x60    4 and 5 have merged */
#define UPFRONT_BUDDY_SPLIT 0x80
#define UPFRONT_BUDDY_LIVE 0x60
#define UPFRONT_BUDDY_PADDED 0x40
#define UPFRONT_BUDDY_LEFT 0x20
#define UPFRONT_BUDDY_RIGHT 0x40
#define UPFRONT_BUDDY_LARGEST 0x1F

static inline uint64_t upfront_buddy_high(const upfront_buddy *b) {
    return b->low + ((b->end - b->first) >> __builtin_ctzll(b->smallest));
}

/* Reports whether a boundary has a byte. */
static inline int upfront_buddy_is_inside(const upfront_buddy *b, uint64_t at) {
    uint64_t low = b->low & ~UINT64_C(1);
    return at - low - 1 < ((upfront_buddy_high(b) + 1) & ~UINT64_C(1)) - low - 1;
}

static inline uint8_t *upfront_buddy_byte(const upfront_buddy *b, uint64_t at) {
    return (uint8_t *)(uintptr_t)(b + 1) + (at - (b->low & ~UINT64_C(1)) - 1);
}

/* Returns the order of the block whose halves meet at a boundary. */
static inline uint64_t upfront_buddy_order(uint64_t at) { return (uint64_t)__builtin_ctzll(at) + 1; }

/* Returns the boundary of the block of an order above 0 that contains a smallest block. */
static inline uint64_t upfront_buddy_at(uint64_t smallest, uint64_t order) {
    return (smallest >> order << order) | (UINT64_C(1) << (order - 1));
}

static inline uint8_t upfront_buddy_whole(uint64_t order) { return (uint8_t)(UPFRONT_BUDDY_SPLIT + order + 1); }

/* Returns the boundary of one half of a block of order 2 or more. If the half reaches outside of
 * the buddy, it is the boundary of the half's largest part inside. */
static inline uint64_t upfront_buddy_half(const upfront_buddy *b, uint64_t at, int right) {
    uint64_t step = (at & (0 - at)) >> 1;
    at += right ? step : 0 - step;
    while (!upfront_buddy_is_inside(b, at)) {
        step >>= 1;
        at += right ? 0 - step : step;
    }
    return at;
}

/* Returns the byte of a block that isn't live, computed from its halves. Two whole free halves make
 * the block whole. */
static inline uint8_t upfront_buddy_sum(const upfront_buddy *b, uint64_t at) {
    uint64_t order = upfront_buddy_order(at);
    uint8_t left, right;
    if (order == 1) {
        int taken = *upfront_buddy_byte(b, at) & UPFRONT_BUDDY_LIVE;
        int halves = !(taken & UPFRONT_BUDDY_LEFT) + !(taken & UPFRONT_BUDDY_RIGHT);
        /* two free halves give the order plus 1 */
        return (uint8_t)(UPFRONT_BUDDY_SPLIT + taken + halves);
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

/* The block that contains a smallest block, with its state as a code. */
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
            continue; /* inside of a larger block, or no block */
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

/* For the checked build. upfront_buddy_natural returns the order that a live block has in a release
 * build. upfront_buddy_dirt returns the offset of the first overwritten byte after the asked size,
 * or in a block that is free or at rest; 0: none. */
#ifdef UPFRONT_CHECKED
#define UPFRONT_BUDDY_ZONE 16 /* the least redzone after a block, if it fits */
uint64_t upfront_buddy_natural(const upfront_buddy *b, uint64_t from, uint64_t order);
uint64_t upfront_buddy_dirt(const upfront_buddy *b, upfront_buddy_found f);
int upfront_buddy_rests(const upfront_buddy *b, uint64_t from);
#else
#define upfront_buddy_natural(b, from, order) (order)
#define upfront_buddy_dirt(b, f) ((uint64_t)0)
#define upfront_buddy_rests(b, from) 0
#endif

/* The work of upfront_buddy_walk, for callers that have entered a call already. */
int upfront_buddy_look(const upfront_buddy *b, upfront_block *out, uint64_t room, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
