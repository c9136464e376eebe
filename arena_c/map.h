/* map.h - divides one block between arenas by a plan, as the memory map of a console does.
 *
 *     | tables | init | systems | level ... <- temp | frame x2 | scratch arenas |
 *
 * Algorithm  Arenas follow each other. Each begins at an edge, a multiple of UPFRONT_EDGE, and ends
 *            after its size. All headers are in the tables at the bottom, on pages that no arena
 *            shares. A line of the plan may stand for equal siblings, each with a row. The bytes up
 *            to an edge, the guards and the spare part of the head take addresses but no memory.
 * Bound      The layout depends only on the plan, not on the page size or the address.
 * Cost       init, walk, reconfigure: O(rows * (slots + pools)).
 * Source     The memory maps of consoles; Llopis, "Start Pre-allocating And Stop Worrying". */
#ifndef UPFRONT_MAP_H
#define UPFRONT_MAP_H

#include "scope.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UPFRONT_REGION = 1, UPFRONT_FRAME = 2, UPFRONT_SCRATCH = 3 };

/* The use of a range of the block. */
enum {
    UPFRONT_RANGE_TABLES = 1, /* control words */
    UPFRONT_RANGE_USED = 2,   /* the near end of an arena */
    UPFRONT_RANGE_FREE = 3,
    UPFRONT_RANGE_TEMP = 4,      /* the far end of an arena */
    UPFRONT_RANGE_EDGE = 5,      /* unused, up to the next edge */
    UPFRONT_RANGE_UNPLANNED = 6, /* unused: the block is larger than the plan's sum */
    UPFRONT_RANGE_GUARD = 7      /* unused: between two arenas, for pages without access */
};

typedef struct upfront_map_arena {
    char name[UPFRONT_NAME_SIZE];
    uint64_t kind;
    uint64_t size;     /* bytes of each row, below UPFRONT_OFFSET_MAX */
    uint64_t siblings; /* number of rows of this kind and size; 0 counts as 1 */
    uint64_t slots;    /* maximum of open scopes of each row; 0: the default of the call */
    uint64_t pools;    /* pool headers of each row; 0: the default of the call */
} upfront_map_arena;

typedef struct upfront_map {
    uint64_t magic;
    uint64_t size;   /* bytes of the block */
    uint64_t rows;   /* number of arenas, siblings included */
    uint64_t slots;  /* scopes of all rows */
    uint64_t pools;  /* pool headers of all rows */
    uint64_t tables; /* bytes of the tables: a function of the three words above */
    uint64_t guard;  /* bytes of the guard after the tables and after each arena */
    uint64_t unused;
} upfront_map;

typedef struct upfront_range {
    uint64_t offset;
    uint64_t size;
    uint64_t row; /* index of the arena; `rows` for no arena */
    uint64_t what;
} upfront_range;

/* The tables of a map, in bytes; zeros for counts out of bounds. */
typedef struct upfront_tables {
    uint64_t head;    /* the part that handles point to */
    uint64_t headers; /* offset of the pools' headers in the head */
    uint64_t size;    /* of all tables; the rows' records follow the head */
} upfront_tables;

#define UPFRONT_MAP_MAGIC UINT64_C(0x31544e4f52465055) /* "UPFRONT1" */

static inline uint64_t upfront_round_edge(uint64_t n) { return upfront_round_up(n, UPFRONT_EDGE); }

/* Returns the offset at which the next arena begins, after a row or tables that end at `end`. */
static inline uint64_t upfront_map_behind(uint64_t end, uint64_t guard) { return upfront_round_edge(end) + guard; }

/* pre: index < map->rows. */
static inline upfront_row *upfront_map_row(const upfront_map *m, uint64_t index) {
    return (upfront_row *)(uintptr_t)(m + 1) + index;
}

/* Return the offsets in the block of the row's first byte and past its last. */
static inline uint64_t upfront_map_start(const upfront_map *m, const upfront_row *r) {
    return upfront_distance(r, m) + r->arena.arena.start;
}

static inline uint64_t upfront_map_end(const upfront_map *m, const upfront_row *r) {
    return upfront_distance(r, m) + r->end;
}

/* The maximum of rows, and of slots and pools of a row. A map may have no rows. A row has at least
 * one slot. */
#define UPFRONT_COUNT_MAX 65535

/* The smallest head. */
#define UPFRONT_HEAD_LEAST 4096

static inline int upfront_map_are_counts(uint64_t slots, uint64_t pools) {
    return slots != 0 && slots <= UPFRONT_COUNT_MAX && pools <= UPFRONT_COUNT_MAX;
}

static inline int upfront_map_is_kind(uint64_t kind) { return kind >= UPFRONT_REGION && kind <= UPFRONT_SCRATCH; }

static inline int upfront_map_is_guard(uint64_t guard) {
    return guard < UPFRONT_OFFSET_MAX && guard % UPFRONT_EDGE == 0;
}

/* Returns the size of the head, which handles point to. Handles may outlive their map, and a stale
 * one must find a header of its kind in the next map's head. The map's header and the rows are at
 * the front of the head, and the pools' headers begin at offset size / part. If the next head at
 * the same address has the same size and part, its rows and pools' headers are where rows and
 * pools' headers were. There are few sizes, so that heads are often alike: 4096, 6144, 8192, 12288
 * and so on, powers of two and the sizes halfway between. `pools` counts the pools of all rows. */
static inline uint64_t upfront_map_head_of(uint64_t rows, uint64_t pools, uint64_t part) {
    uint64_t size = UPFRONT_HEAD_LEAST;
    while (sizeof(upfront_map) + rows * sizeof(upfront_row) > size / part ||
           pools * sizeof(upfront_pool) > size - size / part)
        size += (size & (size - 1)) == 0 ? size / 2 : size / 3;
    return size;
}

/* Returns the bytes of a row's records, for both ends. Records are outside of the head, because no
 * handle points to one. */
static inline uint64_t upfront_map_records(uint64_t slots) { return 2 * (slots + 1) * sizeof(upfront_record); }

/* Returns the sizes of the tables; slots and pools are the sums of all rows. The pools' headers
 * begin at an eighth of the head, or at its half if that makes the head smaller. */
static inline upfront_tables upfront_map_tables(uint64_t rows, uint64_t slots, uint64_t pools) {
    upfront_tables t = {0, 0, 0};
    uint64_t half;
    if (rows > UPFRONT_COUNT_MAX || slots > rows * UPFRONT_COUNT_MAX || pools > rows * UPFRONT_COUNT_MAX)
        return t;
    t.head = upfront_map_head_of(rows, pools, 8);
    t.headers = t.head / 8;
    half = upfront_map_head_of(rows, pools, 2);
    if (half < t.head) {
        t.head = half;
        t.headers = half / 2;
    }
    t.size = t.head + 2 * (slots + rows) * sizeof(upfront_record);
    return t;
}

static inline upfront_tables upfront_map_tables_of(const upfront_map *m) {
    return upfront_map_tables(m->rows, m->slots, m->pools);
}

/* Return the offsets of a row's records and of its pools' headers, which follow those of the row
 * before it. pre: index <= map->rows, and the row before is laid out. */
static inline uint64_t upfront_map_records_at(const upfront_map *m, uint64_t index) {
    const upfront_row *before;
    if (index == 0)
        return upfront_map_tables_of(m).head;
    before = upfront_map_row(m, index - 1);
    return upfront_distance(before, m) + before->arena.records + upfront_map_records(before->arena.slots);
}

static inline uint64_t upfront_map_headers_at(const upfront_map *m, uint64_t index) {
    const upfront_row *before;
    if (index == 0)
        return upfront_map_tables_of(m).headers;
    before = upfront_map_row(m, index - 1);
    return upfront_distance(before, m) + before->headers + before->pools * sizeof(upfront_pool);
}

/* Returns the bytes of the whole map; 0 if they reach UPFRONT_OFFSET_MAX, or an argument or a kind
 * is out of bounds. guard is a multiple of UPFRONT_EDGE. slots and pools are the defaults for
 * rows. arenas may be NULL if count is 0. */
uint64_t upfront_map_size(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools,
                          uint64_t guard);

/* Lays the map out in the block, which is aligned to UPFRONT_EDGE and has at least upfront_map_size
 * bytes. The tables must be zero, or those of an earlier map in the same block with the same head
 * and headers (upfront_map_tables). Scopes and pools that the earlier map left open are then
 * closed, without their finalizers. Generations continue, so handles of the earlier map stay stale.
 * Returns NULL if an argument is out of bounds. */
upfront_map *upfront_map_init(void *block, uint64_t size, const upfront_map_arena *arenas, uint64_t count,
                              uint64_t slots, uint64_t pools, uint64_t guard);

/* Ends the map. From now on the map's handles read only the head, so all other bytes may be dropped
 * or made unreadable until the next upfront_map_init. pre: no scope is open. */
void upfront_map_over(upfront_map *m);

/* Moves the edges of `count` rows from `row` up within their common bytes: sizes[i] is the new size
 * of row + i, the same for all siblings. The rows above don't move. Peaks restart. UPFRONT_ORDER: a
 * row has open scopes. UPFRONT_BAD_ARGUMENT: the sizes, each rounded up to an edge, have another
 * sum than before; siblings differ or are split; or a row doesn't exist. A refusal changes
 * nothing. */
int upfront_map_reconfigure(upfront_map *m, uint64_t row, const uint64_t *sizes, uint64_t count);

/* Lists every range of the block, without gap or overlap, and checks each control word. There are
 * at most 6 * rows + 3 ranges. UPFRONT_FULL: `room` is too small. With UPFRONT_CORRUPT, *count is
 * the index of the row, or `rows` for the map's own header.
 *
 * Not detected: wrong values of the owner's words (owner, odd, base, kind of a pool), the
 * characters of a name, generations, counts of objects, `asked` of closed scopes and of the header,
 * and a wrong but possible peak, sum or offset. */
int upfront_map_walk(const upfront_map *m, uint64_t size, upfront_range *out, uint64_t room, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
