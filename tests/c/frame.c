/* frame.c - tests of frame.h: buffers that take turns. */
#include "check.h"

static void frame_arguments(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_frame zero, *f;
    uint64_t n;
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_frame_init(NULL, 4096, 2) == NULL);
    CHECK(upfront_frame_init(w + 8, 4096, 2) == NULL);
    CHECK(upfront_frame_init(w, 4096, 0) == NULL);
    CHECK(upfront_frame_init(w, 4096, 9) == NULL);
    CHECK(upfront_frame_init(w, UPFRONT_OFFSET_MAX - UPFRONT_EDGE, 2) == NULL);
    CHECK(upfront_frame_alloc(NULL, 8, 8) == NULL);
    CHECK(upfront_frame_alloc(&zero, 0, 1) == NULL);
    CHECK_EQ(upfront_frame_size(64, 0), 0);
    CHECK_EQ(upfront_frame_size(64, 9), 0);
    CHECK_EQ(upfront_frame_size(0, 2), 0);
    CHECK_EQ(upfront_frame_size(UINT64_MAX, 2), 0);
    CHECK_EQ(upfront_frame_size(UPFRONT_OFFSET_MAX / 8, 8), 0);
    for (n = 1; n <= 8; n++) {
        uint64_t size = upfront_frame_size(100, n), least = upfront_frame_size(1, n);
        CHECK_EQ(size, 128 + n * 128);
        CHECK_EQ(least, 128 + n * 64);
        CHECK(upfront_frame_init(w, least - 1, n) == NULL);
        CHECK(upfront_frame_init(w, least, n) != NULL);
        f = upfront_frame_init(w, size + n * 64 - 1, n);
        CHECK_EQ(f->size, 128);
        CHECK_EQ(f->buffers, n);
        CHECK(upfront_frame_alloc(f, 8, 3) == NULL);
        CHECK(upfront_frame_alloc(f, UINT64_MAX, 1) == NULL);
        CHECK(upfront_frame_alloc(f, 129, 1) == NULL);
        CHECK(upfront_frame_alloc(f, 128, 1) != NULL);
        CHECK(upfront_frame_alloc(f, 1, 1) == NULL);
        CHECK_EQ(f->arena.cursor - f->arena.start, 128);
    }
    window_free(w, WINDOW);
}

/* One buffer: a turn frees it, and only the current frame's handle is valid. */
static void frame_of_one(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_frame *f = upfront_frame_init(w, 4096, 1);
    void *first = upfront_frame_alloc(f, 100, 8);
    uint64_t gen = f->arena.gen;
    CHECK_EQ(f->size, 4096 - 128);
    upfront_frame_next(f);
    CHECK_EQ(f->current, 0);
    CHECK_EQ(f->arena.cursor - f->arena.start, 0);
    CHECK_EQ(upfront_frame_peak(f), 100);
    CHECK(upfront_frame_bump(f, gen, 8, 7) == NULL);
    CHECK(upfront_frame_alloc(f, 100, 8) == first);
    window_free(w, WINDOW);
}

static void frame_figures(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_frame *f = upfront_frame_init(w, 4096, 2);
    CHECK_EQ(upfront_frame_peak(f), 0);
    CHECK(upfront_frame_alloc(f, 100, 8) != NULL);
    CHECK_EQ(upfront_frame_peak(f), 100);
    upfront_frame_next(f);
    CHECK(upfront_frame_alloc(f, 10, 8) != NULL);
    CHECK_EQ(f->arena.cursor - f->arena.start, 10);
    CHECK_EQ(upfront_frame_peak(f), 100);
    CHECK(upfront_frame_alloc(f, 5000, 8) == NULL);
    CHECK_EQ(f->arena.asked, UPFRONT_ASKED | 5000);
    upfront_frame_next(f);
    upfront_frame_next(f);
    CHECK_EQ(f->arena.asked, 0);
    CHECK_EQ(upfront_frame_peak(f), 100);
    window_free(w, WINDOW);
}

void test_frame(void) {
    frame_arguments();
    frame_of_one();
    frame_figures();
}
