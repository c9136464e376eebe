/* heap.h - blocks of any size, given back in any order: what C libraries ask of an allocator.
 *
 * Algorithm  Two-level segregated fit. Free blocks lie in lists by class: multiples of 16 below 512 bytes, then 16 classes to each power
 *            of two; bits say which lists hold something. A block's header names its neighbours, so that what is freed melts with the free
 *            blocks beside it. A request takes the first block of the lowest class in which any is large enough; if there is none, one of
 *            the first UPFRONT_HEAP_SCAN blocks of the classes below in which some are.
 *            Before that, where init is asked for them, come front lists of exact sizes: a freed block for up to UPFRONT_HEAP_FRONT bytes
 *            is parked there as it is, and the next request of its size takes it. When too many are, it melts, and now and then an old one.
 * Bound      Align 16: a request is served when a block of a certain class is free, which has up to a sixteenth more than is needed, or
 *            when one that fits is among the first UPFRONT_HEAP_SCAN. A larger alignment adds itself and 16 bytes to what makes a class
 *            certain. What would be refused melts the parked blocks first. A refusal after which lists had more than was looked at is
 *            counted in `bounded`: a block that fits may lie deeper. Any other means that none fits, that the reserve keeps it, or that
 *            a stray write hid it since the blocks were looked at last (see Damage).
 *            Not promised: how many bytes lie between live blocks. The worst programs need many times what is live (Robson). Measure
 *            yours by `peak` and upfront_heap_phase, and keep a reserve.
 * Cost       O(1): alloc, free, size_of, and realloc but for the bytes it moves. Parked blocks melt one by one, all in one call. A refusal
 *            looks at all blocks before, one refusal in 1 + blocks / 64: O(64) each in the mean. A call that meets damage is O(blocks).
 *            Space: 16 bytes a block, sizes rounded up to 16, at least 32 in all; a block is never cut to less. In front 320 bytes,
 *            128 for each power of two from 256 to the size, and 512 for front lists.
 * Threads    One at a time, upfront_heap_size_of included: who asks while another frees may be told that a live block is none. One lock
 *            around every call does; callbacks.h has it. The checked build refuses who comes second, and counts it in `raced`.
 * Source     Masmano, Ripoll, Crespo, Real, "TLSF: a New Dynamic Memory Allocator for Real-Time Systems"; Frykholm, "Custom Memory
 *            Allocation in C++"; Wilson, Johnstone, Neely, Boles, "Dynamic Storage Allocation: A Survey" (lists of exact sizes).
 *
 * Misuse     A header is sealed: 41 bits of it are a digest of its size, its offset and the heap's epoch. Some of them are turned over in a
 *            header that melted into another, and others in that of a parked block. An address is taken only when the seal before it
 *            holds. So an address is refused, and nothing changes, as
 *              UPFRONT_FOREIGN     outside of the heap,
 *              UPFRONT_MISALIGNED  inside a block, or its header was overwritten: no seal there,
 *              UPFRONT_DOUBLE      of a free block, or of one that was freed and melted, until something is written over its header,
 *              UPFRONT_CORRUPT     of a block that is out of service: see Damage.
 *            What it can't tell: an old address at which a new block begins; bytes inside a live block that are such a seal, by chance
 *            (1 in 2^41) or by intent; and, on a block where another heap was made before, that heap's addresses. upfront_heap_reset has no
 *            such gap: it begins a new epoch.
 * Damage     Nothing is followed that was overwritten: a free block is taken, or melts, only if its header, its links and what lies behind
 *            it agree. A call that meets damage puts the block out of service, as a header says that nobody takes for free or live, makes
 *            the lists anew of all blocks that are whole, and goes on. `damaged` counts what was met, `where` is the last, `lost` and
 *            `lost_bytes` are what is out of service, until a reset. A free or a realloc beside damage does its work; the free answers
 *            UPFRONT_CORRUPT all the same.
 *            After one stray write of up to 64 bytes into free memory all blocks but the one that it hit are given; of a free one of more
 *            than UPFRONT_HEAP_CUT bytes, all but its front. A header that doesn't hold leads on to the next by the way back from the end.
 *            Between the first and the last of several such headers live blocks alone are believed; the rest is out of service. Of two blocks
 *            whose links contradict each other both stay, with new links. Bytes of a free block that are neither header nor link say
 *            nothing: a write there is told by a checked build.
 *            What it trusts: the words of the heap's header, and the lists' first offsets.
 * Checked    UPFRONT_CHECKED. What is freed is filled, and rests in a queue of up to a sixteenth of the heap before it is free; the fill is
 *            looked at when it leaves, when bytes are given again, at flush, at reset, before a refusal and by the walk. So are the bytes
 *            that a block has beyond the asked size, and all of the header behind it, at its free. `where` is then the first byte that was
 *            overwritten, and notes.h says whose it was. Before anything is refused nothing rests any more; used, peak and sizes are as in
 *            a release build, offsets are not: upfront_heap_plain. */
#ifndef UPFRONT_HEAP_H
#define UPFRONT_HEAP_H

#include "notes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_HEAP_SCAN 8
#define UPFRONT_HEAP_ALIGN UINT64_C(16)
#define UPFRONT_HEAP_BLOCK 496 /* the smallest block of a heap: room for one allocation of 16 bytes */
#define UPFRONT_HEAP_CUT UINT64_C(1024) /* of a free block that was overwritten, so much is put out of service at most */
#define UPFRONT_HEAP_FRONT 1024 /* the largest size that has a front list */
#define UPFRONT_HEAP_FRONT_BYTES 512 /* of the front lists' first offsets: so much larger is the smallest block with them */

/* Followed by the lists' first offsets, and those of the front lists. Words of the header may be read at any time: bytes that are free are
 * end - first - used, parked ones included. */
typedef struct upfront_heap {
    uint64_t first;      /* offset of the first block's header, from this header */
    uint64_t end;        /* offset of the closing header, which is live and has no bytes */
    uint64_t nowhere[2]; /* the links of offset 0, to which the ends of a list lead: for who writes without asking */
    uint64_t epoch;      /* resets, and 1, times 2^43: above every offset */
    uint64_t used;       /* bytes of live blocks, headers included */
    uint64_t most;       /* that may be used: all but the reserve */
    uint64_t phase;      /* highest `used` since the phase began */
    uint64_t live;       /* live blocks */
    uint64_t parked;     /* blocks in the front lists */
    uint64_t parks;      /* how many there may be; 0: no front lists */
    uint64_t sizes;      /* bit per front list, from that of the smallest blocks: it holds something */
    uint64_t hand;       /* frees that found the front lists full: who gives way in turn */
    uint64_t fronts;     /* offset of the front lists' first offsets; 0: there are none */
    uint64_t lists;      /* how many lists there are by class */
    uint64_t map;        /* bit per word of bits: it isn't 0 */
    uint64_t bits[8];    /* bit per list: it holds something */
    uint64_t past;       /* highest `used` of the phases before */
    uint64_t failed;     /* requests refused for want of room */
    uint64_t bounded;    /* of these, refused by the bound: not every block that might fit was looked at */
    uint64_t refused;    /* size of the last refusal */
    uint64_t damaged;    /* how often something was met that a stray write had overwritten */
    uint64_t where;      /* of the last: offset of the block's bytes; 0: nobody knows */
    uint64_t lost;       /* blocks that are out of service: they were overwritten */
    uint64_t lost_bytes; /* of these, headers included */
    uint64_t look;       /* refusals, `failed`, before which the blocks aren't looked at again */
    uint64_t plain;      /* checked build: offsets and order are those of a release build; nothing rests, and no fill is looked at */
    upfront_rest rest;   /* checked build: freed blocks that nobody gets yet; they are as parked ones */
    uint64_t busy;       /* checked build: somebody is inside */
    uint64_t raced;      /* checked build: who came meanwhile, and was refused: there is no lock */
} upfront_heap;

/* A block as the walk names it. The blocks lie one behind the other from the offset heap->first to heap->end. */
typedef struct upfront_heap_range {
    uint64_t offset; /* of its header; its bytes begin 16 further */
    uint64_t size;   /* header included */
    uint64_t asked;  /* what was asked for; 0 for a free block */
    uint64_t align;  /* what was asked for, at least 16 */
    uint64_t live;   /* 1; 0 for a free block, UPFRONT_HEAP_PARKED for a parked one, UPFRONT_HEAP_LOST for one out of service */
} upfront_heap_range;

#define UPFRONT_HEAP_PARKED 2
#define UPFRONT_HEAP_LOST 3

/* Makes a heap of the block: header and lists at its front, the rest one free block. `parked` is how many blocks the front lists may
 * hold; 0: there are none. A free and an alloc of small blocks take a third of the time with them. More than 256 are better where a
 * program frees more before it takes them again; a flush, and a refusal, take longer by each. NULL when the block is null, not aligned
 * to 64, too large, or smaller than UPFRONT_HEAP_BLOCK, and UPFRONT_HEAP_FRONT_BYTES with front lists. What was in the block is not
 * looked at. */
upfront_heap *upfront_heap_init(void *block, uint64_t size, uint64_t parked);

/* NULL: full, or null, or size or align out of bounds, which alone is not counted as failed. An align below 16 is 16. Size 0 gives an
 * address of its own. */
void *upfront_heap_alloc(upfront_heap *h, uint64_t size, uint64_t align);

/* A null p is nothing to do. */
int upfront_heap_free(upfront_heap *h, void *p);

/* Another size for a block, its contents and its alignment kept. It shrinks in place; grows in place into the free block behind it, into
 * the one before it (its bytes move down), or both; else it moves. NULL, and p is as it was: full, size out of bounds, or p is no live
 * block: upfront_heap_check says which code. A null p is an allocation. Size 0 gives a block of no bytes and doesn't free. */
void *upfront_heap_realloc(upfront_heap *h, void *p, uint64_t size);

/* The size that was asked for, or a code. The block may have some bytes more: realloc asks for them. */
int64_t upfront_heap_size_of(const upfront_heap *h, const void *p);

/* Whether free and realloc would take p, or the code by which they refuse it. Nothing changes. */
int upfront_heap_check(const upfront_heap *h, const void *p);

/* From now on a checked build's offsets and order are a release build's, and no fill is looked at: for a heap in a state, which another
 * build may have written (package budget/save; it calls this for each one it knows). */
void upfront_heap_plain(upfront_heap *h);

/* In a checked build: the number of the text that says who made the live block at p (checked.h). Otherwise 0. */
uint32_t upfront_heap_made(const upfront_heap *h, const void *p);

/* Frees every block. The counts of refusals, the peaks and the reserve stay. Addresses from before are refused. */
void upfront_heap_reset(upfront_heap *h);

/* Keeps so many bytes back, or 16 fewer, headers included: a request that needs any of them is full. 0 lifts it, so that what a program
 * does to get out of a full, its clean-up, finds room. More than there is keeps all; what is live stays live. */
void upfront_heap_reserve(upfront_heap *h, uint64_t bytes);

/* The highest `used` since the last call; a new phase begins with what is used now. */
uint64_t upfront_heap_phase(upfront_heap *h);

/* The highest `used` of all phases. pre: a heap. */
static inline uint64_t upfront_heap_peak(const upfront_heap *h) { return h->phase < h->past ? h->past : h->phase; }

/* Melts the parked blocks, one that was overwritten and those behind it in its list excepted. A request does it before it is refused. A
 * program does it when a phase ends with nearly everything freed: what parks lies anywhere, and small blocks that are put between cut the
 * room. */
void upfront_heap_flush(upfront_heap *h);

/* The largest size that can be given at align 16, whatever the reserve. Cost: O(blocks). pre: the walk says ok. */
uint64_t upfront_heap_largest(upfront_heap *h);

/* Names every block in order of address, and checks the chain of headers, the lists, the bits and the counts. Writes at most `room`
 * blocks; *count is the number there is. UPFRONT_CORRUPT when they contradict each other; *count is then how many were named before.
 * UPFRONT_FULL when `room` is too small. With null for out and room 0 it only checks, and count may be null, too; any other null is
 * UPFRONT_BAD_ARGUMENT. Cost: O(blocks).
 *
 * What it trusts: first, end, lists, fronts and epoch. What it can't tell: most, hand, parks, the peaks, and counts of refusals that are
 * wrong but possible. */
int upfront_heap_walk(const upfront_heap *h, upfront_heap_range *out, uint64_t room, uint64_t *count);

/* For libraries with an allocator callback, as Lua's lua_Alloc: size 0 frees and gives NULL, a null p allocates, anything else is realloc.
 * `old` is not needed: the header knows. Align is 16. */
void *upfront_heap_hook(void *heap, void *p, size_t old, size_t size);

/* What follows is the inside of heap.c and heap_walk.c.
 *
 * A block begins with two words: `before`, the size of the block before it (0 for the first), and `size`. Both are multiples of 16 below
 * 2^38. Bit 0 of `before` says that the one before is free. Around it `size` holds: live (bit 0), slack (6 bits from 38), log2 of align /
 * 16 (5 bits from 44). Slack is what a live block has beyond the asked size. All this is its body, and the digest is of that: so a
 * block's neighbour may change without a new seal. The bits that are left, 26 of `before` and 15 of `size`, are the seal. In a free block
 * two links follow, to the next and to the one before in its list, 0 for none; in a parked one the first. */
#define UPFRONT_HEAP_HEADER 16
#define UPFRONT_HEAP_LEAST 32
#define UPFRONT_HEAP_LIVE 1
#define UPFRONT_HEAP_HOLE 1 /* in `before` */
#define UPFRONT_HEAP_SIZE (UPFRONT_OFFSET_MAX - 16)
#define UPFRONT_HEAP_SLACK 38
#define UPFRONT_HEAP_LOG 44
#define UPFRONT_HEAP_SEAL 49

/* Which bits of a header's words are the seal; together, those of `size` moved below those of `before`, they say how it is off, and so
 * what was done to it: nothing; parked, all of `size` are turned over; melted, all of `before` are. */
#define UPFRONT_HEAP_SEAL_BEFORE (~(UPFRONT_OFFSET_MAX - 1))
#define UPFRONT_HEAP_SEAL_SIZE (~((UINT64_C(1) << UPFRONT_HEAP_SEAL) - 1))
#define UPFRONT_HEAP_TURNED (UPFRONT_HEAP_SEAL_SIZE >> 26)
#define UPFRONT_HEAP_BURIED UPFRONT_HEAP_SEAL_BEFORE
#define UPFRONT_HEAP_SHUT (UPFRONT_HEAP_TURNED | UPFRONT_HEAP_BURIED)

/* Headers and free blocks are poisoned for everybody but these two: what runs over the end of a block is seen. */
UPFRONT_UNCHECKED static inline uint64_t upfront_heap_word(const upfront_heap *h, uint64_t offset) {
    return *(const uint64_t *)((uintptr_t)h + (uintptr_t)offset);
}

UPFRONT_UNCHECKED static inline void upfront_heap_set(upfront_heap *h, uint64_t offset, uint64_t value) {
    *(uint64_t *)((uintptr_t)h + (uintptr_t)offset) = value;
}

/* The upper 26 bits are for `before`, the 15 below them for `size`. */
static inline uint64_t upfront_heap_digest(const upfront_heap *h, uint64_t offset, uint64_t body) {
    uint64_t m = (offset ^ h->epoch) * UINT64_C(0x9E3779B97F4A7C15) + body;
    return (m ^ (m >> 32)) * UINT64_C(0xBF58476D1CE4E5B9);
}

static inline void upfront_heap_seal(upfront_heap *h, uint64_t offset, uint64_t before, uint64_t body) {
    uint64_t digest = upfront_heap_digest(h, offset, body);
    upfront_heap_set(h, offset, before | (digest & UPFRONT_HEAP_SEAL_BEFORE));
    upfront_heap_set(h, offset + 8, body | ((digest << 26) & UPFRONT_HEAP_SEAL_SIZE));
}

/* How the seal of a header is off; 0: it holds. */
static inline uint64_t upfront_heap_off(const upfront_heap *h, uint64_t offset) {
    uint64_t before = upfront_heap_word(h, offset), size = upfront_heap_word(h, offset + 8);
    uint64_t digest = upfront_heap_digest(h, offset, size & ~UPFRONT_HEAP_SEAL_SIZE);
    return ((before ^ (digest & UPFRONT_HEAP_SEAL_BEFORE)) & ~(UPFRONT_HEAP_SIZE | UPFRONT_HEAP_HOLE)) |
           ((size ^ (digest << 26)) >> UPFRONT_HEAP_SEAL << 23);
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

/* Not in a list of free blocks: live, or parked. */
static inline uint64_t upfront_heap_is_live(const upfront_heap *h, uint64_t offset) {
    return upfront_heap_word(h, offset + 8) & UPFRONT_HEAP_LIVE;
}

static inline uint64_t upfront_heap_asked(const upfront_heap *h, uint64_t offset) {
    uint64_t word = upfront_heap_word(h, offset + 8);
    return (word & UPFRONT_HEAP_SIZE) - UPFRONT_HEAP_HEADER - ((word >> UPFRONT_HEAP_SLACK) & 63);
}

static inline uint64_t upfront_heap_align(const upfront_heap *h, uint64_t offset) {
    return UPFRONT_HEAP_ALIGN << ((upfront_heap_word(h, offset + 8) >> UPFRONT_HEAP_LOG) & 31);
}

/* Whether a header is sealed, live, free, parked or out of service, and says what one may say. Then its size is the block's: the seal is
 * of it. */
static inline int upfront_heap_stands(const upfront_heap *h, uint64_t at) {
    uint64_t size = upfront_heap_size(h, at), off = upfront_heap_off(h, at);
    uint64_t least = off == UPFRONT_HEAP_SHUT ? UPFRONT_HEAP_HEADER : UPFRONT_HEAP_LEAST;
    if ((off != 0 && off != UPFRONT_HEAP_TURNED && off != UPFRONT_HEAP_SHUT) || size < least || size > h->end - at)
        return 0;
    if (upfront_heap_is_live(h, at))
        return upfront_heap_asked(h, at) < size && upfront_heap_align(h, at) <= UPFRONT_ALIGN_MAX;
    return off == 0;
}

/* Steps of 16 below 512, then 16 steps to each power of two. */
static inline uint64_t upfront_heap_class(uint64_t size) {
    uint64_t log = 63 - (uint64_t)__builtin_clzll(size | 256);
    return (log - 8) * 16 + (size >> (log - 4));
}

static inline uint64_t *upfront_heap_list(const upfront_heap *h, uint64_t class_of) {
    return (uint64_t *)(uintptr_t)(h + 1) + class_of;
}

/* Of blocks of one size, header included: the parked ones. pre: there are front lists, size <= UPFRONT_HEAP_FRONT + 16. */
static inline uint64_t *upfront_heap_front(const upfront_heap *h, uint64_t size) {
    return (uint64_t *)((uintptr_t)h + (uintptr_t)(h->fronts + size / 2 - UPFRONT_HEAP_LEAST / 2));
}

/* The checked build's fills: the offset of the first byte behind the block at `at` or in it, if it is free, that somebody wrote to; or of
 * such a byte among free ones. 0: there is none. */
#ifdef UPFRONT_CHECKED
uint64_t upfront_heap_dirt(const upfront_heap *h, uint64_t at);
uint64_t upfront_heap_dirt_in(const upfront_heap *h, uint64_t from, uint64_t end);
#else
#define upfront_heap_dirt(h, at) ((uint64_t)0)
#endif

/* upfront_heap_walk from within a call. */
int upfront_heap_look(const upfront_heap *h, upfront_heap_range *out, uint64_t room, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
