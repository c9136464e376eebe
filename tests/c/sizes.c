/* sizes.c - each function that takes a size, a count, an index or an alignment, with numbers around
 * its limits and around those of 32 and 64 bits: a block inside of the arena, or the documented
 * refusal, and no byte outside changes. run.sh checks that no function is left out. */
#include "check.h"

enum { SIZES_BLOCK = 8192 };

static const uint64_t sizes[] = {0, 1, 2, 63, 64, 65, 4095, 4096, 4097, SIZES_BLOCK - 1, SIZES_BLOCK, SIZES_BLOCK + 1,
    UPFRONT_ALIGN_MAX - 1, UPFRONT_ALIGN_MAX, UPFRONT_ALIGN_MAX + 1, 2 * UPFRONT_ALIGN_MAX, INT32_MAX,
    UINT64_C(1) << 31, UINT32_MAX, UINT64_C(1) << 32, UPFRONT_OFFSET_MAX - 1, UPFRONT_OFFSET_MAX,
    UPFRONT_OFFSET_MAX + 1, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 63, UINT64_MAX};

enum { SIZES = sizeof sizes / sizeof *sizes };

static unsigned char *sizes_window;

/* A fresh block, with other bytes after it. */
static unsigned char *sizes_block(void) {
    UPFRONT_UNPOISON(sizes_window, WINDOW);
    fill(sizes_window, WINDOW, 0);
    fill(sizes_window + SIZES_BLOCK, WINDOW - SIZES_BLOCK, 0xA5);
    return sizes_window;
}

/* Checks the answer to a request of `size` bytes from a fresh arena, which must fit if it is small.
 * Returns whether there is a block. */
static int sizes_got(void *p, uint64_t size) {
    unsigned char *at = (unsigned char *)p;
    CHECK(p != NULL || size > SIZES_BLOCK / 4);
    if (p != NULL) {
        CHECK(size <= SIZES_BLOCK && at >= sizes_window && at + size <= sizes_window + SIZES_BLOCK);
        fill(at, size, 7);
    }
    CHECK(holds(sizes_window + SIZES_BLOCK, WINDOW - SIZES_BLOCK, 0xA5));
    return p != NULL;
}

/* Checks the answer to a request of 8 bytes with an alignment. */
static void sizes_aligned(void *p, uint64_t align) {
    CHECK(p == NULL ? align == 0 || (align & (align - 1)) != 0 || align > SIZES_BLOCK / 4
                    : upfront_is_align(align) && (uintptr_t)p % align == 0);
    CHECK(holds(sizes_window + SIZES_BLOCK, WINDOW - SIZES_BLOCK, 0xA5));
}

#define OF(kind) upfront_##kind##_init(sizes_block(), SIZES_BLOCK)
#define SIZED(kind, call) sizes_got(call(OF(kind), n, 8), n), sizes_aligned(call(OF(kind), 8, n), n)

static void sizes_of_ends(uint64_t n) {
    upfront_linear *l = OF(linear);
    upfront_ends *e;
    upfront_stack *s;
    unsigned char *p = (unsigned char *)upfront_linear_alloc(l, 64, 8);
    uint64_t from = (uint64_t)(p - sizes_window);
    SIZED(linear, upfront_linear_alloc);
    SIZED(ends, upfront_ends_alloc);
    SIZED(ends, upfront_ends_alloc_far);
    SIZED(stack, upfront_stack_alloc);
    SIZED(stack, upfront_stack_alloc_far);
    l = OF(linear);
    p = (unsigned char *)upfront_linear_alloc(l, 64, 8);
    if (n != 64)
        CHECK(upfront_linear_resize(l, l->gen, from, p, n, 80) < 0);
    if (upfront_linear_resize(l, l->gen, from, p, 64, n) == UPFRONT_OK)
        CHECK(sizes_got(p, n));
    else
        CHECK(n > SIZES_BLOCK / 2);
    CHECK(upfront_linear_resize(l, n, from, p, l->cursor - from, 80) == (n == l->gen ? UPFRONT_OK : UPFRONT_STALE));
    l = OF(linear);
    CHECK((upfront_linear_rewind(l, l->gen, n) == UPFRONT_OK) == (n == l->cursor));
    CHECK((upfront_linear_rewind(l, n, l->cursor) == UPFRONT_OK) == (n == l->gen));
    e = OF(ends);
    p = (unsigned char *)upfront_ends_alloc(e, 64, 8);
    if (n != 64)
        CHECK(upfront_ends_resize(e, e->arena.gen, p, n, 80) < 0);
    if (upfront_ends_resize(e, e->arena.gen, p, 64, n) == UPFRONT_OK)
        CHECK(sizes_got(p, n));
    else
        CHECK(n > SIZES_BLOCK / 2);
    e = OF(ends);
    CHECK((upfront_ends_rewind(e, e->arena.gen, n) == UPFRONT_OK) == (n == e->arena.cursor));
    CHECK((upfront_ends_rewind(e, n, e->arena.cursor) == UPFRONT_OK) == (n == e->arena.gen));
    CHECK((upfront_ends_rewind_far(e, e->arena.gen, n) == UPFRONT_OK) == (n == e->arena.limit));
    CHECK((upfront_ends_rewind_far(e, n, e->arena.limit) == UPFRONT_OK) == (n == e->arena.gen));
    s = OF(stack);
    CHECK((upfront_stack_rewind(s, n) == UPFRONT_OK) == (n == upfront_stack_mark(s)));
    CHECK((upfront_stack_rewind_far(s, n) == UPFRONT_OK) == (n == upfront_stack_mark_far(s)));
}

static void sizes_of_rings(uint64_t n) {
    upfront_block range[2];
    upfront_ring *r = OF(ring);
    uint64_t count = 9;
    void *p;
    SIZED(ring, upfront_ring_alloc);
    r = OF(ring);
    CHECK(upfront_ring_alloc(r, 4096, 8) != NULL);
    sizes_got(upfront_ring_overwrite(r, n, 8), n);
    sizes_aligned(upfront_ring_overwrite(OF(ring), 8, n), n);
    r = OF(ring);
    p = upfront_ring_wrap(r, r->arena.gen, upfront_size(n), 7);
    if (p != NULL)
        sizes_got(p, n);
    if (n != r->arena.gen) {
        CHECK(upfront_ring_wrap(r, n, 8, 7) == NULL);
        CHECK(upfront_ring_reset(r, n) < 0);
        CHECK(upfront_ring_find(r, n, sizes_window + 128) < 0);
    }
    r = OF(ring);
    CHECK(upfront_ring_walk(r, range, n < 2 ? n : 2, &count) == (n < count ? UPFRONT_FULL : UPFRONT_OK));
    CHECK(count <= 2);
    sizes_got(upfront_frame_alloc(upfront_frame_init(sizes_block(), SIZES_BLOCK, 2), n, 8), n);
    sizes_aligned(upfront_frame_alloc(upfront_frame_init(sizes_block(), SIZES_BLOCK, 2), 8, n), n);
    CHECK((upfront_frame_init(sizes_block(), SIZES_BLOCK, n) != NULL) == (n >= 1 && n <= UPFRONT_FRAME_MAX));
    CHECK((upfront_frame_size(64, n) > 64) == (n >= 1 && n <= UPFRONT_FRAME_MAX));
    count = upfront_frame_size(n, 2);
    CHECK(count == 0 ? n == 0 || n > UPFRONT_OFFSET_MAX / 16 : count >= 2 * n);
}

static upfront_heap *sizes_heap(void) { return upfront_heap_init(sizes_block(), SIZES_BLOCK, 0); }
static upfront_buddy *sizes_buddy(void) { return upfront_buddy_init(sizes_block(), SIZES_BLOCK, 64); }

static void sizes_of_heaps(uint64_t n) {
    static unsigned char image[2 * SIZES_BLOCK];
    upfront_heap *h = sizes_heap();
    uint64_t count = 9, at = 0;
    void *p, *run;
    sizes_got(upfront_heap_alloc(h, n, 8), n);
    sizes_aligned(upfront_heap_alloc(sizes_heap(), 8, n), n);
    h = sizes_heap();
    p = upfront_heap_alloc(h, 64, 8);
    sizes_got(upfront_heap_realloc(h, p, n), n);
    h = sizes_heap();
    p = upfront_heap_alloc(h, 64, 8);
    if (n != 0 && n <= SIZE_MAX)
        sizes_got(upfront_heap_hook(h, p, (size_t)n, (size_t)n), n);
    CHECK_EQ(upfront_heap_walk(h, NULL, 0, NULL), UPFRONT_OK);
    h = upfront_heap_init(sizes_block(), SIZES_BLOCK, n);
    CHECK_EQ(upfront_heap_free(h, upfront_heap_alloc(h, 100, 16)), UPFRONT_OK);
    upfront_heap_reserve(h, n);
    CHECK((upfront_heap_alloc(h, 64, 16) == NULL) == (n > SIZES_BLOCK - 1024));
    upfront_heap_reserve(h, 0);
    sizes_got(upfront_heap_alloc(h, 64, 16), 64);
    h = heap_of(sizes_block(), SIZES_BLOCK, 0);
    if (upfront_is_align(n))
        CHECK(upfront_heap_next_run(h, n, &at, &run) <= SIZES_BLOCK);
    CHECK(upfront_heap_pack(h, NULL, 0, &at) == UPFRONT_FULL && at <= sizeof image);
    p = image;
    CHECK_EQ(upfront_heap_pack(h, p, n < at ? n : at, &count), n < at ? UPFRONT_FULL : UPFRONT_OK);
    CHECK_EQ(upfront_heap_pack(h, p, at, &count), UPFRONT_OK);
    count = h->end + UPFRONT_HEAP_HEADER;
    CHECK((upfront_heap_unpack(h, n < count ? n : count, p, at) == UPFRONT_OK) == (n >= count));
    CHECK_EQ(upfront_heap_unpack(h, count, p, at), UPFRONT_OK);
    CHECK((upfront_heap_unpack(h, count, p, n < at ? n : at) == UPFRONT_OK) == (n >= at));
    CHECK_EQ(upfront_heap_unpack(h, count, p, at), UPFRONT_OK);
    CHECK_EQ(upfront_heap_walk(h, NULL, 0, NULL), UPFRONT_OK);
}

static void sizes_of_buddies(uint64_t n) {
    upfront_buddy *b = sizes_buddy();
    int fits = upfront_is_align(n) && n >= UPFRONT_BUDDY_LEAST;
    void *p;
    sizes_got(upfront_buddy_alloc(b, n, 8), n);
    sizes_aligned(upfront_buddy_alloc(sizes_buddy(), 8, n), n);
    b = sizes_buddy();
    p = upfront_buddy_alloc(b, 64, 8);
    sizes_got(upfront_buddy_realloc(b, p, n), n);
    b = sizes_buddy();
    p = upfront_buddy_alloc(b, 64, 8);
    if (n != 0 && n <= SIZE_MAX)
        sizes_got(upfront_buddy_hook(b, p, (size_t)n, (size_t)n), n);
    CHECK_EQ(upfront_buddy_walk(b, NULL, 0, NULL), UPFRONT_OK);
    b = sizes_buddy();
    upfront_buddy_reserve(b, n);
    CHECK((upfront_buddy_alloc(b, 64, 16) == NULL) == (n > SIZES_BLOCK - 1024));
    upfront_buddy_reserve(b, 0);
    sizes_got(upfront_buddy_alloc(b, 64, 16), 64);
    CHECK((upfront_buddy_init(sizes_block(), SIZES_BLOCK, n) != NULL) == (fits && n <= SIZES_BLOCK / 2));
    CHECK(fits ? upfront_buddy_size(100, n) > 100 : upfront_buddy_size(100, n) == 0);
    CHECK(n <= UPFRONT_OFFSET_MAX ? upfront_buddy_size(n, 64) > n : upfront_buddy_size(n, 64) == 0);
}

static void sizes_of_pools(uint64_t n) {
    upfront_pool header, *p;
    uint64_t size = upfront_pool_size(n, 8, 3, 0), i;
    CHECK(size == 0 ? n == 0 || n >= UINT32_MAX : size >= 3 * n);
    CHECK((upfront_pool_size(8, n, 3, 0) == 0) == !upfront_is_align(n));
    size = upfront_pool_size(8, 8, n, 0);
    CHECK(size == 0 ? n == 0 || n > UINT32_MAX : size >= 8 * n);
    CHECK(upfront_pool_size(8, 8, 3, n) >= 24);
    p = upfront_pool_make(sizes_block(), SIZES_BLOCK, n, 8, 0);
    CHECK(p == NULL ? n == 0 || n > SIZES_BLOCK / 2 : n * p->count < SIZES_BLOCK);
    p = upfront_pool_make(sizes_block(), SIZES_BLOCK, 8, n, 0);
    CHECK(p != NULL || !upfront_is_align(n) || n > SIZES_BLOCK / 4);
    CHECK(upfront_pool_init(&header, sizes_block(), n, 8, 8, 3, 0) == (n == 0 ? UPFRONT_BAD_ARGUMENT : UPFRONT_OK));
    i = upfront_pool_size(n, 8, 3, 0);
    if (i == 0 || i <= SIZES_BLOCK)
        CHECK(upfront_pool_init(&header, sizes_block(), 1, n, 8, 3, 0) == (i == 0 ? UPFRONT_BAD_ARGUMENT : UPFRONT_OK));
    CHECK_EQ(upfront_pool_init(&header, sizes_block(), 1, 8, upfront_is_align(n) ? 3 : n, 3, 0), UPFRONT_BAD_ARGUMENT);
    if (size == 0 && n != 0)
        CHECK_EQ(upfront_pool_init(&header, sizes_block(), 1, 8, 8, n, 0), UPFRONT_BAD_ARGUMENT);
    p = upfront_pool_make(sizes_block(), SIZES_BLOCK, 8, 8, 1);
    CHECK(upfront_pool_next(p, n) >= p->count);
    CHECK(upfront_pool_put_handle(p, p->gen, n) < 0 && upfront_pool_find(p, n + (n == p->gen), sizes_window) < 0);
    CHECK(holds(sizes_window + SIZES_BLOCK, WINDOW - SIZES_BLOCK, 0xA5));
}

static void sizes_of_scopes(uint64_t n) {
    unsigned char *w = window_new(2 * WINDOW);
    upfront_row *r = (upfront_row *)(void *)w;
    upfront_scope s, t;
    upfront_pool *p = NULL;
    uint64_t at = 0, from = 0;
    row_here(r, w, "sizes", WINDOW, WINDOW + SIZES_BLOCK, 3, 4);
    CHECK(upfront_scopes_is_c(&r->arena, n) && upfront_scopes_run(&r->arena, n) == 0);
    upfront_scopes_run_deferred(&r->arena, n);
    s = upfront_scope_open(&r->arena);
    p = upfront_scope_pool(s, n, 8, 3);
    CHECK(p == NULL ? n == 0 || n > SIZES_BLOCK / 4 : n <= SIZES_BLOCK / 3);
    CHECK((upfront_scope_pool(s, 8, n, 3) != NULL) <= upfront_is_align(n));
    p = NULL;
    CHECK((upfront_scope_pool_of(s, 8, 8, n, (uint32_t)n, 1, &p) == UPFRONT_OK) == (p != NULL));
    CHECK(n < 64 || n > 4097 || p == NULL || p->count == n);
    CHECK(upfront_scope_temp_room(s, n, &at, &from) <= (n <= SIZES_BLOCK));
    t = upfront_scope_temp(s, n);
    CHECK(t.arena == NULL || n <= SIZES_BLOCK);
    CHECK(upfront_scopes_find(&r->arena, n + 2) == 0 || n + 2 == s.gen);
    row_close(r);
    CHECK(holds(w + WINDOW + SIZES_BLOCK, WINDOW - SIZES_BLOCK, 0) || UPFRONT_FILLS);
    window_free(w, 2 * WINDOW);
}

static void sizes_of_maps(uint64_t n) {
    upfront_map_arena arena = {"sizes", UPFRONT_REGION, 4096, 0, 0, 0};
    unsigned char *w = window_new(4 * WINDOW);
    upfront_range range[9];
    upfront_found found;
    upfront_room room;
    uint64_t count = 0, size = upfront_map_size(&arena, 1, 3, 2, 0);
    upfront_map *m;
    CHECK(size != 0 && size <= 4 * WINDOW);
    CHECK((upfront_map_size(NULL, n, 3, 2, 0) != 0) == (n == 0));
    CHECK(upfront_map_size(&arena, 1, n, 2, 0) == 0 ? n == 0 || n > UPFRONT_COUNT_MAX : n <= UPFRONT_COUNT_MAX);
    CHECK(upfront_map_size(&arena, 1, 3, n, 0) == 0 ? n > UPFRONT_COUNT_MAX : n <= UPFRONT_COUNT_MAX);
    CHECK(upfront_map_size(&arena, 1, 3, 2, n) == 0 ? n % WINDOW != 0 || n > UPFRONT_OFFSET_MAX / 4 : n % WINDOW == 0);
    arena.size = n;
    CHECK(upfront_map_size(&arena, 1, 3, 2, 0) == 0 ? n > UPFRONT_OFFSET_MAX - 4 * WINDOW : n < UPFRONT_OFFSET_MAX);
    arena.size = 4096;
    CHECK(upfront_map_init(w, n < size ? n : size, &arena, 1, 3, 2, 0) == NULL || n >= size);
    CHECK(upfront_map_init(w, size, NULL, n + (n == 0), 3, 2, 0) == NULL);
    CHECK(upfront_map_init(w, size, &arena, 1, n > UPFRONT_COUNT_MAX ? n : 0, 2, 0) == NULL);
    CHECK(n <= UPFRONT_COUNT_MAX || upfront_map_init(w, size, &arena, 1, 3, n, 0) == NULL);
    CHECK(n == 0 || upfront_map_init(w, size, &arena, 1, 3, 2, n) == NULL);
    fill(w, size, 0);
    m = upfront_map_init(w, size, &arena, 1, 3, 2, 0);
    CHECK(m != NULL && (upfront_map_reconfigure(m, n, &size, 1) < 0));
    CHECK((upfront_map_reconfigure(m, 0, &n, 1) == UPFRONT_OK) == (n >= 1 && n <= WINDOW));
    CHECK(n == 1 || upfront_map_reconfigure(m, 0, &arena.size, n) < 0 || n == 0);
    CHECK(upfront_map_walk(m, n < size ? n : size, range, 9, &count) == UPFRONT_OK || n < size);
    CHECK(upfront_map_walk(m, size, range, n < 9 ? n : 9, &count) == (n < count ? UPFRONT_FULL : UPFRONT_OK));
    UPFRONT_UNPOISON(w, 4 * WINDOW);
    CHECK((upfront_arena_init(sizes_block(), SIZES_BLOCK, n) != NULL) <= (n <= SIZES_BLOCK));
    CHECK(upfront_note_room(n, w, 64) == (n == 1 || n == 2 ? UPFRONT_OK : UPFRONT_BAD_ARGUMENT));
    CHECK_EQ(upfront_note_room(UPFRONT_ROOM_HEAP, w, n), UPFRONT_OK);
    CHECK_EQ(upfront_take_room(w, n, &room), n == 0 ? UPFRONT_FOREIGN : UPFRONT_OK);
    CHECK_EQ(upfront_take_room(w, 1, &room), n == 0 ? UPFRONT_OK : UPFRONT_FOREIGN);
    CHECK_EQ(room.size, n);
#ifdef UPFRONT_MIRROR
    CHECK(upfront_mirror_check(w, n, &found) == 1);
    CHECK_EQ(upfront_mirror_objects(w, n, NULL, 0), UINT64_MAX);
    upfront_mirror_gather(w, n);
    upfront_mirror_scatter(w, n);
#else
    (void)found;
#endif
    window_free(w, 4 * WINDOW);
}

/* Blocks of `n` bytes, if there are so many or if no block may have them. */
static void sizes_of_blocks(uint64_t n) {
    int none = n < UPFRONT_LINE || n > SIZES_BLOCK;
    if (n > SIZES_BLOCK && n < UPFRONT_OFFSET_MAX - 1)
        return;
    CHECK((upfront_linear_init(sizes_block(), n) == NULL) >= none);
    CHECK((upfront_ends_init(sizes_block(), n) == NULL) >= none);
    CHECK((upfront_stack_init(sizes_block(), n) == NULL) >= none);
    CHECK((upfront_ring_init(sizes_block(), n) == NULL) >= none);
    CHECK((upfront_frame_init(sizes_block(), n, 2) == NULL) >= none);
    CHECK((upfront_heap_init(sizes_block(), n, 16) == NULL) >= none);
    CHECK((upfront_buddy_init(sizes_block(), n, 64) == NULL) >= none);
    CHECK((upfront_arena_init(sizes_block(), n, 64) == NULL) >= none);
    CHECK((upfront_pool_make(sizes_block(), n < SIZES_BLOCK ? n : SIZES_BLOCK, 8, 8, 0) == NULL) >= (n < UPFRONT_LINE));
#ifdef UPFRONT_MIRROR
    none = upfront_mirror_size(sizes_block(), n) == 0;
    CHECK_EQ(none, n == 0 || n >= UPFRONT_OFFSET_MAX);
    CHECK(!none || !upfront_mirror_open(sizes_block(), n, sizes_window, NULL, 0));
#endif
    CHECK(holds(sizes_window + SIZES_BLOCK, WINDOW - SIZES_BLOCK, 0xA5));
}

void test_sizes(void) {
    int i;
    sizes_window = window_new(WINDOW);
    for (i = 0; i < SIZES; i++) {
        sizes_of_blocks(sizes[i]);
        sizes_of_ends(sizes[i]);
        sizes_of_rings(sizes[i]);
        sizes_of_heaps(sizes[i]);
        sizes_of_buddies(sizes[i]);
        sizes_of_pools(sizes[i]);
        sizes_of_scopes(sizes[i]);
        sizes_of_maps(sizes[i]);
    }
    window_free(sizes_window, WINDOW);
}
