/* intrusive.c - tests of intrusive.h. */
#include "check.h"

static void intrusive_fill(uint64_t size, uint64_t stride) {
    unsigned char *w = window_new(WINDOW);
    uint64_t count = size / stride, i, turn;
    upfront_intrusive p;
    upfront_intrusive_init(&p, w, size, stride);
    for (turn = 0; turn < 3; turn++) {
        for (i = 0; i < count; i++) {
            unsigned char *chunk = (unsigned char *)upfront_intrusive_get(&p);
            /* in order of address, then the last one put */
            CHECK(chunk == w + (turn == 0 ? i : count - 1 - i) * stride);
            CHECK(is_marked(chunk, 0) && is_marked(chunk + stride - 1, 0));
            fill(chunk, stride, (int)i);
        }
        CHECK(upfront_intrusive_get(&p) == NULL);
        for (i = 0; i < count; i++) {
            unsigned char *chunk = w + i * stride;
            CHECK(holds(chunk, stride, (int)(turn == 0 ? i : count - 1 - i)));
            upfront_intrusive_put(&p, chunk);
            /* the link is in the first word */
            CHECK(stride == 8 || is_marked(chunk + stride - 1, 1));
        }
    }
    window_free(w, WINDOW);
}

void test_intrusive(void) {
    uint64_t size, stride;
    for (stride = 8; stride < 2000; stride += stride / 2 / 8 * 8 + 8)
        for (size = 0; size < 8192; size = size * 2 + 7)
            intrusive_fill(size, stride);
}
