/* security.c - programs like those of public security suites, over a heap and a buddy: writes past
 * a block, before it and after its free, and wrong frees. A checked build reports nearly all, with
 * the call that made the block. The same programs without the wrong step are the controls; no build
 * reports these. */
#include "check.h"

typedef struct suite {
    const char *name;
    void *arena;
    void *(*alloc)(void *arena, uint64_t size);
    void *(*resize)(void *arena, void *p, uint64_t size);
    int (*give)(void *arena, void *p);
    uint64_t (*told)(void *arena); /* after a full check */
    uint64_t *where;
} suite;

static void *suite_heap_get(void *a, uint64_t size) { return upfront_heap_alloc((upfront_heap *)a, size, 16); }
static void *suite_heap_reget(void *a, void *p, uint64_t size) { return upfront_heap_realloc((upfront_heap *)a, p,
    size); }
static int suite_heap_give(void *a, void *p) { return upfront_heap_free((upfront_heap *)a, p); }

static uint64_t suite_heap_told(void *a) {
    upfront_heap *h = (upfront_heap *)a;
    upfront_heap_flush(h);
    return h->damaged + (upfront_heap_walk(h, NULL, 0, NULL) != UPFRONT_OK);
}

static void *suite_buddy_get(void *a, uint64_t size) { return upfront_buddy_alloc((upfront_buddy *)a, size, 1); }
static void *suite_buddy_reget(void *a, void *p, uint64_t size) { return upfront_buddy_realloc((upfront_buddy *)a, p,
    size); }
static int suite_buddy_give(void *a, void *p) { return upfront_buddy_free((upfront_buddy *)a, p); }

static uint64_t suite_buddy_told(void *a) {
    upfront_buddy *b = (upfront_buddy *)a;
    return b->damaged + (upfront_buddy_walk(b, NULL, 0, NULL) != UPFRONT_OK);
}

enum { SUITE_SIZE = 1 << 18 };

static suite suite_of(unsigned char *w, int of_buddy, uint64_t parked) {
    suite s = {"heap", NULL, suite_heap_get, suite_heap_reget, suite_heap_give, suite_heap_told, NULL};
    if (of_buddy) {
        suite b = {"buddy", upfront_buddy_init(w, SUITE_SIZE, 64), suite_buddy_get, suite_buddy_reget,
            suite_buddy_give, suite_buddy_told, NULL};
        b.where = &((upfront_buddy *)b.arena)->where;
        return b;
    }
    s.arena = upfront_heap_init(w, SUITE_SIZE, parked);
    s.where = &((upfront_heap *)s.arena)->where;
    return s;
}

/* A write of `size` bytes at p + from. */
typedef struct suite_write {
    const char *name;
    int ends;         /* from counts from the block's end */
    int64_t from;
    uint64_t size;    /* UINT64_MAX: as large as the block */
    int value, moved; /* moved: the block was resized before */
    int freed;        /* 1: after the free; 2: after new blocks, too */
} suite_write;

static const suite_write overflows[] = {
    {"one byte past the end", 1, 0, 1, 'A', 0, 0},
    {"the zero of a string that fills its block", 1, 0, 1, 0, 0, 0},
    {"a word past the end", 1, 0, 8, 'A', 0, 0},
    {"an array's loop with <=", 1, 0, 4, 7, 0, 0},
    {"a copy that is too long by 16", 1, -16, 32, 'C', 0, 0},
    {"a copy that is too long by 50", 1, 0, 50, 'C', 0, 0},
    {"a copy twice as long", 1, 0, UINT64_MAX, 'C', 0, 0},
    {"a wide zero past the end", 1, 0, 4, 0, 0, 0},
    {"a string of 100 too many", 1, 0, 100, 's', 0, 0},
    {"an index of one too many", 1, 8, 4, 'I', 0, 0},
    {"one byte before the start", 0, -1, 1, 'B', 0, 0},
    {"a word before the start", 0, -8, 8, 'B', 0, 0},
    {"two words before the start", 0, -16, 16, 'B', 0, 0},
    {"a copy that begins 8 bytes too early", 0, -8, 9, 'B', 0, 0},
    {"one past the end of a grown block", 1, 0, 1, 'A', 1, 0},
    {"a copy past the end of a grown block", 1, 0, 24, 'A', 1, 0},
    {"one past the end of a shrunk block", 1, 0, 1, 'A', 2, 0},
    {"a copy to the old size of a shrunk block", 1, 0, 20, 'A', 2, 0},
};

static const suite_write afters[] = {
    {"the first byte after a free", 0, 0, 1, 'F', 0, 1},
    {"the second word after a free", 0, 8, 8, 'F', 0, 1},
    {"the last bytes after a free", 1, -1, 1, 'F', 0, 1},
    {"all of it after a free", 0, 0, UINT64_MAX, 'F', 0, 1},
    {"the old block after a realloc moved it", 0, 0, 8, 'F', 3, 1},
    {"a word after a free, when others were made", 0, 0, 8, 'F', 0, 2},
};

/* Runs a write between live neighbours, and reports whether damage was found. */
static int suite_run(suite *s, const suite_write *w, uint64_t size, int wrong) {
    unsigned char *before = (unsigned char *)s->alloc(s->arena, 40), *p, *old, *behind, *others[4] = {NULL};
    uint64_t bytes = w->size == UINT64_MAX ? size : w->size, i;
    int told = 0;
    p = old = (unsigned char *)s->alloc(s->arena, size);
    behind = (unsigned char *)s->alloc(s->arena, size);
    fill(before, 40, 1);
    fill(p, size, 2);
    fill(behind, size, 3);
    if (w->moved == 1)
        p = (unsigned char *)s->resize(s->arena, p, size += 30);
    if (w->moved == 2)
        p = (unsigned char *)s->resize(s->arena, p, size = size * 3 / 4);
    if (w->moved == 3)
        p = (unsigned char *)s->resize(s->arena, p, 2 * size + 100);
    else
        old = p;
    CHECK(before != NULL && behind != NULL && p != NULL && (w->moved != 3 || p != old));
    if (w->freed && w->moved != 3) {
        told |= s->give(s->arena, p) != UPFRONT_OK;
        p = NULL;
    }
    for (i = 0; w->freed == 2 && i < 4; i++)
        others[i] = (unsigned char *)s->alloc(s->arena, size);
    if (wrong) {
        unsigned char *at = old + (w->ends ? size : 0) + w->from;
        UPFRONT_UNPOISON(at, bytes);
        fill(at, bytes, w->value);
    }
    told |= p != NULL && s->give(s->arena, p) != UPFRONT_OK;
    told |= s->give(s->arena, behind) != UPFRONT_OK;
    told |= s->give(s->arena, before) != UPFRONT_OK;
    for (i = 0; i < 4; i++)
        told |= others[i] != NULL && s->give(s->arena, others[i]) != UPFRONT_OK;
    told |= s->told(s->arena) != 0;
    return told;
}

static uint64_t suite_all(unsigned char *w, int of_buddy, uint64_t parked, const suite_write *list, uint64_t count,
    uint64_t size, int wrong) {
    uint64_t i, told = 0;
    for (i = 0; i < count; i++) {
        suite s = suite_of(w, of_buddy, parked);
        int is = suite_run(&s, &list[i], size, wrong);
        if (wrong && !is && getenv("VERBOSE") != NULL)
            printf("%s of %llu bytes: not found: %s\n", s.name, (unsigned long long)size, list[i].name);
        told += (uint64_t)is;
        UPFRONT_UNPOISON(w, SUITE_SIZE);
    }
    return told;
}

/* Every build reports a wrong free, and changes nothing. */
static void suite_frees(unsigned char *w, int of_buddy, uint64_t parked, uint64_t size) {
    suite s = suite_of(w, of_buddy, parked);
    char *p = (char *)s.alloc(s.arena, size), *q = (char *)s.alloc(s.arena, size);
    uint64_t i;
    CHECK(s.give(s.arena, p + (size > 16 ? 16 : 8)) < 0 && s.give(s.arena, &s) < 0 && s.give(s.arena, w) < 0);
    CHECK_EQ(s.give(s.arena, p), UPFRONT_OK);
    CHECK(s.give(s.arena, p) < 0 && s.resize(s.arena, p, size) == NULL);
    for (i = 0; i < 3; i++)
        CHECK(s.give(s.arena, p) == UPFRONT_DOUBLE);
    CHECK_EQ(s.give(s.arena, q), UPFRONT_OK);
    CHECK(s.give(s.arena, q) < 0 && s.give(s.arena, p) < 0);
    CHECK(s.told(s.arena) == 0);
    UPFRONT_UNPOISON(w, SUITE_SIZE);
}

#ifdef UPFRONT_CHECKED
/* A report has the place; the note of the place has the calls that made and freed the block. */
static void suite_notes(unsigned char *w, int of_buddy) {
    suite s = suite_of(w, of_buddy, 16);
    upfront_note note;
    char *p;
    UPFRONT_SITE(77);
    p = (char *)s.alloc(s.arena, 300);
    CHECK(upfront_note_of(p, &note) && note.live && note.made == 77);
    UPFRONT_SITE(78);
    CHECK_EQ(s.give(s.arena, p), UPFRONT_OK);
    UPFRONT_SITE(0);
    CHECK(upfront_note_of(p, &note) && !note.live);
    p[100] = 7;
    if (of_buddy)
        upfront_buddy_reset((upfront_buddy *)s.arena);
    else
        upfront_heap_reset((upfront_heap *)s.arena);
    CHECK(s.told(s.arena) == 1 && *s.where == (uint64_t)((unsigned char *)p + 100 - w));
    CHECK(upfront_note_near(w + *s.where, &note) && note.address == (uintptr_t)p && note.asked == 300);
    CHECK(note.made == 77 && note.ended == 78 && !note.live);
}

/* Blocks at rest and redzones give way before a refusal. */
static void suite_gives_way(unsigned char *w) {
    upfront_heap *h = upfront_heap_init(w, 8192, 0);
    upfront_buddy *b;
    uint64_t most = upfront_heap_largest(h), i, n = 0;
    void *p[64];
    for (i = 0; i < 6; i++)
        CHECK_EQ(upfront_heap_free(h, upfront_heap_alloc(h, 50, 16)), UPFRONT_OK);
    CHECK(h->rest.blocks > 1 && h->used == 0 && upfront_heap_largest(h) == most);
    CHECK_EQ(upfront_heap_walk(h, NULL, 0, NULL), UPFRONT_OK);
    CHECK(upfront_heap_alloc(h, most, 16) != NULL && h->failed == 0 && h->rest.blocks == 0);
    b = upfront_buddy_init(w, 8192, 64);
    for (i = 0; i < 6; i++)
        CHECK_EQ(upfront_buddy_free(b, upfront_buddy_alloc(b, 64, 1)), UPFRONT_OK);
    while (n < 64 && (p[n] = upfront_buddy_alloc(b, 128, 1)) != NULL)
        n++;
    CHECK(n == 64 || b->used + 128 > (b->end - b->first) / 128 * 128 - 128);
    CHECK(b->peak == b->used && b->padded == 0 && b->rest.blocks == 0 && b->damaged == 0);
}
#endif

void test_security(void) {
    static const uint64_t sizes[] = {24, 33, 50, 64, 100, 128, 250, 256, 1000, 1024, 3000, 4096, 5000};
    const uint64_t over = sizeof overflows / sizeof *overflows, after = sizeof afters / sizeof *afters;
    unsigned char *w = window_new(SUITE_SIZE);
    uint64_t i, kind;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (kind = 0; kind < 3; kind++) {
            int of_buddy = kind == 2;
            uint64_t parked = kind * 16;
            CHECK_EQ(suite_all(w, of_buddy, parked, overflows, over, sizes[i], 0), 0);
            CHECK_EQ(suite_all(w, of_buddy, parked, afters, after, sizes[i], 0), 0);
            suite_frees(w, of_buddy, parked, sizes[i]);
#ifdef UPFRONT_CHECKED
            CHECK(suite_all(w, of_buddy, parked, overflows, over, sizes[i], 1) >= over - 1);
            CHECK_EQ(suite_all(w, of_buddy, parked, afters, after, sizes[i], 1), after);
            suite_notes(w, of_buddy);
#endif
        }
#ifdef UPFRONT_CHECKED
    suite_gives_way(w);
#endif
    window_free(w, SUITE_SIZE);
}
