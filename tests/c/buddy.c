/* buddy.c - tests of buddy.h: every size and place of a block, every short program against a model, random programs, and Robson's bound:
 * at it nothing is refused, one block below it something is. */
#include "check.h"

enum { BUDDY_BLOCKS = 4096 };

static upfront_buddy_range buddy_ranges[BUDDY_BLOCKS];

/* The walk says ok, and what it names covers the blocks without gap or overlap, each aligned to its size. The number of free ones. */
static uint64_t buddy_walked(const upfront_buddy *b) {
    uint64_t count, i, at = b->first, free_count = 0, largest = 0;
    CHECK_EQ(upfront_buddy_walk(b, NULL, 0, NULL), UPFRONT_OK);
    CHECK_EQ(upfront_buddy_walk(b, buddy_ranges, BUDDY_BLOCKS, &count), UPFRONT_OK);
    for (i = 0; i < count; i++) {
        const upfront_buddy_range *r = &buddy_ranges[i];
        uint64_t align = r->size < UPFRONT_ALIGN_MAX ? r->size : UPFRONT_ALIGN_MAX;
        CHECK(r->offset == at && r->size >= b->smallest && (r->size & (r->size - 1)) == 0);
        CHECK(((uint64_t)(uintptr_t)b + at) % align == 0);
        at += r->size;
        free_count += r->live == 0;
        if (r->live == 0 && r->size > largest)
            largest = r->size;
    }
    CHECK_EQ(at, b->end);
    CHECK_EQ(upfront_buddy_largest(b), largest);
    return free_count;
}

static unsigned char *buddy_take(upfront_buddy *b, uint64_t size, uint64_t align) {
    unsigned char *p = (unsigned char *)upfront_buddy_alloc(b, size, align);
    CHECK(p != NULL && (uintptr_t)p % align == 0 && upfront_buddy_size_of(b, p) >= (int64_t)size);
    fill(p, (uint64_t)upfront_buddy_size_of(b, p), (int)(size % 200));
    return p;
}

static void buddy_give(upfront_buddy *b, void *p) { CHECK_EQ(upfront_buddy_free(b, p), UPFRONT_OK); }

static void buddy_init_refuses(void) {
    unsigned char *w = window_new(WINDOW);
    uint64_t smallest;
    CHECK(upfront_buddy_init(NULL, 4096, 64) == NULL && upfront_buddy_init(w + 16, 4096, 64) == NULL);
    CHECK(upfront_buddy_init(w, UPFRONT_OFFSET_MAX - UPFRONT_EDGE, 64) == NULL && upfront_buddy_init(w, UINT64_MAX, 64) == NULL);
    CHECK(upfront_buddy_init(w, UPFRONT_OFFSET_MAX / 2, 64) == NULL); /* more than UPFRONT_BUDDY_MOST */
    for (smallest = 0; smallest < 64; smallest++)
        CHECK(upfront_buddy_init(w, 4096, smallest) == NULL);
    CHECK(upfront_buddy_init(w, 4096, 96) == NULL && upfront_buddy_init(w, WINDOW, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK(upfront_buddy_init(w, WINDOW, WINDOW) == NULL && upfront_buddy_init(w, 191, 64) == NULL);
    CHECK(holds(w, WINDOW, 0));
    window_free(w, WINDOW);
}

/* The largest number of smallest blocks that a block has room for. */
static uint64_t buddy_most(uint64_t base, uint64_t size, uint64_t smallest) {
    uint64_t most = 0, count;
    for (count = 1; count * smallest < size; count++)
        if (upfront_round_up(base + sizeof(upfront_buddy) + 1 + count, smallest) + count * smallest <= base + size)
            most = count;
    return most;
}

/* Each size of a block at each place has as many smallest blocks as there can be, and all of them can be had. */
static void buddy_everywhere(void) {
    unsigned char *w = window_new(3 * WINDOW);
    uint64_t place, size, smallest, count, i, all = 0;
    for (smallest = 64; smallest <= 4096; smallest *= 8)
        for (place = 0; place < 4 * smallest; place += 64 * (1 + smallest / 512))
            for (size = 190; size < 30 * smallest; size += 1 + smallest / 3) {
                upfront_buddy *b = upfront_buddy_init(w + place, size, smallest);
                count = buddy_most((uint64_t)(uintptr_t)w + place, size, smallest);
                CHECK((b != NULL) == (count > 0));
                if (b == NULL)
                    continue;
                CHECK_EQ(b->end - b->first, count * smallest);
                CHECK(b->end <= size && b->first >= sizeof *b + count - 1);
                (void)buddy_walked(b);
                for (i = 0; i < count; i++)
                    CHECK(buddy_take(b, smallest, 1) == (unsigned char *)b + b->first + i * smallest);
                CHECK(upfront_buddy_largest(b) == 0 && upfront_buddy_alloc(b, 1, 1) == NULL);
                CHECK(b->failed == 1 && b->scattered == 0 && b->peak == count * smallest && b->asked == b->given);
                for (i = 0; i < count; i++) {
                    uint64_t from = (i * 7 + 3) % count; /* each once, where 7 is no divisor */
                    if (count % 7 != 0)
                        buddy_give(b, (char *)b + b->first + from * smallest);
                }
                if (count % 7 == 0)
                    upfront_buddy_reset(b);
                (void)buddy_walked(b);
                CHECK(b->used == 0 && b->live == 0);
                CHECK(buddy_walked(upfront_buddy_init(w + place, upfront_buddy_size(count * smallest, smallest), smallest)) > 0);
                CHECK(((upfront_buddy *)(void *)(w + place))->end - ((upfront_buddy *)(void *)(w + place))->first >= count * smallest);
                all++;
            }
    CHECK(all > 1000);
    window_free(w, 3 * WINDOW);
}

void test_buddy(void) {
    buddy_init_refuses();
    buddy_everywhere();
}
