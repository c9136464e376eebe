/* stretch.h - the stretched builds (asan, memdebug): gaps between what is handed out, and fresh addresses after a rewind.
 *
 * Algorithm  The cursors of a row move exactly as they do elsewhere, and alone decide what is full, each offset, each peak. Beside them a
 *            slot's `origin` says how far its newest byte lies from where the cursor says: it grows by a gap before each thing. Where a row
 *            lies is one of its windows; when its last scope closes it goes on to the next one, and comes back after UPFRONT_WINDOWS.
 *            memdebug fills the gaps, what is handed out and what is given back, and keeps a record of each thing; what it then
 *            finds changed is damage. asan poisons all that isn't handed out.
 * Bound      A row of R bytes has 3 * R + UPFRONT_EDGE for each end in each window. As that runs short gaps are left out: it never says
 *            full.
 * Cost       An allocation: O(1) and the filling. A close: O(bytes and things that die).
 *
 * Only rows of a map that was given space are stretched: it lies right behind the map's block,
 *
 *     [upfront_stretch of each row][windows of row 0][windows of row 1] ...
 *     a window: [near part][far part], and in memdebug behind them [near log][far log]
 *
 * In the other builds nothing is stretched, and of this header there are only the structs. */
#ifndef UPFRONT_STRETCH_H
#define UPFRONT_STRETCH_H

#include "map.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UPFRONT_WINDOWS = 4 };

/* Beyond it a map and its space are not stretched: sanitizers and page tables have their bounds too. */
#define UPFRONT_STRETCH_MAX (UINT64_C(1) << 36)

/* What lies, or lay, at a place: a thing that was handed out in one go, or a pool. Only memdebug keeps records. */
typedef struct upfront_record {
    uint64_t place;   /* of its first byte; 0: no record */
    uint64_t size;    /* bytes, without its gap */
    uint32_t made;    /* site that asked for it (sites.h) */
    uint32_t scope;   /* name of the scope */
    uint32_t account; /* name of the account */
    uint32_t gone;    /* site that closed or rewound; while it is there 0 */
} upfront_record;

/* How much of a part of a window was ever handed out, since it was zero. */
typedef struct upfront_part {
    uint64_t high; /* place past the highest byte that was; 0: none was */
    uint64_t low;  /* of a far part's last R bytes (upfront_stretch_twin) place of the lowest that was; 0: none was */
} upfront_part;

/* What a row has beside its words. */
typedef struct upfront_stretch {
    uint64_t map;     /* from here back to the map (modulo 2^64) */
    uint64_t row;     /* from here to the row (modulo 2^64) */
    uint64_t place;   /* of window 0 */
    uint64_t part;    /* bytes of a near or a far part */
    uint64_t window;  /* bytes of a window, logs included */
    uint64_t current; /* index of the current window */
    uint64_t entered; /* bit n: window n was poisoned; bit UPFRONT_WINDOWS: the current one is in use */
    uint64_t records; /* live records of the near log */
    uint64_t far_records;
    uint64_t gone;    /* site that closes or rewinds next */
    uint64_t names;   /* of what is handed out next: the scope's, and from bit 32 up the account's */
    uint64_t unused[5];
    upfront_part parts[UPFRONT_WINDOWS][2]; /* near, far */
} upfront_stretch;

/* What is damaged. */
enum {
    UPFRONT_DAMAGE_GAP = 1,   /* a gap: something wrote past the end of the thing before it, or before the start of the next */
    UPFRONT_DAMAGE_DEAD = 2,  /* bytes that were given back: something wrote to what was there */
    UPFRONT_DAMAGE_FRESH = 3, /* bytes that nobody has had yet */
    UPFRONT_DAMAGE_CHUNK = 4, /* a chunk of a pool, after it was put */
    UPFRONT_DAMAGE_CHUNK_GAP = 5 /* the gap behind a chunk of a pool, or before the first */
};

typedef struct upfront_damage {
    uint64_t what;
    const upfront_map *map; /* NULL: of a pool whose row isn't stretched, or that stands alone */
    uint64_t row;           /* index in the map, when map isn't NULL */
    const void *at;         /* the first byte that is wrong */
    uint64_t place;         /* of it, when map isn't NULL */
    uint32_t expected, found;
    upfront_record record;  /* the thing before the gap, what lived at the byte last, or the chunk's pool; place 0: none is known */
    upfront_record next;    /* the thing behind the gap; place 0: none is known */
    const void *chunk;      /* of a pool: the chunk, else NULL */
    uint64_t chunk_size;    /* its bytes */
} upfront_damage;

/* What is at an address. */
enum {
    UPFRONT_FOUND_THING = 1, /* in a thing: record */
    UPFRONT_FOUND_GAP = 2,   /* behind a thing: record; place 0: before the first one */
    UPFRONT_FOUND_ROOM = 3,  /* where nothing is known to have been */
    UPFRONT_FOUND_LOG = 4    /* in a log */
};

typedef struct upfront_found {
    uint64_t what;
    uint64_t row;          /* index in the map */
    uint64_t window;       /* index of the window */
    uint64_t current;      /* 1: it is the row's current one, and in use */
    uint64_t far_part;     /* 1: at the far end */
    uint64_t live;         /* 1: the record's thing is there still */
    uint64_t offset;       /* of a thing bytes from its start, of a gap bytes from its own start */
    upfront_record record; /* asan: place is 0 always */
} upfront_found;

#ifdef UPFRONT_STRETCHED

/* Bytes of the space that a map of such a plan wants behind it (map.h); 0: out of bounds, or too large to be stretched. */
uint64_t upfront_map_stretch_size(const upfront_map_arena *arenas, uint64_t count, uint64_t slots, uint64_t pools, uint64_t guard);

/* Gives a map that was just made its space: `size` bytes, all zero, right behind its block, whose size is a multiple of UPFRONT_EDGE.
 * UPFRONT_BAD_ARGUMENT, and nothing has changed, when a row has an open scope or the space is too small. After upfront_map_redraw the
 * windows of the rows lie elsewhere: before a scope is opened their bytes, logs included, must be made zero again. */
int upfront_map_stretch(upfront_map *m, uint64_t size);

/* A window of a row: its place and size; `index` is below UPFRONT_WINDOWS. The first `parts` bytes are the two parts; what is behind them,
 * the logs, is read as long as the map is. 0, 0, 0 for a row that isn't stretched. */
void upfront_stretch_window(const upfront_row *r, uint64_t index, uint64_t *place, uint64_t *size, uint64_t *parts);

/* Index of the current window: while no scope is open the one that the next will lie in. */
uint64_t upfront_stretch_current(const upfront_row *r);

/* The current window's parts are zero again: they have got fresh pages. pre: no scope is open. */
void upfront_stretch_renew(upfront_row *r);

/* Checks every gap, all that is dead in the windows in use, and in those that frames and pads have left, and the pools. UPFRONT_OK, or
 * UPFRONT_CORRUPT and the damage that was met first; upfront_on_damage isn't called. Only memdebug finds anything. Cost: O(bytes ever
 * handed out in these windows). */
int upfront_stretch_check(const upfront_map *m, upfront_damage *first);

/* What is, or was, at an address: 0 when it lies in no window of the map. Safe in a signal handler. Cost: O(records of the window). */
int upfront_stretch_find(const upfront_map *m, const void *p, upfront_found *out);

/* Says of the newest thing of a slot who asked for it. Nothing when the slot has none. */
void upfront_stretch_note(upfront_linear *slot, uint32_t made);

/* Says under which names the row hands out from now on: the scope's, and the account's. Nothing when it isn't stretched. */
void upfront_stretch_names(upfront_row *r, uint32_t scope, uint32_t account);

/* Says who closes or rewinds next in the row. */
void upfront_stretch_closed_by(upfront_row *r, uint32_t site);

/* The first damage that was met (what is 0: none), and who is told of each; NULL: the program stops there. It is called from inside the
 * core, on any thread, and must not call the core. */
extern upfront_damage upfront_first_damage;
extern void (*upfront_on_damage)(const upfront_damage *damage);

#endif

#ifdef __cplusplus
}
#endif
#endif
