#include "frame.h"

static uint64_t frame_headers(uint64_t buffers) { return sizeof(upfront_frame) + buffers * sizeof(upfront_linear); }

static int frame_count_fits(uint64_t buffers) { return buffers >= UPFRONT_FRAME_MIN && buffers <= UPFRONT_FRAME_MAX; }

static uint64_t frame_end(const upfront_frame *f, const upfront_linear *buffer) { return buffer->start + f->size; }

uint64_t upfront_frame_size(uint64_t size, uint64_t buffers) {
    if (!frame_count_fits(buffers) || size == 0 || size > UPFRONT_OFFSET_MAX / UPFRONT_FRAME_MAX - UPFRONT_EDGE)
        return 0;
    return frame_headers(buffers) + buffers * upfront_round_up(size, UPFRONT_LINE);
}

upfront_frame *upfront_frame_init(void *block, uint64_t size, uint64_t buffers) {
    upfront_frame *f = (upfront_frame *)block;
    uint64_t skew = upfront_skew(block), front = frame_headers(buffers), i;
    if (!frame_count_fits(buffers) || !upfront_is_block(block, size, front + buffers * UPFRONT_LINE))
        return NULL;
    UPFRONT_UNPOISON(f, front); /* the block may have been the inside of another arena */
    memset(f, 0, (size_t)front);
    f->buffers = buffers;
    f->size = (size - front) / buffers & ~(uint64_t)(UPFRONT_LINE - 1);
    for (i = 0; i < buffers; i++) {
        upfront_linear *l = upfront_frame_buffer(f, i);
        l->origin = 0 - skew - upfront_distance(l, f);
        l->start = l->cursor = l->peak = skew + front + i * f->size;
        l->limit = UPFRONT_GENERATION; /* covered */
    }
    upfront_frame_now(f)->limit |= frame_end(f, upfront_frame_now(f));
    upfront_mark_dead((char *)block + front, size - front);
    return f;
}

void *upfront_frame_alloc(upfront_frame *f, uint64_t size, uint64_t align) {
    return f == NULL || f->buffers == 0 ? NULL : upfront_linear_alloc(upfront_frame_now(f), size, align);
}

void upfront_frame_turn(upfront_frame *f) {
    upfront_linear *l = upfront_frame_now(f);
    f->peak = upfront_frame_peak(f);
    l->limit &= ~UPFRONT_OFFSETS;
    f->turns++;
    f->current = f->current + 1 < f->buffers ? f->current + 1 : 0;
    l = upfront_frame_now(f);
    upfront_mark_dead(upfront_at(l, l->start), l->cursor - l->start);
    if (l->peak < l->cursor)
        l->peak = l->cursor;
    l->cursor = l->start;
    l->count = l->refused = 0;
    l->limit = (upfront_tag(l) + UPFRONT_GENERATION) | frame_end(f, l);
}
