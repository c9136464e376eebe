/* room.h - an arena that C makes by itself in the state of a Go program (package budget/save), and that the program must know.
 *
 * A state that comes from outside, a save or a delta, may hold anything, also in the words of an arena that lies in it. Go checks
 * those of each arena that it made itself. C says of its own ones where they are:
 *
 *     upfront_heap *h = upfront_heap_init(block, size, 256);
 *     upfront_note_room(UPFRONT_ROOM_HEAP, block, size);
 *
 * between save.Begin and save.NewRing, for bytes that lie in the state. What a C library keeps in there, addresses and the like,
 * nobody can check: such a state is good for Take and Restore, and is refused when it comes from outside.
 *
 * Bound      A static table of UPFRONT_ROOMS rooms, of the whole process. NewRing takes its state's out. What finds no room is
 *            counted, and NewRing refuses a state that was begun before.
 * Cost       O(UPFRONT_ROOMS).
 * Threads    Any. The same block is noted by one at a time. */
#ifndef UPFRONT_ROOM_H
#define UPFRONT_ROOM_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_ROOMS 256

/* Kinds of arenas whose header lies at the front of their block. */
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

/* Notes an arena that C made of the block; one at the same place is forgotten. UPFRONT_TABLE_FULL is counted. */
int upfront_note_room(uint64_t kind, const void *block, uint64_t size);

/* Takes a room whose block begins in `size` bytes at `from` out of the table. UPFRONT_FOREIGN: there is none. */
int upfront_take_room(const void *from, uint64_t size, upfront_room *out);

/* How many rooms the table had no place for. */
uint64_t upfront_rooms_lost(void);

#ifdef __cplusplus
}
#endif
#endif
