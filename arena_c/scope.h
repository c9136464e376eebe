/* scope.h - lifetimes that nest on an arena: open, allocate, add finalizers, close.
 *
 * Algorithm  An arena has one header; an open scope has one record: what Close puts back, and its own generation. The header's generation
 *            is who may allocate, the record's who is alive: a covered or frozen scope is alive and may not allocate. All that must happen
 *            at Close is a node of one chain, newest first: a word before what it is about. To close is to run the chain down to where it
 *            was, and to put cursor and generation back.
 *            Temporaries lie at the far end, on a header of their own: each is a scope of exactly so many bytes, and a node in the chain of
 *            the scope that asked ends it.
 * Bound      Only the topmost scope allocates, takes nodes and closes. Near end and far end never meet.
 * Cost       O(1), close: O(nodes). A scope costs no byte of the arena, a node 8.
 * Source     Fredriksson, "Scope Stack Allocation"; Ranck, "Frame-Based Memory Allocation", for the two ends.
 *
 * C and Go share chains: whoever closes runs all in one true order; Go crosses into C once for a run of C's finalizers. Function and
 * argument are addresses: the one thing in a block that a copy of it can't have. */
#ifndef UPFRONT_SCOPE_H
#define UPFRONT_SCOPE_H

#include "arena.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Classes of nodes; the others belong to who made them. */
#define UPFRONT_CLASS_NONE 0 /* of an object whose kind was never declared */
#define UPFRONT_CLASS_C 1    /* an upfront_deferred */
#define UPFRONT_CLASS_POOL 2 /* a word: the index of the pool's header */
#define UPFRONT_CLASS_TEMP 3 /* a word: the generation of a scope at the far end */

/* Why Open and Close take the long way. The other bits belong to the owner. */
#define UPFRONT_CLOSING 1  /* nodes are running */
#define UPFRONT_BUILDING 2 /* the topmost scope uses all that is free: nobody opens another */

/* The header: the arena's line, and one for its scopes. */
typedef struct upfront_scopes {
    upfront_arena arena;
    uint64_t chain;   /* offset of the newest node's object; 0: none */
    uint64_t odd;     /* not 0: Open and Close take the long way */
    uint64_t depth;   /* open scopes */
    uint64_t slots;   /* there may be */
    uint64_t base;    /* the lowest scopes that only the owner closes */
    uint64_t records; /* from this header to the first record */
    uint64_t back;    /* from this header back to its upfront_row */
    uint64_t owner;   /* the owner's */
} upfront_scopes;

/* An open scope. Record 0 is nobody's: what there is while none is open. */
typedef struct upfront_record {
    uint64_t mark;  /* cursor at open */
    uint64_t chain; /* chain at open */
    uint64_t gen;   /* its generation; 0: closed */
    uint64_t asked; /* `asked` of the header while the scope is covered */
    uint64_t count; /* in checked builds: bytes asked for, and from UPFRONT_OBJECT up allocations */
    uint64_t limit; /* of a temporary scope: the header's limit at open */
    uint64_t edge;  /* and the near end's */
    uint64_t ran;   /* finalizers of C, and whoever closes the scope hasn't counted them yet */
} upfront_record;

/* The word before a node's object: the next older node's, and from UPFRONT_NODE_CLASS up the class. */
typedef uint64_t upfront_node;
#define UPFRONT_NODE_CLASS (UINT64_C(1) << 40)

typedef struct upfront_scope {
    upfront_scopes *arena; /* NULL: no scope */
    uint64_t gen;
} upfront_scope;

/* What the map keeps of one arena: a header for each end, and behind this the records of both, then the pools' headers. */
enum { UPFRONT_NAME_SIZE = 32 };

typedef struct upfront_row {
    upfront_scopes arena;
    upfront_scopes temp;
    char name[UPFRONT_NAME_SIZE];
    uint64_t kind;  /* the owner's: region, frame, scratch */
    uint64_t kin;   /* its place among its siblings; from bit 32 up the index of the first of them in the map */
    uint64_t end;   /* past the last byte, from the arena's header */
    uint64_t pools; /* pool headers */
    uint64_t headers; /* from this row to the first of them, modulo 2^64 */
    uint64_t unused[7]; /* whole lines */
    upfront_record over; /* zero: what is found instead of records when the map is over */
} upfront_row;

typedef void (*upfront_finalizer)(void *arg);

typedef struct upfront_deferred {
    upfront_finalizer finalizer;
    void *arg;
    /* where pointers have 4 bytes: the same 16 bytes everywhere */
#if UINTPTR_MAX == UINT32_MAX
    uint64_t unused;
#endif
} upfront_deferred;

static inline upfront_record *upfront_scopes_record(const upfront_scopes *h, uint64_t index) {
    return (upfront_record *)((uintptr_t)h + (uintptr_t)h->records) + index;
}

static inline upfront_row *upfront_row_of(const upfront_scopes *h) { return (upfront_row *)((uintptr_t)h - (uintptr_t)h->back); }

static inline upfront_pool *upfront_row_pool(const upfront_row *r, uint64_t index) {
    return (upfront_pool *)((uintptr_t)r + (uintptr_t)r->headers) + index;
}

/* Index of the first of the row's siblings in the map, and its place among them. */
static inline uint64_t upfront_row_group(const upfront_row *r) { return r->kin >> 32; }

static inline uint64_t upfront_row_sibling(const upfront_row *r) { return r->kin & UINT32_MAX; }

/* Bytes in use at both ends. */
static inline uint64_t upfront_row_used(const upfront_row *r) {
    const upfront_arena *a = &r->arena.arena;
    return a->cursor - a->start + (r->end - a->limit);
}

/* The most that was in use at once. */
static inline uint64_t upfront_row_peak(const upfront_row *r) {
    const upfront_arena *a = &r->arena.arena;
    uint64_t free = a->limit - a->cursor;
    return r->end - a->start - (free < a->least ? free : a->least);
}

static inline upfront_record *upfront_scopes_top(const upfront_scopes *h) { return upfront_scopes_record(h, h->depth); }

static inline void upfront_scopes_count(upfront_scopes *h, uint64_t size) {
#ifdef UPFRONT_CHECKED
    upfront_scopes_top(h)->count += UPFRONT_OBJECT + size;
#else
    (void)h, (void)size;
#endif
}

/* size bytes for a scope, as upfront_arena_bump. */
static inline void *upfront_scopes_bump(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t mask) {
    void *p = upfront_arena_bump(&h->arena, gen, size, mask);
    if (p != NULL)
        upfront_scopes_count(h, size);
    return p;
}

/* Makes what was handed out last, and begins at offset `from`, `size` bytes longer, where it is: what is given lies right behind it. */
static inline void *upfront_scopes_grow(upfront_scopes *h, uint64_t gen, uint64_t from, uint64_t size) {
    upfront_arena *a = &h->arena;
    uint64_t at = a->cursor;
    if (!upfront_arena_take(a, gen, at, size))
        return upfront_arena_refuse(a, gen, size);
#ifdef UPFRONT_CHECKED
    upfront_scopes_top(h)->count += size;
#endif
    return upfront_mark_more(upfront_arena_at(a, from), upfront_arena_at(a, at), size);
}

/* The header's part of upfront_scopes_node: whether there is room. The object lies at offset `at` then. */
static inline int upfront_scopes_node_room(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t mask, uint64_t *at) {
    upfront_arena *a = &h->arena;
    *at = upfront_arena_up(a, a->cursor + sizeof(upfront_node), mask);
    if (!upfront_arena_take(a, gen, *at, size)) {
        (void)upfront_arena_refuse(a, gen, size + sizeof(upfront_node));
        return 0;
    }
    upfront_scopes_count(h, size + sizeof(upfront_node));
    return 1;
}

/* The object at an offset, of `size` bytes, with its word before it. */
static inline void *upfront_scopes_node_mark(upfront_scopes *h, uint64_t at, uint64_t size) {
    upfront_node *word = (upfront_node *)upfront_arena_at(&h->arena, at) - 1;
    return (upfront_node *)upfront_mark_node(word, size + sizeof *word) + 1;
}

/* size bytes with a node's word before them, which is not linked yet. mask is at least 7. */
static inline void *upfront_scopes_node(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t mask) {
    uint64_t at;
    return upfront_scopes_node_room(h, gen, size, mask, &at) ? upfront_scopes_node_mark(h, at, size) : NULL;
}

/* Links what upfront_scopes_node gave. */
static inline void upfront_scopes_link(upfront_scopes *h, void *object, uint64_t class_) {
    ((upfront_node *)object)[-1] = class_ * UPFRONT_NODE_CLASS | h->chain;
    h->chain = upfront_arena_offset(&h->arena, object);
}

/* The object of the node at an offset of the chain. */
static inline void *upfront_scopes_object(const upfront_scopes *h, uint64_t offset) {
    return (upfront_node *)upfront_position((upfront_node *)upfront_arena_at(&h->arena, offset) - 1) + 1;
}

/* Takes the newest node out of the chain: its object, and its class. pre: there is one. */
static inline void *upfront_scopes_unlink(upfront_scopes *h, uint64_t *class_) {
    void *object = upfront_scopes_object(h, h->chain);
    upfront_node node = ((upfront_node *)object)[-1];
    *class_ = node / UPFRONT_NODE_CLASS;
    h->chain = node % UPFRONT_NODE_CLASS;
    return object;
}

/* Opens a scope on top; gives its generation. pre: depth < slots, and the topmost scope, if any, may allocate. */
static inline uint64_t upfront_scopes_open(upfront_scopes *h) {
    upfront_arena *a = &h->arena;
    upfront_record *r = upfront_scopes_top(h);
    r->asked = a->asked;
    r++;
    r->mark = a->cursor;
    r->chain = h->chain;
    r->gen = ++a->next;
    r->count = r->edge = 0;
    h->depth++;
    a->asked = 0;
    return a->gen = r->gen;
}

/* The header's part of upfront_scopes_close. */
static inline void upfront_scopes_pop(upfront_scopes *h) {
    upfront_arena *a = &h->arena;
    upfront_record *r = upfront_scopes_top(h);
    upfront_arena_back(a, r->mark);
    r->gen = 0;
    h->depth--;
    a->asked = r[-1].asked;
    a->gen = r[-1].gen;
}

/* The headers' part of upfront_scope_temp, after upfront_scope_temp_room: gives the generation. */
static inline uint64_t upfront_scopes_temp_open(upfront_scopes *temp, uint64_t from, uint64_t size) {
    upfront_arena *near_end = &upfront_row_of(temp)->arena.arena;
    uint64_t gen = upfront_scopes_open(temp);
    upfront_record *top = upfront_scopes_top(temp);
    top->limit = temp->arena.limit;
    top->edge = near_end->limit;
    near_end->limit = from;
    temp->arena.cursor = from - temp->back;
    temp->arena.limit = temp->arena.cursor + size;
    return gen;
}

/* And of upfront_scopes_temp_close. */
static inline void upfront_scopes_temp_pop(upfront_scopes *temp) {
    upfront_arena *near_end = &upfront_row_of(temp)->arena.arena;
    const upfront_record *top = upfront_scopes_top(temp);
    upfront_arena_note(near_end);
    near_end->limit = top->edge;
    temp->arena.cursor = top->mark; /* of the older one, of which nothing dies */
    temp->arena.limit = top->limit;
    upfront_scopes_pop(temp);
}

/* Closes the topmost scope. pre: depth != 0, and its part of the chain has run. With the lowest of the owner's the row ends. */
static inline void upfront_scopes_close(upfront_scopes *h) {
    upfront_arena *a = &h->arena;
    uint64_t mark = upfront_scopes_top(h)->mark;
    int over = h->depth == 1 && h->base != 0;
    upfront_mark_ended(upfront_arena_at(a, mark), a->cursor - mark, over ? UPFRONT_REWOUND : UPFRONT_CLOSED);
    upfront_scopes_pop(h);
    if (over)
        upfront_mark_over(upfront_arena_at(a, a->start), upfront_row_of(h)->end - a->start);
}

/* The scope is alive and may allocate no more until it closes. pre: it is the topmost. */
static inline void upfront_scopes_freeze(upfront_scopes *h) { h->arena.gen = 0; }

static inline int upfront_scope_is_open(upfront_scope s) { return s.arena != NULL && s.arena->arena.gen == s.gen && s.gen != 0; }

/* size bytes aligned to align; NULL: full, not the topmost, closed, or no alignment. */
static inline void *upfront_scope_alloc(upfront_scope s, uint64_t size, uint64_t align) {
    if (s.arena == NULL || s.gen == 0 || !upfront_is_align(align))
        return NULL;
    return upfront_scopes_bump(s.arena, s.gen, upfront_size(size), align - 1);
}

/* finalizer(arg) runs when the scope closes. UPFRONT_FULL: there was no room for it, so it has run already; nothing is ever lost.
 * UPFRONT_BAD_ARGUMENT for null, UPFRONT_ORDER for a scope that doesn't allocate: then it has not run. */
static inline int upfront_scope_defer(upfront_scope s, upfront_finalizer finalizer, void *arg) {
    upfront_deferred *d;
    if (s.arena == NULL || finalizer == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_scope_is_open(s))
        return UPFRONT_ORDER;
    d = (upfront_deferred *)upfront_scopes_node(s.arena, s.gen, sizeof *d, 7);
    if (d == NULL) {
        finalizer(arg);
        return UPFRONT_FULL;
    }
    d->finalizer = finalizer;
    d->arg = arg;
    upfront_scopes_link(s.arena, d, UPFRONT_CLASS_C);
    return UPFRONT_OK;
}

/* Opens a scope on top of the arena. `arena` is NULL when the topmost one is frozen, closing or building, or all records are taken;
 * and for the header of a far end, where scopes are upfront_scope_temp's. */
upfront_scope upfront_scope_open(upfront_scopes *h);

/* A pool of count chunks that closes with the scope. NULL: full, no free header, not the topmost, or out of bounds; the scope is as it
 * was then. */
upfront_pool *upfront_scope_pool(upfront_scope s, uint64_t size, uint64_t align, uint64_t count);

/* The same with a kind, which is the owner's: what the chunks hold; and with handles, if they are not 0: that of another pool which is open
 * on the arena names nothing. Codes: UPFRONT_FULL, which the scope remembers; UPFRONT_TABLE_FULL;
 * UPFRONT_BAD_ARGUMENT; UPFRONT_ORDER. Cost: O(count + pools). */
int upfront_scope_pool_of(upfront_scope s, uint64_t size, uint64_t align, uint64_t count, uint32_t kind, int handles,
                          upfront_pool **out);

/* A scope of exactly `size` bytes at the far end, aligned to a line. It ends with s, and newer ones before it. `arena` is NULL: full,
 * which s remembers; s isn't the topmost; all records are taken. s may itself be such a scope, the newest. */
upfront_scope upfront_scope_temp(upfront_scope s, uint64_t size);

/* The headers' part of upfront_scope_temp: whether there is room. The node's object lies at offset `at` of s's header then, and
 * the bytes from offset `from` of the near end's on. pre: at and from are not NULL. */
int upfront_scope_temp_room(upfront_scope s, uint64_t size, uint64_t *at, uint64_t *from);

/* Runs the nodes, newest first, and puts the arena back. UPFRONT_STALE for a closed scope, UPFRONT_ORDER for one that isn't the topmost,
 * that is closing or frozen, that its owner closes, or whose chain holds what isn't C's: who made that closes it; and while a scope at
 * the far end is closing. Nothing has changed then. */
int upfront_scope_close(upfront_scope s);

/* Whether the scope is alive: the topmost, covered or frozen. Cost: O(scopes open). */
int upfront_scope_is_alive(upfront_scope s);

/* The chain down to `until` holds nothing but what C can run. Cost: O(nodes). */
int upfront_scopes_is_c(const upfront_scopes *h, uint64_t until);

/* Runs what C can run at the head of the chain: down to `until`, or to the first node that isn't C's. Gives the number of finalizers. */
uint64_t upfront_scopes_run(upfront_scopes *h, uint64_t until);

/* Runs C's own finalizers at the head of the chain, and nothing else, down to `until`. Each is counted in the topmost
 * record before it runs: one that calls back may not come back, and who unwinds goes on with the next. */
void upfront_scopes_run_deferred(upfront_scopes *h, uint64_t until);

/* Makes a row at `r` for the bytes [start, end) counted from `origin`. Its records, slots + 1 of each end, lie `records` bytes behind it,
 * and its pools' headers `headers`. Generations that are there already go on; a table of zeros begins at generation 0. */
void upfront_row_init(upfront_row *r, const void *origin, const char *name, uint64_t start, uint64_t end, uint64_t slots,
                      uint64_t pools, uint64_t records, uint64_t headers);

/* Closes the newest scope at the far end, whose chain has run. */
void upfront_scopes_temp_close(upfront_scopes *temp);

/* The index of the record that has the generation, 0: none. Cost: O(scopes open). */
uint64_t upfront_scopes_find(const upfront_scopes *h, uint64_t gen);

#ifdef __cplusplus
}
#endif
#endif
