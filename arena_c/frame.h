/* frame.h - allocates for some frames and frees a whole frame at once: N buffers take turns.
 *
 * Algorithm  N equal buffers in one block. The header of arena.h serves the current buffer. At a
 *            turn the header moves to the next buffer and gets the next generation.
 * Bound      Objects made in frame n live until frame n + N - 1 ends: with one buffer until frame n
 *            ends, with two buffers until the next frame ends. An allocation succeeds exactly when
 *            it fits in the current buffer.
 * Cost       O(1); the fast path is that of a linear arena. The header is 128 bytes.
 * Source     Ranck, "Frame-Based Memory Allocation"; Bitsquid's and the consoles' double-buffered
 *            frame heaps.
 *
 * A frame's handle is the header and a generation. The handle may allocate while its generation is
 * the header's. The objects of the N newest generations are alive. */
#ifndef UPFRONT_FRAME_H
#define UPFRONT_FRAME_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UPFRONT_FRAME_MIN = 1, UPFRONT_FRAME_MAX = 8 };

/* One cache line for the arena, and one more. The buffers follow, then the bytes that remain of the
 * division. */
typedef struct upfront_frame {
    upfront_arena arena;
    uint64_t buffers; /* number of buffers */
    uint64_t current; /* index of the buffer that allocates */
    uint64_t size;    /* bytes of each buffer, a multiple of 64 */
    uint64_t count;   /* in checked builds: bytes asked for in the current buffer */
    uint64_t unused[4];
} upfront_frame;

/* Returns the highest use of a buffer in bytes. */
static inline uint64_t upfront_frame_peak(const upfront_frame *f) {
    uint64_t free = f->arena.limit - f->arena.cursor;
    return f->size - (free < f->arena.least ? free : f->arena.least);
}

/* Returns size bytes for a frame, as upfront_arena_bump does. */
static inline void *upfront_frame_bump(upfront_frame *f, uint64_t gen, uint64_t size, uint64_t mask) {
    void *p = upfront_arena_bump(&f->arena, gen, size, mask);
#ifdef UPFRONT_CHECKED
    if (p != NULL)
        f->count += size;
#endif
    return p;
}

/* Returns the size of a block whose buffers have at least `size` bytes each; 0 if an argument is
 * out of bounds. */
uint64_t upfront_frame_size(uint64_t size, uint64_t buffers);

/* Makes an arena of `buffers` buffers, UPFRONT_FRAME_MIN to _MAX, with at least 64 bytes each. */
upfront_frame *upfront_frame_init(void *block, uint64_t size, uint64_t buffers);

/* Allocates from the current buffer. */
void *upfront_frame_alloc(upfront_frame *f, uint64_t size, uint64_t align);

/* Ends the frame: frees the oldest buffer, which becomes the current one. */
void upfront_frame_next(upfront_frame *f);

#ifdef __cplusplus
}
#endif
#endif
