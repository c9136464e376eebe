/* mirror.h - finds writes to memory that isn't alive: redzones around each object, and addresses
 * that stay unused after a free. For the checked build and AddressSanitizer.
 *
 * Algorithm  An object is accounted at its canonical address, which is its header plus an offset
 *            and the same in every build. If its block has a mirror, its bytes are elsewhere,
 *            spread out over two windows: the object at canonical address c starts at W +
 *            UPFRONT_SPREAD * (c - origin), and its bytes follow each other from there. So a gap of
 *            63 times its size follows each object. A reused address goes to the window in which
 *            its last object didn't end. A note for each address and window has the size of its
 *            object and the calls that made and ended it. Notes are apart from the windows, so no
 *            overflow reaches them, and they outlive their objects.
 *            Every byte of a window that was touched and isn't alive has the value UPFRONT_DEAD. A
 *            stray write is found when the object next to it ends, when its address is used again,
 *            when its row ends, and by upfront_mirror_check. A row that ended as a whole has no
 *            access until its window is used again.
 * Example    The block is at 0x100000, which is the origin. Four bytes are allocated at canonical
 *            0x100040, and four more at 0x100044. In window W the first four are at W + 64 * 0x40 =
 *            W + 0x1000 and the others at W + 0x1100. A fifth byte written to the first object is
 *            at W + 0x1004: a redzone, not the second object. After both are freed and the first
 *            address is allocated again, it is at 0x1000 of the other window, so a stale pointer
 *            still points to dead bytes.
 * Memory     Belongs to the caller of upfront_mirror_open: upfront_mirror_size bytes, 161 times the
 *            block, which cost nothing until they are touched. A C program without a mirror has
 *            fills, or poison, alone.
 * Bound      UPFRONT_MIRRORS mirrors at once. An address in no mirror is its own position.
 * Cost       O(size) of an allocation. To find the object that contains a canonical address, at
 *            most 128 notes are read.
 * Threads    As the arenas in the block: rows don't share a note. One thread opens or closes a
 *            mirror at a time. */
#ifndef UPFRONT_MIRROR_H
#define UPFRONT_MIRROR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How an object ended. */
enum { UPFRONT_CLOSED = 0, UPFRONT_PUT = 1, UPFRONT_REWOUND = 2 };

/* The state of an address: of the object that begins at `start`, unless `size` is 0. */
enum { UPFRONT_PAST = 1, UPFRONT_BEFORE = 2, UPFRONT_ENDED = 3, UPFRONT_LIVING = 4, UPFRONT_NO_OBJECT = 5 };

typedef struct upfront_found {
    int what, how;
    uintptr_t address, start; /* start is a position */
    uintptr_t canonical;      /* of start, or the nearest one to `address` */
    uint64_t size;
    uint32_t made, ended; /* values of upfront_site */
    uint32_t name;        /* of the mirror */
    const void *block;    /* the block of the mirror */
} upfront_found;

/* Kinds of live objects in a list. A node's word is among its bytes; an object with parts comes
 * before them. */
enum { UPFRONT_LIVE_NODE = 1, UPFRONT_LIVE_PARTS = 2 };

typedef struct upfront_live_object {
    uint64_t offset, size; /* offset from the first byte of the range */
    uint32_t made, type;   /* a value of upfront_site, and the number from upfront_mark_type or 0 */
    uint64_t kind;
} upfront_live_object;

/* The function gets a finding of a mirror and doesn't return. */
typedef void (*upfront_finder)(const upfront_found *found);

#if defined(UPFRONT_CHECKED) || defined(UPFRONT_ASAN)

#define UPFRONT_MIRROR 1
#define UPFRONT_MIRRORS 256
#define UPFRONT_SPREAD 64

/* A number for the running call, kept in the notes of the objects that it makes and ends. */
extern __thread uint32_t upfront_site;
#define UPFRONT_SITE(site) (upfront_site = (site))

/* Mark an object as alive and return the position of its first byte: the canonical address itself
 * if the block has no mirror. */
void *upfront_mark_live(void *canonical, uint64_t size);
/* its first 8 bytes are a word; the rest is aligned to a line */
void *upfront_mark_node(void *canonical, uint64_t size);

void *upfront_mark_room(void *canonical, uint64_t size); /* may be shortened later */

/* Marks all objects that begin within the bytes as ended. */
void upfront_mark_ended(void *canonical, uint64_t size, int how);

/* Make the object that contains `from` or begins there, and ends at `end`, `size` bytes longer or
 * shorter. upfront_mark_more returns the position of the first new byte; from == end makes a new
 * object. */
void *upfront_mark_more(void *from, void *end, uint64_t size);
void upfront_mark_less(void *from, void *end, uint64_t size);

/* Sets the type of the live object at a position or a canonical address: the number of a text,
 * below 2^16. Outside of mirrors it does nothing. */
void upfront_mark_type(const void *p, uint32_t type);

/* Marks an object whose bytes stay at their canonical address; objects marked in them later
 * don't. */
void upfront_mark_block(void *canonical, uint64_t size);

/* Ends the whole row [from, from + size): checks it and takes its access. */
void upfront_mark_over(void *from, uint64_t size);

/* Returns the position of the bytes of a canonical address; the address itself if nothing is alive
 * there. */
void *upfront_position(const void *canonical);

/* Is upfront_mark_ended in a mirror, and does nothing elsewhere. */
void upfront_mark_apart(void *canonical, uint64_t size);

/* Returns the distance from `from` to the canonical address of p, modulo 2^64. It is the plain
 * distance if `from` isn't canonical or p is no position in its mirror. */
uint64_t upfront_place(const void *p, const void *from);

/* Reports whether the live object at a canonical address has another position than p. */
#define UPFRONT_IS_ELSEWHERE(canonical, p) (upfront_position(canonical) != (p))

/* upfront_mirror_size returns the bytes that a mirror of the block needs, at a multiple of
 * UPFRONT_ALIGN_MAX. upfront_mirror_open opens it there, with a number as its name; `finder` may be
 * NULL. It returns 0 if there is no room for one more mirror. */
uint64_t upfront_mirror_size(const void *block, uint64_t size);
int upfront_mirror_open(void *block, uint64_t size, void *memory, upfront_finder finder, uint32_t name);
void upfront_mirror_close(void *block);

/* Looks at all redzones and dead bytes of the row. Returns 0 after a stray write. */
int upfront_mirror_check(const void *from, uint64_t size, upfront_found *found);

/* Lists the live objects that begin in the range by address: writes at most `room` of them and
 * returns the number of all. Returns UINT64_MAX if the range is in no mirror. Cost: O(bytes ever
 * allocated / 128), and a look at each note there. */
uint64_t upfront_mirror_objects(const void *from, uint64_t size, upfront_live_object *out, uint64_t room);

/* Describes an address of a window. Returns 0 if it is in no window. */
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

static inline void *upfront_mark_room(void *p, uint64_t size) {
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

static inline void upfront_mark_less(void *from, void *end, uint64_t size) { (void)from, (void)end, (void)size; }

static inline void upfront_mark_block(void *p, uint64_t size) { (void)p, (void)size; }

static inline void upfront_mark_over(void *p, uint64_t size) { (void)p, (void)size; }

static inline void upfront_mark_apart(void *p, uint64_t size) { (void)p, (void)size; }

static inline void *upfront_position(const void *p) { return (void *)(uintptr_t)p; }

static inline uint64_t upfront_place(const void *p, const void *from) { return upfront_distance(p, from); }

#define UPFRONT_IS_ELSEWHERE(canonical, p) 0

#endif

static inline void upfront_mark_dead(void *p, uint64_t size) { upfront_mark_ended(p, size, UPFRONT_CLOSED); }

/* Bodies of functions with a parameter `site`: the number arrives with each call, because the next
 * call of a goroutine may run on another thread. */
#define UPFRONT_DO_AT_SITE(call) { UPFRONT_SITE(site); UPFRONT_REQUEST(1); call; UPFRONT_REQUEST(0); UPFRONT_SITE(0); }
#define UPFRONT_AT_SITE(type, call) { type answer; UPFRONT_DO_AT_SITE(answer = call) return answer; }
/* without a site */
#define UPFRONT_ASK(type, call) { type answer; UPFRONT_REQUEST(1); answer = call; UPFRONT_REQUEST(0); return answer; }

#ifdef __cplusplus
}
#endif
#endif
