/* buddy_misuse.c - tests of buddy.h: every address without a live block, and every flipped bit of
 * the bytes. */
#include "check.h"

static void misuse_addresses(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_buddy *b = buddy_of_plain(w, 8192, 64);
    unsigned char *a = (unsigned char *)upfront_buddy_alloc(b, 1024, 1), *c =
          (unsigned char *)upfront_buddy_alloc(b, 64, 1);
    uint64_t i;
    CHECK_EQ(upfront_buddy_free(b, NULL), UPFRONT_OK);
    CHECK_EQ(upfront_buddy_size_of(b, NULL), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_buddy_free(b, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_buddy_free(b, w + b->first - 1), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_buddy_free(b, w + b->end), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_buddy_free(b, &i), UPFRONT_FOREIGN);
    for (i = 1; i < 1024; i++) {
        CHECK_EQ(upfront_buddy_free(b, a + i), UPFRONT_MISALIGNED);
        CHECK(upfront_buddy_realloc(b, a + i, 8) == NULL && b->failed == 0);
    }
    CHECK_EQ(upfront_buddy_free(b, c + 1), UPFRONT_MISALIGNED);
    CHECK(upfront_buddy_free(b, a) == UPFRONT_OK && upfront_buddy_free(b, c) == UPFRONT_OK);
    for (i = b->first; i < b->end; i++)
        CHECK_EQ(upfront_buddy_free(b, w + i), UPFRONT_DOUBLE);
    CHECK(upfront_buddy_realloc(b, a, 8) == NULL && b->failed == 0 && b->live == 0);
    CHECK_EQ(upfront_buddy_walk(b, NULL, 0, NULL), UPFRONT_OK);
    window_free(w, WINDOW);
}

enum { MISUSE_LIVE = 12 };

/* A buddy of 41 smallest blocks from the 11th on, with live and free blocks of many orders. */
typedef struct misused {
    unsigned char *window, *bytes;
    upfront_buddy *b, was;
    unsigned char state[48];
    char *live[MISUSE_LIVE];
} misused;

static misused misused_new(uint64_t seed) {
    enum { COUNT = 41, FROM = 11, FRONT = 256 };
    misused m;
    uint64_t i;
    m.window = window_new(UPFRONT_ALIGN_MAX + WINDOW);
    m.b = buddy_of_plain(m.window + UPFRONT_ALIGN_MAX + 64 * FROM - FRONT, FRONT + 64 * COUNT,
          64);
    CHECK(m.b != NULL && m.b->low == FROM && m.b->end - m.b->first == 64 * COUNT);
    for (i = 0; i < MISUSE_LIVE; i++)
        m.live[i] = (char *)upfront_buddy_alloc(m.b, UINT64_C(64) << (next_random(&seed) % 4), 1);
    for (i = 0; i < MISUSE_LIVE; i += 1 + next_random(&seed) % 3) {
        CHECK_EQ(upfront_buddy_free(m.b, m.live[i]), UPFRONT_OK);
        m.live[i] = NULL;
    }
    m.was = *m.b;
    m.bytes = (unsigned char *)(m.b + 1);
    memcpy(m.state, m.bytes, sizeof m.state);
    UPFRONT_UNPOISON(m.window, UPFRONT_ALIGN_MAX + WINDOW);
    return m;
}

static void misused_restore(misused *m) {
    *m->b = m->was;
    memcpy(m->bytes, m->state, sizeof m->state);
    UPFRONT_UNPOISON(m->window, UPFRONT_ALIGN_MAX + WINDOW);
}

/* For any state bytes, no access is outside of them and no allocation outside of the blocks. */
static void misused_bears(misused *m, uint64_t seed) {
    uint64_t i;
    for (i = 0; i < 30; i++) {
        char *p = m->live[next_random(&seed) % MISUSE_LIVE], *first = (char *)m->b + m->b->first,
              *end = (char *)m->b + m->b->end;
        uint64_t size = UINT64_C(64) << (next_random(&seed) % 7);
        if (next_random(&seed) % 3 == 0) {
            (void)upfront_buddy_free(m->b, p != NULL ? p : first + 64 * (next_random(&seed) % 41));
            continue;
        }
        UPFRONT_UNPOISON(first, 64 * 41); /* realloc may copy a free block */
        p = (char *)upfront_buddy_realloc(m->b, next_random(&seed) % 2 == 0 ? p : NULL, size);
        CHECK(p == NULL || (p >= first && p + size <= end));
    }
}

/* Flips each bit of the bytes; the walk finds it. */
static void bits_are_found(uint64_t seed) {
    misused m = misused_new(seed);
    uint64_t bit, in_use = ((upfront_buddy_high(m.b) + 1) & ~UINT64_C(1)) -
          (m.b->low & ~UINT64_C(1)) - 1;
    CHECK(upfront_buddy_walk(m.b, NULL, 0, NULL) == UPFRONT_OK && in_use <= sizeof m.state);
    for (bit = 0; bit < 8 * in_use; bit++) {
        m.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK_EQ(upfront_buddy_walk(m.b, NULL, 0, NULL), UPFRONT_CORRUPT);
        misused_bears(&m, seed + bit);
        CHECK(memcmp(m.bytes + in_use, m.state + in_use, (size_t)(sizeof m.state - in_use)) == 0);
        misused_restore(&m);
    }
    for (bit = 0; bit < 64; bit++) { /* flips each bit of the counts, too */
        m.b->used ^= UINT64_C(1) << bit;
        CHECK_EQ(upfront_buddy_walk(m.b, NULL, 0, NULL), UPFRONT_CORRUPT);
        misused_restore(&m);
        m.b->live ^= UINT64_C(1) << bit;
        CHECK_EQ(upfront_buddy_walk(m.b, NULL, 0, NULL), UPFRONT_CORRUPT);
        misused_restore(&m);
    }
    m.b->phase = m.b->used - 1;
    CHECK_EQ(upfront_buddy_walk(m.b, NULL, 0, NULL), UPFRONT_CORRUPT);
    m.b->phase = m.b->peak + 1;
    CHECK_EQ(upfront_buddy_walk(m.b, NULL, 0, NULL), UPFRONT_CORRUPT);
    misused_restore(&m);
    m.b->scattered = m.b->failed + 1;
    CHECK_EQ(upfront_buddy_walk(m.b, NULL, 0, NULL), UPFRONT_CORRUPT);
    misused_restore(&m);
    CHECK_EQ(upfront_buddy_walk(m.b, NULL, 0, NULL), UPFRONT_OK);
    window_free(m.window, UPFRONT_ALIGN_MAX + WINDOW);
}

/* All state bytes are garbage, or nearly all are possible ones. */
static void garbage_is_borne(uint64_t seed) {
    static const unsigned char kinds[] = {0, UPFRONT_BUDDY_LIVE, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85,
          0x86, 0x87, 0xA0, 0xA1, 0xC0, 0xC1, 0xE0, 0x9F};
    misused m = misused_new(seed);
    uint64_t round, i, found = 0;
    for (round = 0; round < 3000; round++) {
        uint64_t some = 1 + next_random(&seed) % 52;
        for (i = 0; i < some; i++) {
            uint64_t r = next_random(&seed);
            m.bytes[next_random(&seed) % 44] =
                  (unsigned char)(round % 2 == 0 ? r >> 8 : kinds[(r >> 8) % sizeof kinds]);
        }
        found += upfront_buddy_walk(m.b, NULL, 0, NULL) == UPFRONT_CORRUPT;
        misused_bears(&m, seed);
        CHECK(memcmp(m.bytes + 45, m.state + 45, sizeof m.state - 45) == 0);
        misused_restore(&m);
    }
    CHECK(found > 2900); /* some rounds change nothing */
    window_free(m.window, UPFRONT_ALIGN_MAX + WINDOW);
}

static void buddy_walk_answers(void) {
    misused m = misused_new(7);
    upfront_block r[64];
    uint64_t count, all;
    CHECK_EQ(upfront_buddy_walk(NULL, r, 1, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_buddy_walk(m.b, NULL, 1, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_buddy_walk(m.b, r, 1, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_buddy_walk(m.b, NULL, 1, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_buddy_walk(m.b, NULL, 0, &all), UPFRONT_OK);
    CHECK(upfront_buddy_walk(m.b, r, all - 1, &count) == UPFRONT_FULL && count == all);
    CHECK(upfront_buddy_walk(m.b, r, all, &count) == UPFRONT_OK && count == all);
    window_free(m.window, UPFRONT_ALIGN_MAX + WINDOW);
}

/* Two free halves that didn't merge. */
static void buddy_halves_melt(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_buddy *b = upfront_buddy_init(w, sizeof *b + 64 + 4 * 64 + 256, 64);
    uint64_t from = (b->low + 3) & ~UINT64_C(3);
    CHECK(from + 4 <= upfront_buddy_high(b) &&
        *upfront_buddy_byte(b, upfront_buddy_at(from, 2)) == upfront_buddy_whole(2));
    CHECK_EQ(upfront_buddy_walk(b, NULL, 0, NULL), UPFRONT_OK);
    *upfront_buddy_byte(b, upfront_buddy_at(from, 1)) = upfront_buddy_whole(1);
    *upfront_buddy_byte(b, upfront_buddy_at(from + 2, 1)) = upfront_buddy_whole(1);
    CHECK_EQ(upfront_buddy_walk(b, NULL, 0, NULL), UPFRONT_CORRUPT);
    window_free(w, WINDOW);
}

void test_buddy_misuse(void) {
    uint64_t seed;
    buddy_halves_melt();
    misuse_addresses();
    buddy_walk_answers();
    for (seed = 1; seed <= 40; seed++)
        bits_are_found(seed * 88172645463325252u);
    garbage_is_borne(1234567u);
}
