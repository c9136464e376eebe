/* heap_misuse.c - tests of heap.h: every address that is no live block, and every word that contradicts another. */
#include "check.h"

static void misuse_codes(void) {
    unsigned char *w = window_new(WINDOW), *copy = window_new(WINDOW);
    upfront_heap *h = upfront_heap_init(w, WINDOW / 2, 0);
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
    CHECK_EQ(upfront_heap_free(h, (char *)h + h->end + 16), UPFRONT_FOREIGN); /* the closing header looks live */
    CHECK_EQ(upfront_heap_free(h, w + WINDOW - 64), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_heap_size_of(h, &i), UPFRONT_FOREIGN);
    CHECK(upfront_heap_realloc(h, b + 16, 10) == NULL && h->failed == 0);
    CHECK_EQ(upfront_heap_free(h, b), UPFRONT_OK);
    CHECK_EQ(upfront_heap_free(h, b), UPFRONT_DOUBLE);
    CHECK_EQ(upfront_heap_free(h, a), UPFRONT_OK);
    CHECK_EQ(upfront_heap_free(h, b), UPFRONT_DOUBLE); /* melted into a, and known */
    CHECK(upfront_heap_realloc(h, b, 10) == NULL);
    a = (char *)upfront_heap_alloc(h, 200, 16);
    fill(a, 200, 3);
    CHECK_EQ(upfront_heap_free(h, b), UPFRONT_MISALIGNED);
    upfront_heap_reset(h);
    CHECK(upfront_heap_free(h, c) < 0 && upfront_heap_size_of(h, c) < 0); /* dead, where no byte was written since */
    a = (char *)upfront_heap_alloc(h, 1000, 16);
    /* a header that is copied, with all it says, to another place is none */
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

/* A heap of a live block, a free one, a live one, a free one, a live one and the free rest, in fresh memory. With front lists the two free
 * ones are parked. */
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
    s.h = upfront_heap_init(s.window, 4096, parked);
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

/* The walk finds it; the next heap is as new. */
static void small_caught(small *s) {
    uint64_t parks = s->h->parks;
    CHECK_EQ(small_walk(s), UPFRONT_CORRUPT);
    window_free(s->window, WINDOW);
    *s = small_of(parks);
    CHECK_EQ(small_walk(s), UPFRONT_OK);
}

static void walk_answers(void) {
    small s = small_new();
    upfront_heap_range out[6];
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
    CHECK(out[0].asked == 80 && out[0].align == 16 && out[0].live == 1 && out[0].size == 96 && out[0].offset == s.at[0]);
    CHECK(out[3].asked == 0 && out[3].align == 16 && out[3].live == 0 && out[3].size == 96 && out[3].offset == s.at[3]);
    window_free(s.window, WINDOW);
}

static void small_flip(const small *s, uint64_t offset, uint64_t bit) {
    upfront_heap_set(s->h, offset + bit / 64 * 8, upfront_heap_word(s->h, offset + bit / 64 * 8) ^ UINT64_C(1) << (bit % 64));
}

/* As it was; what poison came since is of no use. */
static void small_restore(const small *s, const unsigned char *before) {
    UPFRONT_UNPOISON(s->window, WINDOW);
    memcpy(s->h, before, 4096);
}

/* Each word of each header, and of the front, one bit at a time. What a header says of the block before it is not under its seal: it is
 * told when that block is freed, or melts. */
static void walk_bits(void) {
    small s = small_new();
    uint64_t i, bit, lists = s.h->first - sizeof *s.h;
    for (i = 0; i < 6; i++)
        for (bit = 0; bit < 128; bit++) {
            int of_before = bit == 0 || (bit >= 4 && bit < 38);
            small_flip(&s, s.at[i], bit);
            CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
            if (!of_before) {
                CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i)), UPFRONT_MISALIGNED);
                CHECK_EQ(upfront_heap_size_of(s.h, small_bytes(&s, i)), UPFRONT_MISALIGNED);
            } else if (bit != 0 && i % 2 == 0 && i > 0) {
                CHECK(upfront_heap_realloc(s.h, small_bytes(&s, i), 500) == NULL && s.h->failed == 0);
                CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i)), UPFRONT_CORRUPT);
            } else if (i % 2 == 1) {
                CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i)), UPFRONT_DOUBLE);
            }
            if (of_before && bit != 0 && i % 2 == 1)
                CHECK_EQ(upfront_heap_check(s.h, small_bytes(&s, i - 1)), UPFRONT_CORRUPT);
            /* a free block before it or behind it is not trusted either: its melting would be with bytes that mean nothing */
            if (i % 2 == 1 && bit != 0 && bit != 64) /* that a free one passes for live is harmless */
                CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i - 1)), UPFRONT_CORRUPT);
            if ((i == 1 || i == 3) && !of_before)
                CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i + 1)), UPFRONT_CORRUPT);
            small_flip(&s, s.at[i], bit);
        }
    for (bit = 0; bit < lists * 8; bit++) {
        small_flip(&s, sizeof *s.h, bit);
        CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
        small_flip(&s, sizeof *s.h, bit);
    }
    CHECK_EQ(small_walk(&s), UPFRONT_OK);
    window_free(s.window, WINDOW);
}

/* The same of parked blocks, of the links between them, and of the front lists. Nobody gets a block of which a bit is wrong, nor one that
 * a wrong link leads to, and a flush leaves it where it is. */
static void parked_bits(void) {
    static unsigned char before[4096];
    small s = small_of(4);
    uint64_t bit, round;
    CHECK(s.h->parked == 2 && small_walk(&s) == UPFRONT_OK);
    memcpy(before, s.h, sizeof before);
    for (round = 0; round < 2; round++)
        for (bit = 0; bit < 128 + 64; bit++) {
            uint64_t at = round == 0 ? s.at[3] : s.at[1]; /* the first of the list, and the last */
            int of_before = bit == 0 || (bit >= 4 && bit < 38);
            void *p, *q;
            small_flip(&s, at, bit);
            CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
            if (!of_before && bit < 128) {
                CHECK(upfront_heap_free(s.h, (char *)s.h + at + UPFRONT_HEAP_HEADER) == UPFRONT_MISALIGNED);
                p = upfront_heap_alloc(s.h, 80, 16);
                q = upfront_heap_alloc(s.h, 80, 16);
                CHECK(p != NULL && p != (char *)s.h + at + UPFRONT_HEAP_HEADER && q != NULL && q != (char *)s.h + at + UPFRONT_HEAP_HEADER);
            } else if (bit >= 128) {
                CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 3));
                p = upfront_heap_alloc(s.h, 80, 16);
                CHECK(round == 0 ? p != small_bytes(&s, 1) : p == small_bytes(&s, 1));
                CHECK(upfront_heap_alloc(s.h, 80, 16) > small_bytes(&s, 4));
            }
            CHECK_EQ(upfront_heap_alloc(s.h, 4096, 16) == NULL, 1); /* flushes */
            CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
            small_restore(&s, before);
        }
    small_flip(&s, s.at[4], 5); /* it doesn't know its neighbour any more */
    upfront_heap_flush(s.h);
    CHECK_EQ(s.h->parked, 2);
    small_restore(&s, before);
    CHECK_EQ(upfront_heap_free(s.h, upfront_heap_alloc(s.h, 96, 16)), UPFRONT_OK);
    *upfront_heap_front(s.h, 96) = *upfront_heap_front(s.h, 112); /* parked, but larger */
    CHECK(*upfront_heap_front(s.h, 96) != 0 && upfront_heap_alloc(s.h, 80, 16) > small_bytes(&s, 5));
    small_restore(&s, before);
    for (bit = 0; bit < UPFRONT_HEAP_FRONT_BYTES * 8; bit++) {
        small_flip(&s, s.h->fronts, bit);
        CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
        small_flip(&s, s.h->fronts, bit);
    }
    window_free(s.window, WINDOW);
}

/* One is parked that is beside a free block somebody wrote to: it doesn't melt, and nothing is told until it must. */
static void parked_beside(void) {
    small s = small_of(1);
    uint64_t link;
    CHECK(s.h->parked == 1 && upfront_heap_walk(s.h, NULL, 0, NULL) == UPFRONT_OK); /* the last to come is: the first had to melt */
    link = upfront_heap_word(s.h, s.at[1] + 16);
    upfront_heap_set(s.h, s.at[1] + 16, 8);
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 0)), UPFRONT_CORRUPT); /* nobody makes way */
    s.h->hand = 8;
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 0)), UPFRONT_OK); /* the one at 3 does */
    CHECK(s.h->parked == 1 && upfront_heap_free(s.h, small_bytes(&s, 2)) == UPFRONT_CORRUPT); /* neither way is open */
    upfront_heap_flush(s.h);
    CHECK(s.h->parked == 1 && s.h->live == 2);
    upfront_heap_set(s.h, s.at[1] + 16, link);
    CHECK_EQ(small_walk(&s), UPFRONT_OK);
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_OK);
    window_free(s.window, WINDOW);
}

/* Who writes to what was freed writes over its links. Nobody follows them: what is beside it isn't given back, and it isn't handed out. */
static void links_overwritten(void) {
    static unsigned char before[4096];
    small s = small_new();
    uint64_t i, k, bit, last = s.at[5], values[] = {0, 16, 88, UINT64_MAX, UINT64_C(1) << 40, 0, 0, 0, 0};
    values[5] = s.h->end;
    values[6] = s.at[0];
    values[7] = s.at[1];
    values[8] = s.at[3];
    memcpy(before, s.h, sizeof before);
    for (i = 1; i <= 3; i += 2)
        for (bit = 0; bit < 128 + 2 * sizeof values / sizeof *values; bit++) {
            uint64_t word = bit < 128 ? bit / 64 : bit % 2, *link = (uint64_t *)(uintptr_t)((uintptr_t)s.h + s.at[i] + 16 + 8 * word);
            uint64_t bad = bit < 128 ? *link ^ UINT64_C(1) << (bit % 64) : values[(bit - 128) / 2];
            if (bad == *link || (bad == 0 && i == 3 && word == 0)) /* that a list ends at its first is found by the walk alone */
                continue;
            *link = bad;
            CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i - 1)), UPFRONT_CORRUPT);
            CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i + 1)), UPFRONT_CORRUPT);
            CHECK(upfront_heap_realloc(s.h, small_bytes(&s, i - 1), 150) == NULL);
            CHECK_EQ(upfront_heap_check(s.h, small_bytes(&s, i - 1)), UPFRONT_CORRUPT); /* which isn't full */
            CHECK_EQ(upfront_heap_walk(s.h, NULL, 0, &k), UPFRONT_CORRUPT);
            *link = word == 0 ? (i == 3 ? s.at[1] : 0) : (i == 3 ? 0 : s.at[3]);
            CHECK(memcmp(before, s.h, sizeof before) == 0);
            *link = bad;
            for (k = 16; k <= 1024; k *= 4) { /* it comes from another block, or not at all */
                char *p = (char *)upfront_heap_alloc(s.h, 80, k);
                CHECK(p == NULL || p == small_bytes(&s, 4 - i) || p > (char *)s.h + last);
            }
            small_restore(&s, before);
            CHECK(upfront_heap_alloc(s.h, s.h->end - last - UPFRONT_HEAP_HEADER, 16) != NULL); /* so that only these are left */
            *link = bad;
            CHECK(upfront_heap_alloc(s.h, 80, 1024) == NULL && upfront_heap_alloc(s.h, 80, 64) != small_bytes(&s, i));
            small_restore(&s, before);
        }
    window_free(s.window, WINDOW);
}

/* A header that was written over isn't sealed anew, as if it were good, when what is before it is handed out or melts. */
static void headers_stay_bad(void) {
    uint64_t bad, i;
    for (bad = 0; bad < 6; bad++) {
        small s = small_new();
        if (bad < 2) /* of the live block behind the free one that is taken next */
            small_flip(&s, s.at[4], bad * 64 + 40);
        else if (bad < 4) /* forged */
            upfront_heap_seal(s.h, s.at[4], (bad == 2 ? 80 : 112) | UPFRONT_HEAP_HOLE, 96 | UPFRONT_HEAP_LIVE);
        else
            upfront_heap_seal(s.h, s.at[3], 96, bad == 4 ? 4096 : 128);
        if (bad < 2) {
            CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 3));
            CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 3)), UPFRONT_OK);
            CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_OK);
        } else {
            CHECK(upfront_heap_alloc(s.h, 80, 16) == NULL && s.h->failed == 1);
            CHECK(upfront_heap_free(s.h, small_bytes(&s, 2)) == UPFRONT_CORRUPT);
        }
        for (i = 0; i < 2; i++)
            CHECK(upfront_heap_free(s.h, small_bytes(&s, 4)) == (bad < 2 ? UPFRONT_MISALIGNED : UPFRONT_CORRUPT));
        CHECK_EQ(small_walk(&s), UPFRONT_CORRUPT);
        window_free(s.window, WINDOW);
    }
}

/* A parked block that melted is known as one that was freed, like any. */
static void parked_twice(void) {
    small s = small_of(4);
    uint64_t i;
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_OK);
    upfront_heap_flush(s.h);
    for (i = 1; i < 4; i++)
        CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, i)), UPFRONT_DOUBLE);
    window_free(s.window, WINDOW);
}

/* Who writes 0 over the link of a parked block loses those behind it. When all are lost, nothing is parked any more. */
static void parked_lost(void) {
    small s = small_of(2);
    uint64_t i;
    upfront_heap_set(s.h, s.at[3] + 16, 0);
    CHECK(upfront_heap_alloc(s.h, 80, 16) == small_bytes(&s, 3) && s.h->parked == 1 && s.h->sizes == 0);
    CHECK(upfront_heap_free(s.h, small_bytes(&s, 2)) == UPFRONT_OK && upfront_heap_free(s.h, small_bytes(&s, 4)) == UPFRONT_OK);
    upfront_heap_set(s.h, *upfront_heap_front(s.h, 96) + 16, 0);
    for (i = 0; i < 2; i++)
        CHECK(upfront_heap_alloc(s.h, 80, 16) != NULL);
    s.h->parked = 2; /* as if another had been lost */
    s.h->hand = 0;   /* the next one needs a place */
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
    s.h->peak = s.h->used - 16;
    small_caught(&s);
    s.h->live++;
    small_caught(&s);
    upfront_heap_set(s.h, s.h->end, 5); /* the closing header */
    small_caught(&s);
    upfront_heap_seal(s.h, s.h->end, 32, UPFRONT_HEAP_LIVE);
    small_caught(&s);
    window_free(s.window, WINDOW);
}

/* Words that hold together under a true seal, and are wrong all the same. */
static void walk_forged(void) {
    static const uint64_t sizes[] = {0, 16, 80, 4096, UPFRONT_HEAP_SIZE};
    const uint64_t hole = UPFRONT_HEAP_HOLE, live = UPFRONT_HEAP_LIVE;
    small s = small_new();
    uint64_t i;
    for (i = 0; i < 5; i++) {
        upfront_heap_seal(s.h, s.at[2], 96 | hole, sizes[i] | live);
        CHECK(upfront_heap_free(s.h, small_bytes(&s, 2)) == UPFRONT_CORRUPT);
        small_caught(&s);
    }
    upfront_heap_seal(s.h, s.at[2], 4096 | hole, 96 | live); /* before the first */
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_CORRUPT);
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[2], 192 | hole, 96 | live); /* not the one before */
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_CORRUPT);
    small_caught(&s);
    upfront_heap_set(s.h, s.at[4], (upfront_heap_word(s.h, s.at[4]) & UPFRONT_HEAP_SEAL_BEFORE) | 288 | hole); /* a free one further down */
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 4)), UPFRONT_CORRUPT);
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[3], 96, 112); /* a size that its neighbour doesn't know */
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 4)), UPFRONT_CORRUPT);
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[1], 96, 96 | live); /* live, which its neighbour calls free */
    CHECK_EQ(upfront_heap_free(s.h, small_bytes(&s, 2)), UPFRONT_CORRUPT);
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[2], 96 | hole, 96); /* free beside free */
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[2], 96, 96 | live); /* nothing free before it */
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[0], 0, 96); /* free, and in no list */
    upfront_heap_set(s.h, s.at[1], upfront_heap_word(s.h, s.at[1]) | hole);
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[2], 96 | hole, 96 | live | (UINT64_C(17) << UPFRONT_HEAP_LOG)); /* aligned to 2 MiB */
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[0], 0, 32 | live | (UINT64_C(17) << UPFRONT_HEAP_SLACK)); /* more slack than bytes */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[1] + 8, upfront_heap_word(s.h, s.at[1] + 8) ^ UPFRONT_HEAP_SEAL_SIZE); /* free, and turned */
    small_caught(&s);
    upfront_heap_set(s.h, s.at[0] + 8, upfront_heap_word(s.h, s.at[0] + 8) ^ UPFRONT_HEAP_SEAL_SIZE); /* parked without lists */
    small_caught(&s);
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
    upfront_heap_set(s.h, s.at[3] + 16, 0); /* one forgotten */
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
    upfront_heap_set(s.h, s.at[3] + 16, 0); /* one forgotten */
    small_caught(&s);
    upfront_heap_seal(s.h, s.at[0] + 32, 0, 96); /* a buried one */
    upfront_heap_set(s.h, s.at[0] + 32, upfront_heap_word(s.h, s.at[0] + 32) ^ UPFRONT_HEAP_SEAL_BEFORE);
    upfront_heap_set(s.h, s.at[1] + 16, s.at[0] + 32);
    small_caught(&s);
    /* a forged header that is linked as it should be is one more than there are */
    upfront_heap_seal(s.h, s.at[0] + 32, 0, 96);
    upfront_heap_set(s.h, s.at[0] + 32 + 16, 0);
    upfront_heap_set(s.h, s.at[0] + 32 + 24, s.at[1]);
    upfront_heap_set(s.h, s.at[1] + 16, s.at[0] + 32);
    small_caught(&s);
    window_free(s.window, WINDOW);
}

void test_heap_misuse(void) {
    misuse_codes();
    walk_answers();
    walk_bits();
    parked_bits();
    parked_beside();
    parked_twice();
    parked_lost();
    links_overwritten();
    headers_stay_bad();
    walk_counts();
    walk_forged();
    walk_lists();
    walk_fronts();
}
