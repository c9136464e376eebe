/* ring.c - tests of ring.h: order, the seam, and contradicting words. */
#include "check.h"

enum { RING_WORD = UPFRONT_RING_WORD, RING_HEAD = sizeof(upfront_ring) };

/* Checks that the words of the header agree. */
static void ring_check(const upfront_ring *r, uint64_t size) {
    const upfront_arena *a = &r->arena;
    CHECK(a->start == RING_HEAD && r->end == size && a->next == a->gen && r->oldest % RING_WORD == 0);
    CHECK(upfront_ring_least(r) <= upfront_ring_size(r) - upfront_ring_used(r));
    CHECK_EQ(upfront_ring_used(r) == 0 && a->cursor == a->start, r->count == 0);
    if (r->seam == 0)
        CHECK(a->start <= r->oldest && r->oldest <= a->cursor && a->cursor <= r->end && a->limit == r->end);
    else
        CHECK(a->start < a->cursor && a->cursor <= r->oldest && r->oldest < r->seam && r->seam <= r->end &&
            a->limit == r->oldest);
}

/* Allocates a block, writes all of it, and checks the ring. */
static unsigned char *ring_take(upfront_ring *r, uint64_t block, uint64_t size, uint64_t align) {
    unsigned char *p = (unsigned char *)upfront_ring_alloc(r, size, align);
    if (p != NULL) {
        CHECK((uintptr_t)p % align == 0 && (uintptr_t)p % RING_WORD == 0);
        CHECK(p >= (unsigned char *)(r + 1) && p + size <= (unsigned char *)r + block);
        if (size != 0) {
            CHECK(is_marked(p, 0) && is_marked(p + size - 1, 0));
            fill(p, size, 1);
        }
    }
    ring_check(r, block);
    return p;
}

static void ring_give(upfront_ring *r, uint64_t block, unsigned char *p) {
    uint64_t size = 0;
    CHECK(upfront_ring_front(r, &size) == p);
    CHECK(holds(p, size, 1));
    CHECK_EQ(upfront_ring_free(r, p), UPFRONT_OK);
    CHECK(size == 0 || is_marked(p, 1));
    ring_check(r, block);
}

static void ring_arguments(void) {
    unsigned char *w = window_new(WINDOW), *p, *q;
    upfront_ring zero, *r = upfront_ring_init(w, 1024);
    uint64_t size = 7, gen = 1;
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_ring_init(NULL, 1024) == NULL);
    CHECK(upfront_ring_init(w + 8, 1024) == NULL);
    CHECK(upfront_ring_init(w, 191) == NULL);
    CHECK(upfront_ring_init(w, UPFRONT_OFFSET_MAX - UPFRONT_EDGE) == NULL);
    CHECK(upfront_ring_alloc(NULL, 8, 8) == NULL);
    CHECK(upfront_ring_alloc(&zero, 0, 1) == NULL);
    CHECK(upfront_ring_alloc(r, 8, 0) == NULL);
    CHECK(upfront_ring_alloc(r, 8, 12) == NULL);
    CHECK(upfront_ring_alloc(r, 8, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_ring_alloc(r, UPFRONT_OFFSET_MAX - 1, UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_ring_alloc(r, UPFRONT_OFFSET_MAX, 1) == NULL);
    CHECK(upfront_ring_alloc(r, UINT64_MAX, 1) == NULL);
    CHECK_EQ(upfront_ring_free(NULL, w), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ring_free(r, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ring_free(r, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_ring_free(&zero, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_ring_reset(NULL, gen), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ring_reset(r, 2 * gen), UPFRONT_STALE);
    CHECK(upfront_ring_front(r, &size) == NULL && size == 7);
    CHECK_EQ(r->arena.gen, gen);
    ring_check(r, 1024);
    p = ring_take(r, 1024, 24, 8);
    q = ring_take(r, 1024, 0, 8);
    CHECK(upfront_ring_push(r, 2 * gen, 8, 7) == NULL);
    CHECK(upfront_ring_wrap(r, 2 * gen, 0, 7) == NULL);
    CHECK_EQ(upfront_ring_pop(r, 2 * gen, p), UPFRONT_STALE);
    CHECK_EQ(upfront_ring_find(r, gen, p), UPFRONT_OK);
    CHECK_EQ(upfront_ring_free(r, q), UPFRONT_ORDER);
    CHECK_EQ(upfront_ring_free(r, p + 8), UPFRONT_ORDER);
    CHECK_EQ(upfront_ring_free(r, w), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_ring_free(r, w + 1000), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_ring_free(r, &zero), UPFRONT_FOREIGN);
    ring_give(r, 1024, p);
    CHECK_EQ(upfront_ring_free(r, p), UPFRONT_FOREIGN);
    ring_give(r, 1024, q);
    window_free(w, WINDOW);
}

/* The skipped tail counts as used until the last block before it is freed. */
static void ring_seam(void) {
    enum { SIZE = RING_HEAD + 200 };
    unsigned char *w = window_new(WINDOW), *a, *b, *c, *d;
    upfront_ring *r = upfront_ring_init(w, SIZE);
    a = ring_take(r, SIZE, 72, 8); /* 0 ... 80 */
    b = ring_take(r, SIZE, 77, 8); /* 80 ... 165 */
    CHECK_EQ(upfront_ring_room(r), 24);
    ring_give(r, SIZE, a);
    CHECK_EQ(upfront_ring_room(r), 72);
    c = ring_take(r, SIZE, 40, 8); /* 0 ... 48 */
    CHECK_EQ(upfront_ring_used(r), 200 - (80 - 48));
    CHECK(upfront_ring_wrap(r, r->arena.gen, 0, 7) == NULL); /* wrapped already */
    CHECK_EQ(upfront_ring_free(r, c), UPFRONT_ORDER);
    CHECK_EQ(upfront_ring_free(r, c + 8), UPFRONT_ORDER);
    CHECK_EQ(upfront_ring_free(r, c + 56), UPFRONT_FOREIGN);
    CHECK_EQ(upfront_ring_free(r, b + 100), UPFRONT_FOREIGN);
    d = ring_take(r, SIZE, 3, 8); /* 48 ... 59 */
    CHECK_EQ(upfront_ring_room(r), 8);
    CHECK(ring_take(r, SIZE, 9, 8) == NULL && ring_take(r, SIZE, 0, 64) == NULL);
    ring_give(r, SIZE, b);
    CHECK_EQ(upfront_ring_used(r), 59);
    CHECK_EQ(upfront_ring_room(r), 200 - 64 - RING_WORD);
    ring_give(r, SIZE, c);
    CHECK_EQ(upfront_ring_least(r), upfront_ring_size(r) - 200 + (80 - 59));
    CHECK_EQ(upfront_ring_reset(r, r->arena.gen), UPFRONT_OK);
    CHECK(is_marked(d, 1));
    ring_check(r, SIZE);

    /* resets a wrapped ring, with two of its words in freed bytes */
    a = ring_take(r, SIZE, 72, 8);
    b = ring_take(r, SIZE, 72, 8);
    ring_give(r, SIZE, a);
    c = ring_take(r, SIZE, 40, 8);
    ring_take(r, SIZE, 0, 8);
    d = ring_take(r, SIZE, 0, 8);
    ring_give(r, SIZE, b);
    ring_give(r, SIZE, c);
    a = ring_take(r, SIZE, 100, 8);
    b = ring_take(r, SIZE, 17, 8);
    CHECK(a != NULL && b != NULL && b < d && r->seam != 0);
    CHECK_EQ(upfront_ring_reset(r, r->arena.gen), UPFRONT_OK);
    CHECK(is_marked(a, 1) && is_marked(b, 1));
    ring_check(r, SIZE);
    CHECK_EQ(upfront_ring_room(r), 200 - RING_WORD);
    window_free(w, WINDOW);
}

/* The room that is left is smaller than a word. */
static void ring_scraps(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_ring *r = upfront_ring_init(w, 192);
    CHECK(ring_take(r, 192, 57, 1) == NULL);
    CHECK(ring_take(r, 192, 51, 1) != NULL); /* 5 bytes: the next word would be at the very end */
    CHECK_EQ(upfront_ring_room(r), 0);
    CHECK(ring_take(r, 192, 0, 1) == NULL);
    r = upfront_ring_init(w, 194);
    CHECK(ring_take(r, 194, 57, 1) != NULL); /* 1 byte: past the end */
    CHECK_EQ(upfront_ring_room(r), 0);
    CHECK(ring_take(r, 194, 0, 1) == NULL);
    window_free(w, WINDOW);
}

/* An overwritten word is found when its block is the oldest. */
static void ring_corrupt(void) {
    unsigned char *w = window_new(WINDOW), *p;
    upfront_ring *r = upfront_ring_init(w, 1024);
    uint64_t *word;
    p = ring_take(r, 1024, 72, 8);
    CHECK(p != NULL);
    word = (uint64_t *)upfront_arena_at(&r->arena, r->oldest);
    UPFRONT_UNPOISON(word, sizeof *word);
    *word = 900;
    CHECK_EQ(upfront_ring_free(r, p), UPFRONT_CORRUPT);
    *word = 72;
    CHECK_EQ(upfront_ring_free(r, p), UPFRONT_OK);
    window_free(w, WINDOW);
}

/* The walk refuses a ring with a changed word, and accepts the repaired one. */
static void ring_spoil(const upfront_ring *r, uint64_t *word, uint64_t wrong) {
    upfront_block out[8];
    uint64_t was = *word, count;
    CHECK_EQ(upfront_ring_walk(r, out, 8, &count), UPFRONT_OK);
    *word = wrong;
    CHECK_EQ(upfront_ring_walk(r, out, 8, &count), UPFRONT_CORRUPT);
    *word = was;
}

static uint64_t *ring_open_word(const upfront_ring *r, uint64_t offset) {
    uint64_t *word = (uint64_t *)upfront_arena_at(&r->arena, offset);
    UPFRONT_UNPOISON(word, sizeof *word);
    return word;
}

/* The ranges follow each other from the oldest block to the newest, or around the seam with the
 * skipped tail. */
static void ring_walks(void) {
    enum { SIZE = RING_HEAD + 256, START = RING_HEAD };
    unsigned char *w = window_new(WINDOW), *first, kept[24];
    upfront_ring *r = upfront_ring_init(w, SIZE);
    upfront_block out[8];
    uint64_t count = 7;
    CHECK_EQ(upfront_ring_walk(NULL, out, 8, &count), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ring_walk(r, out, 8, NULL), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_ring_walk(r, NULL, 1, &count), UPFRONT_BAD_ARGUMENT);
    CHECK(upfront_ring_walk(r, NULL, 0, &count) == UPFRONT_OK && count == 0);
    first = ring_take(r, SIZE, 61, 8);
    CHECK(ring_take(r, SIZE, 40, 32) != NULL);
    CHECK(upfront_ring_walk(r, out, 1, &count) == UPFRONT_OK && count == 2);
    CHECK(upfront_ring_walk(r, out, 8, &count) == UPFRONT_OK && count == 2);
    CHECK(out[0].offset == START && out[0].size == 72 && out[0].asked == 61 && out[0].live == 1);
    CHECK(out[1].offset == START + 72 && out[1].offset + out[1].size == r->arena.cursor && out[1].asked == 40);
    ring_spoil(r, &r->oldest, UINT64_MAX);
    ring_spoil(r, &r->oldest, START - RING_WORD);
    ring_spoil(r, &r->oldest, SIZE - RING_WORD);
    ring_spoil(r, &r->arena.cursor, UINT64_MAX);
    ring_spoil(r, &r->arena.cursor, START - RING_WORD);
    ring_spoil(r, &r->count, 3);
    ring_spoil(r, ring_open_word(r, START), 200);
    ring_spoil(r, ring_open_word(r, START), 200 * UPFRONT_RING_PADDING);
    /* bytes of the first that look like a second block, and a third past the end */
    memcpy(kept, first, sizeof kept);
    memset(first, 0, 16);
    memset(first + 16, 255, 8);
    ring_spoil(r, ring_open_word(r, START), 8);
    memcpy(first, kept, sizeof kept);

    CHECK(ring_take(r, SIZE, 80, 8) != NULL);
    ring_give(r, SIZE, first);
    CHECK(ring_take(r, SIZE, 50, 8) != NULL && r->seam != 0 && r->seam != SIZE);
    CHECK(upfront_ring_walk(r, out, 8, &count) == UPFRONT_OK && count == 4);
    CHECK(out[0].offset == START && out[0].asked == 50 && out[1].offset == r->oldest && out[1].asked == 40 &&
        out[2].asked == 80);
    CHECK(out[3].live == UPFRONT_RING_SKIPPED && out[3].offset == r->seam && out[3].offset + out[3].size == SIZE &&
        out[3].asked == 0);
    CHECK_EQ(upfront_ring_find(r, r->arena.gen, (char *)r + RING_WORD), UPFRONT_FOREIGN);
    ring_spoil(r, &r->seam, SIZE + RING_WORD);
    ring_spoil(r, &r->arena.cursor, r->oldest + RING_WORD);
    ring_spoil(r, ring_open_word(r, START), 200);
    window_free(w, WINDOW);

    w = window_new(WINDOW);
    r = upfront_ring_init(w, SIZE);
    first = ring_take(r, SIZE, 120, 8);
    CHECK(ring_take(r, SIZE, 120, 8) != NULL);
    ring_give(r, SIZE, first);
    CHECK(ring_take(r, SIZE, 8, 8) != NULL && r->seam == SIZE);
    CHECK(upfront_ring_walk(r, out, 8, &count) == UPFRONT_OK && count == 2 && out[1].live == 1);
    window_free(w, WINDOW);
}

/* Checks that the newest block is whole, and so are the newest of the others that leave it room. */
static void ring_overwrites(void) {
    enum { SIZE = RING_HEAD + 600 };
    unsigned char *w = window_new(WINDOW), *p, *oldest;
    upfront_ring *r = upfront_ring_init(w, SIZE);
    uint64_t seed = 7, step, size = 0, count;
    CHECK(upfront_ring_overwrite(NULL, 8, 8) == NULL);
    for (step = 0; step < 3000; step++) {
        uint64_t room = upfront_ring_room(r);
        size = next_random(&seed) % 590;
        count = r->count;
        p = (unsigned char *)upfront_ring_overwrite(r, size, UINT64_C(1) << next_random(&seed) % 4);
        CHECK(p != NULL && p + size <= w + SIZE);
        CHECK(size > room || r->count == count + 1);
        fill(p, size, 1);
        ring_check(r, SIZE);
    }
    count = r->count;
    CHECK(upfront_ring_overwrite(r, 600, 8) == NULL && upfront_ring_overwrite(r, 500, 2048) == NULL);
    CHECK(upfront_ring_overwrite(r, UPFRONT_OFFSET_MAX, 8) == NULL && upfront_ring_overwrite(r, 8, 3) == NULL);
    CHECK_EQ(r->count, count);
    oldest = (unsigned char *)upfront_ring_front(r, &size);
    CHECK(upfront_ring_overwrite(r, 592, 8) != NULL);
    CHECK_EQ(r->count, 1);
    CHECK(upfront_ring_free(r, oldest) != UPFRONT_OK || oldest == w + RING_HEAD + RING_WORD);
    upfront_ring_init(w, SIZE);
    CHECK(upfront_ring_alloc(r, 100, 8) != NULL);
    UPFRONT_UNPOISON(w + RING_HEAD, RING_WORD);
    *(uint64_t *)(void *)(w + RING_HEAD) = UINT64_MAX;
    CHECK(upfront_ring_overwrite(r, 590, 8) == NULL);
    CHECK_EQ(r->count, 1);
    window_free(w, WINDOW);
}

void test_ring(void) {
    ring_arguments();
    ring_seam();
    ring_scraps();
    ring_corrupt();
    ring_walks();
    ring_overwrites();
}
