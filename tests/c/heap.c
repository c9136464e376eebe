/* heap.c - tests of heap.h: every size and alignment, refusals, every way to grow, and random
 * programs; trims. */
#include "check.h"

enum { HEAP_BLOCKS = 4096, HEAP_LIVE = 200 };

static upfront_block heap_blocks[HEAP_BLOCKS];

/* Checks the walk, and that its list covers the heap without gap or overlap. Returns the number of
 * free blocks. */
static uint64_t heap_walked(const upfront_heap *h) {
    uint64_t count, i, at = h->first, free_count = 0, parked = 0;
    CHECK_EQ(upfront_heap_walk(h, heap_blocks, HEAP_BLOCKS, &count), UPFRONT_OK);
    for (i = 0; i < count; i++) {
        CHECK_EQ(heap_blocks[i].offset, at);
        at += heap_blocks[i].size;
        free_count += heap_blocks[i].live == 0;
        parked += heap_blocks[i].live == UPFRONT_HEAP_PARKED;
    }
    CHECK_EQ(at, h->end);
    CHECK(parked == h->parked && parked <= h->parks);
    return free_count;
}

static void heap_is_empty(upfront_heap *h) {
    uint64_t largest = upfront_heap_largest(h); /* with parked blocks */
    upfront_heap_flush(h);
    CHECK_EQ(upfront_heap_largest(h), largest);
    CHECK(heap_walked(h) == 1 && h->parked == 0);
    CHECK(heap_blocks[0].live == 0 && h->used == 0 && h->live == 0);
    CHECK_EQ(upfront_heap_largest(h), h->end - h->first - UPFRONT_HEAP_HEADER);
}

static char *heap_got(upfront_heap *h, uint64_t size, uint64_t align) {
    char *p = (char *)upfront_heap_alloc(h, size, align);
    CHECK(p != NULL && (uintptr_t)p % align == 0 && (uintptr_t)p % 16 == 0);
    CHECK_EQ(upfront_heap_size_of(h, p), size);
    fill(p, size, (int)size);
    return p;
}

static void heap_give(upfront_heap *h, void *p) { CHECK_EQ(upfront_heap_free(h, p), UPFRONT_OK); }

static void heap_init_refuses(uint64_t parked, uint64_t least) {
    unsigned char *w = window_new(WINDOW);
    uint64_t size;
    CHECK(upfront_heap_init(NULL, 4096, parked) == NULL);
    CHECK(upfront_heap_init(w + 16, 4096, parked) == NULL);
    CHECK(upfront_heap_init(w, UPFRONT_OFFSET_MAX - UPFRONT_EDGE, parked) == NULL);
    CHECK(upfront_heap_init(w, UINT64_MAX, parked) == NULL);
    for (size = 0; size < least; size++)
        CHECK(upfront_heap_init(w, size, parked) == NULL);
    CHECK(holds(w, WINDOW, 0));
    for (size = least; size < 3000; size++) {
        upfront_heap *h = heap_of(w, size, parked);
        uint64_t most;
        CHECK(h != NULL);
        heap_is_empty(h);
        most = upfront_heap_largest(h);
        CHECK(most >= 16 && h->end + UPFRONT_HEAP_HEADER <= size && h->end + 32 > size);
        CHECK(upfront_heap_alloc(h, most + 1, 1) == NULL);
        heap_give(h, heap_got(h, most, 1)); /* mattconte's can't allocate its largest block */
        CHECK(h->failed == 1 && h->bounded == 0 && h->phase == most + UPFRONT_HEAP_HEADER);
        heap_is_empty(h);
    }
    window_free(w, WINDOW);
}

static void heap_refuses(void) {
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 15, UINT64_MAX - 16, UINT64_C(1) << 63,
        UPFRONT_OFFSET_MAX};
    unsigned char *w = window_new(WINDOW);
    upfront_heap zero, *h = heap_of(w, WINDOW, 0);
    void *p = heap_got(h, 100, 16);
    uint64_t i;
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_heap_alloc(&zero, 8, 8) == NULL && zero.failed == 1);
    CHECK_EQ(upfront_heap_free(&zero, p), UPFRONT_FOREIGN);
    CHECK(upfront_heap_alloc(NULL, 8, 8) == NULL);
    CHECK_EQ(upfront_heap_free(NULL, p), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_heap_free(h, NULL), UPFRONT_OK);
    for (i = 0; i < 5; i++) { /* a full like any other */
        CHECK(upfront_heap_alloc(h, huge[i], 16) == NULL);
        CHECK(upfront_heap_realloc(h, p, huge[i]) == NULL && holds(p, 100, 100));
        CHECK(h->failed == 2 * (i + 1) && h->refused == UPFRONT_OFFSET_MAX);
    }
    h->failed = 0;
    CHECK(upfront_heap_alloc(h, 8, 0) == NULL && upfront_heap_alloc(h, 8, 24) == NULL);
    CHECK(upfront_heap_alloc(h, 8, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK_EQ(h->failed, 0); /* bad arguments aren't counted */
    CHECK(upfront_heap_alloc(h, UPFRONT_OFFSET_MAX - 1, UPFRONT_ALIGN_MAX) == NULL);
    /* no list has a block of that size */
    CHECK(upfront_heap_alloc(h, 8, UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_heap_realloc(h, p, WINDOW) == NULL && holds(p, 100, 100));
    CHECK(h->failed == 3 && h->bounded == 0 && h->refused == WINDOW && h->live == 1);
    CHECK(h->used == 112 + 16 && h->phase == h->used);
    CHECK(upfront_heap_hook(h, p, 100, 0) == NULL && upfront_heap_hook(h, NULL, 5, 0) == NULL);
    heap_is_empty(h);
    p = upfront_heap_hook(h, NULL, 5, 0x100);
    CHECK_EQ(upfront_heap_size_of(h, p), 0x100);
    CHECK(upfront_heap_hook(h, p, 0x100, 1) == p);
    heap_give(h, p);
    heap_is_empty(h);
    window_free(w, WINDOW);
}

static struct heap_block {
    unsigned char *at;
    uint64_t size, align;
    int value;
} heap_live[HEAP_LIVE];

static void heap_step(upfront_heap *h, uint64_t *seed) {
    uint64_t i = next_random(seed) % HEAP_LIVE, size = next_random(seed) % 8 == 0 ? next_random(seed) % 9000
        : next_random(seed) % 200;
    uint64_t align = UINT64_C(16) << (next_random(seed) % 16 == 0 ? next_random(seed) % 13 : 0), kept;
    unsigned char *p = heap_live[i].at;
    if (p == NULL) {
        p = (unsigned char *)upfront_heap_alloc(h, size, align);
        heap_live[i].align = align;
    } else if (next_random(seed) % 2 == 0) {
        CHECK(holds(p, heap_live[i].size, heap_live[i].value));
        heap_give(h, p);
        CHECK(upfront_heap_free(h, p) < 0);
        heap_live[i].at = NULL;
        return;
    } else {
        p = (unsigned char *)upfront_heap_realloc(h, p, size);
        kept = size < heap_live[i].size ? size : heap_live[i].size;
        CHECK(p == NULL || holds(p, kept, heap_live[i].value));
        /* A block that moved leaves no valid header. */
        CHECK(p == NULL || p == heap_live[i].at || upfront_heap_size_of(h, heap_live[i].at) < 0);
    }
    if (p == NULL)
        return;
    CHECK((uintptr_t)p % heap_live[i].align == 0 && upfront_heap_size_of(h, p) == (int64_t)size);
    heap_live[i].at = p;
    heap_live[i].size = size;
    heap_live[i].value = (int)(next_random(seed) % 256);
    fill(p, size, heap_live[i].value);
}

/* A freed block is parked, and the next request of its size gets it; each size has its own list. */
static void heap_parks(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = heap_of(w, WINDOW, 3);
    char *p[6], *q;
    uint64_t i, used;
    for (i = 0; i < 6; i++)
        p[i] = heap_got(h, i < 3 ? 100 : 1024, 1);
    heap_give(h, p[1]);
    CHECK(h->parked == 1 && heap_walked(h) == 1 && h->live == 5 && upfront_heap_free(h, p[1]) == UPFRONT_DOUBLE);
    CHECK(upfront_heap_size_of(h, p[1]) == UPFRONT_DOUBLE && upfront_heap_realloc(h, p[1], 5) == NULL);
    used = h->used;
    /* the same size, and a smaller one */
    CHECK(heap_got(h, 112, 16) == p[1] && h->parked == 0 && h->used == used + 128);
    heap_give(h, p[1]);
    q = heap_got(h, 96, 1);
    CHECK(q != p[1] && heap_got(h, 100, 32) != p[1] && heap_got(h, 0, 1) != p[1]);
    heap_give(h, q);
    heap_give(h, p[3]);
    CHECK(h->parked == 3);
    heap_give(h, p[4]); /* one too many: the smallest size gives up a block */
    CHECK(h->parked == 3 && *upfront_heap_front(h, 112) == 0 && *upfront_heap_front(h, 128) != 0);
    for (i = 1; i < 8; i++) { /* seven merge, then another size gives up a block */
        CHECK(heap_got(h, 1024, 32) != p[3]);
        heap_give(h, p[5]);
        CHECK(h->parked == 3 && *upfront_heap_front(h, 128) != 0);
        p[5] = heap_got(h, 1024, 32);
    }
    heap_give(h, p[5]);
    CHECK(h->parked == 3 && *upfront_heap_front(h, 128) == 0);
    CHECK(heap_got(h, 1024, 1) == p[5] && heap_got(h, 1024, 1) == p[4] && heap_got(h, 1024, 1) == p[3]);
    CHECK_EQ(h->parked, 0);
    q = heap_got(h, 1025, 1);
    heap_give(h, q); /* too large for a list */
    CHECK(h->parked == 0);
    upfront_heap_reset(h);
    for (i = 0; i < 3; i++)
        p[i] = heap_got(h, 500, 1);
    q = heap_got(h, upfront_heap_largest(h), 1);
    for (i = 0; i < 3; i++)
        heap_give(h, p[i]);
    CHECK(h->parked == 3 && heap_walked(h) == 0);
    CHECK_EQ(upfront_heap_largest(h), 3 * 528 - 16);
    /* the parked blocks merge before a refusal */
    CHECK(heap_got(h, 3 * 528 - 16, 1) == p[0] && h->parked == 0 && h->failed == 0);
    heap_give(h, p[0]);
    p[0] = heap_got(h, 500, 1);
    p[1] = heap_got(h, 500, 1);
    heap_give(h, p[1]);
    CHECK(upfront_heap_realloc(h, p[0], 1500) == p[0] && h->parked == 0 && h->failed == 0);
    CHECK(upfront_heap_realloc(h, p[0], 1600) == NULL && h->failed == 1);
    heap_give(h, p[0]);
    p[0] = heap_got(h, 500, 1);
    heap_give(h, p[0]);
    upfront_heap_reset(h);
    CHECK(h->parked == 0 && h->hand == 0 && upfront_heap_free(h, p[0]) < 0 && heap_got(h, 500, 1) != NULL);
    heap_give(h, (char *)h + h->first + UPFRONT_HEAP_HEADER);
    heap_is_empty(h);
    window_free(w, WINDOW);
}

/* A failed search before the parked blocks merge is no refusal, and one refusal counts once. */
static void heap_bounded(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = heap_of(w, WINDOW, 2);
    void *p[UPFRONT_HEAP_SCAN + 1], *a, *b;
    uint64_t i;
    for (i = 0; i <= UPFRONT_HEAP_SCAN; i++) { /* 512 bytes, in one class with 528 */
        p[i] = heap_got(h, 496, 1);
        heap_got(h, 1, 1);
    }
    a = heap_got(h, 496, 1);
    b = heap_got(h, 496, 1);
    heap_got(h, upfront_heap_largest(h), 1);
    for (i = 0; i <= UPFRONT_HEAP_SCAN; i++)
        heap_give(h, p[i]);
    upfront_heap_flush(h);
    heap_give(h, a);
    heap_give(h, b);
    CHECK(h->parked == 2 && heap_got(h, 512, 1) == a && h->failed == 0 && h->bounded == 0);
    heap_give(h, a);
    upfront_heap_flush(h);
    heap_got(h, upfront_heap_largest(h), 1); /* the two count as one block */
    a = heap_got(h, 496, 1);
    heap_give(h, a);
    CHECK(h->parked == 1 && upfront_heap_alloc(h, 512, 1) == NULL && h->parked == 0);
    CHECK(h->failed == 1 && h->bounded == 1);
    window_free(w, WINDOW);
}

/* Reserved bytes are refused, parked blocks included, until the reserve is lifted. */
static void heap_reserves(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = heap_of(w, 8192, 4);
    uint64_t all = h->end - h->first;
    char *p, *q;
    upfront_heap_reserve(h, 1040);
    CHECK(h->most == all - 1040 && upfront_heap_alloc(h, all - 1055, 1) == NULL && h->failed == 1 &&
        h->refused == all - 1055);
    p = heap_got(h, all - 1040 - 16 - 112, 1);
    q = heap_got(h, 96, 1);
    CHECK(upfront_heap_alloc(h, 0, 1) == NULL && upfront_heap_realloc(h, q, 97) == NULL && h->failed == 3);
    CHECK(upfront_heap_realloc(h, q, 95) == q && upfront_heap_realloc(h, q, 96) == q);
    heap_give(h, q);
    upfront_heap_reserve(h, 1041 + 16);
    CHECK(h->parked == 1 && upfront_heap_alloc(h, 96, 1) == NULL); /* not even the parked block */
    upfront_heap_reserve(h, UINT64_MAX);
    CHECK(h->most == 0 && upfront_heap_alloc(h, 1, 1) == NULL && upfront_heap_realloc(h, p, 10) == p);
    /* its block has 16 */
    CHECK(upfront_heap_realloc(h, p, 16) == p && upfront_heap_realloc(h, p, 17) == NULL);
    upfront_heap_reserve(h, 0);
    CHECK(h->most == all && (q = heap_got(h, 1024, 1)) != NULL);
    heap_give(h, q);
    heap_give(h, p);
    heap_is_empty(h);
    window_free(w, WINDOW);
}

static void heap_phases(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = heap_of(w, 8192, 4);
    char *p = heap_got(h, 1008, 1), *q = heap_got(h, 496, 1);
    heap_give(h, p);
    CHECK_EQ(upfront_heap_phase(h), 1536);
    CHECK(h->phase == 512 && h->past == 1536 && upfront_heap_peak(h) == 1536);
    p = heap_got(h, 112, 1);
    heap_give(h, p);
    CHECK_EQ(upfront_heap_phase(h), 640);
    heap_give(h, q);
    CHECK(upfront_heap_phase(h) == 512 && h->phase == 0 && h->past == 1536);
    upfront_heap_reset(h);
    CHECK(upfront_heap_peak(h) == 1536 && upfront_heap_phase(NULL) == 0);
    window_free(w, WINDOW);
}

/* The checked build refuses a call while another is running. */
static void heap_raced(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = heap_of(w, 8192, 4);
    char *p = heap_got(h, 100, 1);
#ifdef UPFRONT_CHECKED
    h->busy = 1;
    CHECK(upfront_heap_alloc(h, 1, 1) == NULL && upfront_heap_realloc(h, p, 1) == NULL &&
        upfront_heap_free(h, p) == UPFRONT_RACED);
    CHECK(upfront_heap_size_of(h, p) == UPFRONT_RACED && upfront_heap_check(h, p) == UPFRONT_RACED);
    CHECK(h->raced == 5 && h->failed == 0 && h->live == 1);
    upfront_heap_flush(h);
    upfront_heap_reset(h);
    CHECK(upfront_heap_largest(h) == 0 && upfront_heap_walk(h, NULL, 0, NULL) == UPFRONT_RACED);
    CHECK(h->raced == 9 && h->live == 1);
    h->busy = 0;
#endif
    CHECK_EQ(upfront_heap_check(h, p), UPFRONT_OK);
    heap_give(h, p);
    CHECK_EQ(h->busy, 0);
    window_free(w, WINDOW);
}

#ifdef UPFRONT_CHECKED
enum { HEAP_PAGE = 256, HEAP_TRIMS = 0 };
#else
enum { HEAP_PAGE = 256, HEAP_TRIMS = 1 };
#endif

/* Makes all runs zero. Checks that each is of whole pages within one free block, apart from its
 * header and links, and that no whole page of a free block is left out. Returns the bytes. */
static uint64_t heap_trim(upfront_heap *h) {
    uint64_t at = 0, bytes, sum = 0, whole = 0, count, i, from, end;
    void *run;
    upfront_heap_flush(h);
    CHECK_EQ(upfront_heap_walk(h, heap_blocks, HEAP_BLOCKS, &count), UPFRONT_OK);
    for (i = 0; i < count; i++) {
        from = upfront_round_up((uint64_t)(uintptr_t)h + heap_blocks[i].offset + 32, HEAP_PAGE);
        end = ((uint64_t)(uintptr_t)h + heap_blocks[i].offset + heap_blocks[i].size) & ~(uint64_t)(HEAP_PAGE - 1);
        whole += heap_blocks[i].live == 0 && from < end ? end - from : 0;
    }
    while ((bytes = upfront_heap_next_run(h, HEAP_PAGE, &at, &run)) != 0) {
        uint64_t offset = (uint64_t)((char *)run - (char *)h);
        CHECK((uintptr_t)run % HEAP_PAGE == 0 && bytes % HEAP_PAGE == 0);
        for (i = 0; heap_blocks[i].offset + heap_blocks[i].size <= offset; i++)
            ;
        CHECK(heap_blocks[i].live == 0 && offset - heap_blocks[i].offset >= 32);
        CHECK(offset + bytes <= heap_blocks[i].offset + heap_blocks[i].size);
        heap_blocks[i].live = 1; /* no block is named twice */
        UPFRONT_UNPOISON(run, bytes);
        memset(run, 0, (size_t)bytes);
        sum += bytes;
    }
    CHECK_EQ(upfront_heap_next_run(h, HEAP_PAGE, &at, &run), 0);
    CHECK_EQ(sum, HEAP_TRIMS || h->plain ? whole : 0);
    heap_walked(h);
    return sum;
}

/* Random blocks keep their bytes over any number of trims, and the heap its use. */
static void heap_trims_random(uint64_t seed, uint64_t parked) {
    static struct {
        char *p;
        uint64_t size;
    } live[HEAP_LIVE];
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = upfront_heap_init(w, WINDOW, parked);
    uint64_t i, step, used;
    memset(live, 0, sizeof live);
    for (step = 0; step < 3000; step++) {
        i = next_random(&seed) % HEAP_LIVE;
        if (live[i].p != NULL) {
            CHECK(holds(live[i].p, live[i].size, (int)live[i].size));
            heap_give(h, live[i].p);
            live[i].p = NULL;
        } else {
            live[i].size = next_random(&seed) % (next_random(&seed) % 4 == 0 ? 3000 : 200);
            live[i].p = (char *)upfront_heap_alloc(h, live[i].size, (uint64_t)16 << next_random(&seed) % 6);
            if (live[i].p != NULL)
                fill(live[i].p, live[i].size, (int)live[i].size);
        }
        if (next_random(&seed) % 16 == 0) {
            used = h->used;
            heap_trim(h);
            CHECK_EQ(h->used, used);
        }
    }
    for (i = 0; i < HEAP_LIVE; i++)
        if (live[i].p != NULL) {
            CHECK(holds(live[i].p, live[i].size, (int)live[i].size));
            heap_give(h, live[i].p);
        }
    CHECK(heap_trim(h) + 4 * HEAP_PAGE > (HEAP_TRIMS ? h->end - h->first : 0) && h->damaged == 0);
    heap_is_empty(h);
    window_free(w, WINDOW);
}

static void heap_run_refuses(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = heap_of(w, WINDOW, 0);
    uint64_t at = 0;
    void *run = h;
    CHECK(upfront_heap_next_run(NULL, HEAP_PAGE, &at, &run) == 0 &&
        upfront_heap_next_run(h, HEAP_PAGE, NULL, &run) == 0);
    CHECK(upfront_heap_next_run(h, HEAP_PAGE, &at, NULL) == 0 && upfront_heap_next_run(h, 0, &at, &run) == 0);
    CHECK(upfront_heap_next_run(h, 3, &at, &run) == 0 && upfront_heap_next_run(h, 2 * UPFRONT_ALIGN_MAX, &at,
        &run) == 0);
    /* larger than the heap */
    CHECK(upfront_heap_next_run(h, UPFRONT_ALIGN_MAX, &at, &run) == 0 && at == 0 && run == (void *)h);
    window_free(w, WINDOW);
}

/* Sets a word of a header or a link, as a stray write does. */
static void heap_stray(upfront_heap *h, uint64_t at, uint64_t value) {
    UPFRONT_UNPOISON((char *)h + at, 8);
    upfront_heap_set(h, at, value);
}

/* A block that was overwritten has no run, and neither do the blocks after it in its list. */
static void heap_run_skips(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = heap_of(w, WINDOW, 0);
    uint64_t block[4], at = 0, i, first, next, all;
    void *run;
    for (i = 0; i < 4; i++) {
        block[i] = (uint64_t)(heap_got(h, 1000, 16) - (char *)h) - UPFRONT_HEAP_HEADER;
        heap_got(h, 16, 16);
    }
    heap_got(h, upfront_heap_largest(h), 16);
    for (i = 0; i < 4; i++)
        heap_give(h, (char *)h + block[i] + UPFRONT_HEAP_HEADER);
    all = heap_trim(h); /* the last one freed is the first of the list */
    CHECK(all >= 8 * HEAP_PAGE);

    next = upfront_heap_word(h, block[1] + 16);
    CHECK(next == block[0] && upfront_heap_word(h, block[3] + 24) == 0);
    heap_stray(h, block[1] + 16, 8); /* a link to no block */
    for (at = 0, i = 0; upfront_heap_next_run(h, HEAP_PAGE, &at, &run) != 0; i++)
        ;
    CHECK_EQ(i, 2);
    heap_stray(h, block[1] + 16, next);

    /* a circle of links that confirm each other */
    heap_stray(h, block[3] + 24, block[2]);
    heap_stray(h, block[2] + 16, block[3]);
    for (at = 0, i = 0; i < 9 && upfront_heap_next_run(h, HEAP_PAGE, &at, &run) != 0; i++)
        ;
    CHECK_EQ(i, 0);
    heap_stray(h, block[3] + 24, 0);
    heap_stray(h, block[2] + 16, block[1]);

    first = *upfront_heap_list(h, upfront_heap_class(1024));
    *upfront_heap_list(h, upfront_heap_class(1024)) = 8; /* a list that begins nowhere */
    at = 0;
    CHECK_EQ(upfront_heap_next_run(h, HEAP_PAGE, &at, &run), 0);
    *upfront_heap_list(h, upfront_heap_class(1024)) = first;
    CHECK_EQ(heap_trim(h), all);
    window_free(w, WINDOW);
}

static unsigned char heap_image[4 * WINDOW], heap_image_again[4 * WINDOW], heap_image_twin[4 * WINDOW];

/* Packs the heap into exactly as many bytes as it needs, and into all smaller numbers once. */
static uint64_t heap_packed(const upfront_heap *h, unsigned char *out) {
    static uint64_t less;
    uint64_t size, again;
    CHECK_EQ(upfront_heap_pack(h, NULL, 0, &size), UPFRONT_FULL);
    CHECK(size + 256 <= sizeof heap_image);
    memset(out, 0xEE, sizeof heap_image);
    less = (less + 16) % size;
    CHECK_EQ(upfront_heap_pack(h, out, less, &again), UPFRONT_FULL);
    CHECK(again == size && holds(out + less, sizeof heap_image - less, 0xEE));
    CHECK(upfront_heap_pack(h, out, size + 256, &again) == UPFRONT_OK && again == size);
    CHECK(holds(out + size + 256, sizeof heap_image - size - 256, 0xEE));
    memset(out, 0xEE, sizeof heap_image);
    CHECK_EQ(upfront_heap_pack(h, out, size, &again), UPFRONT_OK);
    CHECK(again == size && holds(out + size, sizeof heap_image - size, 0xEE));
    return size;
}

/* Puts an image back, and checks that its runs follow each other with free bytes between them. */
static void heap_unpack(upfront_heap *h, uint64_t all, const unsigned char *image, uint64_t size) {
    uint64_t at, run[2], end = 0;
    CHECK_EQ(upfront_heap_unpack(h, all, image, size), UPFRONT_OK);
    for (at = 0; at != size; at += UPFRONT_HEAP_RUN + run[1]) {
        memcpy(run, image + at, sizeof run);
        CHECK(run[0] % 16 == 0 && run[1] % 16 == 0 && run[1] != 0 && (at == 0 ? run[0] == 0 : run[0] >= end + 16));
        CHECK(run[1] <= size - at - UPFRONT_HEAP_RUN && run[0] + run[1] <= all);
        end = run[0] + run[1];
    }
    CHECK_EQ(end, all);
}

/* The addresses of live blocks are exactly those that size_of accepts. */
static void heap_has_only(upfront_heap *h) {
    uint64_t at, i, live = 0, accepted = 0;
    for (at = h->first + 16; at < h->end; at += 16)
        accepted += upfront_heap_size_of(h, (char *)h + at) >= 0;
    for (i = 0; i < HEAP_LIVE; i++)
        live += heap_live[i].at != NULL;
    CHECK(accepted == live && live == h->live);
}

/* A random program on two heaps goes back now and then: the first to an image, the second to a copy
 * of all bytes. Both always have the same blocks and the same image, with any bytes in their
 * free blocks. */
static void heap_images_random(uint64_t seed, uint64_t parked) {
    static struct heap_block now[2][HEAP_LIVE], then[2][HEAP_LIVE];
    static unsigned char whole[2 * WINDOW];
    unsigned char *w[2];
    upfront_heap *h[2];
    uint64_t i, k, step, size = 0, kept = 0, again, backs = 0;
    for (k = 0; k < 2; k++) {
        w[k] = window_new(2 * WINDOW);
        h[k] = heap_of(w[k], 2 * WINDOW, parked);
    }
    memset(now, 0, sizeof now);
    for (step = 0; step < 3000; step++) {
        if (step % 100 == 0) {
            size = heap_packed(h[0], heap_image);
            CHECK(size <= UPFRONT_HEAP_RUN + h[0]->first + h[0]->used + 48 * (h[0]->live + h[0]->parked + 2));
            UPFRONT_UNPOISON(w[1], sizeof whole);
            memcpy(whole, w[1], sizeof whole);
            memcpy(then, now, sizeof now);
        }
        again = seed;
        for (k = 0; k < 2; k++) {
            seed = again;
            memcpy(heap_live, now[k], sizeof heap_live);
            heap_step(h[k], &seed);
            if (step % 100 == 60 && next_random(&seed) % 2 == 0) {
                upfront_heap_reset(h[k]);
                memset(heap_live, 0, sizeof heap_live);
            }
            memcpy(now[k], heap_live, sizeof heap_live);
        }
        if (next_random(&seed) % 40 == 0) {
            heap_unpack(h[0], h[0]->end + UPFRONT_HEAP_HEADER, heap_image, size);
            UPFRONT_UNPOISON(w[1], sizeof whole);
            memcpy(w[1], whole, sizeof whole);
            memcpy(now, then, sizeof now);
            memcpy(heap_live, now[0], sizeof heap_live);
            heap_has_only(h[0]);
            for (i = 0; i < HEAP_LIVE; i++)
                CHECK(heap_live[i].at == NULL || holds(heap_live[i].at, heap_live[i].size, heap_live[i].value));
            backs++;
        }
        (void)heap_walked(h[0]);
        kept = heap_packed(h[0], heap_image_again);
        CHECK_EQ(heap_packed(h[1], heap_image_twin), kept);
        CHECK(memcmp(heap_image_again, heap_image_twin, (size_t)kept) == 0);
    }
    CHECK(backs > 40);
    for (k = 0; k < 2; k++)
        window_free(w[k], 2 * WINDOW);
}

/* Restores a heap whose words, or one of whose headers, were overwritten, and an image with a run
 * that leads out of the heap or of the image. */
static void heap_restores(upfront_heap *h, unsigned char *image, uint64_t size) {
    static unsigned char was[WINDOW];
    uint64_t all = h->end + UPFRONT_HEAP_HEADER, at, i, word, second;
    CHECK(upfront_heap_unpack(h, all, NULL, size) == UPFRONT_BAD_ARGUMENT &&
        upfront_heap_unpack(h, 480, image, size) == UPFRONT_BAD_ARGUMENT &&
        upfront_heap_unpack(h, all, image, sizeof(upfront_heap)) == UPFRONT_BAD_ARGUMENT);
    memcpy(was, h, (size_t)all);
    for (i = 0; i < sizeof(upfront_heap) / 8; i++) {
        upfront_heap_set(h, 8 * i, upfront_heap_word(h, 8 * i) + 16);
        heap_unpack(h, all, image, size);
        CHECK(memcmp(was, h, sizeof *h) == 0 && upfront_heap_walk(h, NULL, 0, NULL) == UPFRONT_OK);
    }
    for (at = h->first; at != h->end; at += upfront_heap_size(h, at))
        for (i = 0; i < 128; i++) {
            if (i % 64 < 38 && i / 64 == 0)
                continue; /* of the block before: the erasure doesn't read it */
            word = at + i / 64 * 8;
            upfront_heap_set(h, word, upfront_heap_word(h, word) ^ UINT64_C(1) << i % 64);
            heap_unpack(h, all, image, size);
            CHECK(memcmp(was, h, sizeof *h) == 0 && upfront_heap_walk(h, NULL, 0, NULL) == UPFRONT_OK);
        }
    memcpy(&second, image + 8, sizeof second);
    second += UPFRONT_HEAP_RUN;
    for (i = 0; i < 3; i++) { /* two offsets, and a number of bytes */
        uint64_t place = i == 2 ? second : 8 * i, was_there;
        memcpy(&was_there, image + place, sizeof was_there);
        word = i == 2 ? 16 : was_there + all + 16;
        memcpy(image + place, &word, sizeof word);
        CHECK_EQ(upfront_heap_unpack(h, all, image, size), UPFRONT_CORRUPT);
        memcpy(image + place, &was_there, sizeof was_there);
    }
    CHECK_EQ(upfront_heap_unpack(h, all, image, size - 8), UPFRONT_CORRUPT);
    heap_unpack(h, all, image, size);
    for (i = 8; i <= 64; i += 56) { /* a heap that ends in the last run, or before it */
        CHECK_EQ(upfront_heap_unpack(h, all - i, image, size), UPFRONT_CORRUPT);
        heap_unpack(h, all, image, size);
    }
}

/* A heap with an overwritten header, or with a call's fills, has no image. */
static void heap_images_refuse(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = upfront_heap_init(w, WINDOW, 8);
    uint64_t i, k, first, size, packed;
    char *p[8];
#ifdef UPFRONT_CHECKED
    CHECK_EQ(upfront_heap_pack(h, NULL, 0, &first), UPFRONT_BAD_ARGUMENT);
#endif
    upfront_heap_plain(h);
    CHECK_EQ(upfront_heap_pack(h, NULL, 1, &first), UPFRONT_BAD_ARGUMENT);
    CHECK_EQ(upfront_heap_pack(h, NULL, 0, NULL), UPFRONT_BAD_ARGUMENT);
    (void)heap_packed(h, heap_image);
    first = h->first;
    h->first = h->end + 16;
    CHECK_EQ(upfront_heap_pack(h, NULL, 0, &size), UPFRONT_CORRUPT);
    h->first = first;
    for (k = 0; k < 8; k++) {
        for (i = 0; i < 8; i++)
            p[i] = heap_got(h, 2000 * (i % 2) + 20, 1);
        heap_give(h, p[2]);
        heap_give(h, p[5]);
        packed = heap_packed(h, heap_image);
        for (i = 0; i < 2; i++) { /* the closing header */
            uint64_t at = h->end + 8 * i, was = upfront_heap_word(h, at);
            upfront_heap_set(h, at, was ^ (UINT64_C(16) << (20 * i)));
            CHECK_EQ(upfront_heap_pack(h, heap_image_again, sizeof heap_image, &size), UPFRONT_CORRUPT);
            upfront_heap_set(h, at, was);
        }
        upfront_heap_set(h, (uint64_t)(p[k] - (char *)h) - 8, 77);
        CHECK_EQ(upfront_heap_pack(h, heap_image_again, sizeof heap_image, &size), UPFRONT_CORRUPT);
        heap_unpack(h, h->end + UPFRONT_HEAP_HEADER, heap_image, packed);
        CHECK_EQ(upfront_heap_walk(h, NULL, 0, NULL), UPFRONT_OK);
        heap_restores(h, heap_image, packed);
        UPFRONT_UNPOISON(w, WINDOW);
        memset(w, 0, WINDOW);
        h = heap_of(w, WINDOW, 8);
    }
    window_free(w, WINDOW);
}

/* A header with a seal that holds, and a body that no call makes, as in bytes from outside. */
static void heap_images_forged(void) {
    static const uint64_t bodies[] = {UPFRONT_HEAP_LIVE, 16, 16 | UPFRONT_HEAP_LIVE | UINT64_C(1) << UPFRONT_HEAP_SLACK,
                                      32 | UPFRONT_HEAP_LIVE | UINT64_C(17) << UPFRONT_HEAP_SLACK, WINDOW,
                                          WINDOW | UPFRONT_HEAP_LIVE};
    unsigned char *w = window_new(WINDOW);
    uint64_t i, size, packed;
    for (i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        upfront_heap *h = heap_of(w, WINDOW, 8);
        heap_give(h, heap_got(h, 40, 1)); /* parked */
        packed = heap_packed(h, heap_image_again);
        upfront_heap_seal(h, h->first, 0, bodies[i]);
        CHECK_EQ(upfront_heap_pack(h, heap_image, sizeof heap_image, &size), UPFRONT_CORRUPT);
        heap_unpack(h, h->end + UPFRONT_HEAP_HEADER, heap_image_again, packed);
        CHECK_EQ(upfront_heap_walk(h, NULL, 0, NULL), UPFRONT_OK);
        upfront_heap_seal(h, h->first, 64, 64 | UPFRONT_HEAP_LIVE); /* no block is before it */
        CHECK_EQ(upfront_heap_pack(h, heap_image, sizeof heap_image, &size), UPFRONT_CORRUPT);
        UPFRONT_UNPOISON(w, WINDOW);
        memset(w, 0, WINDOW);
    }
    window_free(w, WINDOW);
}

/* An image keeps a block out of service whole. */
static void heap_images_of_damage(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_heap *h = heap_of(w, WINDOW, 0);
    char *p = heap_got(h, 500, 1), *q = heap_got(h, 20, 1), *r;
    uint64_t size;
    heap_give(h, p);
    upfront_heap_set(h, (uint64_t)(p - (char *)h), 24); /* its link */
    r = heap_got(h, 400, 1);
    CHECK(r != p && h->lost == 1);
    size = heap_packed(h, heap_image);
    CHECK(size > h->used + h->lost_bytes);
    heap_give(h, q);
    heap_unpack(h, h->end + UPFRONT_HEAP_HEADER, heap_image, size);
    CHECK(upfront_heap_walk(h, NULL, 0, NULL) == UPFRONT_OK && h->lost == 1 && upfront_heap_size_of(h, q) == 20);
    CHECK(heap_packed(h, heap_image_again) == size && memcmp(heap_image, heap_image_again, (size_t)size) == 0);
    window_free(w, WINDOW);
}

static void heap_random(uint64_t seed, uint64_t parked) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_heap *h = heap_of(w + 4096, 2 * WINDOW - 4096, parked);
    uint64_t i;
    memset(heap_live, 0, sizeof heap_live);
    for (i = 0; i < 20000; i++) {
        heap_step(h, &seed);
        (void)heap_walked(h);
    }
    CHECK(h->failed > 0);
    for (i = 0; i < HEAP_LIVE; i++)
        if (heap_live[i].at != NULL) {
            CHECK(holds(heap_live[i].at, heap_live[i].size, heap_live[i].value));
            heap_give(h, heap_live[i].at);
        }
    heap_is_empty(h);
    window_free(w, 2 * WINDOW);
}

void test_heap(void) {
    heap_init_refuses(0, UPFRONT_HEAP_BLOCK);
    heap_init_refuses(8, UPFRONT_HEAP_BLOCK + UPFRONT_HEAP_FRONT_BYTES);
    heap_refuses();
    heap_parks();
    heap_bounded();
    heap_reserves();
    heap_phases();
    heap_raced();
    heap_random(88172645463325252u, 0);
    heap_random(1234567u, 20);
    heap_run_refuses();
    heap_run_skips();
    heap_trims_random(9876543u, 0);
    heap_trims_random(271828u, 40);
    heap_images_random(31415926u, 0);
    heap_images_random(5772156u, 20);
    heap_images_refuse();
    heap_images_forged();
    heap_images_of_damage();
}
