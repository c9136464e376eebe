/* stretch_edges.c - a stretched row at its bounds: until it is full, with things of every kind; and what is where, now and before. */
#include "check.h"

#ifdef UPFRONT_STRETCHED

enum { EDGES_ROW = 2 * 65536, EDGES_SLOTS = 3, EDGES_POOLS = 2 };

static const upfront_map_arena edges_plan[2] = {{"level", UPFRONT_REGION, EDGES_ROW - 24, 1}, {"pad", UPFRONT_PAD, 4096, 1}};

static unsigned char *edges_block;
static uint64_t edges_size, edges_space;
static upfront_map *edges_map;
static upfront_row *edges_row;
static upfront_linear *edges_slot;
static uint64_t edges_tag;

static void edges_open(void) {
    edges_size = upfront_map_size(edges_plan, 2, EDGES_SLOTS, EDGES_POOLS, 0);
    edges_space = upfront_map_stretch_size(edges_plan, 2, EDGES_SLOTS, EDGES_POOLS, 0);
    edges_block = window_new(edges_size + edges_space);
    edges_map = upfront_map_init(edges_block, edges_size, edges_plan, 2, EDGES_SLOTS, EDGES_POOLS, 0);
    CHECK_EQ(upfront_map_stretch(edges_map, edges_space), UPFRONT_OK);
    edges_row = upfront_map_row(edges_map, 0);
    edges_slot = upfront_row_slot(edges_row, 0);
    edges_tag = upfront_row_open(edges_row);
}

static void edges_are_sound(void) {
    upfront_range out[16];
    upfront_damage d;
    uint64_t count;
    CHECK_EQ(upfront_map_walk(edges_map, edges_size, out, 16, &count), UPFRONT_OK);
    CHECK_EQ(upfront_stretch_check(edges_map, &d), UPFRONT_OK);
}

static void edges_close(void) {
    edges_are_sound();
    upfront_row_far_close(edges_row);
    edges_are_sound();
    upfront_row_close(edges_row);
    edges_are_sound();
    window_free(edges_block, edges_size + edges_space);
}

static unsigned char *edges_take(upfront_linear *slot, uint64_t size, uint64_t align) {
    return (unsigned char *)upfront_linear_bump(slot, upfront_tag(slot) + size, size, align - 1);
}

/* Things of one size and alignment until the model is full: as many as would fit without any gap, each ours alone. */
static void edges_until_full(uint64_t size, uint64_t align) {
    static unsigned char *things[EDGES_ROW];
    uint64_t stride = (size + align - 1) & ~(align - 1), expected = (EDGES_ROW - 24 - size) / stride + 1, count = 0, i, round;
    edges_open();
    for (round = 0; round < 6; round++) { /* in each window, and again in the first ones */
        count = 0;
        while ((things[count] = edges_take(edges_slot, size, align)) != NULL) {
            CHECK((uintptr_t)things[count] % align == 0 && (count == 0 || things[count] >= things[count - 1] + size));
            fill(things[count], size, (int)(count % 251));
            count++;
        }
        CHECK_EQ(count, expected);
        for (i = 0; i < count; i++)
            CHECK(holds(things[i], size, (int)(i % 251)));
        edges_are_sound();
        upfront_row_close(edges_row);
        edges_tag = upfront_row_open(edges_row);
        edges_slot->refused = 0;
    }
    edges_close();
}

/* Tiny things until the gaps have used the part up, then whatever comes: each alignment has its room. */
static void edges_mixed(uint64_t seed, uint64_t tiny) {
    uint64_t place, size, parts, i;
    unsigned char *p, *end = NULL;
    edges_open();
    upfront_stretch_window(edges_row, 0, &place, &size, &parts);
    for (i = 0; i < tiny; i++)
        CHECK((p = edges_take(edges_slot, 1, 1)) != NULL);
    for (i = 0; i < 300; i++) {
        size = next_random(&seed) % 400;
        p = edges_take(edges_slot, size, UINT64_C(1) << next_random(&seed) % 17);
        if (p == NULL)
            continue;
        CHECK(p >= end && p + size <= edges_block + place + parts / 2);
        end = p + size;
    }
    edges_close();
}

/* Things of no bytes take nothing, however many there are: gaps are still there behind a million of them. */
static void edges_no_bytes(void) {
    unsigned char *p = NULL;
    uint64_t i;
    edges_open();
    for (i = 0; i < 1000000; i++)
        p = edges_take(edges_slot, 0, 1);
    CHECK(p != NULL && edges_take(edges_slot, 8, 8) == p + 16);
    CHECK(edges_take(edges_slot, 0, 64) != NULL && edges_take(edges_slot, 0, UPFRONT_ALIGN_MAX) != NULL);
    edges_are_sound();
    CHECK(edges_take(edges_slot, 1, 1) != NULL);
    edges_close();
}

/* Tiny temporaries until full: the part runs short of room and goes on in its twin, and nothing overlaps. */
static void edges_far_until_full(uint64_t size, uint64_t wish, uint64_t align) {
    static unsigned char *things[EDGES_ROW];
    upfront_linear *far_slot;
    uint64_t count, i, round, twins = 0;
    edges_open();
    far_slot = upfront_row_far(edges_row);
    for (round = 0; round < 10; round++) {
        count = 0;
        upfront_row_far_open(edges_row);
        if (round % 2 != 0)
            CHECK(upfront_row_node(edges_slot, edges_tag) != NULL);
        do {
            while ((things[count] = edges_take(far_slot, size, align)) != NULL) {
                CHECK((uintptr_t)things[count] % align == 0);
                twins += count != 0 && things[count] < things[count - 1];
                fill(things[count], size, (int)(count % 251));
                if (size > 1 && count % 3 == 0)
                    CHECK(upfront_linear_grow(far_slot, upfront_tag(far_slot), 0) == things[count] + size);
                count++;
            }
        } while (upfront_row_far_grow(edges_row, wish, align) == UPFRONT_OK);
        for (i = 0; i < count; i++)
            CHECK(holds(things[i], size, (int)(i % 251)));
        CHECK(count * size > (uint64_t)EDGES_ROW / 4);
        edges_are_sound();
        upfront_row_far_close(edges_row);
        edges_are_sound();
        if (round == 4) {
            upfront_row_close(edges_row);
            edges_tag = upfront_row_open(edges_row);
        }
    }
    CHECK(size != 1 || twins != 0);
    edges_close();
}

static void edges_sizes(void) {
    upfront_map_arena huge = edges_plan[0];
    uint64_t place, size, parts;
    upfront_row lone;
    memset(&lone, 0, sizeof lone);
    upfront_stretch_window(&lone, 0, &place, &size, &parts);
    CHECK(place == 0 && size == 0 && parts == 0);
    CHECK_EQ(upfront_stretch_current(&lone), 0);
    upfront_stretch_renew(&lone);
    upfront_stretch_closed_by(&lone, 1);
    upfront_stretch_names(&lone, 1, 2);
    huge.size = UPFRONT_STRETCH_MAX / 8;
    CHECK(upfront_map_size(&huge, 1, 1, 1, 0) != 0);
    CHECK_EQ(upfront_map_stretch_size(&huge, 1, 1, 1, 0), 0); /* runs as it is */
    huge.size = UPFRONT_OFFSET_MAX;
    CHECK_EQ(upfront_map_stretch_size(&huge, 1, 1, 1, 0), 0);
    CHECK_EQ(upfront_map_stretch(NULL, WINDOW), UPFRONT_BAD_ARGUMENT);
    edges_open();
    CHECK_EQ(upfront_map_stretch(edges_map, edges_space), UPFRONT_BAD_ARGUMENT); /* a scope is open */
    edges_map->size += 4096;
    CHECK_EQ(upfront_map_stretch(edges_map, edges_space), UPFRONT_BAD_ARGUMENT);
    edges_map->size -= 4096;
    edges_close();
}

/* Four windows in turn; what was in one is found until it is entered again. */
static void edges_windows(void) {
    unsigned char *thing[2 * UPFRONT_WINDOWS], *temp;
    upfront_found found;
    uint64_t i, k, place, size, parts;
    edges_open();
    for (i = 0; i < 2 * UPFRONT_WINDOWS; i++) {
        CHECK_EQ(upfront_stretch_current(edges_row), i % UPFRONT_WINDOWS);
        upfront_stretch_window(edges_row, i % UPFRONT_WINDOWS, &place, &size, &parts);
        if (i >= UPFRONT_WINDOWS) /* entered again: nothing is known of what was there */
            CHECK(upfront_stretch_find(edges_map, thing[i - UPFRONT_WINDOWS], &found) && found.what == UPFRONT_FOUND_ROOM);
        upfront_stretch_names(edges_row, 7, 8);
        thing[i] = edges_take(edges_slot, 100, 8);
        upfront_stretch_note(edges_slot, (uint32_t)i + 10);
#ifdef UPFRONT_ASAN
        CHECK(is_marked(thing[i] - 1, 1) && is_marked(thing[i] + 100, 1) && is_marked(edges_block + place, 1));
        CHECK(is_marked(edges_block + place + parts - 1, 1));
#endif
        CHECK(thing[i] >= edges_block + place && thing[i] < edges_block + place + parts / 2);
        upfront_row_far_open(edges_row);
        CHECK_EQ(upfront_row_far_grow(edges_row, 10, 1), UPFRONT_OK);
        temp = edges_take(upfront_row_far(edges_row), 10, 1);
        CHECK(temp >= edges_block + place + parts / 2 && temp < edges_block + place + parts);
        CHECK(upfront_stretch_find(edges_map, temp, &found) && found.far_part == 1 && found.current == 1);
        upfront_row_far_close(edges_row);
        for (k = i < UPFRONT_WINDOWS ? 0 : i - UPFRONT_WINDOWS + 1; k <= i; k++) {
            CHECK(upfront_stretch_find(edges_map, thing[k] + 3, &found));
            CHECK(found.row == 0 && found.window == k % UPFRONT_WINDOWS && found.far_part == 0);
            CHECK_EQ(found.current, k == i);
            CHECK_EQ(found.live, found.record.place != 0 && k == i);
#ifdef UPFRONT_MEMDEBUG
            CHECK(found.what == UPFRONT_FOUND_THING && found.offset == 3 && found.record.size == 100);
            CHECK(found.record.made == k + 10 && found.record.scope == 7 && found.record.account == 8);
            CHECK_EQ(found.record.gone, k == i ? 0 : k + 20);
            CHECK(upfront_stretch_find(edges_map, thing[k], &found) && found.what == UPFRONT_FOUND_THING && found.offset == 0);
            CHECK(upfront_stretch_find(edges_map, thing[k] + 105, &found) && found.what == UPFRONT_FOUND_GAP && found.offset == 5);
            CHECK_EQ(found.record.made, k + 10);
#endif
        }
        upfront_stretch_closed_by(edges_row, (uint32_t)i + 20);
        upfront_row_close(edges_row);
        CHECK(is_marked(thing[i], 1) && is_marked(thing[i] + 99, 1));
        edges_tag = upfront_row_open(edges_row);
    }
    CHECK(!upfront_stretch_find(edges_map, edges_map, &found));
    CHECK(upfront_stretch_find(edges_map, thing[0] - 100000 + parts, &found));
    if (size > parts)
        CHECK(upfront_stretch_find(edges_map, edges_block + place + parts, &found) && found.what == UPFRONT_FOUND_LOG);
    edges_close();
}

/* A word of a row's stretch that can't be is told by the walk. */
static void edges_walk(void) {
    upfront_stretch *s;
    upfront_range out[16];
    uint64_t count, word, told = 0;
    edges_open();
    CHECK(edges_take(edges_slot, 100, 8) != NULL);
    s = (upfront_stretch *)((uintptr_t)edges_row + (uintptr_t)edges_row->space);
    for (word = 0; word < 11; word++) {
        uint64_t *at = (uint64_t *)(void *)s + word, good = *at;
        *at = ~good;
        told += upfront_map_walk(edges_map, edges_size, out, 16, &count) == UPFRONT_CORRUPT;
        *at = good;
    }
    CHECK_EQ(told, 9); /* all but the site and the names */
    for (word = 0; word <= EDGES_SLOTS; word++) {
        upfront_linear *slot = upfront_row_slot(edges_row, word);
        slot->origin -= edges_size + edges_space;
        CHECK_EQ(upfront_map_walk(edges_map, edges_size, out, 16, &count), UPFRONT_CORRUPT);
        CHECK_EQ(count, 0);
        slot->origin += edges_size + edges_space;
    }
    edges_row->space = 0;
    CHECK_EQ(upfront_map_walk(edges_map, edges_size, out, 16, &count), UPFRONT_CORRUPT);
    edges_row->space = (uint64_t)((uintptr_t)s - (uintptr_t)edges_row);
    s->parts[2][1].low = 1;
    CHECK_EQ(upfront_map_walk(edges_map, edges_size, out, 16, &count), UPFRONT_CORRUPT);
    s->parts[2][1].low = 0;
    edges_close();
}

void test_stretch_edges(void) {
    static const uint64_t kinds[][2] = {{1, 1},    {3, 1},  {7, 8},
                                        {8, 8},    {40, 64}, {1000, 4},
                                        {1, UPFRONT_ALIGN_MAX}, {60000, 16}, {131000, 1}};
    uint64_t i;
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        edges_until_full(kinds[i][0], kinds[i][1]);
    for (i = 0; i < 40; i++)
        edges_mixed(i + 1, 10000 + 200 * i);
    edges_no_bytes();
    edges_far_until_full(1, 1, 1);
    edges_far_until_full(5, 20, 1);
    edges_far_until_full(24, 24, 8);
    edges_far_until_full(3000, 3000, 4096);
    edges_far_until_full(40000, 40000, UPFRONT_ALIGN_MAX);
    edges_sizes();
    edges_windows();
    edges_walk();
}

#else

void test_stretch_edges(void) {}

#endif
