/* mirror.h - what lives and what died, for the checked build and AddressSanitizer: redzones, and addresses that rest after a death.
 *
 * Algorithm  What is accounted is the canonical address: header and offset, the same in every build. In these builds the bytes of a
 *            block that has a mirror lie elsewhere, spread out: what begins at canonical c begins at W + UPFRONT_SPREAD * (c - origin), and
 *            its bytes follow each other from there. So a gap of 63 times its size lies behind each thing, by construction. There are two
 *            such windows; what is given lies in the one in which its place did not die last. A note for each place and window says what
 *            begins there, who made and who ended it; it lies apart, so that no overflow hits it, and outlives what it is about.
 *            Every byte of a window that was touched and isn't alive has the value UPFRONT_DEAD: redzones, and what died. Who wrote there
 *            is found when the thing beside it dies, when the place is given again, when its row ends, and by upfront_mirror_check.
 *            What lies in a row that ended as a whole has no access until its window is entered again.
 * Memory     Of whoever opens the mirror: upfront_mirror_size bytes that cost nothing until they are touched. 161 times the block. A C
 *            program without one has fills, or poison, alone.
 * Bound      UPFRONT_MIRRORS at once. An address in no mirror is its own position, and has fills, or poison, alone.
 * Cost       O(size) of what is given. What contains a canonical address is found by a look at the 128 notes before it at most.
 * Threads    As the arenas in the block: rows don't share a note. One opens or closes a mirror at a time. */
#ifndef UPFRONT_MIRROR_H
#define UPFRONT_MIRROR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How something ended. */
enum { UPFRONT_CLOSED = 0, UPFRONT_PUT = 1, UPFRONT_REWOUND = 2 };

/* What is wrong at an address, or what it was: of what begins at `start`, if `size` isn't 0. */
enum { UPFRONT_PAST = 1, UPFRONT_BEFORE = 2, UPFRONT_ENDED = 3, UPFRONT_LIVING = 4, UPFRONT_NOBODYS = 5 };

typedef struct upfront_found {
    int what, how;
    uintptr_t address, start; /* start is a position */
    uintptr_t canonical;      /* where that is accounted, or the place nearest to address */
    uint64_t size;
    uint32_t made, ended; /* upfront_site of then */
    uint32_t name;        /* the mirror's */
    const void *block;    /* and the first byte that it is of */
} upfront_found;

/* What lives, for who lists it. A node's word is among its bytes; what is of a kind that has parts comes before them. */
enum { UPFRONT_THING_NODE = 1, UPFRONT_THING_PARTS = 2 };

typedef struct upfront_thing {
    uint64_t offset, size; /* from the first byte that was asked about */
    uint32_t made, type;   /* upfront_site of then, and the number of upfront_mark_type; 0: nobody said */
    uint64_t kind;
} upfront_thing;

/* Is told what was found, and doesn't come back. */
typedef void (*upfront_finder)(const upfront_found *found);

#if defined(UPFRONT_CHECKED) || defined(UPFRONT_ASAN)

#define UPFRONT_MIRROR 1
#define UPFRONT_MIRRORS 256
#define UPFRONT_SPREAD 64

/* Who calls: goes into the notes of what is made and ended. */
extern __thread uint32_t upfront_site;
#define UPFRONT_SITE(site) (upfront_site = (site))

/* 1: the block was marked, and has its bytes at another place. These give the position of the first byte. */
void *upfront_mark_live(void *canonical, uint64_t size);
void *upfront_mark_node(void *canonical, uint64_t size); /* the first 8 bytes are a word, and what follows is aligned to a line */

void *upfront_mark_room(void *canonical, uint64_t size); /* may become shorter than it was given */

/* All that begins within the bytes has ended. */
void upfront_mark_ended(void *canonical, uint64_t size, int how);

/* What contains `from` or begins there and ends at `end` is `size` bytes longer: gives the position of the first of them. from == end: that
 * is something new. And shorter. */
void *upfront_mark_more(void *from, void *end, uint64_t size);
void upfront_mark_less(void *from, void *end, uint64_t size);

/* What is alive at a position, or at a canonical address, has a type: the number of a text, below 2^16. In no mirror nobody keeps it. */
void upfront_mark_type(const void *p, uint32_t type);

/* The bytes stay where they are accounted; what is marked in them later does not. */
void upfront_mark_block(void *canonical, uint64_t size);

/* All of the row [from, to) has ended: it is checked and loses access. */
void upfront_mark_over(void *from, uint64_t size);

/* Where the bytes of a canonical address lie; itself, when nothing there is alive. */
void *upfront_position(const void *canonical);

/* upfront_mark_ended of what is in a mirror; nothing else ends. */
void upfront_mark_apart(void *canonical, uint64_t size);

/* From `from` to where p is accounted, modulo 2^64. The plain distance, if from isn't canonical or p no position of its mirror. */
uint64_t upfront_place(const void *p, const void *from);

/* Whether what is alive at a canonical address has another position than p. */
#define UPFRONT_IS_ELSEWHERE(canonical, p) (upfront_position(canonical) != (p))

/* Bytes that a mirror of the block needs, at a multiple of UPFRONT_ALIGN_MAX; and opens it there. `finder` may be NULL. 0: no room. The
 * block has a name as a number. */
uint64_t upfront_mirror_size(const void *block, uint64_t size);
int upfront_mirror_open(void *block, uint64_t size, void *memory, upfront_finder finder, uint32_t name);
void upfront_mirror_close(void *block);

/* Looks at all redzones and dead bytes of the row. 0: somebody wrote there. */
int upfront_mirror_check(const void *from, uint64_t size, upfront_found *found);

/* What lives in the bytes, by its place: at most `room` of it, and the number of all. UINT64_MAX: they are in no mirror. Cost: O(bytes that
 * were ever given / 128), and a look at each note there. */
uint64_t upfront_mirror_things(const void *from, uint64_t size, upfront_thing *out, uint64_t room);

/* What an address of a window is or was. 0: it is in no window. */
int upfront_mirror_find(uintptr_t address, upfront_found *found);

/* Copies what is alive to where it is accounted; and from there to where it is. */
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

/* Bodies of functions that have a `site`: the call says who calls. A goroutine's next call may be made by another thread. */
#define UPFRONT_DO_AT_SITE(call) { UPFRONT_SITE(site); UPFRONT_REQUEST(1); call; UPFRONT_REQUEST(0); UPFRONT_SITE(0); }
#define UPFRONT_AT_SITE(type, call) { type answer; UPFRONT_DO_AT_SITE(answer = call) return answer; }
#define UPFRONT_ASK(type, call) { type answer; UPFRONT_REQUEST(1); answer = call; UPFRONT_REQUEST(0); return answer; } /* without */

#ifdef __cplusplus
}
#endif
#endif
