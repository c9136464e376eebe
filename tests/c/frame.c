/* frame.c - tests of frame.h: buffers that take turns. */
#include "check.h"

static void frame_arguments(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_frame zero, *f;
    uint64_t n;
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_frame_init(NULL, 4096, 2) == NULL);
    CHECK(upfront_frame_init(w + 8, 4096, 2) == NULL);
    CHECK(upfront_frame_init(w, 4096, 1) == NULL);
    CHECK(upfront_frame_init(w, 4096, 9) == NULL);
    CHECK(upfront_frame_init(w, UPFRONT_OFFSET_MAX - UPFRONT_EDGE, 2) == NULL);
    CHECK(upfront_frame_alloc(NULL, 8, 8) == NULL);
    CHECK(upfront_frame_alloc(&zero, 0, 1) == NULL);
    CHECK_EQ(upfront_frame_size(64, 1), 0);
    CHECK_EQ(upfront_frame_size(64, 9), 0);
    CHECK_EQ(upfront_frame_size(0, 2), 0);
    CHECK_EQ(upfront_frame_size(UINT64_MAX, 2), 0);
    CHECK_EQ(upfront_frame_size(UPFRONT_OFFSET_MAX / 8, 8), 0);
    for (n = 2; n <= 8; n++) {
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
        CHECK_EQ(upfront_frame_used(f), 128);
    }
    window_free(w, WINDOW);
}

/* What is made in frame n is there until the end of frame n + N - 1, and then it is dead; its handle says so at each step. */
static void frame_lives(void) {
    enum { SIZE = 3000, TURNS = 30 };
    unsigned char *w = window_new(2 * WINDOW), *made[TURNS];
    uint64_t gen[TURNS], n, place, t, back;
    for (n = 2; n <= 8; n++)
        for (place = 0; place < WINDOW; place += 64 * 211) {
            upfront_frame *f = upfront_frame_init(w + place, SIZE, n);
            for (t = 0; t < TURNS; t++) {
                unsigned char *end = (unsigned char *)(f + 1) + (t % n + 1) * f->size;
                CHECK_EQ(f->current, t % n);
                CHECK_EQ(f->arena.next, t + 1);
                CHECK_EQ(upfront_frame_used(f), 0);
                gen[t] = f->arena.gen;
                made[t] = (unsigned char *)upfront_frame_alloc(f, f->size - 3, 64);
                CHECK(made[t] == end - f->size && (uintptr_t)made[t] % 64 == 0);
                CHECK(upfront_frame_bump(f, gen[t], 4, 0) == NULL);
                CHECK(upfront_frame_bump(f, gen[t], 3, 0) == end - 3); /* to the last byte */
                CHECK(upfront_frame_alloc(f, 1, 1) == NULL);
                fill(made[t], f->size, (int)t);
                CHECK_EQ(upfront_frame_used(f), f->size);
                for (back = 0; back < n && back <= t; back++) {
                    CHECK(holds(made[t - back], f->size, (int)(t - back)));
                    CHECK_EQ(upfront_frame_check(f, gen[t - back]), back == 0 ? UPFRONT_OK : UPFRONT_ORDER);
                }
                for (back = 0; back <= t; back++) { /* no handle of another frame allocates, not even nothing */
                    CHECK(upfront_frame_bump(f, gen[t - back], 1, 0) == NULL);
                    CHECK_EQ(upfront_frame_check(f, gen[t - back]) == UPFRONT_STALE, back >= n);
                }
                upfront_frame_next(f);
                CHECK(upfront_frame_bump(f, gen[t], 0, 0) == NULL);
                if (t + 1 >= n) {
                    CHECK(is_marked(made[t + 1 - n], 1));
                    CHECK(is_marked(made[t + 1 - n] + f->size - 1, 1));
                }
                CHECK(is_marked(made[t], 0));
            }
            CHECK_EQ(upfront_frame_peak(f), f->size);
        }
    window_free(w, 2 * WINDOW);
}

static void frame_figures(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_frame *f = upfront_frame_init(w, 4096, 2);
    CHECK_EQ(upfront_frame_peak(f), 0);
    CHECK(upfront_frame_alloc(f, 100, 8) != NULL);
    CHECK_EQ(upfront_frame_peak(f), 100);
    upfront_frame_next(f);
    CHECK(upfront_frame_alloc(f, 10, 8) != NULL);
    CHECK_EQ(upfront_frame_used(f), 10);
    CHECK_EQ(upfront_frame_peak(f), 100);
    CHECK(upfront_frame_alloc(f, 5000, 8) == NULL);
    CHECK_EQ(f->arena.asked, UPFRONT_ASKED | 5000);
    upfront_frame_next(f);
    upfront_frame_next(f);
    CHECK_EQ(f->arena.asked, 0);
    CHECK_EQ(upfront_frame_check(f, f->arena.gen + 1), UPFRONT_STALE); /* a frame that is yet to come */
    CHECK_EQ(upfront_frame_peak(f), 100);
    window_free(w, WINDOW);
}

void test_frame(void) {
    frame_arguments();
    frame_lives();
    frame_figures();
}
