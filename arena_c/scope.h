/* scope.h - lifetimes that nest on an arena: open a scope, allocate, add finalizers, close it and
 * free all.
 *
 * Algorithm  Each end of an arena has a header. Each open scope has a record: its generation, and
 *            the state to restore. The header holds the generation that may allocate, each record
 *            the generation of a live scope. While a newer scope covers a scope, or once a scope is
 *            frozen, it is alive but may not allocate. The actions of a close are one chain of
 *            nodes, newest first. A node is a word before its object. A close runs nodes until the
 *            chain is as it was at open, then restores cursor and generation. Temporary scopes use
 *            the far end. Each temporary scope has a fixed size, and closes by a node in the chain
 *            of the scope that made it.
 * Example    Scope 1 has a node A. Scope 2 is opened on it and adds B, then C: the chain is C, B,
 *            A. Scope 2's record says that the chain was A, so its close runs C and B and stops
 *            there.
 * Bound      Only the topmost scope allocates, adds nodes and closes.
 * Cost       Open and allocate O(1), close O(nodes), find O(scopes open). Only a temporary scope
 *            takes bytes of the arena; a node takes 8 and padding.
 * Source     Fredriksson, "Scope Stack Allocation"; Ranck, "Frame-Based Memory Allocation", for the
 *            two ends.
 *
 * C and Go link their finalizers into the same chain, so all run in one order, newest first. Go
 * calls C once for consecutive finalizers of C. The addresses of these finalizers and their
 * arguments are the only addresses in a block. In a copy of the block they are invalid. */
#ifndef UPFRONT_SCOPE_H
#define UPFRONT_SCOPE_H

#include "arena.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Classes of nodes. The arena's owner (in Go package scope) may define others. */
#define UPFRONT_CLASS_NONE 0 /* an object without a declared kind */
#define UPFRONT_CLASS_C 1    /* an upfront_deferred */
#define UPFRONT_CLASS_POOL 2 /* a word: the index of the pool's header */
#define UPFRONT_CLASS_TEMP 3 /* a word: the generation of a temporary scope */

/* Bits of `odd`. The others are the owner's. */
#define UPFRONT_CLOSING 1  /* nodes are running */
#define UPFRONT_BUILDING 2 /* the topmost scope uses all free bytes: no other may open */

/* The header: one cache line for the arena, and one for its scopes. */
typedef struct upfront_scopes {
    upfront_arena arena;
    uint64_t chain;   /* offset of the newest node's object; 0: none */
    uint64_t odd;     /* not 0: Go's Open and Close take the slow path */
    uint64_t depth;   /* number of open scopes */
    uint64_t slots;   /* maximum of open scopes */
    uint64_t base;    /* number of lowest scopes that only the owner closes */
    uint64_t records; /* bytes from this header to the first record */
    uint64_t back;    /* bytes from its upfront_row to this header */
    uint64_t owner;   /* for the owner */
} upfront_scopes;

/* An open scope. Record 0 is the state without a scope. */
typedef struct upfront_record {
    uint64_t mark;  /* cursor at open */
    uint64_t chain; /* chain at open */
    uint64_t gen;   /* its generation; 0: closed */
    uint64_t asked; /* the header's `asked` while the scope is covered */
    uint64_t count; /* checked builds: bytes asked for, plus UPFRONT_OBJECT for each allocation */
    uint64_t limit; /* temporary scopes: the far header's `limit` at open */
    uint64_t edge;  /* temporary scopes: the near header's `limit` at open */
    uint64_t ran;   /* C's finalizers that ran and that the owner hasn't counted */
} upfront_record;

/* The word before a node's object: bits 0 to 39 are the offset of the older node's object, those
 * above are the class. */
typedef uint64_t upfront_node;
#define UPFRONT_NODE_CLASS (UINT64_C(1) << 40)

typedef struct upfront_scope {
    upfront_scopes *arena; /* NULL: no scope */
    uint64_t gen;
} upfront_scope;

enum { UPFRONT_NAME_SIZE = 32 };

/* An arena of an upfront_map (map.h), with a header for each end. */
typedef struct upfront_row {
    upfront_scopes arena;
    upfront_scopes temp;
    char name[UPFRONT_NAME_SIZE];
    uint64_t kind; /* the owner's: region, frame, scratch */
    /* bits 0 to 31: number among its siblings; above: the map's index of the first one */
    uint64_t kin;
    uint64_t end;        /* offset past the last byte, from the arena's header */
    uint64_t pools;      /* number of pool headers */
    uint64_t headers;    /* bytes from this row to the first pool header, modulo 2^64 */
    uint64_t unused[7];  /* fills the last cache line */
    upfront_record over; /* zeros, read in place of the records after upfront_map_over */
} upfront_row;

typedef void (*upfront_finalizer)(void *arg);

typedef struct upfront_deferred {
    upfront_finalizer finalizer;
    void *arg;
    /* 16 bytes on every target */
#if UINTPTR_MAX == UINT32_MAX
    uint64_t unused;
#endif
} upfront_deferred;

static inline upfront_record *upfront_scopes_record(const upfront_scopes *h, uint64_t index) {
    return (upfront_record *)((uintptr_t)h + (uintptr_t)h->records) + index;
}

static inline upfront_row *upfront_row_of(const upfront_scopes *h) {
    return (upfront_row *)((uintptr_t)h - (uintptr_t)h->back);
}

static inline upfront_pool *upfront_row_pool(const upfront_row *r, uint64_t index) {
    return (upfront_pool *)((uintptr_t)r + (uintptr_t)r->headers) + index;
}

/* Returns the map's index of the row's first sibling. */
static inline uint64_t upfront_row_group(const upfront_row *r) { return r->kin >> 32; }

/* Returns the row's number among its siblings. */
static inline uint64_t upfront_row_sibling(const upfront_row *r) { return r->kin & UINT32_MAX; }

/* Returns the bytes in use at both ends. */
static inline uint64_t upfront_row_used(const upfront_row *r) {
    const upfront_arena *a = &r->arena.arena;
    return a->cursor - a->start + (r->end - a->limit);
}

static inline upfront_record *upfront_scopes_top(const upfront_scopes *h) { return upfront_scopes_record(h, h->depth); }

static inline void upfront_scopes_count(upfront_scopes *h, uint64_t size) {
#ifdef UPFRONT_CHECKED
    upfront_scopes_top(h)->count += UPFRONT_OBJECT + size;
#else
    (void)h, (void)size;
#endif
}

/* Returns size bytes for a scope, as upfront_arena_bump does, and counts them in checked builds. */
static inline void *upfront_scopes_bump(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t mask) {
    void *p = upfront_arena_bump(&h->arena, gen, size, mask);
    if (p != NULL)
        upfront_scopes_count(h, size);
    return p;
}

/* Makes the newest object, which begins at offset `from`, `size` bytes longer in place. Returns the
 * address of the first new byte; NULL as upfront_arena_bump. */
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

/* Moves the cursor for upfront_scopes_node and sets *at to the object's offset. Returns 0 if it
 * doesn't fit or gen may not allocate. */
static inline int upfront_scopes_node_room(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t mask,
                                           uint64_t *at) {
    upfront_arena *a = &h->arena;
    *at = upfront_arena_up(a, a->cursor + sizeof(upfront_node), mask);
    if (!upfront_arena_take(a, gen, *at, size)) {
        (void)upfront_arena_refuse(a, gen, size + sizeof(upfront_node));
        return 0;
    }
    upfront_scopes_count(h, size + sizeof(upfront_node));
    return 1;
}

/* Marks the object at an offset and its node's word as live. Returns the object. */
static inline void *upfront_scopes_node_mark(upfront_scopes *h, uint64_t at, uint64_t size) {
    upfront_node *word = (upfront_node *)upfront_arena_at(&h->arena, at) - 1;
    return (upfront_node *)upfront_mark_node(word, size + sizeof *word) + 1;
}

/* Allocates size bytes after a node's word, and doesn't link the node. Returns the bytes; NULL as
 * upfront_arena_bump. mask is at least 7. */
static inline void *upfront_scopes_node(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t mask) {
    uint64_t at;
    return upfront_scopes_node_room(h, gen, size, mask, &at) ? upfront_scopes_node_mark(h, at, size) : NULL;
}

/* Adds the node of an object from upfront_scopes_node to the chain. */
static inline void upfront_scopes_link(upfront_scopes *h, void *object, uint64_t class_) {
    ((upfront_node *)object)[-1] = class_ * UPFRONT_NODE_CLASS | h->chain;
    h->chain = upfront_arena_offset(&h->arena, object);
}

/* Returns the object of the node at an offset of the chain. */
static inline void *upfront_scopes_object(const upfront_scopes *h, uint64_t offset) {
    return (upfront_node *)upfront_position((upfront_node *)upfront_arena_at(&h->arena, offset) - 1) + 1;
}

/* Takes the newest node out of the chain. Returns its object, and its class in *class_. pre: the
 * chain isn't empty. */
static inline void *upfront_scopes_unlink(upfront_scopes *h, uint64_t *class_) {
    void *object = upfront_scopes_object(h, h->chain);
    upfront_node node = ((upfront_node *)object)[-1];
    *class_ = node / UPFRONT_NODE_CLASS;
    h->chain = node % UPFRONT_NODE_CLASS;
    return object;
}

/* Opens a scope on top and returns its generation. pre: depth < slots, and the topmost scope, if
 * any, may allocate. */
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

/* Closes the topmost scope; changes only the header and records. */
static inline void upfront_scopes_pop(upfront_scopes *h) {
    upfront_arena *a = &h->arena;
    upfront_record *r = upfront_scopes_top(h);
    upfront_arena_back(a, r->mark);
    r->gen = 0;
    h->depth--;
    a->asked = r[-1].asked;
    a->gen = r[-1].gen;
}

/* Opens a temporary scope after upfront_scope_temp_room; changes only the headers and records.
 * Returns its generation. */
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

/* Closes the newest temporary scope; changes only the headers and records. */
static inline void upfront_scopes_temp_pop(upfront_scopes *temp) {
    upfront_arena *near_end = &upfront_row_of(temp)->arena.arena;
    const upfront_record *top = upfront_scopes_top(temp);
    upfront_arena_note(near_end);
    near_end->limit = top->edge;
    temp->arena.cursor = top->mark; /* of the older scope, which keeps all its bytes */
    temp->arena.limit = top->limit;
    upfront_scopes_pop(temp);
}

/* Closes the topmost scope. When the owner's lowest scope closes, the whole row is dead memory.
 * pre: depth != 0, and the scope's nodes have run. */
static inline void upfront_scopes_close(upfront_scopes *h) {
    upfront_arena *a = &h->arena;
    uint64_t mark = upfront_scopes_top(h)->mark;
    int over = h->depth == 1 && h->base != 0;
    upfront_mark_ended(upfront_arena_at(a, mark), a->cursor - mark, over ? UPFRONT_REWOUND : UPFRONT_CLOSED);
    upfront_scopes_pop(h);
    if (over)
        upfront_mark_over(upfront_arena_at(a, a->start), upfront_row_of(h)->end - a->start);
}

static inline int upfront_scope_is_open(upfront_scope s) {
    return s.arena != NULL && s.arena->arena.gen == s.gen && s.gen != 0;
}

/* Returns size bytes aligned to align. NULL: the arena is full, the scope may not allocate, or
 * align is invalid. */
static inline void *upfront_scope_alloc(upfront_scope s, uint64_t size, uint64_t align) {
    if (s.arena == NULL || s.gen == 0 || !upfront_is_align(align))
        return NULL;
    return upfront_scopes_bump(s.arena, s.gen, upfront_size(size), align - 1);
}

/* Makes the scope run finalizer(arg) when it closes. UPFRONT_FULL: the arena had no bytes for the
 * node, and the finalizer has already run. UPFRONT_BAD_ARGUMENT (null) and UPFRONT_ORDER (the scope
 * may not allocate): the finalizer hasn't run. */
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

/* Opens a scope on top of the arena. The result's `arena` is NULL if the topmost scope is frozen,
 * closing or building, if all records are taken, or for a far end's header, which only
 * upfront_scope_temp uses. */
upfront_scope upfront_scope_open(upfront_scopes *h);

/* Makes a pool of count chunks that closes with the scope. NULL, with the scope unchanged: full, no
 * free pool header, the scope may not allocate, or an argument is out of bounds. */
upfront_pool *upfront_scope_pool(upfront_scope s, uint64_t size, uint64_t align, uint64_t count);

/* Makes a pool with a kind, which is the owner's number for the chunks' type, and with handles if
 * `handles` isn't 0. No two open pools of an arena share a handle. Returns UPFRONT_OK,
 * UPFRONT_FULL, which the scope remembers, UPFRONT_TABLE_FULL, UPFRONT_BAD_ARGUMENT or
 * UPFRONT_ORDER. Cost: O(count + pools). */
int upfront_scope_pool_of(upfront_scope s, uint64_t size, uint64_t align, uint64_t count, uint32_t kind, int handles,
                          upfront_pool **out);

/* Opens a temporary scope of exactly `size` bytes at the far end, aligned to a cache line. The
 * temporary scope closes with s, after newer temporary scopes. s may be the newest temporary scope
 * itself. The result's `arena` is NULL if it doesn't fit (s remembers the refusal), s may not
 * allocate, all records are taken, or a scope is closing or building. */
upfront_scope upfront_scope_temp(upfront_scope s, uint64_t size);

/* Moves the cursor for upfront_scope_temp's node. Sets *at to the offset of the node's object from
 * s's header, and *from to the offset of the new scope's first byte from the near header. Returns 0
 * where upfront_scope_temp would fail. pre: at and from are not NULL. */
int upfront_scope_temp_room(upfront_scope s, uint64_t size, uint64_t *at, uint64_t *from);

/* Runs the nodes, newest first, and restores the arena. UPFRONT_STALE for a closed scope.
 * UPFRONT_ORDER, with nothing changed, for a scope that isn't the topmost, is closing or frozen,
 * belongs to the owner, or has a node that C can't end. UPFRONT_ORDER also while a temporary scope
 * is closing. */
int upfront_scope_close(upfront_scope s);

/* Reports whether the scope is alive: topmost, covered or frozen. Cost: O(scopes open). */
int upfront_scope_is_alive(upfront_scope s);

/* Reports whether C can end all nodes of the chain down to `until`, or to the chain's end. Cost:
 * O(nodes). */
int upfront_scopes_is_c(const upfront_scopes *h, uint64_t until);

/* Runs the chain down to `until` or to the first node that C can't end. Returns the number of
 * finalizers run. */
uint64_t upfront_scopes_run(upfront_scopes *h, uint64_t until);

/* Runs the finalizers of C at the head of the chain, down to `until` or to the first other node.
 * The topmost record counts each one before it runs. So if one calls Go code that panics, the code
 * that unwinds continues with the next. */
void upfront_scopes_run_deferred(upfront_scopes *h, uint64_t until);

/* Makes a row at `r` for the bytes [start, end) from `origin`. Its records, slots + 1 for each end,
 * begin `records` bytes after r, and the headers of its pools `headers` bytes after r. Generations
 * continue from those in the row; a row of zeros begins at 0. */
void upfront_row_init(upfront_row *r, const void *origin, const char *name, uint64_t start, uint64_t end,
                      uint64_t slots, uint64_t pools, uint64_t records, uint64_t headers);

/* Closes the newest temporary scope. pre: its nodes have run. */
void upfront_scopes_temp_close(upfront_scopes *temp);

/* Returns the index of the open scope's record with the generation; 0: none. Cost: O(scopes
 * open). */
uint64_t upfront_scopes_find(const upfront_scopes *h, uint64_t gen);

#ifdef __cplusplus
}
#endif
#endif
