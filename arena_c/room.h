/* room.h - announces an arena that C makes in the state of a Go program (package budget/save).
 *
 * A state from outside, a save or a delta, may have any bytes, also in the words of an arena. Go
 * checks the words of arenas that Go made. C announces its arenas between save.Begin and
 * save.NewRing, so that Go also checks them:
 *
 *     upfront_heap *h = upfront_heap_init(block, size, 256);
 *     upfront_note_room(UPFRONT_ROOM_HEAP, block, size);
 *
 * The contents of a C library, addresses and the like, can't be checked. A state with such contents
 * works for Take and Restore, and is refused when it comes from outside.
 *
 * Bound      A static table of UPFRONT_ROOMS rooms for the whole process. NewRing takes the rooms
 *            of its state out of the table. If the table is full, the room is only counted, and
 *            NewRing then refuses every state that was begun before.
 * Cost       O(UPFRONT_ROOMS).
 * Threads    Any thread may call. Only one thread at a time may announce the same block. */
#ifndef UPFRONT_ROOM_H
#define UPFRONT_ROOM_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_ROOMS 256

/* Kinds of arenas with their header at the front of their block. */
enum {
    UPFRONT_ROOM_HEAP = 1,
    UPFRONT_ROOM_BUDDY = 2,
    UPFRONT_ROOM_RING = 3,
    UPFRONT_ROOM_ENDS = 4,
    UPFRONT_ROOM_STACK = 5,
    UPFRONT_ROOM_FRAME = 6,
    UPFRONT_ROOM_POOL = 7
};

typedef struct upfront_room {
    const void *block;
    uint64_t size;
    uint64_t kind;
} upfront_room;

/* Announces an arena on the block, in place of an earlier arena there. UPFRONT_TABLE_FULL: the
 * table is full, which is counted. */
int upfront_note_room(uint64_t kind, const void *block, uint64_t size);

/* Takes a room whose block begins in the `size` bytes at `from` out of the table. UPFRONT_FOREIGN:
 * there is no such room. */
int upfront_take_room(const void *from, uint64_t size, upfront_room *out);

/* Returns the number of rooms for which the table was full. */
uint64_t upfront_rooms_lost(void);

#ifdef __cplusplus
}
#endif
#endif
