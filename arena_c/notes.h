/* notes.h - what the checked build knows of the blocks of heaps and buddies, which have no mirror: who made and who freed each, and
 * freed blocks that rest.
 *
 * Notes      A table by address, beside the arenas. A block that was freed keeps its note until another one begins there, or its place
 *            in the table is needed. So where there are many blocks some have no note.
 * Rest       A queue of freed blocks of one arena. Its links are the blocks' first words.
 * Memory     Static tables, touched as far as they are used: they are no part of a budget.
 * Threads    Any number may add and ask, of notes. A queue is its arena's. */
#ifndef UPFRONT_NOTES_H
#define UPFRONT_NOTES_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of an arena's header, in every build. In others than the checked one nothing rests. */
typedef struct upfront_rest {
    uint64_t blocks, bytes;
    uint64_t oldest, newest; /* offsets of blocks' bytes; 0: none */
} upfront_rest;

/* Whether an arena has redzones, and looks at fills. */
#ifdef UPFRONT_CHECKED
#define UPFRONT_LOOKS(arena) (!(arena)->plain)
#else
#define UPFRONT_LOOKS(arena) 0
#endif

#ifdef UPFRONT_CHECKED

#define UPFRONT_NOTES (UINT64_C(1) << 16)
#define UPFRONT_REST_BLOCKS 256 /* so many blocks rest at most, */
#define UPFRONT_REST_SHARE 16   /* and such a part of the arena's bytes */

typedef struct upfront_note {
    uintptr_t address; /* 0: no note */
    uint64_t asked;
    uint32_t made, ended; /* upfront_site of then */
    uint64_t live;
    uint64_t when;        /* notes that were made before */
} upfront_note;

void upfront_note_made(const void *p, uint64_t asked);
void upfront_note_asked(const void *p, uint64_t asked); /* as if so much had been asked for */
void upfront_note_ended(const void *p);

/* The note of what begins at p; or of the newest that has p, or ends a line before it at most. 0: there is none. */
int upfront_note_of(const void *p, upfront_note *out);
int upfront_note_near(const void *p, upfront_note *out);

/* How many bytes at p are UPFRONT_DEAD. */
static inline uint64_t upfront_dead_bytes(const void *p, uint64_t size) {
    const unsigned char *bytes = (const unsigned char *)p;
    uint64_t n = 0;
    while (n < size && bytes[n] == UPFRONT_DEAD)
        n++;
    return n;
}

/* 0: somebody wrote over the link of the newest, which is good again. */
static inline int upfront_rest_add(upfront_rest *r, void *base, uint64_t offset, uint64_t size) {
    uint64_t *link = r->blocks == 0 ? &r->oldest : (uint64_t *)((uintptr_t)base + (uintptr_t)r->newest), was = *link;
    *(uint64_t *)((uintptr_t)base + (uintptr_t)offset) = 0;
    *link = offset;
    r->newest = offset;
    r->blocks++;
    r->bytes += size;
    return was == 0;
}

/* pre: something rests, and the oldest is where a block can be. */
static inline void upfront_rest_take(upfront_rest *r, void *base, uint64_t size) {
    r->oldest = *(uint64_t *)((uintptr_t)base + (uintptr_t)r->oldest);
    if (--r->blocks == 0)
        r->newest = 0;
    r->bytes -= size;
}

static inline int upfront_rest_is_over(const upfront_rest *r, uint64_t bytes) {
    return r->blocks > UPFRONT_REST_BLOCKS || r->bytes > bytes / UPFRONT_REST_SHARE;
}

#endif

#ifdef __cplusplus
}
#endif
#endif
