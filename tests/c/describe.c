/* describe.c - tests of the texts about addresses and damage, each to the letter. */
#include "check.h"
#include "describe.h"
#include "sites.h"

#ifdef UPFRONT_MEMDEBUG

enum { TOLD_ROWS = 3, TOLD_ROOM = 1024 };

static const upfront_map_arena told_plan[TOLD_ROWS] = {
    {"level", UPFRONT_REGION, 3 * WINDOW - 100, 1}, {"frame 0", UPFRONT_FRAME, WINDOW, 1}, {"pad 1.0", UPFRONT_PAD, 4096, 1}};

static uint32_t text_of(const char *text) { return upfront_text_add(text, strlen(text)); }

/* Whether the bytes read as `want`, and no byte beyond the room was written. */
static void check_text(const char *out, size_t size, const char *want) {
    if (size != strlen(want) || memcmp(out, want, size) != 0) {
        fprintf(stderr, "got  %.*swant %s", (int)size, out, want);
        exit(1);
    }
}

static void check_damage(const upfront_damage *d, const char *want) {
    char out[TOLD_ROOM];
    check_text(out, upfront_describe_damage(d, out, sizeof out), want);
}

static void check_fault(const upfront_map *m, uint64_t place, const char *want) {
    char out[TOLD_ROOM], all[TOLD_ROOM];
    uintptr_t address = (uintptr_t)m + (uintptr_t)place;
    snprintf(all, sizeof all, "upfront: BUG: read or write of 0x%llx in budget \"pond\"%s", (unsigned long long)address, want);
    check_text(out, upfront_describe(m, "pond", address, out, sizeof out), all);
}

static void test_damage_texts(const upfront_map *m) {
    static const unsigned char chunk[64];
    upfront_damage d;
    memset(&d, 0, sizeof d);
    d.map = m;
    d.place = 1000;
    d.expected = 0xFB;
    d.found = 0x4;
    d.what = UPFRONT_DAMAGE_GAP;
    check_damage(&d, "BUG: write before the first object in region \"level\": 0x04 where 0xfb should be\n");
    d.next.place = 1003;
    d.next.size = 1;
    check_damage(&d, "BUG: write before the first object: 3 bytes before an object of 1 byte in region \"level\": "
                     "0x04 where 0xfb should be\n");
    d.next.place = 0;
    d.row = 1;
    d.record.place = 933;
    d.record.size = 64;
    check_damage(&d, "BUG: write past the end of an object: byte 67 of an object of 64 bytes in frame 0: "
                     "0x04 where 0xfb should be\n");
    d.row = 0;
    d.record.scope = text_of("frogs");
    d.record.account = text_of("sound");
    d.record.made = text_of("\tmain.load /x/y.go:33\n\tmain.main /x/y.go:3\n");
    check_damage(&d, "BUG: write past the end of an object: byte 67 of an object of 64 bytes of scope \"frogs\" "
                     "(account \"sound\") in region \"level\": 0x04 where 0xfb should be\n"
                     "\tmade at:\n\t\tmain.load /x/y.go:33\n\t\tmain.main /x/y.go:3\n");
    d.next.place = 1001;
    d.next.size = 8;
    d.next.made = text_of("\tmain.load /x/y.go:35\n");
    check_damage(&d, "BUG: write past the end of an object, or before the next: byte 67 of an object of 64 bytes of scope \"frogs\" "
                     "(account \"sound\"), 1 byte before an object of 8 bytes in region \"level\": 0x04 where 0xfb should be\n"
                     "\tmade at:\n\t\tmain.load /x/y.go:33\n\t\tmain.main /x/y.go:3\n\tthe next made at:\n\t\tmain.load /x/y.go:35\n");
    d.next.place = 0;
    d.next.made = 0;
    d.what = UPFRONT_DAMAGE_DEAD;
    d.expected = 0xDB;
    d.record.size = 1;
    d.record.place = 1000;
    d.record.account = d.record.made = 0;
    d.record.gone = text_of("\tmain.next /x/y.go:71\n");
    check_damage(&d, "BUG: write to what was closed or rewound: byte 0 of an object of 1 byte of scope \"frogs\" in region \"level\": "
                     "0x04 where 0xdb should be\n\tclosed or rewound at:\n\t\tmain.next /x/y.go:71\n");
    d.place += 9;
    d.what = UPFRONT_DAMAGE_FRESH;
    check_damage(&d, "BUG: write past the end of an object, or to bytes that nobody had yet: byte 9 of an object of 1 byte of scope "
                     "\"frogs\" in region \"level\": 0x04 where 0xdb should be\n\tclosed or rewound at:\n\t\tmain.next /x/y.go:71\n");
    d.what = UPFRONT_DAMAGE_DEAD;
    memset(&d.record, 0, sizeof d.record);
    check_damage(&d, "BUG: write to what was closed or rewound in region \"level\": 0x04 where 0xdb should be\n");
    d.what = UPFRONT_DAMAGE_FRESH;
    d.expected = 0;
    d.found = 0xFF;
    d.row = 9; /* the tables may be what is damaged */
    check_damage(&d, "BUG: write to bytes that nobody had yet in no region: 0xff where 0x00 should be\n");
    d.what = UPFRONT_DAMAGE_CHUNK;
    d.map = NULL;
    d.chunk = chunk;
    d.chunk_size = 40;
    d.at = chunk + 8;
    check_damage(&d, "BUG: write after put: byte 8 of a chunk of 40 bytes: 0xff where 0x00 should be\n");
    d.what = UPFRONT_DAMAGE_CHUNK_GAP;
    d.at = chunk + 41;
    check_damage(&d, "BUG: write past the end of a chunk, or before the next: byte 41 of a chunk of 40 bytes: "
                     "0xff where 0x00 should be\n");
    d.record.scope = text_of("frogs");
    d.record.made = text_of("\tmain.load /x/y.go:33\n");
    check_damage(&d, "BUG: write past the end of a chunk, or before the next: byte 41 of a chunk of 40 bytes of scope \"frogs\": "
                     "0xff where 0x00 should be\n\tits pool made at:\n\t\tmain.load /x/y.go:33\n");
    memset(&d.record, 0, sizeof d.record);
    d.chunk = chunk + 44;
    check_damage(&d, "BUG: write past the end of a chunk, or before the next: 3 bytes before a chunk of 40 bytes: "
                     "0xff where 0x00 should be\n");
}

/* Wherever the room ends, the text is a front of the whole one with its line ended, and nothing is written behind it. */
static void test_room(void) {
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

/* The first is kept until it is taken. */
static void test_kept(void) {
    upfront_damage d, out;
    memset(&d, 0, sizeof d);
    CHECK(!upfront_take_damage(&out));
    d.row = 1;
    upfront_keep_damage(&d);
    d.row = 2;
    upfront_keep_damage(&d);
    CHECK_EQ(upfront_damage_kept, 1);
    CHECK(upfront_take_damage(&out) && out.row == 1 && !upfront_take_damage(&out));
    upfront_keep_damage(&d);
    CHECK(upfront_take_damage(&out) && out.row == 2 && upfront_damage_kept == 0);
}

void test_describe(void) {
    uint64_t size = upfront_map_size(told_plan, TOLD_ROWS, 2, 1, WINDOW);
    unsigned char *block = window_new(size);
    upfront_map *m = upfront_map_init(block, size, told_plan, TOLD_ROWS, 2, 1, WINDOW);
    CHECK(m != NULL);
    test_damage_texts(m);
    test_room();
    test_kept();
    check_fault(m, 100, ": the control tables\n");
    check_fault(m, m->tables, ": the slack or the guard behind the control tables\n");
    check_fault(m, upfront_map_row(m, 0)->start, ": bytes of region \"level\"\n");
    check_fault(m, upfront_map_row(m, 0)->end - 1, ": bytes of region \"level\"\n");
    check_fault(m, upfront_map_row(m, 0)->end, ": the slack or the guard behind region \"level\"\n");
    check_fault(m, upfront_map_row(m, 1)->start - 1, ": the slack or the guard behind region \"level\"\n");
    check_fault(m, upfront_map_row(m, 1)->start, ": bytes of frame 0\n");
    check_fault(m, size - 1, ": the slack or the guard behind pad 1.0\n");
    check_fault(m, size, ": the tables of this build\n");
    window_free(block, size);
}

#else

void test_describe(void) {}

#endif
