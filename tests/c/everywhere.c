/* everywhere.c - every arena, at each place of a window and for each alignment: allocations are
 * aligned, inside of the block, live and disjoint, until nothing fits. */
#include "check.h"

typedef struct kind {
    const char *name;
    void *(*make)(void *block, uint64_t size, uint64_t align);
    void *(*alloc)(void *arena, uint64_t size, uint64_t align);
    uint64_t chunk; /* of a pool, which has one size; 0: any size */
} kind;

static void *kind_linear(void *block, uint64_t size, uint64_t align) { return (void)align,
    upfront_linear_init(block, size); }
static void *kind_ends(void *block, uint64_t size, uint64_t align) { return (void)align,
    upfront_ends_init(block, size); }
static void *kind_stack(void *block, uint64_t size, uint64_t align) { return (void)align,
    upfront_stack_init(block, size); }
static void *kind_ring(void *block, uint64_t size, uint64_t align) { return (void)align,
    upfront_ring_init(block, size); }
static void *kind_frame(void *block, uint64_t size, uint64_t align) { return (void)align,
    upfront_frame_init(block, size, 2); }
static void *kind_heap(void *block, uint64_t size, uint64_t align) { return (void)align,
    upfront_heap_init(block, size, 0); }
static void *kind_buddy(void *block, uint64_t size, uint64_t align) { return (void)align,
    buddy_of_plain(block, size, 64); }

enum { KIND_CHUNK = 24 };

static void *kind_pool(void *block, uint64_t size, uint64_t align) { return upfront_pool_make(block, size, KIND_CHUNK,
    align, 0); }

static void *kind_handles(void *block, uint64_t size, uint64_t align) {
    return upfront_pool_make(block, size, KIND_CHUNK, align, upfront_pool_handles(0, 1));
}

static void *linear_get(void *a, uint64_t size, uint64_t align) { return upfront_linear_alloc((upfront_linear *)a,
    size, align); }
static void *near_get(void *a, uint64_t size, uint64_t align) { return upfront_ends_alloc((upfront_ends *)a, size,
    align); }
static void *far_get(void *a, uint64_t size, uint64_t align) { return upfront_ends_alloc_far((upfront_ends *)a, size,
    align); }
static void *stack_get(void *a, uint64_t size, uint64_t align) { return upfront_stack_alloc((upfront_stack *)a, size,
    align); }
static void *stack_far_get(void *a, uint64_t size, uint64_t align) { return upfront_stack_alloc_far((upfront_stack *)a,
    size, align); }
static void *ring_get(void *a, uint64_t size, uint64_t align) { return upfront_ring_alloc((upfront_ring *)a, size,
    align); }
static void *frame_get(void *a, uint64_t size, uint64_t align) { return upfront_frame_alloc((upfront_frame *)a, size,
    align); }
static void *heap_get(void *a, uint64_t size, uint64_t align) { return upfront_heap_alloc((upfront_heap *)a, size,
    align); }

static void *buddy_get(void *a, uint64_t size, uint64_t align) { return upfront_buddy_alloc((upfront_buddy *)a, size,
    align); }

static void *both_get(void *a, uint64_t size, uint64_t align) { return size % 2 == 0 ? near_get(a, size, align)
    : far_get(a, size, align); }

static void *stack_both_get(void *a, uint64_t size, uint64_t align) {
    return size % 2 == 0 ? stack_get(a, size, align) : stack_far_get(a, size, align);
}

static void *pool_get(void *a, uint64_t size, uint64_t align) {
    upfront_pool *p = (upfront_pool *)a;
    (void)size, (void)align;
    return upfront_pool_get(p, p->gen);
}

static void *handle_get(void *a, uint64_t size, uint64_t align) {
    upfront_pool *p = (upfront_pool *)a;
    uint64_t handle;
    void *chunk = upfront_pool_get_handle(p, p->gen, &handle);
    (void)size, (void)align;
    CHECK(upfront_pool_at(p, p->gen, handle) == chunk);
    return chunk;
}

static const kind kinds[] = {
    {"linear", kind_linear, linear_get, 0},     {"near end", kind_ends, near_get, 0},
    {"far end", kind_ends, far_get, 0},         {"both ends", kind_ends, both_get, 0},
    {"stack", kind_stack, stack_get, 0},        {"far stack", kind_stack, stack_far_get, 0},
    {"both stacks", kind_stack, stack_both_get, 0}, {"ring", kind_ring, ring_get, 0},
    {"frame", kind_frame, frame_get, 0},        {"heap", kind_heap, heap_get, 0},
    {"buddy", kind_buddy, buddy_get, 0},        {"pool", kind_pool, pool_get, KIND_CHUNK},
    {"handles", kind_handles, handle_get, KIND_CHUNK},
};

enum { KIND_MOST = 96 };

static struct {
    unsigned char *at;
    uint64_t size;
} kind_got[KIND_MOST];

/* Allocates smaller and smaller blocks until no byte fits. Each block is written, and is still
 * whole at the end. */
static void kind_fills(const kind *k, unsigned char *block, uint64_t size, uint64_t align) {
    void *a = k->make(block, size, align);
    uint64_t n = 0, i, want = size / 4;
    CHECK(a != NULL);
    while (want != 0 && n < KIND_MOST) {
        uint64_t bytes = k->chunk == 0 ? want : k->chunk;
        unsigned char *p = (unsigned char *)k->alloc(a, bytes, align);
        if (p == NULL) {
            want = align > 1 || k->chunk != 0 ? want / 2 : want * 3 / 4;
            continue;
        }
        CHECK((uintptr_t)p % align == 0 && p >= block + UPFRONT_LINE && p + bytes <= block + size);
        CHECK(is_marked(p, 0) && is_marked(p + bytes - 1, 0));
        fill(p, bytes, (int)n);
        kind_got[n].at = p;
        kind_got[n++].size = bytes;
    }
    CHECK(n > 0);
    for (i = 0; i < n; i++)
        CHECK(holds(kind_got[i].at, kind_got[i].size, (int)i));
    UPFRONT_UNPOISON(block, size);
}

void test_everywhere(void) {
    unsigned char *w = window_new(everywhere_size(UPFRONT_ALIGN_MAX) * 2 + WINDOW);
    uint64_t place, align, i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (place = 0; place < WINDOW; place += place < 256 ? 64 : 8128)
            for (align = 1; align <= (place == 0 ? UPFRONT_ALIGN_MAX : 4096); align *= 2)
                kind_fills(&kinds[i], w + place, (align < 1024 ? 4096 : 6 * align) + place % 7, align);
    window_free(w, everywhere_size(UPFRONT_ALIGN_MAX) * 2 + WINDOW);
}
