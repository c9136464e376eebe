/* notes.h - for the checked build: the calls that made and freed each block of a heap or a buddy,
 * and a queue in which freed blocks rest before they are reused. These blocks have no mirror.
 *
 * Notes      A table by address, apart from the arenas. A freed block keeps its note until another
 *            block begins at its address, or another note needs the entry in the table. So with
 *            many blocks, some blocks have no note.
 * Rest       A queue of freed blocks of one arena, linked by the blocks' first words.
 * Memory     Static tables, touched only as far as they are used; they aren't part of a budget.
 * Threads    Any number of threads may add and read notes. A queue belongs to its arena. */
#ifndef UPFRONT_NOTES_H
#define UPFRONT_NOTES_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Part of an arena's header in every build. Only in the checked build do blocks rest. */
typedef struct upfront_rest {
    uint64_t blocks, bytes;
    uint64_t oldest, newest; /* offsets of blocks' bytes; 0: none */
} upfront_rest;

/* Reports whether an arena has redzones and checks fills. */
#ifdef UPFRONT_CHECKED
#define UPFRONT_LOOKS(arena) (!(arena)->plain)
#else
#define UPFRONT_LOOKS(arena) 0
#endif

#ifdef UPFRONT_CHECKED

#define UPFRONT_NOTES (UINT64_C(1) << 16)
#define UPFRONT_REST_BLOCKS 256 /* blocks that rest in an arena, at most */
#define UPFRONT_REST_SHARE 16   /* at most one part in 16 of the arena's bytes rests */

typedef struct upfront_note {
    uintptr_t address; /* 0: no note */
    uint64_t asked;
    uint32_t made, ended; /* values of upfront_site */
    uint64_t live;
    uint64_t when; /* number of the note: later notes have higher ones */
} upfront_note;

void upfront_note_made(const void *p, uint64_t asked);
void upfront_note_asked(const void *p, uint64_t asked); /* changes the asked size */
void upfront_note_ended(const void *p);

/* upfront_note_of returns the note of the block that begins at p. upfront_note_near returns the
 * newest note of a block that contains p or ends fewer than 64 bytes before p. Both return 0 if
 * they find no note. */
int upfront_note_of(const void *p, upfront_note *out);
int upfront_note_near(const void *p, upfront_note *out);

/* Counts the bytes from p on that are UPFRONT_DEAD. */
static inline uint64_t upfront_dead_bytes(const void *p, uint64_t size) {
    const unsigned char *bytes = (const unsigned char *)p;
    uint64_t n = 0;
    while (n < size && bytes[n] == UPFRONT_DEAD)
        n++;
    return n;
}

/* Adds a block to the queue. Returns 0 if the link of the newest block was overwritten, after it
 * has restored the link. */
static inline int upfront_rest_add(upfront_rest *r, void *base, uint64_t offset, uint64_t size) {
    uint64_t *link = r->blocks == 0 ? &r->oldest : (uint64_t *)((uintptr_t)base + (uintptr_t)r->newest), was = *link;
    *(uint64_t *)((uintptr_t)base + (uintptr_t)offset) = 0;
    *link = offset;
    r->newest = offset;
    r->blocks++;
    r->bytes += size;
    return was == 0;
}

/* Takes the oldest block out of the queue. pre: the queue isn't empty, and the block's offset is
 * possible. */
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
