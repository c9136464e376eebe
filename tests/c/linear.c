/* linear.c - tests of linear.h: bounds and generations. */
#include "check.h"

static const uint64_t near_max[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 63, UINT64_C(1) << 63, UINT64_MAX / 2,
                                    UPFRONT_OFFSET_MAX + 1, UPFRONT_OFFSET_MAX, UPFRONT_OFFSET_MAX - 1};

static void linear_init_refuses(void) {
    unsigned char *w = window_new(WINDOW);
    uint64_t i;
    CHECK(upfront_linear_init(NULL, 4096) == NULL);
    for (i = 1; i < UPFRONT_LINE; i++)
        CHECK(upfront_linear_init(w + i, 4096) == NULL);
    for (i = 0; i < 2 * UPFRONT_LINE; i++)
        CHECK(upfront_linear_init(w, i) == NULL);
    CHECK(upfront_linear_init(w, UINT64_MAX) == NULL);
    CHECK(upfront_linear_init(w, UPFRONT_OFFSET_MAX - UPFRONT_EDGE) == NULL);
    CHECK(holds(w, WINDOW, 0)); /* a refusal changes nothing */
    CHECK(upfront_linear_init(w, 2 * UPFRONT_LINE) != NULL);
    window_free(w, WINDOW);
}

static void linear_arguments(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_linear *l = upfront_linear_init(w, WINDOW), before, zero;
    uint64_t i, align;
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_linear_alloc(NULL, 8, 8) == NULL);
    /* before init, when 0 bytes at offset 0 would fit */
    CHECK(upfront_linear_alloc(&zero, 0, 1) == NULL);
    CHECK(upfront_linear_alloc(&zero, 1, 1) == NULL);
    before = *l;
    for (align = 0; align < 200; align++)
        if (align != 1 && (align & (align - 1)) != 0)
            CHECK(upfront_linear_alloc(l, 8, align) == NULL);
    CHECK(upfront_linear_alloc(l, 8, 0) == NULL);
    CHECK(upfront_linear_alloc(l, 8, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_linear_alloc(l, 8, UINT64_C(1) << 63) == NULL);
    CHECK(memcmp(&before, l, sizeof before) == 0);
    for (i = 0; i < sizeof near_max / sizeof near_max[0]; i++)
        for (align = 1; align <= UPFRONT_ALIGN_MAX; align *= 2) {
            CHECK(upfront_linear_alloc(l, near_max[i], align) == NULL);
            CHECK_EQ(l->cursor, before.cursor);
        }
    /* full, then usable again */
    CHECK(upfront_linear_alloc(l, 8, 8) != NULL);
    window_free(w, WINDOW);
}

static void linear_rewinds(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_linear *l = upfront_linear_init(w, WINDOW);
    uint64_t gen = l->gen, start = l->cursor, middle;
    CHECK_EQ(upfront_linear_rewind(NULL, gen, start), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_linear_rewind(l, gen + 1, start), UPFRONT_STALE);
    CHECK_EQ(upfront_linear_rewind(l, gen, start - 1), UPFRONT_ORDER);
    CHECK_EQ(upfront_linear_rewind(l, gen, start + 1), UPFRONT_ORDER);
    CHECK(upfront_linear_alloc(l, 100, 1) != NULL);
    middle = l->cursor;
    CHECK(upfront_linear_alloc(l, WINDOW - 64 - 100, 1) != NULL);
    CHECK(upfront_linear_alloc(l, 1, 1) == NULL);
    CHECK_EQ(upfront_linear_rewind(l, gen, middle), UPFRONT_OK);
    CHECK_EQ(l->least, 0);
    CHECK(upfront_linear_alloc(l, 10, 1) == w + middle);
    CHECK_EQ(upfront_linear_rewind(l, gen, start), UPFRONT_OK);
    CHECK_EQ(l->least, 0); /* a smaller use later doesn't change the least */
    CHECK_EQ(upfront_linear_rewind(l, gen, UINT64_MAX), UPFRONT_ORDER);
    window_free(w, WINDOW);
}

/* Another generation is refused for any size, and only the word that remembers the generation
 * changes. */
static void linear_generations(void) {
    static const uint64_t others[] = {0, 2, 3, UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX};
    static const uint64_t sizes[] = {0, 1, 4096, UPFRONT_OFFSET_MAX - 1};
    unsigned char *w = window_new(WINDOW);
    upfront_linear *l = upfront_linear_init(w, WINDOW), before;
    uint64_t i, k;
    CHECK_EQ(l->gen, 1);
    for (i = 0; i < 6; i++)
        for (k = 0; k < 4; k++) {
            before = *l;
            before.misused = others[i];
            CHECK(upfront_arena_bump(l, others[i], sizes[k], UPFRONT_ALIGN_MAX - 1) == NULL);
            CHECK(memcmp(&before, l, sizeof before) == 0);
            CHECK_EQ(upfront_linear_resize(l, others[i], l->start, w + 64, 0, sizes[k]), UPFRONT_STALE);
        }
    CHECK_EQ(upfront_linear_resize(NULL, 1, 0, w, 0, 0), UPFRONT_BAD_ARGUMENT);
    window_free(w, WINDOW);
}

/* Free bytes are marked dead to the last one, and no byte after the block. */
static void linear_marks(void) {
    unsigned char *w = window_new(WINDOW), *p;
    upfront_linear *l = upfront_linear_init(w, 1024);
    uint64_t start = l->cursor;
    CHECK(is_marked(w + 63, 0) && is_marked(w + 64, 1) && is_marked(w + 1023, 1) && is_marked(w + 1024, 0));
    p = (unsigned char *)upfront_linear_alloc(l, 128, 8);
    CHECK(is_marked(p, 0) && is_marked(p + 127, 0) && is_marked(p + 128, 1));
    CHECK_EQ(upfront_linear_rewind(l, l->gen, start + 64), UPFRONT_OK);
    CHECK(is_marked(p + 63, 0) && is_marked(p + 64, 1) && is_marked(p + 127, 1) && is_marked(w + 1024, 0));
    window_free(w, WINDOW);
}

void test_linear(void) {
    linear_marks();
    linear_init_refuses();
    linear_arguments();
    linear_rewinds();
    linear_generations();
}
