/* mirror.h - finds writes to memory that isn't alive, by redzones around each object, and by
 * addresses that stay unused after a free. For the checked build and AddressSanitizer. A block's
 * mirror is shadow memory: two windows, which are ranges of addresses for the block's objects, and
 * notes about these objects.
 *
 * Algorithm  An object has a canonical address: the arena's header plus an offset. The offset is
 *            the same in every build. If its block has a mirror, the object's bytes are in one of
 *            two windows instead. In the window at W, the object at canonical address c starts at W
 *            + UPFRONT_SPREAD * (c - origin); a node or a large object may start up to a page
 *            later. Its bytes are adjacent there, and about 63 times its size is unused after it.
 *            The position of a byte is its address in the window; outside of mirrors it is the
 *            canonical address. An object at a reused address takes the window that the last object
 *            there didn't use. For each address and window, a note holds the size of the object and
 *            the calls that made and ended it. Notes are apart from the windows, so no overflow
 *            reaches them, and they outlive their objects.
 * Dead       The 32 bytes before a live object and up to 256 after it are dead, and so is an ended
 *            object. AddressSanitizer reports each access to dead bytes. In the checked build they
 *            have the value UPFRONT_DEAD. A stray write to them is found when the object next to it
 *            ends, when its address is used again, when its row ends, and by upfront_mirror_check.
 *            On Linux and macOS the windows of a row that ended as a whole can't be accessed until
 *            they are used again.
 * Example    The block is at 0x100000, the origin. Objects of 4 bytes at canonical 0x100040 and
 *            0x100044 are in window W at W + 64 * 0x40 = W + 0x1000 and at W + 0x1100. A fifth byte
 *            written to the first is at W + 0x1004: a redzone, not the second. After both are
 *            freed, a new object at the first address is at 0x1000 of the other window, so a stale
 *            pointer still points to dead bytes.
 * Memory     The caller of upfront_mirror_open provides upfront_mirror_size bytes: 161 MiB for each
 *            MiB that the block touches. They cost nothing until they are touched. A C program
 *            without a mirror has only the fills or the poison.
 * Bound      UPFRONT_MIRRORS mirrors at once.
 * Cost       O(size) for an allocation. A search for the object that contains a canonical address
 *            reads the notes of at most 129 addresses.
 * Threads    As the arenas in the block: the bytes of two rows never share a note. One thread opens
 *            or closes a mirror at a time. */
#ifndef UPFRONT_MIRROR_H
#define UPFRONT_MIRROR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How an object ended. */
enum { UPFRONT_CLOSED = 0, UPFRONT_PUT = 1, UPFRONT_REWOUND = 2 };

/* Values of `what`: the address is past or before a live object, in an ended or a live one, or near
 * none. Then `start` and `size` are 0; else they are the object's. */
enum { UPFRONT_PAST = 1, UPFRONT_BEFORE = 2, UPFRONT_ENDED = 3, UPFRONT_LIVING = 4, UPFRONT_NO_OBJECT = 5 };

typedef struct upfront_found {
    int what, how;
    uintptr_t address, start; /* start is a position */
    uintptr_t canonical;      /* of `start`; without an object, of the line of `address` */
    uint64_t size;
    uint32_t made, ended; /* values of upfront_site */
    uint32_t name;        /* of the mirror */
    const void *block;    /* the block of the mirror */
} upfront_found;

/* Kinds of live objects in a list; 0 is a plain one. A node's size includes its word. An object
 * with parts (upfront_mark_block) precedes them. */
enum { UPFRONT_LIVE_NODE = 1, UPFRONT_LIVE_PARTS = 2 };

typedef struct upfront_live_object {
    uint64_t offset, size; /* offset from the first byte of the range */
    uint32_t made, type;   /* a value of upfront_site, and the number from upfront_mark_type or 0 */
    uint64_t kind;
} upfront_live_object;

/* Handles a finding of a mirror, and must not return. */
typedef void (*upfront_finder)(const upfront_found *found);

#if defined(UPFRONT_CHECKED) || defined(UPFRONT_ASAN)

#define UPFRONT_MIRROR 1
#define UPFRONT_MIRRORS 256
#define UPFRONT_SPREAD 64

/* The number of the running call. It is kept in the notes of objects that the call makes or
 * ends. */
extern __thread uint32_t upfront_site;
#define UPFRONT_SITE(site) (upfront_site = (site))

/* Marks an object as alive and returns the position of its first byte. */
void *upfront_mark_live(void *canonical, uint64_t size);
/* The same for a node: its first 8 bytes are a word, and the rest begins at a cache line. */
void *upfront_mark_node(void *canonical, uint64_t size);

/* The same for an object that may be shortened later. */
void *upfront_mark_room(void *canonical, uint64_t size);

/* Ends all live objects that begin in the bytes. Outside of mirrors it makes the bytes dead. */
void upfront_mark_ended(void *canonical, uint64_t size, int how);

/* Lengthen or shorten, by `size` bytes, the object that contains `from` and ends at `end`.
 * upfront_mark_more returns the position of the first new byte; if from == end, it makes a new
 * object. */
void *upfront_mark_more(void *from, void *end, uint64_t size);
void upfront_mark_less(void *from, void *end, uint64_t size);

/* Sets the type of the live object at a position or canonical address. It is a text's number, below
 * 2^16. Outside of mirrors it does nothing. */
void upfront_mark_type(const void *p, uint32_t type);

/* Marks an object whose bytes stay at their canonical address. Objects marked inside it get
 * positions. */
void upfront_mark_block(void *canonical, uint64_t size);

/* Checks the row [from, from + size) and removes access to its windows. Its objects must have
 * ended. */
void upfront_mark_over(void *from, uint64_t size);

/* Returns the position of the byte at a canonical address; the address itself if no live object
 * contains it. */
void *upfront_position(const void *canonical);

/* Calls upfront_mark_ended for bytes in a mirror; does nothing for others. */
void upfront_mark_apart(void *canonical, uint64_t size);

/* Returns the distance from `from` to the canonical address of p, modulo 2^64. It is the plain
 * distance if `from` isn't canonical or p is no position in its mirror. */
uint64_t upfront_place(const void *p, const void *from);

/* Reports whether p isn't the position of the live object at a canonical address. */
#define UPFRONT_IS_ELSEWHERE(canonical, p) (upfront_position(canonical) != (p))

/* upfront_mirror_size returns the size of a mirror in bytes, or 0 if `size` is out of bounds.
 * upfront_mirror_open opens it in `memory`: zeros, at a multiple of UPFRONT_ALIGN_MAX. `name` is
 * any number; `finder` may be NULL. It returns 0 for a bad argument and if all mirrors are open. */
uint64_t upfront_mirror_size(const void *block, uint64_t size);
int upfront_mirror_open(void *block, uint64_t size, void *memory, upfront_finder finder, uint32_t name);
void upfront_mirror_close(void *block);

/* Checks all redzones and dead bytes of the row. Returns 0 after a stray write, and describes it in
 * *found unless `found` is NULL. */
int upfront_mirror_check(const void *from, uint64_t size, upfront_found *found);

/* Lists the live objects that begin in the range, by address: writes at most `room` of them and
 * returns the number of all. Returns UINT64_MAX if the range is in no mirror. Cost: O(size / 128),
 * plus all notes of each 128 addresses where an object ever began. */
uint64_t upfront_mirror_objects(const void *from, uint64_t size, upfront_live_object *out, uint64_t room);

/* Describes an address of a window. Returns 0 if it is in no window; with AddressSanitizer
 * always. */
int upfront_mirror_find(uintptr_t address, upfront_found *found);

/* Copy all live objects of the range to their canonical addresses, and back to their positions. */
void upfront_mirror_gather(void *from, uint64_t size);
void upfront_mirror_scatter(void *from, uint64_t size);

#else

#define UPFRONT_SITE(site) ((void)(site))

static inline void *upfront_mark_live(void *p, uint64_t size) {
    (void)size;
    return p;
}

static inline void *upfront_mark_node(void *p, uint64_t size) {
    (void)size;
    return p;
}

static inline void upfront_mark_ended(void *p, uint64_t size, int how) { (void)p, (void)size, (void)how; }

static inline void *upfront_mark_more(void *from, void *end, uint64_t size) {
    (void)from, (void)size;
    return end;
}

static inline void upfront_mark_block(void *p, uint64_t size) { (void)p, (void)size; }

static inline void upfront_mark_over(void *p, uint64_t size) { (void)p, (void)size; }

static inline void upfront_mark_apart(void *p, uint64_t size) { (void)p, (void)size; }

static inline void *upfront_position(const void *p) { return (void *)(uintptr_t)p; }

static inline uint64_t upfront_place(const void *p, const void *from) { return upfront_distance(p, from); }

#define UPFRONT_IS_ELSEWHERE(canonical, p) 0

#endif

static inline void upfront_mark_dead(void *p, uint64_t size) { upfront_mark_ended(p, size, UPFRONT_CLOSED); }

/* Bodies of functions with a parameter `site`. Each call passes the number, because the next call
 * of a goroutine may run on another thread. */
#define UPFRONT_DO_AT_SITE(call) \
    { \
        UPFRONT_SITE(site); \
        UPFRONT_REQUEST(1); \
        call; \
        UPFRONT_REQUEST(0); \
        UPFRONT_SITE(0); \
    }
#define UPFRONT_AT_SITE(type, call) \
    { \
        type answer; \
        UPFRONT_DO_AT_SITE(answer = call) return answer; \
    }
/* without a site */
#define UPFRONT_ASK(type, call) \
    { \
        type answer; \
        UPFRONT_REQUEST(1); \
        answer = call; \
        UPFRONT_REQUEST(0); \
        return answer; \
    }

#ifdef __cplusplus
}
#endif
#endif
