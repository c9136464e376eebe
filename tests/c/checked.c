/* checked.c - tests of the texts about addresses, word by word. */
#include "check.h"
#include "checked.h"
#include "notes.h"

#ifdef UPFRONT_CHECKED

enum { TOLD_ROWS = 3, TOLD_ROOM = 1024 };

static const upfront_map_arena told_plan[TOLD_ROWS] = {
    {"level", UPFRONT_REGION, 3 * WINDOW - 100, 1, 0, 0}, {"frame 0", UPFRONT_FRAME, WINDOW, 1, 0, 0},
        {"scratch 1.0", UPFRONT_SCRATCH, 4096, 1, 0, 0}};

static uint32_t text_of(const char *text) { return upfront_text_add(text, strlen(text)); }

/* Compares the bytes with `want`, and checks that no byte after the room was written. */
static void check_text(const char *out, size_t size, const char *want) {
    if (size != strlen(want) || memcmp(out, want, size) != 0) {
        fprintf(stderr, "got  %.*swant %s", (int)size, out, want);
        exit(1);
    }
}

static void check_fault(const upfront_map *m, uint64_t place, const char *want) {
    char out[TOLD_ROOM], all[TOLD_ROOM];
    uintptr_t address = (uintptr_t)m + (uintptr_t)place;
    snprintf(all, sizeof all, "upfront: BUG: read or write of 0x%llx in budget \"pond\"%s",
        (unsigned long long)address, want);
    check_text(out, upfront_describe(m, "pond", address, out, sizeof out), all);
}

/* A text cut at any length is a prefix of the whole one and ends its last line. Nothing is written
 * after it. */
static void checked_room(void) {
    char whole[TOLD_ROOM], out[TOLD_ROOM];
    uint32_t site = text_of("\tmain.main /x/y.go:3\n");
    size_t room, size = upfront_describe_closed((const void *)(uintptr_t)site, "pond", 0x123, whole, sizeof whole);
    check_text(whole, size, "upfront: BUG: read or write of 0x123 in budget \"pond\", which is closed\n"
                            "\tclosed at:\n\t\tmain.main /x/y.go:3\n");
    for (room = 0; room < size; room++) {
        memset(out, 'x', sizeof out);
        CHECK_EQ(upfront_describe_closed((const void *)(uintptr_t)site, "pond", 0x123, out, room), room);
        CHECK(room == 0 || (memcmp(out, whole, room - 1) == 0 && out[room - 1] == '\n'));
        CHECK(holds(out + room, sizeof out - room, 'x'));
    }
}

static void test_texts(void) {
    static char long_text[UPFRONT_TEXTS_BYTES];
    uint32_t id = text_of("here"), empty = text_of("");
    CHECK(id != 0 && empty == id + 1);
    CHECK(strcmp(upfront_text(id), "here") == 0 && strcmp(upfront_text(empty), "") == 0);
    CHECK(*upfront_text(0) == 0 && *upfront_text(empty + 1) == 0 && *upfront_text(UINT32_MAX) == 0);
    CHECK_EQ(upfront_text_add(long_text, sizeof long_text), 0);
    while ((id = text_of("again")) != 0)
        CHECK(strcmp(upfront_text(id), "again") == 0 && id < UPFRONT_TEXTS);
    CHECK_EQ(id, 0);
    CHECK(strcmp(upfront_text(empty - 1), "here") == 0);
}

static void *announced(void *given) {
    UPFRONT_REQUEST(0);
    return given;
}

/* The process's first note is found, too; the mutants run this test alone. */
static void checked_first_note(void) {
    static char block[64];
    upfront_note note;
    UPFRONT_SITE(5);
    upfront_note_made(block, sizeof block);
    UPFRONT_SITE(0);
    CHECK(upfront_note_near(block + 63, &note) && note.address == (uintptr_t)block && note.made == 5);
}

/* `alloc` as a request, announced like a binding's. */
#define REQUEST(alloc) (UPFRONT_REQUEST(1), announced(alloc))

/* The second request is refused once: nothing changes, and the third gets its bytes. Calls that
 * aren't announced don't count. */
#define CHECK_REFUSED(alloc)                                            \
    do {                                                                \
        uintptr_t before, between;                                      \
        upfront_fail_at(2);                                             \
        before = (uintptr_t)(alloc);                                    \
        between = (uintptr_t)REQUEST(alloc) - before;                   \
        CHECK(!upfront_failed() && before != 0);                        \
        CHECK(REQUEST(alloc) == NULL && upfront_failed());              \
        CHECK_EQ((uintptr_t)REQUEST(alloc), before + 2 * between);      \
    } while (0)

static void checked_refusals(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_ends *e = upfront_ends_init(w, 2048);
    upfront_stack *s = upfront_stack_init(w + 2048, 2048);
    upfront_ring *r = upfront_ring_init(w + 4096, 128 + 4 * 40);
    upfront_heap *h = upfront_heap_init(w + 8192, 8192, 0);
    upfront_buddy *b = upfront_buddy_init(w + 16384, 8192, 64);
    upfront_pool *p = upfront_pool_make(w + 24576, 2048, 40, 8, 0);
    void *last, *block;
    CHECK_REFUSED(upfront_ends_alloc(e, 48, 16));
    CHECK((e->arena.asked & UPFRONT_PURPOSE) != 0);
    CHECK(upfront_ends_alloc(e, 4096, 16) == NULL && (e->arena.asked & UPFRONT_PURPOSE) == 0);
    CHECK_REFUSED(upfront_ends_alloc_far(e, 48, 16));
    CHECK_REFUSED(upfront_stack_alloc(s, 48, 16));
    CHECK_REFUSED(upfront_stack_alloc_far(s, 48, 16));
    CHECK_REFUSED(upfront_heap_alloc(h, 48, 16));
    CHECK_REFUSED(upfront_buddy_alloc(b, 48, 16));
    CHECK_REFUSED(upfront_pool_get(p, p->gen));
    upfront_fail_at(1);
    /* a small block has room after the newest, a large one at the start */
    last = upfront_ring_alloc(r, 72, 8);
    CHECK(upfront_ring_alloc(r, 32, 8) != NULL && upfront_ring_free(r, last) == UPFRONT_OK);
    CHECK(REQUEST(upfront_ring_alloc(r, 1024, 8)) == NULL && !upfront_failed()); /* full anyway */
    CHECK(REQUEST(upfront_ring_alloc(r, 24, 8)) == NULL && upfront_failed() && r->seam == 0);
    upfront_fail_at(1);
    CHECK(REQUEST(upfront_ring_alloc(r, 64, 8)) == NULL && upfront_failed() && r->seam == 0);
    CHECK(REQUEST(upfront_ring_alloc(r, 64, 8)) != NULL && r->seam != 0);
    last = upfront_heap_alloc(h, 64, 16);
    block = upfront_buddy_alloc(b, 128, 1);
    upfront_fail_at(1); /* a shrink is no request */
    CHECK(REQUEST(upfront_heap_realloc(h, last, 48)) == last && REQUEST(upfront_buddy_realloc(b, block, 100)) == block);
    CHECK(REQUEST(upfront_heap_realloc(h, last, 512)) == NULL && upfront_failed());
    upfront_fail_at(1);
    CHECK(REQUEST(upfront_buddy_realloc(b, block, 512)) == NULL && upfront_failed());
    CHECK(h->failed == 2 && h->refused == 512 && b->failed == 2 && b->refused == 512);
    upfront_fail_at(1);
    upfront_fail_at(0);
    CHECK(REQUEST(upfront_heap_realloc(h, last, 512)) != NULL && !upfront_failed());
    window_free(w, WINDOW);
}

void test_checked(void) {
    uint64_t size = upfront_map_size(told_plan, TOLD_ROWS, 2, 1, WINDOW);
    unsigned char *block = window_new(size);
    upfront_map *m = upfront_map_init(block, size, told_plan, TOLD_ROWS, 2, 1, WINDOW);
    CHECK(m != NULL);
    checked_first_note();
    checked_refusals();
    checked_room();
    check_fault(m, 100, ": the control tables\n");
    check_fault(m, m->tables,
                ": the unused bytes or the guard after the control tables: an index or a size is out of range\n");
    check_fault(m, upfront_map_start(m, upfront_map_row(m, 0)), ": bytes of region \"level\"\n");
    check_fault(m, upfront_map_end(m, upfront_map_row(m, 0)) - 1, ": bytes of region \"level\"\n");
    check_fault(m, upfront_map_end(m, upfront_map_row(m, 0)),
        ": the unused bytes or the guard after region \"level\": an index or a size is out of range\n");
    check_fault(m, upfront_map_start(m, upfront_map_row(m, 1)) - 1,
        ": the unused bytes or the guard after region \"level\": an index or a size is out of range\n");
    check_fault(m, upfront_map_start(m, upfront_map_row(m, 1)), ": bytes of frame 0\n");
    check_fault(m, size - 1, ": the unused bytes or the guard after scratch 1.0: an index or a size is out of range\n");
    window_free(block, size);
    test_texts(); /* last, as it fills the table */
}

#else

void test_checked(void) {}

#endif
