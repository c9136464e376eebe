#include "frame.h"

static int frame_count_fits(uint64_t buffers) { return buffers >= UPFRONT_FRAME_MIN && buffers <= UPFRONT_FRAME_MAX; }

uint64_t upfront_frame_size(uint64_t size, uint64_t buffers) {
    if (!frame_count_fits(buffers) || size == 0 || size > UPFRONT_OFFSET_MAX / UPFRONT_FRAME_MAX - UPFRONT_EDGE)
        return 0;
    return sizeof(upfront_frame) + buffers * upfront_round_up(size, UPFRONT_LINE);
}

/* Makes the arena the current buffer, empty. */
static void frame_begin(upfront_frame *f, uint64_t least) {
    upfront_arena *a = &f->arena;
    uint64_t start = sizeof *f + f->current * f->size;
    upfront_arena_bound(a, start, start + f->size);
    a->least = least;
    a->gen = ++a->next;
    f->count = 0;
}

upfront_frame *upfront_frame_init(void *block, uint64_t size, uint64_t buffers) {
    upfront_frame *f;
    if (!frame_count_fits(buffers) || size < sizeof *f + buffers * UPFRONT_LINE)
        return NULL;
    f = (upfront_frame *)upfront_arena_init(block, size, sizeof *f);
    if (f == NULL)
        return NULL;
    f->buffers = buffers;
    f->size = (size - sizeof *f) / buffers & ~(uint64_t)(UPFRONT_LINE - 1);
    f->arena.next = 0;
    frame_begin(f, f->size);
    return f;
}

void *upfront_frame_alloc(upfront_frame *f, uint64_t size, uint64_t align) {
    return upfront_arena_may_ask((upfront_arena *)f, align)
               ? upfront_frame_bump(f, f->arena.gen, upfront_size(size), align - 1)
               : NULL;
}

void upfront_frame_next(upfront_frame *f) {
    if (f == NULL || f->buffers == 0)
        return;
    f->current = f->current + 1 < f->buffers ? f->current + 1 : 0;
    upfront_arena_note(&f->arena);
    frame_begin(f, f->arena.least);
    upfront_mark_dead(upfront_arena_at(&f->arena, f->arena.start), f->size);
}
