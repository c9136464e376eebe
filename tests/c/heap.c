/* heap.c - tests of heap.h: every size and alignment, what is refused and why, every way to grow, and random programs. */
#include "check.h"

enum { HEAP_BLOCKS = 4096, HEAP_LIVE = 200 };

static upfront_heap_range heap_blocks[HEAP_BLOCKS];

/* The walk says ok, and what it names covers the heap without gap or overlap. The number of free blocks. */
static uint64_t heap_walked(const upfront_heap *h) {
    uint64_t count, i, at = h->first, free_count = 0;
    CHECK_EQ(upfront_heap_walk(h, heap_blocks, HEAP_BLOCKS, &count), UPFRONT_OK);
    for (i = 0; i < count; i++) {
        CHECK_EQ(heap_blocks[i].offset, at);
        at += heap_blocks[i].size;
        free_count += heap_blocks[i].live == 0;
    }
    CHECK_EQ(at, h->end);
    return free_count;
}

static void heap_is_empty(const upfront_heap *h) {
    CHECK_EQ(heap_walked(h), 1);
    CHECK(heap_blocks[0].live == 0 && h->used == 0 && h->live == 0);
    CHECK_EQ(upfront_heap_largest(h), h->end - h->first - UPFRONT_HEAP_HEADER);
}

static char *heap_take(upfront_heap *h, uint64_t size, uint64_t align) {
    char *p = (char *)upfront_heap_alloc(h, size, align);
    CHECK(p != NULL && (uintptr_t)p % align == 0 && (uintptr_t)p % 16 == 0);
    CHECK_EQ(upfront_heap_size_of(h, p), size);
    fill(p, size, (int)size);
    return p;
}

static void heap_give(upfront_heap *h, void *p) { CHECK_EQ(upfront_heap_free(h, p), UPFRONT_OK); }

static void heap_init_refuses(void) {
    unsigned char *w = window_new(WINDOW);
    uint64_t size;
    CHECK(upfront_heap_init(NULL, 4096) == NULL);
    CHECK(upfront_heap_init(w + 16, 4096) == NULL);
    CHECK(upfront_heap_init(w, UPFRONT_OFFSET_MAX - UPFRONT_EDGE) == NULL);
    CHECK(upfront_heap_init(w, UINT64_MAX) == NULL);
    for (size = 0; size < UPFRONT_HEAP_BLOCK; size++)
        CHECK(upfront_heap_init(w, size) == NULL);
    CHECK(holds(w, WINDOW, 0));
    for (size = UPFRONT_HEAP_BLOCK; size < 2000; size++) {
        upfront_heap *h = upfront_heap_init(w, size);
        uint64_t most;
        CHECK(h != NULL);
        heap_is_empty(h);
        most = upfront_heap_largest(h);
        CHECK(most >= 16 && h->end + UPFRONT_HEAP_HEADER <= size && h->end + 32 > size);
        CHECK(upfront_heap_alloc(h, most + 1, 1) == NULL);
        heap_give(h, heap_take(h, most, 1)); /* mattconte's can't allocate its largest block */
        CHECK(h->failed == 1 && h->bounded == 0 && h->peak == most + UPFRONT_HEAP_HEADER);
        heap_is_empty(h);
    }
    window_free(w, WINDOW);
}

static void heap_refuses(void) {
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 15, UINT64_MAX - 16, UINT64_C(1) << 63, UPFRONT_OFFSET_MAX};
    unsigned char *w = window_new(WINDOW);
    upfront_heap zero, *h = upfront_heap_init(w, WINDOW);
    void *p = heap_take(h, 100, 16);
    uint64_t i;
    memset(&zero, 0, sizeof zero);
    CHECK(upfront_heap_alloc(&zero, 8, 8) == NULL && zero.failed == 1);
    CHECK_EQ(upfront_heap_free(&zero, p), UPFRONT_FOREIGN);
    CHECK(upfront_heap_alloc(NULL, 8, 8) == NULL);
    CHECK_EQ(upfront_heap_free(NULL, p), UPFRONT_BAD_ARGUMENT);
    for (i = 0; i < 5; i++) { /* a full like any other */
        CHECK(upfront_heap_alloc(h, huge[i], 16) == NULL);
        CHECK(upfront_heap_realloc(h, p, huge[i]) == NULL && holds(p, 100, 100));
        CHECK(h->failed == 2 * (i + 1) && h->refused == UPFRONT_OFFSET_MAX);
    }
    h->failed = 0;
    CHECK(upfront_heap_alloc(h, 8, 0) == NULL && upfront_heap_alloc(h, 8, 24) == NULL);
    CHECK(upfront_heap_alloc(h, 8, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK_EQ(h->failed, 0); /* a bug of the caller's is no want of room */
    CHECK(upfront_heap_alloc(h, UPFRONT_OFFSET_MAX - 1, UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_heap_realloc(h, p, WINDOW) == NULL && holds(p, 100, 100));
    CHECK(h->failed == 2 && h->bounded == 0 && h->refused == WINDOW && h->live == 1);
    CHECK(h->used == 112 + 16 && h->peak == h->used);
    CHECK(upfront_heap_hook(h, p, 100, 0) == NULL && upfront_heap_hook(h, NULL, 5, 0) == NULL);
    heap_is_empty(h);
    p = upfront_heap_hook(h, NULL, 5, 0x100);
    CHECK_EQ(upfront_heap_size_of(h, p), 0x100);
    CHECK(upfront_heap_hook(h, p, 0x100, 1) == p);
    heap_give(h, p);
    heap_is_empty(h);
    window_free(w, WINDOW);
}

static struct {
    unsigned char *at;
    uint64_t size, align;
    int value;
} heap_live[HEAP_LIVE];

static void heap_step(upfront_heap *h, uint64_t *seed) {
    uint64_t i = next_random(seed) % HEAP_LIVE, size = next_random(seed) % 8 == 0 ? next_random(seed) % 9000 : next_random(seed) % 200;
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
    }
    if (p == NULL)
        return;
    CHECK((uintptr_t)p % heap_live[i].align == 0 && upfront_heap_size_of(h, p) == (int64_t)size);
    heap_live[i].at = p;
    heap_live[i].size = size;
    heap_live[i].value = (int)(next_random(seed) % 256);
    fill(p, size, heap_live[i].value);
}

static void heap_random(uint64_t seed) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_heap *h = upfront_heap_init(w + 4096, 2 * WINDOW - 4096);
    uint64_t i;
    memset(heap_live, 0, sizeof heap_live);
    for (i = 0; i < 20000; i++) {
        heap_step(h, &seed);
        (void)heap_walked(h);
    }
    CHECK(h->failed > 0); /* it was full */
    for (i = 0; i < HEAP_LIVE; i++)
        if (heap_live[i].at != NULL) {
            CHECK(holds(heap_live[i].at, heap_live[i].size, heap_live[i].value));
            heap_give(h, heap_live[i].at);
        }
    heap_is_empty(h);
    window_free(w, 2 * WINDOW);
}

void test_heap(void) {
    heap_init_refuses();
    heap_refuses();
    heap_random(88172645463325252u);
    heap_random(1234567u);
}
