/* frame.h - buffers that take turns: what was made in one frame is there in the next, and then gone without a free.
 *
 * Algorithm  N equal linear arenas (linear.h) over one block. One is current; a turn covers it and rewinds the one whose turn it is.
 * Bound      What is made in frame n lives until the end of frame n + N - 1: with two buffers, to the end of the next frame. An
 *            allocation succeeds exactly when it fits in the current buffer, whatever the other buffers hold.
 * Cost       O(1); the hit is that of a linear arena. 64 bytes for each buffer and 64 more.
 * Source     Ranck, "Frame-Based Memory Allocation"; Bitsquid's and the consoles' double-buffered frame heaps.
 *
 * A handle is a buffer's header and its tag. Once the frame has turned, the handle's limit has offset 0 and gives no room; once the
 * buffer's turn has come again, the tag is another one. The hit tells both by the comparison that it makes anyway. */
#ifndef UPFRONT_FRAME_H
#define UPFRONT_FRAME_H

#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UPFRONT_FRAME_MIN = 2, UPFRONT_FRAME_MAX = 8 };

/* One cache line; behind it lie the headers of the buffers, then the buffers, then what is left by the division. */
typedef struct upfront_frame {
    uint64_t buffers; /* how many */
    uint64_t current; /* index of the one that allocates */
    uint64_t size;    /* bytes of each, a multiple of 64 */
    uint64_t turns;   /* how many there were */
    uint64_t peak;    /* the most that one buffer held, as of the last turn */
    uint64_t unused[3];
} upfront_frame;

static inline upfront_linear *upfront_frame_buffer(const upfront_frame *f, uint64_t index) {
    return (upfront_linear *)((uintptr_t)f + sizeof *f) + index;
}

/* The current buffer: with upfront_tag of it, a handle of this frame. */
static inline upfront_linear *upfront_frame_now(const upfront_frame *f) { return upfront_frame_buffer(f, f->current); }

/* Bytes in the current buffer, with padding. */
static inline uint64_t upfront_frame_used(const upfront_frame *f) {
    const upfront_linear *now = upfront_frame_now(f);
    return now->cursor - now->start;
}

/* Of them those that were not asked for: lost to alignment. */
static inline uint64_t upfront_frame_padding(const upfront_frame *f) { return upfront_linear_padding(upfront_frame_now(f)); }

/* The most that one buffer held. */
static inline uint64_t upfront_frame_peak(const upfront_frame *f) {
    uint64_t used = upfront_frame_used(f);
    return used > f->peak ? used : f->peak;
}

/* What became of a handle: UPFRONT_OK, it is the current frame's; UPFRONT_ORDER, the frame has turned, and what was made in it is still
 * there; UPFRONT_STALE, that is dead. */
static inline int upfront_frame_check(const upfront_linear *buffer, uint64_t tag) {
    if (upfront_tag(buffer) != tag)
        return UPFRONT_STALE;
    return (buffer->limit & UPFRONT_OFFSETS) == 0 ? UPFRONT_ORDER : UPFRONT_OK;
}

/* Bytes of a block whose buffers have at least `size` bytes each; 0 when out of bounds. */
uint64_t upfront_frame_size(uint64_t size, uint64_t buffers);

/* Makes `buffers` buffers of the block. NULL when the block is null, not aligned to 64, too large or too small for 64 bytes in each
 * buffer, or when there are fewer than 2 or more than 8. A block may be reused: what was there before is not looked at. */
upfront_frame *upfront_frame_init(void *block, uint64_t size, uint64_t buffers);

/* From the current buffer. NULL: full, or size or align out of bounds. A handle allocates by upfront_linear_bump. */
void *upfront_frame_alloc(upfront_frame *f, uint64_t size, uint64_t align);

/* Ends the frame: the oldest buffer dies and is the current one. */
void upfront_frame_turn(upfront_frame *f);

#ifdef __cplusplus
}
#endif
#endif
