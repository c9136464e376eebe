/* buddy.c - tests of buddy.h: every size and place of a block, every short program against a model,
 * random programs, and Robson's bound, which is exact. */
#include "check.h"

enum { BUDDY_BLOCKS = 4096 };

static upfront_block buddy_ranges[BUDDY_BLOCKS];

/* Checks the walk, and that its list covers the blocks without gap or overlap. Returns the number
 * of free blocks. */
static uint64_t buddy_walked(const upfront_buddy *b) {
    uint64_t count, i, at = b->first, free_count = 0, largest = 0;
    CHECK_EQ(upfront_buddy_walk(b, NULL, 0, NULL), UPFRONT_OK);
    CHECK_EQ(upfront_buddy_walk(b, buddy_ranges, BUDDY_BLOCKS, &count), UPFRONT_OK);
    for (i = 0; i < count; i++) {
        const upfront_block *r = &buddy_ranges[i];
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

static void buddy_give(upfront_buddy *b, void *p) {
    CHECK_EQ(upfront_buddy_free(b, p), UPFRONT_OK);
}

static void buddy_init_refuses(void) {
    unsigned char *w = window_new(WINDOW);
    uint64_t smallest;
    CHECK(buddy_of_plain(NULL, 4096, 64) == NULL &&
          buddy_of_plain(w + 16, 4096, 64) == NULL);
    CHECK(buddy_of_plain(w, UPFRONT_OFFSET_MAX - UPFRONT_EDGE, 64) == NULL &&
          buddy_of_plain(w, UINT64_MAX, 64) == NULL);
    /* more than UPFRONT_BUDDY_MOST */
    CHECK(buddy_of_plain(w, UPFRONT_OFFSET_MAX / 2, 64) == NULL);
    for (smallest = 0; smallest < 64; smallest++)
        CHECK(buddy_of_plain(w, 4096, smallest) == NULL);
    CHECK(buddy_of_plain(w, 4096, 96) == NULL &&
          buddy_of_plain(w, WINDOW, 2 * UPFRONT_ALIGN_MAX) == NULL);
    CHECK(buddy_of_plain(w, WINDOW, WINDOW) == NULL && buddy_of_plain(w, 255, 64) == NULL);
    CHECK(holds(w, WINDOW, 0));
    window_free(w, WINDOW);
}

/* The most smallest blocks that fit in a block. */
static uint64_t buddy_most(uint64_t base, uint64_t size, uint64_t smallest) {
    uint64_t most = 0, count;
    for (count = 1; count * smallest < size; count++)
        if (upfront_round_up(base + sizeof(upfront_buddy) + 1 + count, smallest) +
              count * smallest <= base + size)
            most = count;
    return most;
}

/* Each size at each place has as many smallest blocks as possible, and all can be allocated. */
static void buddy_everywhere(void) {
    unsigned char *w = window_new(3 * WINDOW);
    uint64_t place, size, smallest, count, i, all = 0;
    for (smallest = 64; smallest <= 4096; smallest *= 8)
        for (place = 0; place < 4 * smallest; place += 64 * (1 + smallest / 512))
            for (size = 200; size < 30 * smallest; size += 1 + smallest / 3) {
                upfront_buddy *b = buddy_of_plain(w + place, size, smallest);
                count = buddy_most((uint64_t)(uintptr_t)w + place, size, smallest);
                CHECK((b != NULL) == (count > 0));
                if (b == NULL)
                    continue;
                CHECK_EQ(b->end - b->first, count * smallest);
                CHECK(b->end <= size && b->first >= sizeof *b + count - 1);
                (void)buddy_walked(b);
                for (i = 0; i < count; i++)
                    CHECK_EQ(buddy_take(b, smallest, 1) - w, place + b->first + i * smallest);
                CHECK(upfront_buddy_largest(b) == 0 && upfront_buddy_alloc(b, 1, 1) == NULL);
                CHECK(b->failed == 1 && b->scattered == 0 && b->peak == count * smallest &&
                      b->asked == b->given);
                for (i = 0; i < count; i++) {
                    uint64_t from = (i * 7 + 3) % count; /* each once: 7 doesn't divide count */
                    if (count % 7 != 0)
                        buddy_give(b, (char *)b + b->first + from * smallest);
                }
                if (count % 7 == 0)
                    upfront_buddy_reset(b);
                (void)buddy_walked(b);
                CHECK(b->used == 0 && b->live == 0);
                b = buddy_of_plain(w + place, upfront_buddy_size(count * smallest, smallest),
                                       smallest);
                CHECK(buddy_walked(b) > 0 && b->end - b->first >= count * smallest);
                all++;
            }
    CHECK(all > 1000);
    window_free(w, 3 * WINDOW);
}


/* A buddy of `count` smallest blocks of 64 bytes, the first `from` of them after a multiple of
 * UPFRONT_ALIGN_MAX. */
static upfront_buddy *buddy_of(unsigned char *w, uint64_t count, uint64_t from) {
    uint64_t front = upfront_round_up(sizeof(upfront_buddy) + 1 + count, 64);
    uint64_t past = UPFRONT_ALIGN_MAX + 64 * from - front;
    upfront_buddy *b = buddy_of_plain(w + past, front + 64 * count, 64);
    CHECK(b != NULL && b->end - b->first == 64 * count && b->low == from);
    return b;
}

/* Header and bytes are the whole state of a buddy. Tests save and restore it to try several
 * programs from one state. */
enum { BUDDY_STATE = 256 };

typedef struct buddy_state {
    unsigned char bytes[BUDDY_STATE];
} buddy_state;

static buddy_state buddy_save(const upfront_buddy *b) {
    buddy_state s;
    CHECK(b->first <= BUDDY_STATE);
    memcpy(s.bytes, b, (size_t)b->first);
    return s;
}

static void buddy_restore(upfront_buddy *b, const buddy_state *s) {
    memcpy(b, s->bytes, (size_t)b->first);
    UPFRONT_UNPOISON(b, b->end);
}

/* The model: the owner of each smallest block. */
enum { MODEL_COUNT = 11, MODEL_FROM = 5, MODEL_MOST = 4 };

typedef struct model {
    int owner[MODEL_COUNT]; /* 0: free */
    struct {
        uint64_t from, size; /* in smallest blocks; 0: none */
    } live[MODEL_MOST + 1];  /* the first is unused */
} model;

static int model_fits(const model *m, uint64_t from, uint64_t size, int owner) {
    uint64_t i;
    for (i = 0; i < size; i++)
        if (from + i >= MODEL_COUNT || (m->owner[from + i] != 0 && m->owner[from + i] != owner))
            return 0;
    return (from + MODEL_FROM) % size == 0;
}

static void model_own(model *m, int owner, uint64_t from, uint64_t size) {
    uint64_t i;
    for (i = 0; i < MODEL_COUNT; i++)
        if (m->owner[i] == owner)
            m->owner[i] = 0;
    for (i = from; i < from + size; i++)
        m->owner[i] = owner;
    m->live[owner].from = from;
    m->live[owner].size = size;
}

/* Returns the lowest free place, or MODEL_COUNT. */
static uint64_t model_place(const model *m, uint64_t size) {
    uint64_t from = 0;
    while (from < MODEL_COUNT && !model_fits(m, from, size, -1))
        from++;
    return from;
}

static char *model_address(upfront_buddy *b, uint64_t from) {
    return (char *)b + b->first + 64 * from;
}

/* Resizes one of the blocks that may be live; size 0 frees it. */
static void model_step(upfront_buddy *b, model *m, int i, uint64_t size) {
    uint64_t had = m->live[i].size, at = m->live[i].from, to;
    char *p = had == 0 ? NULL : model_address(b, at);
    if (size == 0) {
        CHECK_EQ(upfront_buddy_free(b, p), UPFRONT_OK);
        CHECK(p == NULL || upfront_buddy_free(b, p) == UPFRONT_DOUBLE);
        model_own(m, i, 0, 0);
        return;
    }
    to = model_place(m, size);
    if (had != 0 && (size <= had || model_fits(m, at, size, i)))
        to = at;
    if (p != NULL)
        fill(p, 64 * had, i);
    p = (char *)upfront_buddy_realloc(b, p, size * 64 - 63);
    CHECK(p == (to == MODEL_COUNT ? NULL : model_address(b, to)));
    CHECK(p == NULL || had == 0 || holds(p, 64 * (size < had ? size : had), i));
    if (p != NULL) {
        CHECK_EQ(upfront_buddy_size_of(b, p), 64 * size);
        model_own(m, i, to, size);
    }
}

static void model_agrees(const upfront_buddy *b, const model *m) {
    uint64_t count = 0, i, used = 0, live = 0;
    (void)buddy_walked(b);
    CHECK_EQ(upfront_buddy_walk(b, buddy_ranges, BUDDY_BLOCKS, &count), UPFRONT_OK);
    for (i = 0; i < count; i++) {
        const upfront_block *r = &buddy_ranges[i];
        uint64_t from = (r->offset - b->first) / 64, size = r->size / 64;
        int owner = m->owner[from];
        CHECK(r->live == (owner != 0) && (owner == 0 ||
              (m->live[owner].from == from && m->live[owner].size == size)));
        /* a free block has merged as far as it can */
        CHECK(owner != 0 || (model_fits(m, from, size, -1) &&
                             !model_fits(m, from - (from + MODEL_FROM) % (2 * size), 2 * size, -1)));
        used += owner != 0 ? r->size : 0;
        live += owner != 0;
    }
    CHECK(b->used == used && b->live == live);
}

/* Runs every program of `steps` steps. */
static void buddy_programs(upfront_buddy *b, const model *before, int steps) {
    buddy_state state = buddy_save(b);
    uint64_t size;
    int i;
    for (i = 1; i <= MODEL_MOST && steps > 0; i++) {
        for (size = 0; size <= 8; size = size == 0 ? 1 : 2 * size) {
            model m = *before;
            if (size == 0 && m.live[i].size == 0)
                continue;
            model_step(b, &m, i, size);
            model_agrees(b, &m);
            buddy_programs(b, &m, steps - 1);
            buddy_restore(b, &state);
        }
        if (before->live[i].size == 0)
            break; /* the next free entry would do the same */
    }
}

static void buddy_every_program(void) {
    unsigned char *w = window_new(UPFRONT_ALIGN_MAX + WINDOW);
    model m;
    memset(&m, 0, sizeof m);
    buddy_programs(buddy_of(w, MODEL_COUNT, MODEL_FROM), &m, 5);
    window_free(w, UPFRONT_ALIGN_MAX + WINDOW);
}

static void buddy_resizes(void) {
    unsigned char *w = window_new(UPFRONT_ALIGN_MAX + WINDOW);
    upfront_buddy *b = buddy_of(w, 24, 0);
    unsigned char *p = buddy_take(b, 0, 1), *q = buddy_take(b, 512, 1), *r;
    CHECK(q == p + 512 && upfront_buddy_size_of(b, p) == 64 && upfront_buddy_largest(b) == 512);
    CHECK(upfront_buddy_realloc(b, p, 512) == p && upfront_buddy_realloc(b, p, 300) == p &&
          b->used == 1024);
    CHECK(upfront_buddy_realloc(b, p, 0) == p && b->used == 576);
    r = buddy_take(b, 64, 1);
    CHECK(r == p + 64 && is_marked(r, 0) && is_marked(r + 64, 1));
    fill(p, 64, 7);
    p = (unsigned char *)upfront_buddy_realloc(b, p, 65); /* the other half is live */
    CHECK(p == r + 64 && holds(p, 64, 7) && upfront_buddy_size_of(b, p) == 128);
    /* r is the second half: no other half follows it */
    CHECK(upfront_buddy_realloc(b, r, 128) == p + 128);
    buddy_give(b, p + 128);
    CHECK(upfront_buddy_realloc(b, q, 1024) == NULL && b->failed == 1 && b->scattered == 0 &&
          b->refused == 1024);
    CHECK(upfront_buddy_realloc(b, q, 512) == q && b->live == 2);
    CHECK(upfront_buddy_alloc(b, 1024, 1) == NULL && b->failed == 2 && b->scattered == 0);
    buddy_give(b, q);
    /* 512 free after it, 512 here and more before */
    CHECK(upfront_buddy_alloc(b, 1024, 1) == NULL && b->failed == 3 && b->scattered == 1);
    CHECK(upfront_buddy_alloc(b, 64, 3) == NULL && b->failed == 3);
    /* an align above the size */
    CHECK(buddy_take(b, 64, 512) == q && upfront_buddy_size_of(b, q) == 512);
    CHECK(upfront_buddy_hook(b, q, 512, 0) == NULL);
    p = (unsigned char *)upfront_buddy_hook(b, p, 128, 40);
    CHECK_EQ(upfront_buddy_size_of(b, p), 64);
    upfront_buddy_reset(b);
    CHECK(b->given == 0 && b->asked == 0 && b->failed == 3 && b->peak == 1024);
    CHECK(upfront_buddy_size_of(b, p) == UPFRONT_DOUBLE &&
          upfront_buddy_walk(b, NULL, 0, NULL) == UPFRONT_OK);
    UPFRONT_UNPOISON(w, UPFRONT_ALIGN_MAX + WINDOW);
    window_free(w, UPFRONT_ALIGN_MAX + WINDOW);
}

static void buddy_keeps_a_reserve(void) {
    unsigned char *w = window_new(UPFRONT_ALIGN_MAX + WINDOW), *p;
    upfront_buddy *b = buddy_of(w, 32, 0);
    upfront_buddy_reserve(b, 1024);
    p = buddy_take(b, 512, 1);
    CHECK(upfront_buddy_alloc(b, 1024, 1) == NULL && b->scattered == 0 &&
          upfront_buddy_largest(b) == 1024);
    CHECK(upfront_buddy_realloc(b, p, 2048) == NULL && upfront_buddy_realloc(b, p, 1024) == p &&
          b->failed == 2);
    CHECK(upfront_buddy_alloc(b, 1, 1) == NULL && b->failed == 3);
    upfront_buddy_reserve(b, 0);
    CHECK_EQ(upfront_buddy_phase(b), 1024);
    upfront_buddy_reset(b);
    CHECK(b->used == 0 && b->phase == 1024 && b->peak == 1024);
    p = buddy_take(b, 1024, 1);
    buddy_give(b, p);
    CHECK_EQ(upfront_buddy_phase(b), 1024); /* the phase began with this use */
    buddy_give(b, buddy_take(b, 2048, 1));
    buddy_give(b, buddy_take(b, 100, 1));
    CHECK(upfront_buddy_phase(b) == 2048 && upfront_buddy_phase(b) == 0 && upfront_buddy_peak(b) == 2048);
    CHECK(b->given == 1024 + 2048 + 128 && b->asked == 1024 + 2048 + 100);
    upfront_buddy_reserve(b, UINT64_MAX);
    CHECK(upfront_buddy_alloc(b, 1, 1) == NULL &&
          upfront_buddy_walk(b, NULL, 0, NULL) == UPFRONT_OK);
    UPFRONT_UNPOISON(w, UPFRONT_ALIGN_MAX + WINDOW);
    window_free(w, UPFRONT_ALIGN_MAX + WINDOW);
}

/* The checked build refuses a call while another is running. */
static void buddy_raced(void) {
    unsigned char *w = window_new(WINDOW);
    upfront_buddy *b = buddy_of_plain(w, 8192, 64);
    unsigned char *p = buddy_take(b, 100, 1);
#ifdef UPFRONT_CHECKED
    b->busy = 1;
    CHECK(upfront_buddy_alloc(b, 1, 1) == NULL && upfront_buddy_realloc(b, p, 1) == NULL &&
          upfront_buddy_free(b, p) == UPFRONT_RACED);
    CHECK(upfront_buddy_size_of(b, p) == UPFRONT_RACED && b->raced == 4 && b->failed == 0 &&
          b->live == 1);
    upfront_buddy_reset(b);
    CHECK(upfront_buddy_walk(b, NULL, 0, NULL) == UPFRONT_RACED && b->raced == 6 && b->live == 1);
    b->busy = 0;
#endif
    buddy_give(b, p);
    CHECK_EQ(b->busy, 0);
    window_free(w, WINDOW);
}

/* Programs at two addresses that are equal modulo UPFRONT_ALIGN_MAX have the same offsets, even
 * with blocks larger than that. */
static void buddy_random(uint64_t seed, uint64_t smallest, uint64_t size, uint64_t steps) {
    enum { LIVE = 128 };
    unsigned char *w[2];
    upfront_buddy *b[2];
    unsigned char *live[2][LIVE];
    uint64_t i, had[LIVE] = {0};
    int j;
    for (j = 0; j < 2; j++) {
        w[j] = window_new(size + 4096);
        b[j] = buddy_of_plain(w[j] + 1984, size, smallest);
        memset(live[j], 0, sizeof live[j]);
    }
    for (i = 0; i < steps; i++) {
        uint64_t at = next_random(&seed) % LIVE, most = smallest << (next_random(&seed) % 10);
        uint64_t want = next_random(&seed) % most;
        int frees = next_random(&seed) % 3 == 0;
        for (j = 0; j < 2; j++) {
            unsigned char *p = live[j][at];
            CHECK(p == NULL || holds(p, had[at], (int)at));
            if (frees) {
                buddy_give(b[j], p);
                p = NULL;
            } else {
                p = (unsigned char *)upfront_buddy_realloc(b[j], p, want);
                p = p != NULL ? p : live[j][at];
            }
            live[j][at] = p;
            if (p != NULL && upfront_buddy_size_of(b[j], p) >= (int64_t)want)
                fill(p, want, (int)at);
        }
        CHECK((live[0][at] == NULL) == (live[1][at] == NULL));
        if (live[0][at] != NULL) {
            CHECK(upfront_distance(live[0][at], b[0]) == upfront_distance(live[1][at], b[1]));
            had[at] = upfront_buddy_size_of(b[0], live[0][at]) >= (int64_t)want ? want : had[at];
        } else {
            had[at] = 0;
        }
        (void)buddy_walked(b[j = (int)(i % 2)]);
    }
    CHECK(b[0]->failed > 0);
    for (j = 0; j < 2; j++) {
        for (i = 0; i < LIVE; i++)
            buddy_give(b[j], live[j][i]);
        CHECK(b[j]->used == 0 && upfront_buddy_walk(b[j], NULL, 0, NULL) == UPFRONT_OK);
        window_free(w[j], size + 4096);
    }
}

/* A buddy with redzones, blocks at rest and more blocks than notes counts a block without a note
 * like all others. */
static void buddy_pads(uint64_t seed, uint64_t size, uint64_t steps, uint64_t each) {
    enum { LIVE = 1 << 17 };
    static unsigned char *live[LIVE];
    unsigned char *w = window_new(size);
    upfront_buddy *b = upfront_buddy_init(w, size, 64);
    uint64_t i, of = size / 64 < LIVE ? 100 : LIVE;
    for (i = 0; i < steps; i++) {
        uint64_t at = next_random(&seed) % of,
            want = next_random(&seed) % (UINT64_C(64) << next_random(&seed) % (of == LIVE ? 2 : 7));
        unsigned char *p;
        if (next_random(&seed) % 4 == 0) {
            buddy_give(b, live[at]);
            live[at] = NULL;
        } else if ((p = (unsigned char *)upfront_buddy_realloc(b, live[at], want)) != NULL) {
            live[at] = p;
            fill(p, want, (int)at);
        }
        if (i % 512 == 0) /* the reserve stays free */
            upfront_buddy_reserve(b, b->used < size / 2 && i % 1024 == 0 ? size / 16 : 0);
        CHECK(b->used <= b->peak && b->used + b->padded + b->rest.bytes <= b->end - b->first);
        CHECK(i % each != 0 || upfront_buddy_walk(b, NULL, 0, NULL) == UPFRONT_OK);
    }
    for (i = 0; i < of; i++) {
        buddy_give(b, live[i]);
        live[i] = NULL;
    }
    CHECK(b->used == 0 && b->live == 0 && b->padded == 0 && b->damaged == 0);
    CHECK_EQ(upfront_buddy_walk(b, NULL, 0, NULL), UPFRONT_OK);
    upfront_buddy_plain(b);
    CHECK(buddy_walked(b) > 0 && b->rest.blocks == 0);
    window_free(w, size);
}

/* Returns the size in bytes with which a buddy never refuses a program of this kind: the program
 * has at most `live` live bytes, in blocks of `smallest` to `largest` bytes (sizes of blocks, which
 * may be above the asked sizes), and only calls alloc and free. The first block must be at a
 * multiple of `largest`; at any other address add `largest`. The bound is exact: with one smallest
 * block less some program is refused. pre: block sizes are powers of two, and `largest` is at least
 * `smallest`.
 *
 * Proof. Count in smallest blocks. A block of order 0 is placed where all bytes below it are live,
 * so it ends at or below L0 = live. A block of order i is placed in the lowest free window of 2^i,
 * so each window below holds a live block. A window that begins below L0 holds at least one
 * smallest block. From L0 to L1 each window holds a block of order 1 or larger, and so on; above
 * L(i-1) it is full. The blocks in these windows take at most live - 2^i in
 * all, which bounds the number of windows and gives Li. The program that frees all but the smallest
 * block in each window, and then allocates all it may, reaches this bound. It is Robson's (1971):
 * with any allocator, some program of this kind needs live * (1 + log2(n) / 2) - n + 1. */
static uint64_t robson_bound(uint64_t live, uint64_t largest, uint64_t smallest) {
    uint64_t end[40], orders, i, j; /* Li, in smallest blocks */
    live /= smallest;
    orders = (uint64_t)(__builtin_ctzll(largest) - __builtin_ctzll(smallest));
    end[0] = live;
    for (i = 1; i <= orders && (UINT64_C(1) << i) <= live; i++) {
        uint64_t left = live - (UINT64_C(1) << i), windows = 0;
        for (j = 0; j < i; j++) {
            uint64_t below = (end[j] + (UINT64_C(1) << i) - 1) >> i, can = left >> j;
            if (can < below - windows) {
                windows += can;
                break;
            }
            left -= (below - windows) << j;
            windows = below;
        }
        if (j == i)
            windows += left >> i;
        end[i] = (windows + 1) << i;
        if (end[i] < end[i - 1])
            end[i] = end[i - 1];
    }
    return end[i - 1] * smallest;
}

/* Visits all states that a program can reach with at most `live` smallest blocks, in blocks of at
 * most 2^orders. Reports whether a request is refused in one of them. */
enum { ROBSON_STATES = 8192, ROBSON_KEYS = 4 * ROBSON_STATES };

static buddy_state *robson_states;
static uint64_t robson_keys[ROBSON_KEYS];
static uint64_t robson_count;

/* Three bits for each smallest block: where a live one begins, its order + 1. */
static uint64_t robson_key(const upfront_buddy *b) {
    uint64_t count, i, key = UINT64_C(1) << 63;
    CHECK_EQ(upfront_buddy_walk(b, buddy_ranges, BUDDY_BLOCKS, &count), UPFRONT_OK);
    for (i = 0; i < count; i++)
        if (buddy_ranges[i].live)
            key |= (uint64_t)__builtin_ctzll(buddy_ranges[i].size / 32)
                   << (buddy_ranges[i].offset - b->first) / 64 * 3;
    return key;
}

static void robson_add(const upfront_buddy *b) {
    uint64_t key = robson_key(b), at = key * UINT64_C(0x9E3779B97F4A7C15) % ROBSON_KEYS;
    while (robson_keys[at] != 0 && robson_keys[at] != key)
        at = (at + 1) % ROBSON_KEYS;
    if (robson_keys[at] == key)
        return;
    robson_keys[at] = key;
    CHECK(robson_count < ROBSON_STATES);
    robson_states[robson_count++] = buddy_save(b);
}

static int robson_refused(unsigned char *w, uint64_t live, uint64_t orders, uint64_t count) {
    upfront_buddy *b = buddy_of(w, count, 0);
    uint64_t i, j;
    CHECK(count <= 21);
    memset(robson_keys, 0, sizeof robson_keys);
    robson_count = 0;
    robson_add(b);
    for (i = 0; i < robson_count; i++) {
        buddy_state state = robson_states[i];
        buddy_restore(b, &state);
        for (j = 0; j <= orders && b->used / 64 + (UINT64_C(1) << j) <= live; j++) {
            if (upfront_buddy_alloc(b, UINT64_C(64) << j, 1) == NULL)
                return 1;
            robson_add(b);
            buddy_restore(b, &state);
        }
        for (j = 0; j < count; j++)
            if (upfront_buddy_free(b, (char *)b + b->first + 64 * j) == UPFRONT_OK) {
                robson_add(b);
                buddy_restore(b, &state);
            }
    }
    return 0;
}

static void buddy_is_exact(void) {
    unsigned char *w = window_new(UPFRONT_ALIGN_MAX + WINDOW);
    uint64_t live, orders, states = 0;
    robson_states = (buddy_state *)(void *)window_new(ROBSON_STATES * sizeof *robson_states);
    for (orders = 0; orders <= 3; orders++)
        for (live = 1; live <= (orders < 2 ? 8 : 9); live++) {
            uint64_t bound = robson_bound(64 * live, UINT64_C(64) << orders, 64) / 64;
            CHECK(!robson_refused(w, live, orders, bound));
            states += robson_count;
            CHECK(bound == 1 || robson_refused(w, live, orders, bound - 1));
        }
    CHECK(states > 10000);
    window_free((unsigned char *)robson_states, ROBSON_STATES * sizeof *robson_states);
    window_free(w, UPFRONT_ALIGN_MAX + WINDOW);
}

/* Robson's program: it fills all with smallest blocks. For each order it frees all but the smallest
 * block in each window, so that no window is free, then allocates all it may in blocks of that
 * order. Reports whether a request was refused. */
static int robson_program(upfront_buddy *b, uint64_t live, uint64_t orders) {
    uint64_t i, j, count;
    for (i = 0; i <= orders; i++) {
        uint64_t size = UINT64_C(64) << i, window = UINT64_MAX, kept = 0;
        CHECK_EQ(upfront_buddy_walk(b, buddy_ranges, BUDDY_BLOCKS, &count), UPFRONT_OK);
        for (j = 0; j < count; j++) {
            const upfront_block *r = &buddy_ranges[j];
            uint64_t in = (r->offset - b->first) / size;
            if (r->live == 0)
                continue;
            if (in != window) {
                window = in;
                kept = j;
                continue;
            }
            if (r->size < buddy_ranges[kept].size) {
                uint64_t other = kept;
                kept = j;
                buddy_give(b, (char *)b + buddy_ranges[other].offset);
            } else {
                buddy_give(b, (char *)b + r->offset);
            }
        }
        while (b->used + size <= live)
            if (upfront_buddy_alloc(b, size, 1) == NULL)
                return 1;
    }
    return 0;
}

static void buddy_meets_robson(void) {
    enum { LIVE = 64 * 512 };
    unsigned char *w = window_new(2 * UPFRONT_ALIGN_MAX);
    uint64_t orders;
    for (orders = 0; orders <= 9; orders++) {
        uint64_t largest = UINT64_C(64) << orders;
        uint64_t bound = robson_bound(LIVE, largest, 64);
        CHECK_EQ(bound, LIVE + LIVE / 2 * (orders < 9 ? orders : 8));
        CHECK(!robson_program(buddy_of(w, bound / 64, 0), LIVE, orders));
        CHECK(robson_program(buddy_of(w, bound / 64 - 1, 0), LIVE, orders));
        /* `largest` more are enough at any address */
        CHECK(!robson_program(buddy_of(w, (bound + largest) / 64, 3), LIVE, orders));
    }
    window_free(w, 2 * UPFRONT_ALIGN_MAX);
}

void test_buddy(void) {
    buddy_init_refuses();
    buddy_everywhere();
    buddy_every_program();
    buddy_is_exact();
    buddy_meets_robson();
    buddy_resizes();
    buddy_keeps_a_reserve();
    buddy_raced();
    buddy_random(88172645463325252u, 64, 100000, 5000);
    buddy_random(1234567u, 65536, 20 << 20, 200);
    buddy_pads(88172645463325252u, 65536, 5000, 1);
    buddy_pads(1234567u, 16 << 20, 1 << 19, 1 << 17);
}
