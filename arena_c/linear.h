/* linear.h - the aligned bump: one cursor that only moves up, until it is rewound.
 *
 * Algorithm  Round the cursor up to the alignment, compare once, move the cursor.
 * Bound      An allocation of size bytes at offset `at` succeeds exactly when at + size <= limit and the tag is the header's.
 * Cost       O(1); the hit is inlined: 3 loads, 1 comparison, 2 stores.
 * Source     Frykholm, "Custom Memory Allocation in C++"; Llopis, "Start Pre-allocating And Stop Worrying".
 *
 * One comparison answers four questions. `limit` carries the header's generation in its high bits, a handle's tag is that generation.
 * limit - (tag + size) - at is the room left after the allocation if the generations agree. It wraps to a huge number when the room
 * is short; when the generations differ it is off by k * 2^40, which the gap of two bits keeps above 2^38 whatever the offsets are.
 * A limit with offset 0 has room for nothing: that is a covered, frozen or closed header.
 *
 * What is counted costs the hit one addition: a word holds bytes that were asked for and allocations (UPFRONT_OBJECT, base.h). What is in
 * use and wasn't asked for is padding: lost to alignment.
 *
 * A handle that is kept while its slot is opened exactly 2^24 times (or a multiple) is taken for the new one. */
#ifndef UPFRONT_LINEAR_H
#define UPFRONT_LINEAR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The header of a linear arena, and of a scope: one cache line. hit.go has the same struct. */
typedef struct upfront_linear {
    uint64_t cursor;  /* offset of the next free byte */
    uint64_t limit;   /* generation | offset past the last byte; offset 0: nothing fits */
    uint64_t origin;  /* from this header back to offset 0, a boundary of UPFRONT_ALIGN_MAX (modulo 2^64) */
    uint64_t count;   /* bytes asked for since open, and from UPFRONT_OBJECT up allocations */
    uint64_t start;   /* cursor at open */
    uint64_t peak;    /* highest cursor, as of the last rewind or close; of a slot in a row ~index (row.h) */
    uint64_t chain;   /* of a slot in a row the offset of the newest finalizer, 0 for none */
    uint64_t refused; /* tag + size of the last refusal, 0 for none */
} upfront_linear;

static inline uint64_t upfront_tag(const upfront_linear *l) { return l->limit & ~UPFRONT_OFFSETS; }

static inline void *upfront_at(const upfront_linear *l, uint64_t offset) {
    return (char *)(uintptr_t)l + (ptrdiff_t)(l->origin + offset);
}

static inline uint64_t upfront_offset(const upfront_linear *l, const void *p) {
    return upfront_distance(p, l) - l->origin;
}

/* need = tag + size, mask = align - 1. pre: size <= UPFRONT_OFFSET_MAX, align <= UPFRONT_ALIGN_MAX; upfront_linear_alloc checks both. */
static inline void *upfront_linear_bump(upfront_linear *l, uint64_t need, uint64_t size, uint64_t mask) {
    uint64_t at = (l->cursor + mask) & ~mask;
    if (l->limit - need - at >= UPFRONT_OFFSET_MAX) {
        l->refused = need;
        return NULL;
    }
    l->cursor = at + size;
    l->count += UPFRONT_OBJECT + size;
    upfront_mark_live(upfront_at(l, at), size);
    return upfront_at(l, at);
}

/* Makes the last thing that was handed out `size` bytes longer, where it is: what is given lies right behind it. need = tag + size. It is
 * still one thing. pre: as for the bump, and the last thing is this header's own: it wasn't the parent's, nor in an older piece. */
static inline void *upfront_linear_grow(upfront_linear *l, uint64_t need, uint64_t size) {
    uint64_t at = l->cursor;
    if (l->limit - need - at >= UPFRONT_OFFSET_MAX) {
        l->refused = need;
        return NULL;
    }
    l->cursor = at + size;
    l->count += size;
    upfront_mark_live(upfront_at(l, at), size);
    return upfront_at(l, at);
}

/* Of the bytes in use those that were not asked for. After a rewind to a mark it is what is lost at least: which sizes died isn't
 * known. */
static inline uint64_t upfront_linear_padding(const upfront_linear *l) {
    return l->cursor - l->start - upfront_asked(l->count);
}

/* Makes an arena of the block: the header at its front, the rest is room. NULL when the block is null, not aligned to 64, smaller than
 * two lines or too large. A block may be reused: what was there before is not looked at. */
upfront_linear *upfront_linear_init(void *block, uint64_t size);

/* The checked face of the bump for C programs. NULL: full, or size or align out of bounds. */
void *upfront_linear_alloc(upfront_linear *l, uint64_t size, uint64_t align);

/* Moves the cursor back to an earlier value of itself; at the start no bytes are asked for. UPFRONT_ORDER when `cursor` is newer than
 * the cursor or before the start. */
int upfront_linear_rewind(upfront_linear *l, uint64_t tag, uint64_t cursor);

/* Makes the last block longer or shorter where it is. old is the size it has; the caller knows it, the arena keeps none. UPFRONT_FULL when
 * there is no room. UPFRONT_ORDER for a block that is not the last, for one below `floor` (an offset: the newest mark, or the start of a
 * scope, so that what an older owner counts on is left alone), and in a covered scope. UPFRONT_FOREIGN for an address that was not
 * handed out. A block of no bytes lies at the mark, not below it. */
int upfront_linear_resize(upfront_linear *l, uint64_t tag, uint64_t floor, const void *p, uint64_t old, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
