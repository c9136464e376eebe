/* heap.h - allocates blocks of any size and frees them in any order: the allocator that C libraries
 * expect.
 *
 * Algorithm  Two-level segregated fit. Free blocks are in lists by size class: one for each
 *            multiple of 16 below 512 bytes, then 16 for each power of two. Bits say which lists
 *            aren't empty. A header holds the size of the block before it, so a freed block merges
 *            with free neighbours. A class is sure for a request if all its blocks are large
 *            enough. A request takes the first block of the lowest sure class. If these classes are
 *            empty, it takes one that fits among the first UPFRONT_HEAP_SCAN blocks of the classes
 *            below. With front lists, a freed block of up to UPFRONT_HEAP_FRONT bytes is parked: it
 *            stays unmerged in a list of its exact size, for the next request of that size. When
 *            the lists are full, the freed block merges. In one free of eight an old parked block
 *            merges instead.
 * Bound      A request succeeds if this search finds a block. Blocks of the lowest sure class may
 *            be up to a sixteenth larger than needed; an alignment above 16 adds itself and 16
 *            bytes to the needed size. All parked blocks merge before a refusal. A refusal that
 *            left listed blocks unread is counted in `bounded`: an unread block may fit. Any other
 *            refusal means that no block fits, that the reserve withholds it, or that a stray write
 *            hid it (see Damage). Fragmentation isn't bounded: the worst programs need many times
 *            their live bytes (Robson). Measure yours with upfront_heap_peak and
 *            upfront_heap_phase, and keep a reserve.
 * Cost       O(1): alloc, free, size_of, and realloc without its copy; O(parked blocks) for a merge
 *            of all; O(blocks) for a call that finds damage. One refusal in 1 + blocks / 64 checks
 *            all blocks: on average fewer than 64 blocks a refusal.
 *            Space: a block takes its size rounded up to 16, and 16 more; at least 32. A heap takes
 *            464 bytes once, at most 128 for each power of two from 256 to its size, and 512 for
 *            front lists.
 * Threads    One call at a time, upfront_heap_size_of included: during another thread's free it may
 *            find no block at a live address. Put one lock around all calls, as callbacks.h does.
 *            The checked build refuses a second call and counts it in `raced`.
 * Source     Masmano, Ripoll, Crespo, Real, "TLSF: a New Dynamic Memory Allocator for Real-Time
 *            Systems"; Frykholm, "Custom Memory Allocation in C++"; Wilson, Johnstone, Neely,
 *            Boles, "Dynamic Storage Allocation: A Survey" (lists of exact sizes).
 *
 * Misuse     A header is sealed by 41 bits of a digest of its size, its offset and the heap's
 *            epoch. An address is accepted only if the seal before it holds. Any other address is
 *            refused, and nothing changes:
 *              UPFRONT_FOREIGN     outside of the heap,
 *              UPFRONT_MISALIGNED  inside a block, or its header was overwritten: no seal is there,
 *              UPFRONT_DOUBLE      a free block, or a merged one until its header is overwritten,
 *              UPFRONT_CORRUPT     a block that is out of service: see Damage.
 *            Not detected: a stale address at which a new block begins; bytes of a live block that
 *            form a seal, by chance (1 in 2^41) or on purpose. Nor are addresses of an earlier heap
 *            in the same memory, unless upfront_heap_reset began a new epoch.
 * Damage     No overwritten word is trusted: a listed block is taken or merged only if its header,
 *            its links and the header after it agree; a parked block is taken only if its header
 *            holds. A call that finds damage takes the block out of service (neither free nor live)
 *            until a reset. Then it rebuilds the lists from all whole blocks and continues. A free
 *            or realloc next to damage does its work; the free still returns UPFRONT_CORRUPT.
 *            After one stray write of up to 64 bytes into free memory all other blocks stay usable.
 *            A free block of UPFRONT_HEAP_CUT + 32 bytes or more loses only its front. A bad header
 *            is skipped by following the headers back from the end. Between the first and the last
 *            of several bad headers only live blocks are believed. Two blocks with contradicting
 *            links both stay in service. Only a checked build detects a write to bytes of a free
 *            block that are neither header nor link.
 *            Trusted: the words of the heap's header, and the lists' first offsets.
 * Checked    In a checked build a freed block is filled and rests in a queue, of up to a sixteenth
 *            of the heap, before it is free. Its fill is checked when it leaves the queue, when its
 *            bytes are allocated, at flush, at reset, before a refusal and by the walk. A free also
 *            checks the bytes after the asked size and the whole header after the block. If a fill
 *            was overwritten, `where` is the first overwritten byte, and notes.h has the calls that
 *            made and freed its block. A refusal empties the queue first. used, peaks and sizes are
 *            those of a release build; offsets aren't, except after upfront_heap_plain. */
#ifndef UPFRONT_HEAP_H
#define UPFRONT_HEAP_H

#include "notes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_HEAP_SCAN 8
#define UPFRONT_HEAP_ALIGN UINT64_C(16)
/* the smallest memory for a heap: it can serve one allocation of 16 bytes */
#define UPFRONT_HEAP_BLOCK 496
/* the front of a large free block that goes out of service if it is overwritten */
#define UPFRONT_HEAP_CUT UINT64_C(1024)
#define UPFRONT_HEAP_FRONT 1024 /* the largest size that has a front list */
/* bytes of the front lists' first offsets; a heap with front lists needs this many more */
#define UPFRONT_HEAP_FRONT_BYTES 512

/* The header. The first offsets of the lists follow it, then those of the front lists. The words
 * may be read at any time. The free bytes, parked ones included, are end - first - used -
 * lost_bytes. */
typedef struct upfront_heap {
    uint64_t first;      /* offset of the first block's header, from this header */
    uint64_t end;        /* offset of the closing header, which is live and has no bytes */
    uint64_t nowhere[2]; /* the links of offset 0, where lists end: written without a check */
    uint64_t epoch;      /* 1 + resets, times 2^43: above every offset */
    uint64_t used;       /* bytes of live blocks, headers included */
    uint64_t most;       /* maximum of `used`: all but the reserve and lost_bytes */
    uint64_t phase;      /* highest `used` since the phase began */
    uint64_t live;       /* live blocks */
    uint64_t parked;     /* blocks in the front lists */
    uint64_t parks;      /* maximum of parked blocks; 0: no front lists */
    uint64_t sizes;      /* bit per front list, smallest size first: it isn't empty */
    uint64_t hand;       /* frees that found the front lists full; picks the list to merge from */
    uint64_t fronts;     /* offset of the front lists' first offsets; 0: there are none */
    uint64_t lists;      /* number of lists by class */
    uint64_t map;        /* bit per word of `bits`: it isn't 0 */
    uint64_t bits[8];    /* bit per list: it isn't empty */
    uint64_t past;       /* highest `used` of earlier phases */
    uint64_t failed;     /* requests refused as full */
    uint64_t bounded;    /* searches that left listed blocks unread; a retry counts again */
    uint64_t refused;    /* size of the last refusal */
    uint64_t damaged;    /* findings of damage */
    uint64_t where;      /* offset of the last finding; 0: unknown */
    uint64_t lost;       /* blocks out of service */
    uint64_t lost_bytes; /* bytes out of service, headers included */
    uint64_t look;       /* refusals check no blocks while `failed` is below this */
    uint64_t plain;      /* checked build: nothing rests, and no fill is checked */
    upfront_rest rest;   /* checked build: freed blocks at rest, each with a parked block's seal */
    uint64_t busy;       /* checked build: a call is running */
    uint64_t raced;      /* checked build: calls refused because another was running */
} upfront_heap;

/* `live` of a block in the output of upfront_heap_walk that is parked, or out of service. */
#define UPFRONT_HEAP_PARKED 2
#define UPFRONT_HEAP_LOST 3

/* Makes a heap in the memory at `block`: header and lists, then one free block. It needs
 * UPFRONT_HEAP_BLOCK bytes, plus UPFRONT_HEAP_FRONT_BYTES with front lists. `parked` is the
 * capacity of the front lists; 0: no front lists. With them a free and an alloc of a small block
 * take a third of the time. A capacity above 256 helps a program that frees more blocks before it
 * allocates again, but a flush and a refusal are slower. */
upfront_heap *upfront_heap_init(void *block, uint64_t size, uint64_t parked);

/* Allocates a block. An align of 0, above UPFRONT_ALIGN_MAX or not a power of two returns NULL and
 * isn't counted in `failed`; an align below 16 is 16. Size 0 returns an address of its own. */
void *upfront_heap_alloc(upfront_heap *h, uint64_t size, uint64_t align);

/* Frees a block and returns a code; UPFRONT_OK for a null p. */
int upfront_heap_free(upfront_heap *h, void *p);

/* Changes the size of a block and keeps its contents and alignment. The block shrinks in place, and
 * grows in place into the free block after it. If that isn't enough, it grows down into the free
 * block before it, which changes its address. Otherwise it moves. Returns NULL and leaves p as it
 * was if the heap is full, the size is out of bounds, or p is no live block (upfront_heap_check
 * returns the code). A null p is an allocation. Size 0 makes a block of no bytes and doesn't free.
 * */
void *upfront_heap_realloc(upfront_heap *h, void *p, uint64_t size);

/* Returns the asked size of a block, or a code. The block may have some bytes more; realloc uses
 * them. */
int64_t upfront_heap_size_of(const upfront_heap *h, const void *p);

/* Returns the code with which free would refuse p, or UPFRONT_OK. realloc refuses the same
 * addresses. Changes nothing. */
int upfront_heap_check(const upfront_heap *h, const void *p);

/* Makes a checked build's heap behave as a release build's from now on: the same offsets, and no
 * fill is checked. Package budget/save calls it for a heap in a saved state, which another build
 * may have written. */
void upfront_heap_plain(upfront_heap *h);

/* Frees every block. The counts of refusals, the peaks and the reserve stay. Old addresses are
 * refused. */
void upfront_heap_reset(upfront_heap *h);

/* Withholds `bytes` free bytes, headers included. A request that needs a withheld byte is refused,
 * but rounding may use 16 of them. 0 lifts the reserve, so that clean-up can allocate when the heap
 * is full. If the heap has fewer bytes, all are withheld. Live blocks stay live. */
void upfront_heap_reserve(upfront_heap *h, uint64_t bytes);

/* Returns the highest `used` since the last call, and begins a new phase at the present use. */
uint64_t upfront_heap_phase(upfront_heap *h);

/* Returns the highest `used` of all phases. pre: a heap. */
static inline uint64_t upfront_heap_peak(const upfront_heap *h) { return h->phase < h->past ? h->past : h->phase; }

/* Merges the parked blocks; damaged blocks go out of service (see Damage). A refusal does this
 * first. Call it when a phase ends and nearly all blocks are freed. Otherwise parked blocks, and
 * small blocks made between them, split the free bytes. */
void upfront_heap_flush(upfront_heap *h);

/* Returns the largest size that fits in a free block at align 16, as if parked blocks had merged;
 * ignores the reserve. A request for it may still be refused (see `bounded`). Cost: O(blocks). */
uint64_t upfront_heap_largest(upfront_heap *h);

/* Returns the bytes of the next run of whole pages inside a free block, and its address in *run; 0:
 * there is no further run. The caller may return a run to the system, which makes it zero: headers
 * and links are outside of the runs. `page` is the size of a page, a power of two up to
 * UPFRONT_ALIGN_MAX. *at is 0 before the first call, and only the calls change it. After a call *at
 * % UPFRONT_OFFSET_MAX is the offset of the free block. Flush the heap first, because parked blocks
 * hide pages, and make no other call until the last run. A free block that was overwritten has no
 * run, and neither have the blocks after it in its list. A checked build returns 0, because it
 * checks the fills of free bytes. A second free of a block in a run that became zero returns
 * UPFRONT_MISALIGNED. Cost: O(free blocks of a page or more) for all runs. */
uint64_t upfront_heap_next_run(const upfront_heap *h, uint64_t page, uint64_t *at, void **run);

/* Lists every block, from offset first to end, and checks the chain of headers, the lists, the bits
 * and the counts. UPFRONT_FULL: `room` is too small. With a null `out` and room 0 it only checks,
 * and `count` may be null. Cost: O(blocks).
 *
 * Trusted: first, end, lists, fronts and epoch. Not detected: wrong but possible values of most,
 * hand, parks, the peaks and the counts of refusals. */
int upfront_heap_walk(const upfront_heap *h, upfront_block *out, uint64_t room, uint64_t *count);

/* An image of a heap has its bytes in use, and not its free bytes. It is a list of runs in the
 * order of their offsets, each two words and then the bytes. The first word is the run's offset
 * from the heap's header, the second the number of its bytes; both are multiples of 16. Example: a
 * heap with its first block at 480, a live block of 48 bytes there, and a free block of 4096 after
 * it. The runs are [0, 560), which ends with the free block's header and links, and [4624, 4640),
 * the closing header.
 *
 * Equal bytes in live blocks, and equal calls since init, make equal images: bytes after a block's
 * asked size are zeros in an image. Images of different builds are equal after upfront_heap_plain.
 *
 * upfront_heap_pack checks all headers, writes the image into `room` bytes, whose rest may change,
 * and sets *size to its size. UPFRONT_FULL: the image needs *size bytes; `out` may be NULL if room
 * is 0. UPFRONT_CORRUPT: a header was overwritten. UPFRONT_BAD_ARGUMENT also in a checked build
 * before upfront_heap_plain. Cost: O(blocks), and a copy of the bytes in use. */
#define UPFRONT_HEAP_RUN UINT64_C(16) /* the two words */
int upfront_heap_pack(const upfront_heap *h, void *out, uint64_t room, uint64_t *size);

/* Restores the heap in `bytes` bytes of memory at h from its image of `size` bytes. It first erases
 * the header of each present block, so that addresses of blocks that began since are refused. If a
 * header was overwritten, or upfront_heap_reset was called since the pack, it erases all bytes.
 * UPFRONT_CORRUPT: a run of the image isn't within both; the heap can't be used. Cost: O(blocks),
 * and a copy of the image. */
int upfront_heap_unpack(upfront_heap *h, uint64_t bytes, const void *image, uint64_t size);

/* The single allocator callback of libraries such as Lua (lua_Alloc): size 0 frees and returns
 * NULL, a null p allocates, any other call is a realloc. `old` isn't used. Align is 16. */
void *upfront_heap_hook(void *heap, void *p, size_t old, size_t size);

/* The rest is internal to heap.c and heap_walk.c.
 *
 * A block begins with a header of two words. `before` is the size of the block before it (0 for the
 * first), and bit 0 says that the block before is free. `size` holds the block's size and around
 * it: live (bit 0), slack (6 bits from 38) and log2 of align / 16 (5 bits from 44). Slack is the
 * bytes of a live block beyond the asked size. Both sizes are multiples of 16 below 2^38. In a free
 * block two links follow, to the next and the previous block in its list; 0 ends it. A parked block
 * has only the first link.
 *
 * The seal takes the remaining bits: the upper 26 of `before` and the upper 15 of `size`. They are
 * bits of a digest of the body (`size` without its seal), the offset and the epoch. `before` isn't
 * in the digest, so a neighbour can change without a new seal. Three states of a block are marked
 * by inverting a part of its seal: the bits in `size` when it is parked, the bits in `before` when
 * it merges into another block, and both when it is out of service. Any other difference is damage.
 *
 * Example: a block at offset 0x5C0 of a new heap has an asked size of 20. It takes 48 bytes, 12 of
 * them slack, so its body is 48 + 1 + (12 << 38) = 0x030000000031. With epoch 1 << 43 its digest is
 * 0xEF2248182220639A, and its words are
 *
 *     before  0xEF22480000000000    EF2248.. is the top of the digest; no block is before it
 *     size    0x6088030000000031    6088 has the digest's next 15 bits
 *
 * After a free, the parked block's `size` is 0x9F76030000000031. A second free finds exactly the 15
 * bits inverted and returns UPFRONT_DOUBLE. With a stray bit in `size` it returns
 * UPFRONT_MISALIGNED. */
#define UPFRONT_HEAP_HEADER 16
#define UPFRONT_HEAP_LEAST 32
#define UPFRONT_HEAP_LIVE 1
#define UPFRONT_HEAP_HOLE 1 /* in `before` */
#define UPFRONT_HEAP_SIZE (UPFRONT_OFFSET_MAX - 16)
#define UPFRONT_HEAP_SLACK 38
#define UPFRONT_HEAP_LOG 44
#define UPFRONT_HEAP_SEAL 49

/* The bits of the seal in each word. upfront_heap_off returns the differences of both words in one,
 * with the bits of `size` below the bits of `before`: 0 for a seal that holds, TURNED for a parked
 * block, BURIED for a merged block, SHUT for a block out of service. */
#define UPFRONT_HEAP_SEAL_BEFORE (~(UPFRONT_OFFSET_MAX - 1))
#define UPFRONT_HEAP_SEAL_SIZE (~((UINT64_C(1) << UPFRONT_HEAP_SEAL) - 1))
#define UPFRONT_HEAP_TURNED (UPFRONT_HEAP_SEAL_SIZE >> 26)
#define UPFRONT_HEAP_BURIED UPFRONT_HEAP_SEAL_BEFORE
#define UPFRONT_HEAP_SHUT (UPFRONT_HEAP_TURNED | UPFRONT_HEAP_BURIED)

/* With AddressSanitizer headers and free blocks are poisoned for all code but these two functions,
 * so that an overflow is found. */
UPFRONT_UNCHECKED static inline uint64_t upfront_heap_word(const upfront_heap *h, uint64_t offset) {
    return *(const uint64_t *)((uintptr_t)h + (uintptr_t)offset);
}

UPFRONT_UNCHECKED static inline void upfront_heap_set(upfront_heap *h, uint64_t offset, uint64_t value) {
    *(uint64_t *)((uintptr_t)h + (uintptr_t)offset) = value;
}

/* The upper 26 bits go to `before`, the 15 below them to `size`. */
static inline uint64_t upfront_heap_digest(const upfront_heap *h, uint64_t offset, uint64_t body) {
    uint64_t m = (offset ^ h->epoch) * UINT64_C(0x9E3779B97F4A7C15) + body;
    return (m ^ (m >> 32)) * UINT64_C(0xBF58476D1CE4E5B9);
}

static inline void upfront_heap_seal(upfront_heap *h, uint64_t offset, uint64_t before, uint64_t body) {
    uint64_t digest = upfront_heap_digest(h, offset, body);
    upfront_heap_set(h, offset, before | (digest & UPFRONT_HEAP_SEAL_BEFORE));
    upfront_heap_set(h, offset + 8, body | ((digest << 26) & UPFRONT_HEAP_SEAL_SIZE));
}

/* Returns the differences between a header's seal and its digest; 0: the seal holds. */
static inline uint64_t upfront_heap_off(const upfront_heap *h, uint64_t offset) {
    uint64_t before = upfront_heap_word(h, offset), size = upfront_heap_word(h, offset + 8);
    uint64_t digest = upfront_heap_digest(h, offset, size & ~UPFRONT_HEAP_SEAL_SIZE);
    return ((before ^ (digest & UPFRONT_HEAP_SEAL_BEFORE)) & ~(UPFRONT_HEAP_SIZE | UPFRONT_HEAP_HOLE)) |
           ((size ^ (digest << 26)) >> UPFRONT_HEAP_SEAL << 23);
}

/* Reports whether a header has this body, and a seal that holds or, if `turned` is
 * UPFRONT_HEAP_SEAL_SIZE, the seal of a parked block. */
static inline int upfront_heap_has_body(const upfront_heap *h, uint64_t offset, uint64_t body, uint64_t turned) {
    uint64_t digest = upfront_heap_digest(h, offset, body);
    return upfront_heap_word(h, offset + 8) == (body | ((digest >> 23 << UPFRONT_HEAP_SEAL) ^ turned)) &&
           (upfront_heap_word(h, offset) & ~(UPFRONT_HEAP_SIZE | UPFRONT_HEAP_HOLE)) == digest >> 38 << 38;
}

static inline int upfront_heap_is_inside(const upfront_heap *h, uint64_t offset) {
    return offset % 16 == 0 && offset >= h->first && offset < h->end;
}

static inline uint64_t upfront_heap_before(const upfront_heap *h, uint64_t offset) {
    return upfront_heap_word(h, offset) & UPFRONT_HEAP_SIZE;
}

static inline uint64_t upfront_heap_size(const upfront_heap *h, uint64_t offset) {
    return upfront_heap_word(h, offset + 8) & UPFRONT_HEAP_SIZE;
}

/* Reports whether a block is in no list of free blocks: it is live, parked or out of service. */
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

/* Reports whether a header has the seal of a block that isn't merged, and its words are possible.
 * Then its size is right, because the seal covers it. */
static inline int upfront_heap_stands(const upfront_heap *h, uint64_t at) {
    uint64_t size = upfront_heap_size(h, at), off = upfront_heap_off(h, at);
    uint64_t least = off == UPFRONT_HEAP_SHUT ? UPFRONT_HEAP_HEADER : UPFRONT_HEAP_LEAST;
    if ((off != 0 && off != UPFRONT_HEAP_TURNED && off != UPFRONT_HEAP_SHUT) || size < least || size > h->end - at)
        return 0;
    if (upfront_heap_is_live(h, at))
        return upfront_heap_asked(h, at) < size && upfront_heap_align(h, at) <= UPFRONT_ALIGN_MAX;
    return off == 0;
}

/* Returns the list of a size: steps of 16 below 512, then 16 steps for each power of two. */
static inline uint64_t upfront_heap_class(uint64_t size) {
    uint64_t log = 63 - (uint64_t)__builtin_clzll(size | 256);
    return (log - 8) * 16 + (size >> (log - 4));
}

static inline uint64_t *upfront_heap_list(const upfront_heap *h, uint64_t class_of) {
    return (uint64_t *)(uintptr_t)(h + 1) + class_of;
}

/* Returns the front list of a size, header included. pre: there are front lists, size <=
 * UPFRONT_HEAP_FRONT + 16. */
static inline uint64_t *upfront_heap_front(const upfront_heap *h, uint64_t size) {
    return (uint64_t *)((uintptr_t)h + (uintptr_t)(h->fronts + size / 2 - UPFRONT_HEAP_LEAST / 2));
}

/* Check the fills of a checked build and return the offset of the first overwritten byte, or 0.
 * upfront_heap_dirt checks the bytes of the block at `at` if it is free, else the bytes after its
 * asked size. upfront_heap_dirt_in checks the free bytes [from, end). */
#ifdef UPFRONT_CHECKED
uint64_t upfront_heap_dirt(const upfront_heap *h, uint64_t at);
uint64_t upfront_heap_dirt_in(const upfront_heap *h, uint64_t from, uint64_t end);
#else
#define upfront_heap_dirt(h, at) ((uint64_t)0)
#endif

/* The work of upfront_heap_walk, for callers that have entered a call already. */
int upfront_heap_look(const upfront_heap *h, upfront_block *out, uint64_t room, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
