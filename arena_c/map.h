/* map.h - the memory map: one block, divided like a console's.
 *
 *     | tables | init | systems | level ... <- temp | frame x2 | scratch arenas |
 *
 * Algorithm  Arenas lie one after the other, each from an edge (UPFRONT_EDGE) to where its size ends. All headers lie in the
 *            tables at the bottom, on pages that no arena shares. The order of the regions is the order of rewinding: top first.
 *            A line of the plan may stand for equal siblings: each a row of its own, rewound without touching the others.
 *            Edges, guards and the head's spare room are addresses alone.
 * Bound      The layout depends on the plan alone, never on the page or the address.
 * Cost       init, walk: O(rows * (slots + pools)). rewind: O(scopes open + pools).
 * Source     The memory maps of consoles; Llopis, "Start Pre-allocating And Stop Worrying". */
#ifndef UPFRONT_MAP_H
#define UPFRONT_MAP_H

#include "scope.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UPFRONT_REGION = 1, UPFRONT_FRAME = 2, UPFRONT_SCRATCH = 3 };

/* What a range of the block is; every slack has its reason. */
enum {
    UPFRONT_RANGE_TABLES = 1, /* control words */
    UPFRONT_RANGE_USED = 2,   /* the near end of an arena */
    UPFRONT_RANGE_FREE = 3,
    UPFRONT_RANGE_TEMP = 4,     /* the far end of an arena */
    UPFRONT_RANGE_EDGE = 5,     /* slack: up to the next edge */
    UPFRONT_RANGE_UNPLANNED = 6, /* slack: the plan's total is larger than its sum */
    UPFRONT_RANGE_GUARD = 7      /* slack: between two arenas, for pages without access */
};

typedef struct upfront_map_arena {
    char name[UPFRONT_NAME_SIZE];
    uint64_t kind;
    uint64_t size;     /* bytes of each; any number up to UPFRONT_OFFSET_MAX */
    uint64_t siblings; /* rows of this kind and size, one after the other; 0 is 1 */
    uint64_t slots;    /* scopes of each; 0: as the call says for all */
    uint64_t pools;    /* pool headers of each; 0: as the call says for all */
} upfront_map_arena;

typedef struct upfront_map {
    uint64_t magic;
    uint64_t size;  /* of the block */
    uint64_t rows;  /* arenas, each sibling one */
    uint64_t slots; /* scopes of all rows together */
    uint64_t pools; /* pool headers of all rows together */
    uint64_t tables; /* bytes of the tables, which the three above must give */
    uint64_t guard;  /* bytes of the slack behind the tables and behind each arena */
    uint64_t unused;
} upfront_map;

typedef struct upfront_range {
    uint64_t offset;
    uint64_t size;
    uint64_t row; /* index of the arena; rows for none */
    uint64_t what;
} upfront_range;

/* The tables of a map, in bytes. Zero for counts out of bounds. */
typedef struct upfront_tables {
    uint64_t head;    /* what handles point to */
    uint64_t headers; /* offset of the pools' headers in the head */
    uint64_t size;    /* of all: each row's records lie behind the head */
} upfront_tables;

#define UPFRONT_MAP_MAGIC UINT64_C(0x31544e4f52465055) /* "UPFRONT1" */

static inline uint64_t upfront_round_edge(uint64_t n) { return upfront_round_up(n, UPFRONT_EDGE); }

/* The rule of the layout: where begins what lies behind a row, or behind the tables. */
static inline uint64_t upfront_map_behind(uint64_t end, uint64_t guard) { return upfront_round_edge(end) + guard; }

/* pre: index < map->rows. */
static inline upfront_row *upfront_map_row(const upfront_map *m, uint64_t index) {
    return (upfront_row *)(uintptr_t)(m + 1) + index;
}

/* Offset of the row's first byte in the block, and past its last. */
static inline uint64_t upfront_map_start(const upfront_map *m, const upfront_row *r) {
    return upfront_distance(r, m) + r->arena.arena.start;
}

static inline uint64_t upfront_map_end(const upfront_map *m, const upfront_row *r) { return upfront_distance(r, m) + r->end; }

/* Rows, and the slots and pools of a row, are counted in 16 bits; of the first two there is at least one. */
#define UPFRONT_COUNT_MAX 65535

/* The smallest head, of one row. */
#define UPFRONT_HEAD_LEAST 4096

static inline int upfront_map_are_rows(uint64_t rows) { return rows - 1 < UPFRONT_COUNT_MAX; }

/* Of one row. */
static inline int upfront_map_are_counts(uint64_t slots, uint64_t pools) {
    return slots - 1 < UPFRONT_COUNT_MAX && pools <= UPFRONT_COUNT_MAX;
}

static inline int upfront_map_is_kind(uint64_t kind) { return kind - UPFRONT_REGION <= UPFRONT_SCRATCH - UPFRONT_REGION; }

static inline int upfront_map_is_guard(uint64_t guard) { return guard < UPFRONT_OFFSET_MAX && guard % UPFRONT_EDGE == 0; }

/* The head is what handles point to, which may be kept after their map has ended: the map's header and the rows, then, from a part of
 * its size on, the pools' headers. In two heads of one size and one part at one address the same cells are rows, and the same are pools'
 * headers, whatever the counts are. So sizes are few: powers of two, and those halfway between. Gives the size. pools are those of
 * all rows together. */
static inline uint64_t upfront_map_head_of(uint64_t rows, uint64_t pools, uint64_t part) {
    uint64_t size = UPFRONT_HEAD_LEAST;
    while (sizeof(upfront_map) + rows * sizeof(upfront_row) > size / part || pools * sizeof(upfront_pool) > size - size / part)
        size += (size & (size - 1)) == 0 ? size / 2 : size / 3;
    return size;
}

/* Bytes of a row's records, of both ends. They lie behind the head: no handle points to one. */
static inline uint64_t upfront_map_records(uint64_t slots) { return 2 * (slots + 1) * sizeof(upfront_record); }

/* slots and pools are those of all rows together. The pools' headers begin at an eighth of the head, or at half of it where that makes it
 * smaller. */
static inline upfront_tables upfront_map_tables(uint64_t rows, uint64_t slots, uint64_t pools) {
    upfront_tables t = {0, 0, 0};
    uint64_t half;
    if (!upfront_map_are_rows(rows) || slots > rows * UPFRONT_COUNT_MAX || pools > rows * UPFRONT_COUNT_MAX)
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

static inline upfront_tables upfront_map_tables_of(const upfront_map *m) { return upfront_map_tables(m->rows, m->slots, m->pools); }

/* Offsets of a row's records and of its pools' headers: behind those of the row before it. pre: index <= map->rows, and that one is
 * laid out. */
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

/* Bytes of the whole, tables included; 0 when it would reach UPFRONT_OFFSET_MAX, or an argument or a kind is out of bounds. guard is a
 * multiple of UPFRONT_EDGE. slots and pools are those of each row whose line has none of its own. */
uint64_t upfront_map_size(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools, uint64_t guard);

/* Lays the map out in the block, which is aligned to UPFRONT_EDGE and at least upfront_map_size
 * bytes. The tables must be zero, or those of an earlier map with the same head and headers
 * (upfront_map_tables), in the same block: what that left open is closed then,
 * no finalizer runs, and its generations go on, so that its handles stay dead. NULL: an argument is
 * out of bounds. */
upfront_map *upfront_map_init(void *block, uint64_t size, const upfront_map_arena *arenas,
                              uint64_t count, uint64_t slots, uint64_t pools, uint64_t guard);

/* The map is over: what its handles ask is answered from the head alone, and nothing else need be kept of it, nor readable, until the
 * next upfront_map_init. pre: nothing is open. */
void upfront_map_over(upfront_map *m);

/* Moves the edges of `count` rows from `row` up within the bytes that they have together: sizes[i] is the new size of row + i, the
 * same for all siblings of a group. What lies above stays where it is. Peaks begin anew. UPFRONT_ORDER: a row has open scopes;
 * UPFRONT_BAD_ARGUMENT: the sizes, each up to its edge, don't sum up exactly, siblings differ or are parted, or there is no such row.
 * Nothing has changed then. */
int upfront_map_reconfigure(upfront_map *m, uint64_t row, const uint64_t *sizes, uint64_t count);

/* Closes every pool and every scope of the row, newest first, C finalizers included; a region takes those above it along, top first, but
 * never its siblings. UPFRONT_ORDER, and nothing has changed, when a chain holds what isn't C's: who made that closes the scope; or when
 * one of them is closing. */
int upfront_map_rewind(upfront_map *m, uint64_t row);

/* Names every range of the block in order of address, without gap or overlap, and checks each control word on the way. Writes at most
 * `room` ranges and their number (6 * rows + 3 is always enough). UPFRONT_CORRUPT when the tables contradict themselves; *count is then
 * the index of the row, or rows for the map's own header. UPFRONT_FULL when `room` is too small, UPFRONT_BAD_ARGUMENT for null.
 *
 * What it can't tell: the owner's words (owner, odd, base, kind of a pool), the characters of a name, generations, counts of
 * objects, what closed scopes were asked for, the word that remembers a refusal, and a peak, a sum or an offset that is wrong but
 * possible. */
int upfront_map_walk(const upfront_map *m, uint64_t size, upfront_range *out, uint64_t room, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
