/* nothing.c - the answer of each function to null, to a header of zeros, and to no bytes: a code,
 * NULL, 0, or no action. run.sh checks that no function is left out; inline functions trust their
 * caller (upfront.h). */
#include "check.h"

#define REFUSED(code) CHECK((code) < 0)
#define NO(answer) CHECK((answer) == 0)

/* Headers of zeros, between bytes that must not be touched. */
static union nothing_header {
    upfront_linear linear;
    upfront_ends ends;
    upfront_stack stack;
    upfront_pool pool;
    upfront_ring ring;
    upfront_frame frame;
    upfront_heap heap;
    upfront_buddy buddy;
    upfront_row row;
    upfront_map map;
    unsigned char bytes[8 * UPFRONT_LINE];
} nothing_zeros[3];

#define ZEROS (&nothing_zeros[1])

static void nothing_is_touched(void) {
    CHECK(holds(&nothing_zeros[0], sizeof nothing_zeros[0], 0) && holds(&nothing_zeros[2], sizeof nothing_zeros[2], 0));
    memset(nothing_zeros, 0, sizeof nothing_zeros); /* a refusal may be remembered */
}

static void nothing_linear(upfront_linear *l, unsigned char *w) {
    NO(upfront_linear_alloc(l, 0, 1));
    REFUSED(upfront_linear_rewind(l, 0, 0));
    REFUSED(upfront_linear_resize(l, 0, 0, w, 0, 8));
    REFUSED(upfront_linear_resize(l, 0, 0, l, 0, 0));
    nothing_is_touched();
}

static void nothing_ends(upfront_ends *e, unsigned char *w) {
    upfront_ends_cut(e, 0);
    upfront_ends_cut_far(e, 0);
    NO(upfront_ends_alloc(e, 0, 1));
    NO(upfront_ends_alloc_far(e, 0, 1));
    REFUSED(upfront_ends_rewind(e, 0, 0));
    REFUSED(upfront_ends_rewind_far(e, 0, 0));
    REFUSED(upfront_ends_resize(e, 0, w, 0, 8));
    REFUSED(upfront_ends_resize(e, 0, e, 0, 0));
    upfront_ends_reset(e);
    nothing_is_touched();
}

static void nothing_stack(upfront_stack *s, unsigned char *w) {
    NO(upfront_stack_padding(s));
    NO(upfront_stack_alloc(s, 0, 1));
    NO(upfront_stack_alloc_far(s, 0, 1));
    REFUSED(upfront_stack_free(s, NULL));
    REFUSED(upfront_stack_free(s, s));
    REFUSED(upfront_stack_free_far(s, w));
    NO(upfront_stack_mark(s));
    NO(upfront_stack_mark_far(s));
    REFUSED(upfront_stack_rewind(s, 0));
    REFUSED(upfront_stack_rewind_far(s, 0));
    upfront_stack_reset(s);
    upfront_stack_reset_far(s);
    nothing_is_touched();
}

static void nothing_pool(upfront_pool *p, unsigned char *w) {
    REFUSED(upfront_pool_find(p, 0, w));
    REFUSED(upfront_pool_find(p, 0, NULL));
    REFUSED(upfront_pool_put_handle(p, 0, 0));
    upfront_pool_close(p);
    NO(upfront_pool_next(p, 0));
    NO(upfront_pool_peak(p));
    upfront_pool_remark(p, NULL);
    nothing_is_touched();
}

static void nothing_ring(upfront_ring *r, unsigned char *w) {
    upfront_block range;
    uint64_t count;
    REFUSED(upfront_ring_find(r, 0, w));
    REFUSED(upfront_ring_find(r, 0, NULL));
    NO(upfront_ring_wrap(r, 0, 0, 7));
    NO(upfront_ring_alloc(r, 0, 1));
    NO(upfront_ring_overwrite(r, 0, 1));
    REFUSED(upfront_ring_free(r, NULL));
    REFUSED(upfront_ring_free(r, w));
    REFUSED(upfront_ring_reset(r, 0));
    NO(upfront_ring_room(r));
    REFUSED(upfront_ring_walk(r, &range, 1, &count));
    REFUSED(upfront_ring_walk(r, NULL, 0, NULL));
    nothing_is_touched();
}

static void nothing_frame(upfront_frame *f) {
    NO(upfront_frame_alloc(f, 0, 1));
    upfront_frame_next(f);
    if (f != NULL)
        CHECK(holds(f, sizeof *f, 0));
    NO(upfront_frame_alloc(f, 0, 1));
    nothing_is_touched();
}

static void nothing_heap(upfront_heap *h, unsigned char *w) {
    upfront_block range;
    uint64_t count;
    NO(upfront_heap_alloc(h, 0, 1));
    CHECK_EQ(upfront_heap_free(h, NULL), h == NULL ? UPFRONT_BAD_ARGUMENT : UPFRONT_OK);
    REFUSED(upfront_heap_free(h, w));
    NO(upfront_heap_realloc(h, NULL, 8));
    NO(upfront_heap_realloc(h, w, 8));
    REFUSED(upfront_heap_size_of(h, NULL));
    REFUSED(upfront_heap_size_of(h, w));
    CHECK_EQ(upfront_heap_check(h, NULL), h == NULL ? UPFRONT_BAD_ARGUMENT : UPFRONT_OK);
    REFUSED(upfront_heap_check(h, w));
    upfront_heap_reset(h);
    upfront_heap_reserve(h, 0);
    upfront_heap_flush(h);
    upfront_heap_plain(h);
    NO(upfront_heap_phase(h));
    NO(upfront_heap_largest(h));
    NO(upfront_heap_next_run(h, 4096, NULL, NULL));
    REFUSED(upfront_heap_pack(h, w, 1, &count));
    REFUSED(upfront_heap_pack(h, NULL, 0, NULL));
    REFUSED(upfront_heap_unpack(h, 496, w, 496));
    REFUSED(upfront_heap_walk(h, &range, 1, &count));
    REFUSED(upfront_heap_walk(h, NULL, 0, NULL));
    REFUSED(upfront_heap_look(h, &range, 1, &count));
    NO(upfront_heap_hook(h, NULL, 0, 8));
    NO(upfront_heap_hook(h, w, 8, 0));
    nothing_is_touched();
}

static void nothing_buddy(upfront_buddy *b, unsigned char *w) {
    upfront_block range;
    uint64_t count;
    NO(upfront_buddy_alloc(b, 0, 1));
    CHECK_EQ(upfront_buddy_free(b, NULL), b == NULL ? UPFRONT_BAD_ARGUMENT : UPFRONT_OK);
    REFUSED(upfront_buddy_free(b, w));
    NO(upfront_buddy_realloc(b, NULL, 8));
    NO(upfront_buddy_realloc(b, w, 8));
    REFUSED(upfront_buddy_size_of(b, NULL));
    REFUSED(upfront_buddy_size_of(b, w));
    CHECK_EQ(upfront_buddy_check(b, NULL), b == NULL ? UPFRONT_BAD_ARGUMENT : UPFRONT_OK);
    REFUSED(upfront_buddy_check(b, w));
    upfront_buddy_reset(b);
    upfront_buddy_plain(b);
    NO(upfront_buddy_largest(b));
    upfront_buddy_reserve(b, 64);
    NO(upfront_buddy_phase(b));
    REFUSED(upfront_buddy_walk(b, &range, 1, &count));
    REFUSED(upfront_buddy_walk(b, NULL, 0, NULL));
    REFUSED(upfront_buddy_look(b, &range, 1, &count));
    NO(upfront_buddy_hook(b, NULL, 0, 8));
    NO(upfront_buddy_hook(b, w, 8, 0));
    if (b != NULL)
        CHECK(holds(b, sizeof *b, 0));
    nothing_is_touched();
}

static void nothing_ends_here(void *arg) { ++*(int *)arg; }

static void nothing_scope(upfront_scopes *h, uint64_t gen) {
    upfront_scope s;
    upfront_pool *p;
    uint64_t at;
    int ran = 0;
    s.arena = h;
    s.gen = gen;
    NO(upfront_scope_open(h).arena);
    NO(upfront_scope_is_open(s));
    NO(upfront_scope_alloc(s, 0, 1));
    REFUSED(upfront_scope_defer(s, nothing_ends_here, &ran));
    REFUSED(upfront_scope_defer(s, NULL, NULL));
    NO(ran);
    NO(upfront_scope_pool(s, 8, 8, 1));
    REFUSED(upfront_scope_pool_of(s, 8, 8, 1, 0, 0, &p));
    REFUSED(upfront_scope_pool_of(s, 8, 8, 1, 0, 0, NULL));
    NO(upfront_scope_temp(s, 0).arena);
    NO(upfront_scope_temp_room(s, 0, &at, &at));
    REFUSED(upfront_scope_close(s));
    NO(upfront_scope_is_alive(s));
    NO(upfront_refuses()); /* no request was announced */
    CHECK(upfront_scopes_is_c(h, 0) == (h != NULL)); /* an empty chain is C's */
    NO(upfront_scopes_run(h, 0));
    upfront_scopes_run_deferred(h, 0);
    upfront_scopes_temp_close(h);
    NO(upfront_scopes_find(h, gen));
    nothing_is_touched();
}

static void nothing_row(unsigned char *w) {
    upfront_row_init(NULL, w, "row", 0, 0, 1, 0, 0, 0);
    upfront_row_init(&ZEROS->row, w, NULL, 0, 0, 1, 0, 0, 0);
    CHECK(holds(ZEROS, sizeof *ZEROS, 0));
}

static void nothing_map(upfront_map *m) {
    const upfront_map_arena none = {"", 0, 0, 0, 0, 0};
    const uint64_t size = 0;
    upfront_range range;
    uint64_t count;
    CHECK_EQ(upfront_map_tables(0, 0, 0).size, UPFRONT_HEAD_LEAST); /* of a map without rows */
    CHECK_EQ(upfront_map_size(NULL, 0, 0, 0, 0), UPFRONT_EDGE);
    NO(upfront_map_tables(0, 1, 0).size);
    NO(upfront_map_size(NULL, 1, 1, 0, 0));
    NO(upfront_map_size(&none, 1, 1, 0, 0));
    NO(upfront_map_init(NULL, 0, &none, 1, 1, 0, 0));
    NO(upfront_map_init(m, 0, NULL, 1, 1, 0, 0));
    NO(upfront_map_init(m, 0, &none, 0, 0, 0, 0));
    REFUSED(upfront_map_reconfigure(m, 0, NULL, 1));
    REFUSED(upfront_map_reconfigure(m, 0, &size, 1));
    REFUSED(upfront_map_reconfigure(m, 0, &size, 0));
    upfront_map_over(m);
    REFUSED(upfront_map_walk(m, 0, NULL, 0, NULL));
    REFUSED(upfront_map_walk(m, 0, &range, 1, &count));
    REFUSED(upfront_map_walk(m, sizeof *m, NULL, 0, &count));
    nothing_is_touched();
}

/* Constructors, with no block, too small a block, and a size too large for any. */
static void nothing_is_made(unsigned char *w) {
    const uint64_t sizes[] = {0, 1, UPFRONT_LINE - 1, UPFRONT_LINE, UPFRONT_OFFSET_MAX - 1, UPFRONT_OFFSET_MAX,
        UINT64_MAX - 63, UINT64_MAX};
    upfront_pool pool;
    size_t i, j;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (j = 0; j < 2; j++) {
            unsigned char *block = j == 0 ? NULL : w;
            NO(upfront_linear_init(block, sizes[i]));
            NO(upfront_ends_init(block, sizes[i]));
            NO(upfront_stack_init(block, sizes[i]));
            NO(upfront_ring_init(block, sizes[i]));
            NO(upfront_frame_init(block, sizes[i], 2));
            NO(upfront_heap_init(block, sizes[i], 0));
            NO(upfront_buddy_init(block, sizes[i], 64));
            /* size of a smallest block */
            NO(upfront_buddy_init(w, 4096, sizes[i] == UPFRONT_LINE ? 0 : sizes[i]));
            NO(upfront_arena_init(block, sizes[i], 64));
            /* size of a header */
            NO(upfront_arena_init(block, 256, sizes[i] == UPFRONT_LINE ? 256 : sizes[i]));
            /* a pool uses no more than its largest size */
            NO(j == 1 && i > 3 ? NULL : upfront_pool_make(block, sizes[i], 8, 8, 0));
        }
    NO(upfront_frame_init(w, 4096, 0));
    NO(upfront_pool_size(0, 0, 1, 0));
    NO(upfront_pool_size(8, 8, 0, 0));
    NO(upfront_frame_size(0, 2));
    NO(upfront_frame_size(64, 0));
    NO(upfront_buddy_size(64, 0));
    REFUSED(upfront_pool_init(NULL, w, 1, 8, 8, 1, 0));
    REFUSED(upfront_pool_init(&pool, NULL, 1, 8, 8, 1, 0));
    REFUSED(upfront_pool_init(&pool, w, 0, 8, 8, 1, 0));
    REFUSED(upfront_pool_init(&pool, w, 1, 8, 0, 1, 0));
    CHECK(holds(w, 4096, 0));
}

#ifdef UPFRONT_MIRROR

static void nothing_mirror(unsigned char *w) {
    upfront_found found;
    NO(upfront_mirror_size(NULL, 0));
    NO(upfront_mirror_size(w, UPFRONT_OFFSET_MAX));
    NO(upfront_mirror_size(w, UINT64_MAX));
    NO(upfront_mirror_open(NULL, 4096, w, NULL, 0));
    NO(upfront_mirror_open(w, 0, w, NULL, 0));
    NO(upfront_mirror_open(w, 4096, NULL, NULL, 0));
    upfront_mirror_close(NULL);
    /* no stray write */
    CHECK(upfront_mirror_check(NULL, 0, NULL) && upfront_mirror_check(w, 0, &found));
    NO(upfront_mirror_find(0, &found));
    NO(upfront_mirror_find(0, NULL));
    CHECK(upfront_mirror_objects(NULL, 0, NULL, 0) == UINT64_MAX &&
        upfront_mirror_objects(w, 8, NULL, 0) == UINT64_MAX);
    upfront_mirror_gather(NULL, 0);
    upfront_mirror_scatter(NULL, 0);
    CHECK(upfront_position(NULL) == NULL && upfront_place(NULL, NULL) == 0);
}

#else

static void nothing_mirror(unsigned char *w) { (void)w; }

#endif

static void nothing_room(unsigned char *w) {
    upfront_room r;
    REFUSED(upfront_note_room(UPFRONT_ROOM_HEAP, NULL, 64));
    REFUSED(upfront_take_room(w, 64, NULL));
    REFUSED(upfront_take_room(NULL, 0, &r));
    NO(upfront_rooms_lost());
}

void test_nothing(void) {
    unsigned char *w = window_new(WINDOW);
    int i;
    for (i = 0; i < 2; i++) {
        int null = i == 0;
        nothing_linear(null ? NULL : &ZEROS->linear, w);
        nothing_ends(null ? NULL : &ZEROS->ends, w);
        nothing_stack(null ? NULL : &ZEROS->stack, w);
        nothing_pool(null ? NULL : &ZEROS->pool, w);
        nothing_ring(null ? NULL : &ZEROS->ring, w);
        nothing_frame(null ? NULL : &ZEROS->frame);
        nothing_heap(null ? NULL : &ZEROS->heap, w);
        nothing_buddy(null ? NULL : &ZEROS->buddy, w);
        nothing_scope(null ? NULL : &ZEROS->row.arena, 0);
        nothing_scope(null ? NULL : &ZEROS->row.arena, 1);
        nothing_map(null ? NULL : &ZEROS->map);
    }
    nothing_row(w);
    nothing_is_made(w);
    nothing_mirror(w);
    nothing_room(w);
    window_free(w, WINDOW);
}
