/* checked.c - tests of the texts about addresses, each to the letter. */
#include "check.h"
#include "checked.h"

#ifdef UPFRONT_CHECKED

enum { TOLD_ROWS = 3, TOLD_ROOM = 1024 };

static const upfront_map_arena told_plan[TOLD_ROWS] = {
    {"level", UPFRONT_REGION, 3 * WINDOW - 100, 1, 0, 0}, {"frame 0", UPFRONT_FRAME, WINDOW, 1, 0, 0}, {"scratch 1.0", UPFRONT_SCRATCH, 4096, 1, 0, 0}};

static uint32_t text_of(const char *text) { return upfront_text_add(text, strlen(text)); }

/* Whether the bytes read as `want`, and no byte beyond the room was written. */
static void check_text(const char *out, size_t size, const char *want) {
    if (size != strlen(want) || memcmp(out, want, size) != 0) {
        fprintf(stderr, "got  %.*swant %s", (int)size, out, want);
        exit(1);
    }
}

static void check_fault(const upfront_map *m, uint64_t place, const char *want) {
    char out[TOLD_ROOM], all[TOLD_ROOM];
    uintptr_t address = (uintptr_t)m + (uintptr_t)place;
    snprintf(all, sizeof all, "upfront: BUG: read or write of 0x%llx in budget \"pond\"%s", (unsigned long long)address, want);
    check_text(out, upfront_describe(m, "pond", address, out, sizeof out), all);
}

/* Wherever the room ends, the text is a front of the whole one with its line ended, and nothing is written behind it. */
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

/* A text that is one byte longer than all room gets no number. */
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

void test_checked(void) {
    uint64_t size = upfront_map_size(told_plan, TOLD_ROWS, 2, 1, WINDOW);
    unsigned char *block = window_new(size);
    upfront_map *m = upfront_map_init(block, size, told_plan, TOLD_ROWS, 2, 1, WINDOW);
    CHECK(m != NULL);
    checked_room();
    check_fault(m, 100, ": the control tables\n");
    check_fault(m, m->tables, ": the slack or the guard behind the control tables\n");
    check_fault(m, upfront_map_start(m, upfront_map_row(m, 0)), ": bytes of region \"level\"\n");
    check_fault(m, upfront_map_end(m, upfront_map_row(m, 0)) - 1, ": bytes of region \"level\"\n");
    check_fault(m, upfront_map_end(m, upfront_map_row(m, 0)), ": the slack or the guard behind region \"level\"\n");
    check_fault(m, upfront_map_start(m, upfront_map_row(m, 1)) - 1, ": the slack or the guard behind region \"level\"\n");
    check_fault(m, upfront_map_start(m, upfront_map_row(m, 1)), ": bytes of frame 0\n");
    check_fault(m, size - 1, ": the slack or the guard behind scratch 1.0\n");
    window_free(block, size);
    test_texts(); /* last: it fills the table */
}

#else

void test_checked(void) {}

#endif
