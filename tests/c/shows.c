/* shows.c - the reports of each build for a misuse in C. The rows are those of a table of
 * arena_c/README.md, which tests/readme_test.go compares. A write that AddressSanitizer would
 * report isn't done, because it ends the process. */
#include "check.h"

enum { SHOWN_ON_HEAP = 1, SHOWN_ON_BUDDY = 2, SHOWN_ON_LINEAR = 4 }; /* the arena of a misuse */

typedef const char *(*shown_misuse)(unsigned char *w, int on);

static const char shown_nothing[] = "nothing", shown_report[] = "a report";

/* Writes a byte, unless AddressSanitizer would report it. Reports whether it would. */
static int shown_write(unsigned char *p) {
    if (UPFRONT_SANITIZED && is_marked(p, 1))
        return 1;
    *p ^= 0x10;
    return 0;
}

static const char *shown_read(const unsigned char *p) {
    if (UPFRONT_SANITIZED && is_marked(p, 1))
        return shown_report;
    return *p == UPFRONT_FRESH ? "0xCB" : *p == UPFRONT_DEAD ? "0xDB" : shown_nothing;
}

static const char *shown_code(int code) {
    if (code == UPFRONT_CORRUPT)
        return "`UPFRONT_CORRUPT`";
    return code == UPFRONT_DOUBLE ? "`UPFRONT_DOUBLE`" : shown_nothing;
}

/* A block of 40 bytes, and one after it. */
typedef struct shown_block {
    upfront_heap *heap;
    upfront_buddy *buddy;
    unsigned char *p;
} shown_block;

static shown_block shown_block_of(unsigned char *w, int on) {
    shown_block b = {NULL, NULL, NULL};
    void *next;
    if (on == SHOWN_ON_BUDDY) {
        b.buddy = upfront_buddy_init(w, WINDOW, 64);
        b.p = (unsigned char *)upfront_buddy_alloc(b.buddy, 40, 16);
        next = upfront_buddy_alloc(b.buddy, 40, 16);
    } else {
        b.heap = upfront_heap_init(w, WINDOW, 0);
        b.p = (unsigned char *)upfront_heap_alloc(b.heap, 40, 16);
        next = upfront_heap_alloc(b.heap, 40, 16);
    }
    CHECK(b.p != NULL && next != NULL);
    return b;
}

static int shown_free(shown_block *b) {
    return b->heap != NULL ? upfront_heap_free(b->heap, b->p) : upfront_buddy_free(b->buddy, b->p);
}

static int shown_walk(shown_block *b) {
    if (b->heap != NULL)
        return upfront_heap_walk(b->heap, NULL, 0, NULL);
    return upfront_buddy_walk(b->buddy, NULL, 0, NULL);
}

static const char *shown_past_a_block(unsigned char *w, int on) {
    shown_block b = shown_block_of(w, on);
    return shown_write(b.p + 40) ? shown_report : shown_code(shown_free(&b));
}

static const char *shown_after_a_free(unsigned char *w, int on) {
    shown_block b = shown_block_of(w, on);
    CHECK_EQ(shown_free(&b), UPFRONT_OK);
    return shown_write(b.p + 20) ? shown_report : shown_code(shown_walk(&b));
}

static const char *shown_twice(unsigned char *w, int on) {
    shown_block b = shown_block_of(w, on);
    CHECK_EQ(shown_free(&b), UPFRONT_OK);
    return shown_code(shown_free(&b));
}

/* Misuse of arenas without redzones of their own. */
static const char *shown_past_the_newest(unsigned char *w, int on) {
    upfront_linear *l = upfront_linear_init(w, WINDOW);
    uint64_t mark = l->cursor;
    unsigned char *p = (unsigned char *)upfront_linear_alloc(l, 40, 8);
    (void)on;
    return shown_write(p + 40) ? shown_report : shown_code(upfront_linear_rewind(l, l->gen, mark));
}

static const char *shown_into_the_next(unsigned char *w, int on) {
    upfront_linear *l = upfront_linear_init(w, WINDOW);
    uint64_t mark = l->cursor;
    unsigned char *p = (unsigned char *)upfront_linear_alloc(l, 40, 8);
    (void)on;
    CHECK(upfront_linear_alloc(l, 40, 8) == p + 40);
    return shown_write(p + 40) ? shown_report : shown_code(upfront_linear_rewind(l, l->gen, mark));
}

static const char *shown_read_before_write(unsigned char *w, int on) {
    (void)on;
    return shown_read((unsigned char *)upfront_linear_alloc(upfront_linear_init(w, WINDOW), 40, 8));
}

static const char *shown_read_of_the_dead(unsigned char *w, int on) {
    upfront_linear *l = upfront_linear_init(w, WINDOW);
    uint64_t mark = l->cursor;
    unsigned char *p = (unsigned char *)upfront_linear_alloc(l, 40, 8);
    (void)on;
    fill(p, 40, 7);
    CHECK_EQ(upfront_linear_rewind(l, l->gen, mark), UPFRONT_OK);
    return shown_read(p);
}

#define SHOWN_ON_BOTH (SHOWN_ON_HEAP | SHOWN_ON_BUDDY)

/* The rows of the page, in its order: the misuse, the report of each build, and the program. */
static const struct shown {
    const char *misuse, *release, *checked, *asan;
    shown_misuse commit;
    int on;
} shown[] = {
    {"write a byte past a heap's block", "nothing", "`UPFRONT_CORRUPT`", "a report",
     shown_past_a_block, SHOWN_ON_HEAP},
    {"write past the requested size of a buddy's block", "nothing", "`UPFRONT_CORRUPT`", "nothing",
     shown_past_a_block, SHOWN_ON_BUDDY},
    {"write to a freed block", "nothing", "`UPFRONT_CORRUPT`", "a report",
     shown_after_a_free, SHOWN_ON_BOTH},
    {"free a block twice", "`UPFRONT_DOUBLE`", "`UPFRONT_DOUBLE`", "`UPFRONT_DOUBLE`",
     shown_twice, SHOWN_ON_BOTH},
    {"write past the newest object of any other arena", "nothing", "nothing", "a report",
     shown_past_the_newest, SHOWN_ON_LINEAR},
    {"write past an older object of such an arena, into the next", "nothing", "nothing", "nothing",
     shown_into_the_next, SHOWN_ON_LINEAR},
    {"read rewound, closed, put or freed memory", "nothing", "0xDB", "a report",
     shown_read_of_the_dead, SHOWN_ON_LINEAR},
    {"read fresh memory", "nothing", "0xCB", "nothing",
     shown_read_before_write, SHOWN_ON_LINEAR},
};

void test_shows(void) {
    unsigned char *w = window_new(WINDOW);
    size_t i;
    int on;
    for (i = 0; i < sizeof shown / sizeof *shown; i++)
        for (on = SHOWN_ON_HEAP; on <= SHOWN_ON_LINEAR; on *= 2) {
            const char *want = UPFRONT_FILLS ? shown[i].checked : shown[i].release, *got;
            if (UPFRONT_SANITIZED)
                want = shown[i].asan;
            if ((shown[i].on & on) == 0)
                continue;
            UPFRONT_UNPOISON(w, WINDOW);
            memset(w, 0, WINDOW);
            got = shown[i].commit(w, on);
            if (strcmp(got, want) != 0)
                fprintf(stderr, "%s, on %d: %s, want %s\n", shown[i].misuse, on, got, want);
            CHECK(strcmp(got, want) == 0);
        }
    UPFRONT_UNPOISON(w, WINDOW);
    window_free(w, WINDOW);
}
