/* frame.h - buffers that take turns: what was made in one frame is there in the next, and then gone without a free.
 *
 * Algorithm  N equal buffers over one block, and one header of arena.h, which is that of the current buffer: a turn moves it to the
 *            next one, and gives it the next generation.
 * Bound      What is made in frame n lives until the end of frame n + N - 1: with two buffers, to the end of the next frame; with one, to the
 *            end of its own, as in a linear arena that is reset. An
 *            allocation succeeds exactly when it fits in the current buffer, whatever the other buffers hold.
 * Cost       O(1); the fast path is that of a linear arena. The header is 128 bytes.
 * Source     Ranck, "Frame-Based Memory Allocation"; Bitsquid's and the consoles' double-buffered frame heaps.
 *
 * A frame's handle is the header and its generation: it allocates while that is the header's, and the N newest generations are those of
 * what is still there. */
#ifndef UPFRONT_FRAME_H
#define UPFRONT_FRAME_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UPFRONT_FRAME_MIN = 1, UPFRONT_FRAME_MAX = 8 };

/* The arena's line, and one more; behind it lie the buffers, then what is left by the division. */
typedef struct upfront_frame {
    upfront_arena arena;
    uint64_t buffers; /* how many */
    uint64_t current; /* index of the one that allocates */
    uint64_t size;    /* bytes of each, a multiple of 64 */
    uint64_t count;   /* in checked builds: bytes that were asked for in the current one */
    uint64_t unused[4];
} upfront_frame;

/* Bytes in the current buffer, with padding. */
static inline uint64_t upfront_frame_used(const upfront_frame *f) { return f->arena.cursor - f->arena.start; }

/* Of them those that were not asked for: lost to alignment. In checked builds; 0 in others. */
static inline uint64_t upfront_frame_padding(const upfront_frame *f) {
#ifdef UPFRONT_CHECKED
    return upfront_frame_used(f) - f->count;
#else
    (void)f;
    return 0;
#endif
}

/* The most that one buffer held. */
static inline uint64_t upfront_frame_peak(const upfront_frame *f) {
    uint64_t free = f->arena.limit - f->arena.cursor;
    return f->size - (free < f->arena.least ? free : f->arena.least);
}

/* What became of a frame: UPFRONT_OK, it is the current one; UPFRONT_ORDER, it has turned, and what was made in it is still there;
 * UPFRONT_STALE, that is dead. */
static inline int upfront_frame_check(const upfront_frame *f, uint64_t gen) {
    if (f->arena.gen == gen)
        return UPFRONT_OK;
    return f->arena.gen - gen < f->buffers ? UPFRONT_ORDER : UPFRONT_STALE;
}

/* size bytes for a frame, as upfront_arena_bump. */
static inline void *upfront_frame_bump(upfront_frame *f, uint64_t gen, uint64_t size, uint64_t mask) {
    void *p = upfront_arena_bump(&f->arena, gen, size, mask);
#ifdef UPFRONT_CHECKED
    if (p != NULL)
        f->count += size;
#endif
    return p;
}

/* Bytes of a block whose buffers have at least `size` bytes each; 0 when out of bounds. */
uint64_t upfront_frame_size(uint64_t size, uint64_t buffers);

/* Makes `buffers` buffers of the block. NULL when the block is null, not aligned to 64, too large or too small for 64 bytes in each
 * buffer, or when there are none or more than 8. A block may be reused: what was there before is not looked at. */
upfront_frame *upfront_frame_init(void *block, uint64_t size, uint64_t buffers);

/* From the current buffer. NULL: full, or size or align out of bounds. */
void *upfront_frame_alloc(upfront_frame *f, uint64_t size, uint64_t align);

/* Ends the frame: the oldest buffer dies and is the current one. */
void upfront_frame_next(upfront_frame *f);

#ifdef __cplusplus
}
#endif
#endif
