/* heap_misuse.c - tests of heap.h: every address without a live block, and every word that
 * contradicts another. */
#include "check.h"

static void misuse_codes(void) {
    unsigned char *w = window_new(WINDOW), *copy = window_new(WINDOW);
    upfront_heap *h = heap_of(w, WINDOW / 2, 0);
    char *a = (char *)upfront_heap_alloc(h, 100, 16), *b = (char *)upfront_heap_alloc(h, 100, 16);
    char *c = (char *)upfront_heap_alloc(h, 100, 16);
    uint64_t i;
    fill(a, 100, 1);
    fill(b, 100, 2);
    for (i = 1; i < 112; i++)
        CHECK_EQ(upfront_heap_free(h, b + i), UPFRONT_MISALIGNED);
    CHECK_EQ(upfront_heap_size_of(h, NULL), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_heap_free(h, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_heap_free(h, (char *)h + h->first), UPFRONT_FOREIGN);
    /* the closing header looks live */
    CHECK_EQ(upfront_heap_free(h, (char *)h + h->end + 16), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_heap_free(h, w + WINDOW - 64), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_heap_size_of(h, &i), UPFRONT_FOREIGN);
    CHECK(upfront_heap_realloc(h, b + 16, 10) == NULL && h->failed == 0);
    CHECK_EQ(upfront_heap_free(h, b), UPFRONT_OK);
    CHECK_EQ(upfront_heap_free(h, b), UPFRONT_DOUBLE);
    CHECK_EQ(upfront_heap_free(h, a), UPFRONT_OK);
    CHECK_EQ(upfront_heap_free(h, b), UPFRONT_DOUBLE); /* merged into a */
    CHECK(upfront_heap_realloc(h, b, 10) == NULL);
    a = (char *)upfront_heap_alloc(h, 200, 16);
    fill(a, 200, 3);
    CHECK_EQ(upfront_heap_free(h, b), UPFRONT_MISALIGNED);
    upfront_heap_reset(h);
    /* dead, and not overwritten */
    CHECK(upfront_heap_free(h, c) < 0 && upfront_heap_size_of(h, c) < 0);
    a = (char *)upfront_heap_alloc(h, 1000, 16);
    /* a copied header isn't valid elsewhere */
    memcpy(copy, a, 0);
    memcpy(a + 480, copy, 16);
    CHECK_EQ(upfront_heap_free(h, a + 496), UPFRONT_MISALIGNED);
    UPFRONT_UNPOISON(w, WINDOW);
    memcpy(a + 496, a - 16, 16);
    CHECK_EQ(upfront_heap_free(h, a + 512), UPFRONT_MISALIGNED);
    CHECK_EQ(upfront_heap_free(h, a), UPFRONT_OK);
    UPFRONT_UNPOISON(w, WINDOW);
    window_free(copy, WINDOW);
    window_free(w, WINDOW);
}

/* Makes a heap of live, free, live, free, live and the free rest. With front lists the two free
 * blocks are parked. */
typedef struct small {
    unsigned char *window;
    upfront_heap *h;
    uint64_t at[6];
} small;

static small small_of(uint64_t parked) {
    small s;
    void *p[5];
    uint64_t i;
    s.window = window_new(WINDOW);
    s.h = heap_of(s.window, 4096, parked);
    for (i = 0; i < 5; i++) {
        p[i] = upfront_heap_alloc(s.h, 80, 16);
        s.at[i] = (uint64_t)((uintptr_t)p[i] - (uintptr_t)s.h) - UPFRONT_HEAP_HEADER;
    }
    s.at[5] = s.at[4] + 96;
    CHECK(upfront_heap_free(s.h, p[1]) == UPFRONT_OK && upfront_heap_free(s.h, p[3]) == UPFRONT_OK);
    UPFRONT_UNPOISON(s.window, WINDOW);
    return s;
}

static small small_new(void) { return small_of(0); }

static void *small_bytes(const small *s, uint64_t i) { return (char *)s->h + s->at[i] + UPFRONT_HEAP_HEADER; }

static int small_walk(const small *s) { return upfront_heap_walk(s->h, NULL, 0, NULL); }

/* The walk finds the damage; the next heap is new. */
static void small_caught(small *s) {
    uint64_t parks = s->h->parks;
    CHECK_EQ(small_walk(s), UPFRONT_CORRUPT);
    window_free(s->window, WINDOW);
    *s = small_of(parks);
    CHECK_EQ(small_walk(s), UPFRONT_OK);
}

/* The walk finds the damage, and a free repairs the heap. */
static void small_mended(small *s, uint64_t i) {
    CHECK_EQ(small_walk(s), UPFRONT_CORRUPT);
    CHECK_EQ(upfront_heap_free(s->h, (char *)s->h + s->at[i] + UPFRONT_HEAP_HEADER), UPFRONT_CORRUPT);
    CHECK(s->h->damaged > 0 && small_walk(s) == UPFRONT_OK);
    window_free(s->window, WINDOW);
    *s = small_of(0);
}

/* Damage is also found at a free that would park: the header after the block differs. */
static void parked_ran_over(void) {
    small s = small_of(8);
    upfront_heap_set(s.h, s.at[5], upfront_heap_word(s.h, s.at[5]) + 16);
    small_mended(&s, 4);
    window_free(s.window, WINDOW);
}

static void walk_answers(void) {
    small s = small_new();
    upfront_block out[6];
    uint64_t count = 0;
    CHECK_EQ(upfront_heap_walk(NULL, out, 6, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_heap_walk(s.h, NULL, 6, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_heap_walk(s.h, out, 6, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_heap_walk(s.h, out, 0, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK(upfront_heap_walk(s.h, NULL, 0, &count) == UPFRONT_OK && count == 6);
    CHECK_EQ(upfront_heap_walk(s.h, out, 5, &count), UPFRONT_FULL);
    CHECK_EQ(count, 6);
    CHECK_EQ(upfront_heap_walk(s.h, out, 6, &count), UPFRONT_OK);
    CHECK_EQ(upfront_heap_largest(s.h), s.h->end - s.at[5] - UPFRONT_HEAP_HEADER);
    upfront_heap_free(s.h, upfront_heap_alloc(s.h, upfront_heap_largest(s.h), 16));
    (void)upfront_heap_alloc(s.h, upfront_heap_largest(s.h), 16);
    CHECK_EQ(upfront_heap_largest(s.h), 80); /* of two alike */
    s.h->first = s.h->end + 16;
    small_caught(&s);
    s.h->first = UINT64_C(1) << 40;
    small_caught(&s);
    CHECK_EQ(upfront_heap_walk(s.h, out, 6, &count), UPFRONT_OK);
    CHECK(out[0].asked == 80 && out[0].align == 16 && out[0].live == 1 && out[0].size == 96 &&
        out[0].offset == s.at[0]);
    CHECK(out[3].asked == 0 && out[3].align == 16 && out[3].live == 0 && out[3].size == 96 && out[3].offset == s.at[3]);
    window_free(s.window, WINDOW);
}

static void small_flip(const small *s, uint64_t offset, uint64_t bit) {
    upfront_heap_set(s->h, offset + bit / 64 * 8,
        upfront_heap_word(s->h, offset + bit / 64 * 8) ^ UINT64_C(1) << (bit % 64));
}

/* Restores the bytes, and removes poison. */
static void small_restore(const small *s, const unsigned char *before) {
    UPFRONT_UNPOISON(s->window, WINDOW);
    memcpy(s->h, before, 4096);
}

/* Flips each bit of each header, and of the front. The walk finds it, the block itself is refused
 * if it can't be recognized, and a free or a realloc of a neighbour repairs the heap around it.
 * Words about the block before aren't sealed. */
static void walk_bits(void) {
    static unsigned char before[4096];
    small s = small_new();
    uint64_t i, n, bit, lists = s.h->first - sizeof *s.h;
    memcpy(before, s.h, sizeof before);
    for (i = 0; i < 6; i++)
        for (bit = 0; bit < 128; bit++) {
            int of_before = bit == 0 || (bit >= 4 && bit < 38);
            for (n = i == 0 ? 0 : i - 1; n <= i + 1 && n < 6; n++) {
                small_flip(&s, s.at[i], bit);
                CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
                if (n == i && !of_before) {
                    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i)), UPFRONT_MISALIGNED);
                    CHECK_EQ(upfront_heap_size_of(s.h, small_bytes(&s, i)), UPFRONT_MISALIGNED);
                } else if (n % 2 == 1) {
                    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, n)), UPFRONT_DOUBLE);
                } else {
                    int code = upfront_heap_free(s.h, small_bytes(&s, n));
                    CHECK(code == UPFRONT_CORRUPT || (code == UPFRONT_OK && s.h->damaged == 0));
                    /* harmless until the block merges */
                    CHECK(code == UPFRONT_CORRUPT || bit == 0 || bit == 64 || i == n || (i < n && of_before));
                    CHECK_EQ(upfront_heap_check(s.h, small_bytes(&s, n)), UPFRONT_DOUBLE);
                }
                /* the block itself may have been overwritten */
                if (s.h->damaged == 0 && (bit != 0 || small_walk(&s) != UPFRONT_OK)) {
                    CHECK(upfront_heap_alloc(s.h, 4096, 16) == NULL); /* checks all blocks */
                    CHECK(s.h->damaged > 0 && s.h->failed == 1);
                }
                CHECK_EQ(small_walk(&s), UPFRONT_OK);
                CHECK(s.h->lost <= 1 && (s.h->lost == 0) == of_before);
                CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i)),
                    of_before ? (i % 2 == 1 || n == i ? UPFRONT_DOUBLE : UPFRONT_OK) : UPFRONT_CORRUPT);
                small_restore(&s, before);
            }
        }
    for (bit = 0; bit < lists * 8; bit++) {
        small_flip(&s, sizeof *s.h, bit);
        CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
        small_flip(&s, sizeof *s.h, bit);
    }
    CHECK_EQ(small_walk(&s), UPFRONT_OK);
    window_free(s.window, WINDOW);
}

/* Flips each bit of parked blocks, their links and the front lists. A damaged block, or one at the
 * end of a wrong link, isn't allocated; the other one is, and a flush merges it. */
static void parked_bits(void) {
    static unsigned char before[4096];
    small s = small_of(4);
    uint64_t bit, round;
    CHECK(s.h->parked == 2 && small_walk(&s) == UPFRONT_OK);
    memcpy(before, s.h, sizeof before);
    for (round = 0; round < 2; round++)
        for (bit = 0; bit < 128 + 64; bit++) {
            uint64_t bad = round == 0 ? 3 : 1; /* the first block of the list, and the last */
            int of_before = bit == 0 || (bit >= 4 && bit < 38);
            void *p, *q;
            small_flip(&s, s.at[bad], bit);
            CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
            if (!of_before && bit < 128) {
                CHECK(upfront_heap_free(s.h, small_bytes(&s, bad)) == UPFRONT_MISALIGNED);
                p = upfront_heap_alloc(s.h, 80, 16);
                q = upfront_heap_alloc(s.h, 80, 16);
                CHECK(p != small_bytes(&s, bad) && q != small_bytes(&s, bad));
                CHECK(p == small_bytes(&s, 4 - bad) || q == small_bytes(&s, 4 - bad));
            } else if (bit >= 128) {
                CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 3));
                p = upfront_heap_alloc(s.h, 80, 16);
                CHECK(p == small_bytes(&s, 1) || (round == 0 && p > small_bytes(&s, 4)));
            }
            CHECK_EQ(upfront_heap_alloc(s.h, 4096, 16) == NULL, 1); /* flushes */
            CHECK(s.h->parked == 0 && (s.h->damaged > 0 || (round == 1 && bit >= 128)));
            CHECK_EQ(small_walk(&s), UPFRONT_OK);
            small_restore(&s, before);
        }
    small_flip(&s, s.at[4], 5); /* its neighbour no longer agrees on the size */
    upfront_heap_flush(s.h);
    CHECK(s.h->parked == 0 && s.h->damaged == 1 && small_walk(&s) == UPFRONT_OK);
    small_restore(&s, before);
    CHECK_EQ(upfront_heap_free(s.h, upfront_heap_alloc(s.h, 96, 16)), UPFRONT_OK);
    *upfront_heap_front(s.h, 96) = *upfront_heap_front(s.h, 112); /* a parked block, but larger */
    CHECK(*upfront_heap_front(s.h, 96) != 0 && upfront_heap_alloc(s.h, 80, 16) > small_bytes(&s, 5));
    CHECK(s.h->damaged == 1 && s.h->where == 0 && small_walk(&s) == UPFRONT_OK);
    small_restore(&s, before);
    for (bit = 0; bit < UPFRONT_HEAP_FRONT_BYTES * 8; bit++) {
        small_flip(&s, s.h->fronts, bit);
        CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
        small_flip(&s, s.h->fronts, bit);
    }
    window_free(s.window, WINDOW);
}

/* A parked block next to an overwritten free block: the damage is found only when it must merge. */
static void parked_beside(void) {
    small s = small_of(1);
    /* the last one is damaged: the first had to merge */
    CHECK(s.h->parked == 1 && upfront_heap_walk(s.h, NULL, 0, NULL) == UPFRONT_OK);
    upfront_heap_set(s.h, s.at[1] + 16, 8);
    s.h->hand = 8;
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 0)), UPFRONT_OK); /* the block at 3 gives way */
    CHECK(s.h->parked == 1 && s.h->damaged == 0);
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_CORRUPT); /* neither can merge */
    CHECK(s.h->lost == 1 && s.h->lost_bytes == 96 && s.h->where == s.at[1] + UPFRONT_HEAP_HEADER && s.h->live == 1);
    upfront_heap_flush(s.h);
    CHECK(s.h->parked == 0 && s.h->damaged == 1 && small_walk(&s) == UPFRONT_OK);
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 1)), UPFRONT_CORRUPT);
    window_free(s.window, WINDOW);
}

/* Overwritten links of a freed block are never followed. Its neighbours are freed, and it isn't
 * allocated if it is known which of two contradicting links was overwritten. */
static void links_overwritten(void) {
    static unsigned char before[4096];
    small s = small_new();
    uint64_t i, way, bit, values[] = {0, 16, 88, UINT64_MAX, UINT64_C(1) << 40, 0, 0, 0, 0};
    values[5] = s.h->end;
    values[6] = s.at[0];
    values[7] = s.at[1];
    values[8] = s.at[3];
    memcpy(before, s.h, sizeof before);
    for (i = 1; i <= 3; i += 2)
        for (bit = 0; bit < 128 + 2 * sizeof values / sizeof *values; bit++)
            for (way = 0; way < 4; way++) {
                uint64_t word = bit < 128 ? bit / 64 : bit % 2, link = s.at[i] + 16 + 8 * word,
                    was = upfront_heap_word(s.h, link);
                uint64_t bad = bit < 128 ? was ^ UINT64_C(1) << (bit % 64) : values[(bit - 128) / 2];
                int outside = bad != 0 && !upfront_heap_is_inside(s.h, bad);
                /* only a full check finds that a list ends at its first */
                if (bad == was || (bad == 0 && i == 3 && word == 0 && way != 3))
                    continue;
                upfront_heap_set(s.h, link, bad);
                CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
                if (way < 2) {
                    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i - 1 + 2 * way)), UPFRONT_CORRUPT);
                } else if (way == 2) { /* or grows */
                    char *p = (char *)upfront_heap_realloc(s.h, small_bytes(&s, i - 1), 150);
                    CHECK(p != NULL && (p == small_bytes(&s, i - 1)) == (s.h->lost == 0) &&
                        upfront_heap_size_of(s.h, p) == 150);
                } else {
                    CHECK(upfront_heap_alloc(s.h, 4096, 16) == NULL && s.h->failed == 1);
                }
                CHECK(s.h->damaged > 0 && (!outside ||
                    (s.h->lost == 1 && s.h->where == s.at[i] + UPFRONT_HEAP_HEADER)));
                CHECK(s.h->lost == 0 || s.h->lost_bytes == 96);
                CHECK_EQ(small_walk(&s), UPFRONT_OK);
                small_restore(&s, before);
            }
    window_free(s.window, WINDOW);
}

/* An overwritten header isn't sealed again when the block before it is allocated or merges. */
static void headers_stay_bad(void) {
    uint64_t bad, i;
    for (bad = 0; bad < 2; bad++) { /* the live block after the free one that is taken next */
        small s = small_new();
        small_flip(&s, s.at[4], bad * 64 + 40);
        CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 3));
        CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 3)), UPFRONT_OK);
        CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_OK);
        for (i = 0; i < 2; i++)
            CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 4)), UPFRONT_MISALIGNED);
        CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
        upfront_heap_largest(s.h);
        CHECK(small_walk(&s) == UPFRONT_OK && s.h->lost == 1 &&
            upfront_heap_free(s.h, small_bytes(&s, 4)) == UPFRONT_CORRUPT);
        window_free(s.window, WINDOW);
    }
}

/* Several headers are overwritten. Between the first and the last only live blocks are believed,
 * because a free one may be an earlier heap's. The closing header is repaired. */
static void headers_of_many(void) {
    small s = small_new();
    small_flip(&s, s.at[0], 70);
    small_flip(&s, s.at[4], 70);
    CHECK(upfront_heap_largest(s.h) > 2000);
    /* 0 and 1, 3, 4 */
    CHECK(s.h->lost == 3 && s.h->lost_bytes == 384 && s.h->live == 1 && s.h->used == 96);
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_OK);
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 0)), UPFRONT_CORRUPT);
    window_free(s.window, WINDOW);
    s = small_new(); /* a live block must not reach past the known good headers */
    small_flip(&s, s.at[0], 70);
    upfront_heap_seal(s.h, s.at[2], 96 | UPFRONT_HEAP_HOLE, (4096 - 96 * 5) | UPFRONT_HEAP_LIVE);
    upfront_heap_seal(s.h, s.at[1] + 32, 0, 2048 | UPFRONT_HEAP_LIVE);
    small_flip(&s, s.at[4], 70);
    CHECK(upfront_heap_largest(s.h) > 2000 && s.h->live == 0 && small_walk(&s) == UPFRONT_OK);
    window_free(s.window, WINDOW);
    s = small_new();
    small_flip(&s, s.h->end, 20);
    small_flip(&s, s.h->end, 100);
    upfront_heap_reserve(s.h, UINT64_MAX);
    small_flip(&s, s.at[5], 70);
    CHECK(upfront_heap_largest(s.h) == 80 && s.h->lost == 1 && s.h->most == 0 && small_walk(&s) == UPFRONT_OK);
    upfront_heap_reserve(s.h, 0);
    CHECK(s.h->most == s.h->end - s.h->first - s.h->lost_bytes);
    window_free(s.window, WINDOW);
}

/* Damage after damage: a block out of service stays so. */
static void damaged_again(void) {
    small s = small_new();
    uint64_t last = s.at[5];
    small_flip(&s, s.at[4], 5); /* the header after the free block that is taken next disagrees */
    CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 3) && s.h->damaged == 1 && s.h->lost == 0);
    CHECK_EQ(s.h->where, s.at[4] + UPFRONT_HEAP_HEADER);
    upfront_heap_set(s.h, s.at[1] + 16, 8);
    CHECK(upfront_heap_alloc(s.h, 80, 16) > small_bytes(&s, 4) && s.h->damaged == 2 && s.h->lost == 1);
    small_flip(&s, s.at[0], 70);
    CHECK(upfront_heap_largest(s.h) > 2000 && s.h->damaged == 3 && s.h->lost == 2 && small_walk(&s) == UPFRONT_OK);
    window_free(s.window, WINDOW);
    s = small_new(); /* a realloc checks all blocks, too, before a refusal */
    CHECK(upfront_heap_alloc(s.h, s.h->end - last - UPFRONT_HEAP_HEADER, 16) != NULL);
    upfront_heap_set(s.h, s.at[3] + 16, 0);
    CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 3) && s.h->damaged == 0);
    CHECK(upfront_heap_realloc(s.h, small_bytes(&s, 4), 81) == NULL && s.h->damaged == 1 && s.h->failed == 1);
    CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 1));
    window_free(s.window, WINDOW);
    s = small_new(); /* a search follows no link out of the heap */
    CHECK(upfront_heap_alloc(s.h, s.h->end - last - UPFRONT_HEAP_HEADER, 16) != NULL);
    upfront_heap_set(s.h, s.at[3] + 16, 8);
    CHECK(upfront_heap_alloc(s.h, 16, 2048) == NULL && s.h->damaged == 1 && s.h->lost == 1);
    CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 1));
    window_free(s.window, WINDOW);
    s = small_new(); /* the way back leads to a header that isn't the next one */
    small_flip(&s, s.at[0], 70);
    upfront_heap_set(s.h, s.at[5], (upfront_heap_word(s.h, s.at[5]) & UPFRONT_HEAP_SEAL_BEFORE) | 192);
    CHECK(upfront_heap_largest(s.h) > 2000 && s.h->live == 2 && small_walk(&s) == UPFRONT_OK);
    window_free(s.window, WINDOW);
}

/* A parked block that merged is refused as DOUBLE, like any freed one. */
static void parked_twice(void) {
    small s = small_of(4);
    uint64_t i;
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_OK);
    upfront_heap_flush(s.h);
    for (i = 1; i < 4; i++)
        CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i)), UPFRONT_DOUBLE);
    window_free(s.window, WINDOW);
}

/* A 0 over the link of a parked block loses the blocks after it. If all are lost, nothing is parked
 * any more. */
static void parked_lost(void) {
    small s = small_of(2);
    uint64_t i;
    upfront_heap_set(s.h, s.at[3] + 16, 0);
    CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 3) && s.h->parked == 1 && s.h->sizes == 0);
    upfront_heap_flush(s.h);
    CHECK(s.h->parked == 0 && s.h->damaged == 1 && small_walk(&s) == UPFRONT_OK);
    CHECK(upfront_heap_free(s.h, small_bytes(&s, 2)) == UPFRONT_OK &&
        upfront_heap_free(s.h, small_bytes(&s, 4)) == UPFRONT_OK);
    upfront_heap_set(s.h, *upfront_heap_front(s.h, 96) + 16, 0);
    for (i = 0; i < 2; i++)
        CHECK(upfront_heap_alloc(s.h, 80, 16) != NULL);
    s.h->parked = 2; /* as if another block were lost */
    s.h->hand = 0;   /* the next block needs room */
    CHECK(upfront_heap_free(s.h, small_bytes(&s, 0)) == UPFRONT_OK && s.h->parked == 2 && s.h->sizes == 0);
    CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
    window_free(s.window, WINDOW);
}

static void walk_counts(void) {
    small s = small_new();
    s.h->map ^= UINT64_C(1) << 40;
    small_caught(&s);
    s.h->used += 16;
    small_caught(&s);
    s.h->phase = s.h->used - 16;
    small_caught(&s);
    s.h->live++;
    small_caught(&s);
    s.h->lost++;
    small_caught(&s);
    s.h->lost_bytes += 16;
    small_caught(&s);
    upfront_heap_set(s.h, s.h->end, 5); /* the closing header */
    small_caught(&s);
    upfront_heap_seal(s.h, s.h->end, 32, UPFRONT_HEAP_LIVE);
    small_caught(&s);
    window_free(s.window, WINDOW);
}

/* Words under a valid seal that are still wrong. */
static void walk_forged(void) {
    static const uint64_t sizes[] = {0, 16, 80, 4096, UPFRONT_HEAP_SIZE};
    const uint64_t hole = UPFRONT_HEAP_HOLE, live = UPFRONT_HEAP_LIVE;
    small s = small_new();
    uint64_t i;
    for (i = 0; i < 5; i++) {
        upfront_heap_seal(s.h, s.at[2], 96 | hole, sizes[i] | live);
        small_mended(&s, 2);
    }
    upfront_heap_seal(s.h, s.at[2], 4096 | hole, 96 | live); /* before the first */
    small_mended(&s, 2);
    upfront_heap_seal(s.h, s.at[2], 192 | hole, 96 | live); /* not the one before */
    small_mended(&s, 2);
    /* a free one further down */
    upfront_heap_set(s.h, s.at[4], (upfront_heap_word(s.h, s.at[4]) & UPFRONT_HEAP_SEAL_BEFORE) | 288 | hole);
    small_mended(&s, 4);
    upfront_heap_seal(s.h, s.at[3], 96, 112); /* a size on which its neighbour disagrees */
    small_mended(&s, 4);
    upfront_heap_seal(s.h, s.at[1], 96, 96 | live); /* live, but free for its neighbour */
    small_mended(&s, 2);
    upfront_heap_seal(s.h, s.at[2], 96 | hole, 96); /* free after free */
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[2], 96, 96 | live); /* no free block before it */
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[0], 0, 96); /* free, and in no list */
    upfront_heap_set(s.h, s.at[1], upfront_heap_word(s.h, s.at[1]) | hole);
    small_caught(&s);
    /* aligned to 2 MiB */
    upfront_heap_seal(s.h, s.at[2], 96 | hole, 96 | live | (UINT64_C(17) << UPFRONT_HEAP_LOG));
    small_caught(&s);
    /* more slack than bytes */
    upfront_heap_seal(s.h, s.at[0], 0, 32 | live | (UINT64_C(17) << UPFRONT_HEAP_SLACK));
    small_caught(&s);
    /* free, and turned */
    upfront_heap_set(s.h, s.at[1] + 8, upfront_heap_word(s.h, s.at[1] + 8) ^ UPFRONT_HEAP_SEAL_SIZE);
    small_caught(&s);
    for (i = 0; i < 2; i++) { /* parked without lists, or too large for them */
        uint64_t at;
        if (i == 1) {
            window_free(s.window, WINDOW);
            s = small_of(4);
            CHECK(upfront_heap_alloc(s.h, 2000, 16) == small_bytes(&s, 5));
        }
        at = s.at[i * 5] + 8;
        upfront_heap_set(s.h, at, upfront_heap_word(s.h, at) ^ UPFRONT_HEAP_SEAL_SIZE);
        CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
        CHECK(upfront_heap_largest(s.h) > 0 && s.h->lost == 1 && small_walk(&s) == UPFRONT_OK);
    }
    window_free(s.window, WINDOW);
}

static void walk_fronts(void) {
    small s = small_of(4);
    CHECK_EQ(*upfront_heap_front(s.h, 96), s.at[3]);
    s.h->parked--;
    small_caught(&s);
    s.h->sizes ^= 2;
    small_caught(&s);
    upfront_heap_set(s.h, s.at[3] + 16, s.at[3]); /* a ring */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[3] + 16, 0); /* one left out */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[3] + 16, s.at[2]); /* live */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[3] + 16, s.h->end); /* outside */
    small_caught(&s);
    *upfront_heap_front(s.h, 112) = s.at[3]; /* of another size */
    small_caught(&s);
    window_free(s.window, WINDOW);
}

static void walk_lists(void) {
    small s = small_new();
    uint64_t *list = upfront_heap_list(s.h, 96 / 16), offset = s.at[3];
    CHECK_EQ(*list, s.at[3]);
    upfront_heap_set(s.h, offset + 16, s.at[3]); /* a ring */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[1] + 24, 0); /* not linked back */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[1] + 16, s.at[5]); /* of another class */
    upfront_heap_set(s.h, s.at[5] + 24, s.at[1]);
    small_caught(&s);
    upfront_heap_set(s.h, s.at[1] + 16, s.at[0]); /* live */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[1] + 16, s.at[0] + 16); /* no header */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[1] + 16, s.h->end); /* outside */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[3] + 16, 0); /* one left out */
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[0] + 32, 0, 96); /* a merged one */
    upfront_heap_set(s.h, s.at[0] + 32, upfront_heap_word(s.h, s.at[0] + 32) ^ UPFRONT_HEAP_SEAL_BEFORE);
    upfront_heap_set(s.h, s.at[1] + 16, s.at[0] + 32);
    small_caught(&s);
    /* a forged header that is linked correctly is one too many */
    upfront_heap_seal(s.h, s.at[0] + 32, 0, 96);
    upfront_heap_set(s.h, s.at[0] + 32 + 16, 0);
    upfront_heap_set(s.h, s.at[0] + 32 + 24, s.at[1]);
    upfront_heap_set(s.h, s.at[1] + 16, s.at[0] + 32);
    small_caught(&s);
    window_free(s.window, WINDOW);
}

/* A sealed header with a size that leads out of the heap: realloc puts the block out of service and
 * doesn't grow it. */
static void grow_forged(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = upfront_heap_init(w, WINDOW, 0);
    char *p = (char *)upfront_heap_alloc(h, 100, 16), *q = (char *)upfront_heap_alloc(h, 100, 16);
    uint64_t at = upfront_distance(p, h) - UPFRONT_HEAP_HEADER;
    upfront_heap_seal(h, at, 0, (h->end + 16) | UPFRONT_HEAP_LIVE);
    CHECK(upfront_heap_realloc(h, p, 200) == NULL && h->lost == 1 && h->live == 1 && h->damaged != 0);
    CHECK(upfront_heap_free(h, p) < 0);
    CHECK(upfront_heap_realloc(h, q, 200) != NULL);
    window_free(w, WINDOW);
}

void test_heap_misuse(void) {
    grow_forged();
    misuse_codes();
    walk_answers();
    walk_bits();
    parked_bits();
    parked_beside();
    parked_twice();
    parked_lost();
    parked_ran_over();
    links_overwritten();
    headers_stay_bad();
    headers_of_many();
    damaged_again();
    walk_counts();
    walk_forged();
    walk_lists();
    walk_fronts();
}
