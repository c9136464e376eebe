/* ends.h - a linear arena with two ends: the far end is for temporaries, and comes down towards the cursor.
 *
 * Algorithm  The near end is the bump of linear.h. The far end rounds down from the limit and moves the limit there, so that the near
 *            end's one comparison knows of it without a look.
 * Bound      An allocation succeeds at either end exactly when it fits between the two with its padding: they touch, and never meet.
 * Cost       O(1); both hits are inlined. The header is 128 bytes.
 * Source     Frykholm, "Custom Memory Allocation in C++"; the far end is the double-ended stack of the Bitsquid streams.
 *
 * It remembers the newest mark of each end, because two things would break an older block without it: a resize of the last block when
 * it lies below a mark, and a rewind to a mark that a rewind has passed meanwhile. Both are refused. */
#ifndef UPFRONT_ENDS_H
#define UPFRONT_ENDS_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a second end needs: one cache line behind the linear header. Its position is the offset in the limit. */
typedef struct upfront_far_end {
    uint64_t end;      /* offset past the last byte of the block: where the far end begins */
    uint64_t low;      /* the lowest position, as of the last rewind */
    uint64_t count;    /* of the far end: bytes asked for, and from UPFRONT_OBJECT up allocations */
    uint64_t mark;     /* the near end's newest mark */
    uint64_t far_mark; /* the far end's newest mark */
    uint64_t chain;    /* of a stack (stack.h): offset of the far end's last live block, 0 for none */
    uint64_t unused[2];
} upfront_far_end;

typedef struct upfront_ends {
    upfront_linear linear;
    upfront_far_end far_end;
} upfront_ends;

static inline uint64_t upfront_far_at(const upfront_linear *l) { return l->limit & UPFRONT_OFFSETS; }

/* The near end's hit is upfront_linear_bump. This is the far end's: mask = align - 1; pre: as there.
 * limit - tag is the far end's position if the generations agree, else it is off by k * 2^40; so the one comparison answers both. */
static inline void *upfront_ends_bump_far(upfront_ends *e, uint64_t tag, uint64_t size, uint64_t mask) {
    upfront_linear *l = &e->linear;
    uint64_t at = (l->limit - tag - size) & ~mask;
    void *p;
    if (at - l->cursor >= UPFRONT_OFFSET_MAX) {
        l->refused = tag + size;
        return NULL;
    }
    l->limit = tag | at;
    e->far_end.count += UPFRONT_OBJECT + size;
    p = upfront_at(l, at);
    upfront_mark_live(p, size);
    return p;
}

/* The position of the near end, to rewind to. It is remembered as the newest mark. */
static inline uint64_t upfront_ends_mark(upfront_ends *e) { return e->far_end.mark = e->linear.cursor; }

static inline uint64_t upfront_ends_mark_far(upfront_ends *e) { return e->far_end.far_mark = upfront_far_at(&e->linear); }

/* Makes an arena of the block: the header at its front, the rest is room. NULL when the block is null, not aligned to 64, smaller than
 * three lines or too large. */
upfront_ends *upfront_ends_init(void *block, uint64_t size);

/* NULL: full, or size or align out of bounds. */
void *upfront_ends_alloc(upfront_ends *e, uint64_t size, uint64_t align);
void *upfront_ends_alloc_far(upfront_ends *e, uint64_t size, uint64_t align);

/* Frees what that end allocated since the mark. UPFRONT_ORDER for a mark that is newer than the newest one, as one is that a rewind has
 * passed; for one before the start; and so for a mark of the other end. */
int upfront_ends_rewind(upfront_ends *e, uint64_t tag, uint64_t mark);
int upfront_ends_rewind_far(upfront_ends *e, uint64_t tag, uint64_t mark);

/* upfront_linear_resize with the newest mark as the floor. */
int upfront_ends_resize(upfront_ends *e, uint64_t tag, const void *p, uint64_t old, uint64_t size);

/* Frees everything at both ends. */
void upfront_ends_reset(upfront_ends *e);

#ifdef __cplusplus
}
#endif
#endif
