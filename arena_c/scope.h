/* scope.h - scopes for C: open, allocate, add finalizers, close.
 *
 * Algorithm  A scope is a handle of a slot (row.h): the slot and its generation. A finalizer is a node in the slot's chain whose class is
 *            UPFRONT_CLASS_C; behind it lie the function and its argument. Closing runs the chain newest first, then rewinds.
 * Bound      Only the topmost scope of a row allocates, takes finalizers and closes.
 * Cost       O(1), close: O(finalizers). A finalizer takes 32 bytes of the arena.
 * Source     Fredriksson, "Scope Stack Allocation".
 *
 * C and Go share chains: C code that was handed a scope of Go adds its finalizers to it, and whoever closes runs all in one true order; Go
 * crosses into C once for a run of C finalizers. Function and argument are addresses: the one thing in a block that a copy of it can't
 * have. */
#ifndef UPFRONT_SCOPE_H
#define UPFRONT_SCOPE_H

#include "row.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Classes of nodes; the others belong to who made them. A pool's node has the index of its header in the low 20 bits of `what`; what its
 * kind is, 0 for plain data, is the owner's. */
#define UPFRONT_CLASS_C 1
#define UPFRONT_CLASS_POOL 2

typedef struct upfront_scope {
    upfront_linear *slot; /* NULL: no scope */
    uint64_t tag;
} upfront_scope;

typedef void (*upfront_finalizer)(void *arg);

typedef struct upfront_deferred {
    upfront_node node;
    upfront_finalizer finalizer;
    void *arg;
    /* where pointers have 4 bytes: the same 32 bytes everywhere */
#if UINTPTR_MAX == UINT32_MAX
    uint64_t unused;
#endif
} upfront_deferred;

/* The scope allocates: it is live, and neither covered nor frozen. */
static inline int upfront_scope_is_open(upfront_scope s) { return s.slot->limit - s.tag - 1 < UPFRONT_OFFSET_MAX; }

/* size bytes aligned to align; NULL: full, not the topmost, closed, or out of bounds. */
static inline void *upfront_scope_alloc(upfront_scope s, uint64_t size, uint64_t align) {
    if (s.slot == NULL || size > UPFRONT_OFFSET_MAX || !upfront_is_align(align))
        return NULL;
    return upfront_linear_bump(s.slot, s.tag + size, size, align - 1);
}

/* finalizer(arg) runs when the scope closes. UPFRONT_FULL: there was no room for it, so it has run already; nothing is ever lost.
 * UPFRONT_BAD_ARGUMENT for null, UPFRONT_ORDER for a scope that doesn't allocate: then it has not run. */
static inline int upfront_scope_defer(upfront_scope s, upfront_finalizer finalizer, void *arg) {
    upfront_deferred *d;
    if (s.slot == NULL || finalizer == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_scope_is_open(s))
        return UPFRONT_ORDER;
    d = (upfront_deferred *)upfront_linear_bump(s.slot, s.tag + sizeof *d, sizeof *d, 7);
    if (d == NULL) {
        finalizer(arg);
        return UPFRONT_FULL;
    }
    d->finalizer = finalizer;
    d->arg = arg;
    upfront_row_link(s.slot, &d->node, UPFRONT_CLASS_C, 0);
    return UPFRONT_OK;
}

/* Opens a scope on top of the row. slot is NULL when the topmost one is frozen, or all slots are open. */
upfront_scope upfront_scope_open(upfront_row *r);

/* A pool of count chunks that closes with the scope. NULL: full, no free header, not the topmost, or out of bounds. */
upfront_pool *upfront_scope_pool(upfront_scope s, uint64_t size, uint64_t align, uint64_t count);

/* size bytes of temporaries at the far end; they are gone when the scope that first asked for some closes. NULL: full, not the topmost, or
 * out of bounds. */
void *upfront_scope_temp(upfront_scope s, uint64_t size, uint64_t align);

/* Runs the finalizers, newest first, and rewinds to where the scope was opened. UPFRONT_STALE for a closed scope, UPFRONT_ORDER for one
 * that isn't the topmost, that is closing, or whose chain holds what isn't C's, a finalizer or a pool of objects: who made that closes it.
 * Nothing has changed then. While its finalizers run, a scope is frozen. */
int upfront_scope_close(upfront_scope s);

/* The slot's chain holds nothing but C finalizers and plain pools. Cost: O(chain). */
int upfront_scope_is_c(const upfront_linear *slot);

/* Runs the C finalizers and closes the plain pools at the head of the chain: up to the node at offset `until`, or to the first that isn't
 * C's. Gives the number of finalizers. It is for who closes a scope whose chain is mixed. */
uint64_t upfront_scope_run(upfront_linear *slot, uint64_t until);

#ifdef __cplusplus
}
#endif
#endif
