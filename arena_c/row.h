/* row.h - one arena of the map with its scopes: lifetimes that nest on a linear arena.
 *
 * Algorithm  A row has a fixed number of slots, each the header of a linear arena (linear.h). Slot n is the n-th nested scope. Opening
 *            covers the parent (its limit drops to offset 0) and lets the child go on from the parent's cursor; closing uncovers it.
 *            Temporaries come from the far end in pieces: one more slot, whose limit is the upper edge of its newest piece.
 * Bound      Near end and far end never meet: a piece is taken only above the cursor of the topmost scope.
 * Cost       O(1). A scope costs no byte of the arena; its header is the slot, 64 bytes of the control tables.
 * Source     Fredriksson, "Scope Stack Allocation"; Ranck, "Frame-Based Memory Allocation", for the two ends.
 *
 * Finalizers are nodes of 16 bytes in the arena, linked newest first from the scope's slot. The core links and unlinks them; who opened
 * the scope runs them. A row lies in the control tables: [row][slots][far slot][pools]. */
#ifndef UPFRONT_ROW_H
#define UPFRONT_ROW_H

#include "linear.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UPFRONT_NAME_SIZE = 32 };

/* A piece of the far end is a quarter of what is free, but at most this, or as much as is asked for. */
#define UPFRONT_PIECE UPFRONT_EDGE

typedef struct upfront_row {
    char name[UPFRONT_NAME_SIZE];
    uint64_t owner;      /* the owner's: who runs the finalizers */
    uint64_t kind;       /* the owner's: region, frame, pad */
    uint64_t start;      /* offset of the arena's first byte */
    uint64_t end;        /* offset past its last byte */
    uint64_t edge;       /* where the far end begins; end when there is none */
    uint64_t peak;       /* highest sum of both ends, as of the last close */
    uint64_t open;       /* open scopes; the topmost is slot open - 1 */
    uint64_t slots;      /* slots, without the far one */
    uint64_t pools;      /* pool headers */
    uint64_t far_of;     /* open when the far end was opened, 0: not open */
    uint64_t kin;        /* its place among its siblings; from bit 32 up the index of the first of them in the map */
    uint64_t unused;     /* 0 */
} upfront_row;

/* A finalizer in the arena. */
typedef struct upfront_node {
    uint64_t below; /* offset of the next older node, 0: none; above UPFRONT_GENERATION the class */
    uint64_t what;  /* what to finalize: the class knows how to read it */
} upfront_node;

/* Index of the first of the row's siblings in the map, and its place among them. */
static inline uint64_t upfront_row_group(const upfront_row *r) { return r->kin >> 32; }

static inline uint64_t upfront_row_sibling(const upfront_row *r) { return r->kin & UINT32_MAX; }

static inline upfront_linear *upfront_row_slot(const upfront_row *r, uint64_t index) {
    return (upfront_linear *)((uintptr_t)r + sizeof *r) + index;
}

static inline upfront_linear *upfront_row_far(const upfront_row *r) { return upfront_row_slot(r, r->slots); }

static inline upfront_pool *upfront_row_pool(const upfront_row *r, uint64_t index) {
    return (upfront_pool *)(upfront_row_far(r) + 1) + index;
}

/* The slot's place in its row; the far slot's is `slots`. The row notes the peak of its scopes, so the word is free: ~index is above every
 * cursor, and what notes a peak leaves it. */
static inline uint64_t upfront_row_index(const upfront_linear *slot) { return ~slot->peak; }

static inline upfront_row *upfront_row_of(const upfront_linear *slot) {
    return (upfront_row *)((uintptr_t)(slot - upfront_row_index(slot)) - sizeof(upfront_row));
}

#ifdef UPFRONT_ASAN
/* The count of a bottom slot that was never opened: the row's bytes aren't poisoned yet. */
#define UPFRONT_UNMARKED UINT64_MAX
#endif

/* Bytes of the control tables that a row needs. */
static inline uint64_t upfront_row_size(uint64_t slots, uint64_t pools) {
    return sizeof(upfront_row) + (slots + 1) * sizeof(upfront_linear) + pools * sizeof(upfront_pool);
}

static inline uint64_t upfront_row_used(const upfront_row *r) {
    uint64_t near_end = r->open == 0 ? r->start : upfront_row_slot(r, r->open - 1)->cursor;
    return near_end - r->start + (r->end - r->edge);
}

/* Of the bytes in use those that no open scope was asked for: lost to alignment, and the rests of the pieces at the far end. Cost:
 * O(scopes open). */
static inline uint64_t upfront_row_padding(const upfront_row *r) {
    uint64_t i, padding = upfront_row_used(r);
    for (i = 0; i < r->open; i++)
        padding -= upfront_asked(upfront_row_slot(r, i)->count);
    return r->far_of == 0 ? padding : padding - upfront_asked(upfront_row_far(r)->count);
}

/* The offsets that a slot's things lie between: of a near one from where its scope began to its cursor; at the far end of all pieces, with
 * what is free in the newest. */
static inline void upfront_row_bounds(const upfront_row *r, uint64_t index, uint64_t *from, uint64_t *to) {
    const upfront_linear *slot = upfront_row_slot(r, index);
    *from = index == r->slots ? r->edge : slot->start;
    *to = index == r->slots ? r->end : slot->cursor;
}

static inline void upfront_row_note_peak(upfront_row *r) {
    uint64_t used = upfront_row_used(r);
    if (used > r->peak)
        r->peak = used;
}

/* Opens the scope in slot `open`. pre: r->open < r->slots; and the topmost scope, if any, isn't frozen. Returns the tag. */
static inline uint64_t upfront_row_open(upfront_row *r) {
    upfront_linear *child = upfront_row_slot(r, r->open);
    uint64_t tag = upfront_tag(child);
#ifdef UPFRONT_ASAN
    if (r->open == 0 && child->count == UPFRONT_UNMARKED)
        upfront_mark_dead(upfront_at(child, r->start), r->end - r->start);
#endif
    child->cursor = r->start;
    if (r->open != 0) {
        upfront_linear *parent = child - 1;
        child->cursor = parent->cursor;
        parent->limit &= ~UPFRONT_OFFSETS;
    }
    child->start = child->cursor;
    child->count = 0;
    child->chain = 0;
    child->refused = 0;
    child->limit = tag | r->edge;
    r->open++;
    return tag;
}

/* Closes the topmost scope: rewinds, uncovers the parent. pre: r->open != 0, the scope's chain is empty, its far end and its pools are
 * closed: a pool's header lies in the tables and would go on handing out chunks. */
static inline void upfront_row_close(upfront_row *r) {
    upfront_linear *child = upfront_row_slot(r, r->open - 1);
    upfront_row_note_peak(r);
    upfront_mark_dead(upfront_at(child, child->start), child->cursor - child->start);
    child->cursor = child->start;
    child->limit = upfront_tag(child) + UPFRONT_GENERATION;
    r->open--;
    if (r->open != 0)
        (child - 1)->limit |= r->edge;
}

/* The slot gives no more room until it is closed, or uncovered. */
static inline void upfront_row_freeze(upfront_linear *slot) { slot->limit &= ~UPFRONT_OFFSETS; }

/* Takes a finalizer's node: 16 bytes, aligned to 8. It is not in the chain yet. NULL when full. */
static inline upfront_node *upfront_row_node(upfront_linear *slot, uint64_t tag) {
    return (upfront_node *)upfront_linear_bump(slot, tag + sizeof(upfront_node), sizeof(upfront_node), 7);
}

/* Puts the node at the head of the chain. pre: the slot is live; class < 2^24. */
static inline void upfront_row_link(upfront_linear *slot, upfront_node *node, uint64_t class_, uint64_t what) {
    node->below = class_ * UPFRONT_GENERATION | slot->chain;
    node->what = what;
    slot->chain = upfront_offset(slot, node);
}

/* Takes the newest node out of the chain; false when it is empty. The node's words are copied: it may die at once. */
static inline int upfront_row_unlink(upfront_linear *slot, upfront_node *out) {
    if (slot->chain == 0)
        return 0;
    *out = *(upfront_node *)upfront_at(slot, slot->chain);
    slot->chain = out->below & UPFRONT_OFFSETS;
    return 1;
}

/* Makes a row at `r`, inside a table of upfront_row_size bytes, for the arena [start, end) counted from `origin`, a boundary of
 * UPFRONT_EDGE. Generations that are there already go on; a table of zeros begins at generation 0. */
void upfront_row_init(upfront_row *r, const void *origin, const char *name, uint64_t start, uint64_t end, uint64_t slots,
                      uint64_t pools);

/* Opens the far end for the topmost scope; it has no room until the first piece. Returns its tag. pre: r->open != 0, it isn't open. */
uint64_t upfront_row_far_open(upfront_row *r);

/* Makes room for size bytes aligned to align at the far end: a new piece. UPFRONT_FULL when it would meet the near end, UPFRONT_ORDER
 * when the far end isn't open, UPFRONT_BAD_ARGUMENT for a bad alignment. The room that is left in the old piece is lost
 * until the far end closes. */
int upfront_row_far_grow(upfront_row *r, uint64_t size, uint64_t align);

/* Gives all pieces back; nothing when it isn't open. pre: its chain is empty. */
void upfront_row_far_close(upfront_row *r);

/* Moves the topmost scope's cursor back, and its count with it: for a constructor that failed. pre: `was` is a copy of the header from
 * since it was opened, and what was handed out then is still there. */
void upfront_row_rewind(upfront_row *r, const upfront_linear *was);

/* A pool in the given scope: header in the tables, bytes in the arena. UPFRONT_FULL: no room (out is NULL, the slot remembers the
 * refusal); UPFRONT_TABLE_FULL: no free header; UPFRONT_BAD_ARGUMENT: out of bounds. Cost: O(count + pools). */
int upfront_row_pool_open(upfront_linear *slot, uint64_t tag, uint64_t size, uint64_t align, uint64_t count, uint64_t kind,
                          upfront_pool **out);

#ifdef __cplusplus
}
#endif
#endif
