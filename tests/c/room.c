/* room.c - tests of room.h. */
#include "check.h"

void test_room(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_room r;
    static const uint64_t kinds[] = {UPFRONT_ROOM_HEAP,  UPFRONT_ROOM_BUDDY, UPFRONT_ROOM_RING, UPFRONT_ROOM_ENDS,
                                     UPFRONT_ROOM_STACK, UPFRONT_ROOM_FRAME, UPFRONT_ROOM_POOL};
    uint64_t i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++) /* kinds are distinct */
        CHECK(upfront_note_room(kinds[i], w, 64) == UPFRONT_OK && upfront_take_room(w, 64, &r) == UPFRONT_OK &&
            r.kind == i + 1);
    CHECK(upfront_take_room(w, WINDOW, &r) == UPFRONT_FOREIGN);
    CHECK(upfront_note_room(UPFRONT_ROOM_HEAP, w, 512) == UPFRONT_OK);
    CHECK(upfront_note_room(UPFRONT_ROOM_POOL, w + 64, 256) == UPFRONT_OK);
    CHECK(upfront_note_room(UPFRONT_ROOM_RING, w, 1024) == UPFRONT_OK); /* in the heap's place */
    CHECK(upfront_take_room(w + 1, 63, &r) == UPFRONT_FOREIGN);
    CHECK(upfront_take_room(w, 64, &r) == UPFRONT_OK && r.block == w && r.size == 1024 && r.kind == UPFRONT_ROOM_RING);
    CHECK(upfront_take_room(w, 64, &r) == UPFRONT_FOREIGN);
    CHECK(upfront_take_room(w, 65, &r) == UPFRONT_OK && r.block == w + 64 && r.kind == UPFRONT_ROOM_POOL);

    for (i = 0; i < UPFRONT_ROOMS; i++)
        CHECK(upfront_note_room(UPFRONT_ROOM_HEAP, w + i, 512) == UPFRONT_OK);
    CHECK(upfront_rooms_lost() == 0);
    CHECK(upfront_note_room(UPFRONT_ROOM_HEAP, w + i, 512) == UPFRONT_TABLE_FULL && upfront_rooms_lost() == 1);
    CHECK(upfront_note_room(UPFRONT_ROOM_HEAP, w, 64) == UPFRONT_OK); /* noted already */
    for (i = 0; i < UPFRONT_ROOMS; i++)
        CHECK(upfront_take_room(w, UPFRONT_ROOMS, &r) == UPFRONT_OK && r.size == (i == 0 ? 64u : 512u));
    CHECK(upfront_take_room(w, WINDOW, &r) == UPFRONT_FOREIGN);

    CHECK(upfront_note_room(0, w, 64) == UPFRONT_BAD_ARGUMENT &&
        upfront_note_room(UPFRONT_ROOM_POOL + 1, w, 64) == UPFRONT_BAD_ARGUMENT);
    window_free(w, WINDOW);
}
