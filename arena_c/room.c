#include "room.h"

/* In release builds the only words of the core outside of a block, because C can't call Go to
 * announce an arena. The thread that takes an entry writes it; other threads see the entry once its
 * block is set. */
static struct {
    uint64_t taken;
    upfront_room is;
} rooms[UPFRONT_ROOMS];
static uint64_t lost;

static const void *block_of(uint64_t i) { return __atomic_load_n(&rooms[i].is.block, __ATOMIC_ACQUIRE); }

int upfront_note_room(uint64_t kind, const void *block, uint64_t size) {
    uint64_t i;
    if (block == NULL || kind < UPFRONT_ROOM_HEAP || kind > UPFRONT_ROOM_POOL)
        return UPFRONT_BAD_ARGUMENT;
    for (i = 0; i < UPFRONT_ROOMS && block_of(i) != block; i++)
        ;
    if (i == UPFRONT_ROOMS)
        for (i = 0; i < UPFRONT_ROOMS && __atomic_exchange_n(&rooms[i].taken, 1, __ATOMIC_ACQUIRE) != 0; i++)
            ;
    if (i == UPFRONT_ROOMS) {
        __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
        return UPFRONT_TABLE_FULL;
    }
    rooms[i].is.size = size;
    rooms[i].is.kind = kind;
    __atomic_store_n(&rooms[i].is.block, block, __ATOMIC_RELEASE);
    return UPFRONT_OK;
}

int upfront_take_room(const void *from, uint64_t size, upfront_room *out) {
    uint64_t i;
    if (out == NULL)
        return UPFRONT_BAD_ARGUMENT;
    for (i = 0; i < UPFRONT_ROOMS; i++)
        if (block_of(i) != NULL && upfront_place(block_of(i), from) < size) {
            *out = rooms[i].is;
            __atomic_store_n(&rooms[i].is.block, NULL, __ATOMIC_RELAXED);
            __atomic_store_n(&rooms[i].taken, 0, __ATOMIC_RELEASE);
            return UPFRONT_OK;
        }
    return UPFRONT_FOREIGN;
}

uint64_t upfront_rooms_lost(void) { return __atomic_load_n(&lost, __ATOMIC_RELAXED); }
