/* arena.c - tests of arena.h: the two questions, what is handed out and taken back, and what is remembered. */
#include "check.h"

/* Two scopes on an arena of `size` bytes; the header lies `skew` lines behind a boundary of UPFRONT_ALIGN_MAX, as maps do. */
static upfront_row *arena_row(unsigned char *w, uint64_t skew, uint64_t size) {
    upfront_row *r = (upfront_row *)(void *)(w + skew * UPFRONT_LINE);
    CHECK(skew * UPFRONT_LINE + upfront_row_size(2, 0) < WINDOW);
    upfront_row_init(r, w, "arena", WINDOW, WINDOW + size, 2, 0);
    return r;
}

static void arena_bumps(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_arena *a = &arena_row(w, 1, 1000)->arena.arena;
    uint64_t gen;
    CHECK_EQ(upfront_arena_offset(a, w + WINDOW), a->start);
    CHECK(upfront_arena_at(a, a->start) == w + WINDOW);
    CHECK(upfront_arena_bump(a, 1, 0, 0) == NULL); /* nobody's yet */
    CHECK_EQ(a->misused, 1);
    gen = upfront_scopes_open(&arena_row(w, 1, 1000)->arena);
    CHECK(a->misused == 0 && gen == 1 && a->gen == 1);
    CHECK(upfront_arena_bump(a, gen, 100, 0) == w + WINDOW);
    CHECK(is_marked(w + WINDOW, 0) && is_marked(w + WINDOW + 99, 0));
    fill(w + WINDOW, 100, 1);
    CHECK(upfront_arena_bump(a, gen, 8, 7) == w + WINDOW + 104);
    CHECK(upfront_arena_bump(a, gen, 0, 63) == w + WINDOW + 128);
    CHECK(upfront_arena_bump(a, gen, 872, 0) == w + WINDOW + 128); /* to the last byte */
    fill(w + WINDOW + 128, 872, 2);
    CHECK(holds(w + WINDOW, 100, 1));
    CHECK_EQ(a->cursor, a->limit);
    CHECK_EQ(a->asked, 0);
    CHECK(upfront_arena_bump(a, gen, 0, 0) == w + WINDOW + 1000); /* no byte fits, no bytes do */
    CHECK(upfront_arena_bump(a, gen, 1, 0) == NULL);
    CHECK_EQ(a->asked, UPFRONT_ASKED | 1);
    CHECK(upfront_arena_bump(a, gen, 0, 15) == NULL); /* the aligned cursor is behind the limit */
    CHECK_EQ(a->asked, UPFRONT_ASKED);
    CHECK(upfront_arena_bump(a, gen, UPFRONT_OFFSET_MAX - 1, UPFRONT_ALIGN_MAX - 1) == NULL);
    CHECK_EQ(a->asked, UPFRONT_ASKED | (UPFRONT_OFFSET_MAX - 1));
    CHECK(upfront_arena_bump(a, gen + 1, 0, 0) == NULL && upfront_arena_bump(a, gen - 1, 0, 0) == NULL);
    CHECK_EQ(a->misused, gen - 1);
    CHECK_EQ(a->asked, UPFRONT_ASKED | (UPFRONT_OFFSET_MAX - 1)); /* a stranger's refusal isn't this scope's */
    window_free(w, 2 * WINDOW);
}

/* Of the address, wherever the header lies. */
static void arena_aligns(void) {
    enum { SIZE = 3 << 20 };
    uint64_t align, size, skew;
    unsigned char *w = window_new(WINDOW + SIZE);
    for (skew = 0; skew < 3; skew++)
        for (align = 1; align <= UPFRONT_ALIGN_MAX; align *= 2)
            for (size = 1; size < 200; size += 66) {
                upfront_scopes *h = &arena_row(w, skew, SIZE)->arena;
                upfront_arena *a = &h->arena;
                uint64_t gen = upfront_scopes_open(h);
                unsigned char *p = (unsigned char *)upfront_scopes_bump(h, gen, size, 0), *q, *was;
                CHECK(p == w + WINDOW);
                q = (unsigned char *)upfront_scopes_bump(h, gen, size, align - 1);
                CHECK(q >= p + size && q < p + size + align && (uintptr_t)q % align == 0);
                CHECK(upfront_arena_at(a, a->cursor) == q + size);
                was = q + size;
                if (align < 8)
                    continue;
                q = (unsigned char *)upfront_scopes_node(h, gen, size, align - 1);
                CHECK(q >= was + 8 && q < was + 8 + align && (uintptr_t)q % align == 0); /* the word lies right before it */
                upfront_scopes_link(h, q, UPFRONT_CLASS_NONE);
                CHECK_EQ(upfront_arena_offset(a, q), h->chain);
            }
    window_free(w, WINDOW + SIZE);
}

static void arena_cuts(void) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = arena_row(w, 2, 1000);
    upfront_arena *a = &r->arena.arena;
    uint64_t gen = upfront_scopes_open(&r->arena);
    CHECK_EQ(a->least, 1000);
    CHECK_EQ(upfront_row_peak(r), 0);
    CHECK(upfront_arena_bump(a, gen, 304, 0) != NULL && upfront_arena_bump(a, gen, 400, 0) != NULL);
    CHECK_EQ(upfront_row_peak(r), 704);
    upfront_arena_cut(a, a->start + 304);
    CHECK(is_marked(w + WINDOW + 303, 0) && is_marked(w + WINDOW + 304, 1) && is_marked(w + WINDOW + 703, 1));
    CHECK(upfront_row_used(r) == 304 && upfront_row_peak(r) == 704 && a->least == 296);
    CHECK(upfront_arena_bump(a, gen, 100, 0) == w + WINDOW + 304);
    CHECK(is_marked(w + WINDOW + 304, 0) && is_marked(w + WINDOW + 404, 1));
    upfront_arena_cut(a, a->start);
    CHECK(upfront_row_used(r) == 0 && upfront_row_peak(r) == 704 && a->least == 296); /* the least stays the least */
    window_free(w, 2 * WINDOW);
}

void test_arena(void) {
    arena_bumps();
    arena_aligns();
    arena_cuts();
}
