#include "mirror.h"

#ifdef UPFRONT_MIRROR

#if defined(UPFRONT_CHECKED) && (defined(__linux__) || defined(__APPLE__))
#include <sys/mman.h>
#include <unistd.h>
#define HAS_PAGES 1
#endif

/* Under AddressSanitizer dead bytes are poisoned and never read: a read would be reported as the
 * error, without the mirror's own report. */
#ifdef UPFRONT_CHECKED
enum { LOOKS = 1 };
static void fill_dead(uintptr_t p, uint64_t size) { memset((void *)p, UPFRONT_DEAD, (size_t)size); }
static void fill_fresh(uintptr_t p, uint64_t size) { memset((void *)p, UPFRONT_FRESH, (size_t)size); }
#else
enum { LOOKS = 0 };
static void fill_dead(uintptr_t p, uint64_t size) { UPFRONT_POISON((void *)p, size); }
static void fill_fresh(uintptr_t p, uint64_t size) { UPFRONT_UNPOISON((void *)p, size); }
#endif

__thread uint32_t upfront_site;

/* Sizes of redzones: before an object, and at most after it. Even an object of one byte has 63
 * bytes between itself and the next. */
enum { ZONE_BEFORE = 32, ZONE_BEHIND = 256 };

/* Canonical addresses in a page of notes. `touched` marks the pages with notes. `reach` is the last
 * object that reached into a page from an earlier one; it may have ended. */
enum { NOTES_AT_ONCE = 128 };

enum { NOTE_PAGE = 4096, PAGED_FROM = 128 };

/* Bits of a note's word, above the size. NODE: a word, then an object that starts at the next line.
 * PLAIN: the bytes stay at their canonical address. LAST: the object ended, and none ended later at
 * this address in the other window. PAGED: the position has the same offset in its page as the
 * canonical address, so that an arena on it aligns as in every build. Two bits are HOW it ended;
 * its TYPE is above. */
#define NOTE_SIZE (UPFRONT_OFFSET_MAX - 1)
#define NOTE_LIVE (UINT64_C(1) << 40)
#define NOTE_DIED (UINT64_C(1) << 41)
#define NOTE_NODE (UINT64_C(1) << 42)
#define NOTE_PLAIN (UINT64_C(1) << 43)
#define NOTE_LAST (UINT64_C(1) << 44)
#define NOTE_PAGED (UINT64_C(1) << 45)
#define NOTE_HOW (UINT64_C(1) << 46)
#define NOTE_HOWS (UINT64_C(3))
#define NOTE_TYPE (UINT64_C(1) << 48)

typedef struct note {
    uint64_t word;
    uint32_t made, ended;
} note;

/* The state of UPFRONT_EDGE bytes, which belong to one row. */
typedef struct edge {
    uint8_t window;  /* window of the last allocation */
    uint8_t used;    /* a bit for each window in use */
    uint8_t blocked; /* a bit for each window without access */
} edge;

typedef struct mirror {
    uintptr_t block, origin; /* the origin is aligned, at or below the block */
    uint64_t block_size;     /* 0: the entry is free */
    uint64_t size;           /* canonical addresses from the origin on */
    uintptr_t window[2];
    note *notes; /* two for each address, one a window */
    edge *edges;
    uint64_t *reach;
    uint8_t *touched;
    upfront_finder finder;
    uint32_t name;
} mirror;

static mirror mirrors[UPFRONT_MIRRORS];
static uint32_t mirrors_used; /* all entries from here on are free */

static const mirror *mirror_of(uintptr_t canonical, uint64_t *offset) {
    uint32_t i, n = __atomic_load_n(&mirrors_used, __ATOMIC_ACQUIRE);
    for (i = 0; i < n; i++) {
        uint64_t size = __atomic_load_n(&mirrors[i].block_size, __ATOMIC_ACQUIRE);
        *offset = (uint64_t)canonical - mirrors[i].origin;
        if ((uint64_t)canonical - mirrors[i].block < size)
            return &mirrors[i];
    }
    return NULL;
}

static const mirror *mirror_at(uintptr_t position, int *window) {
    uint32_t i, n = __atomic_load_n(&mirrors_used, __ATOMIC_ACQUIRE);
    for (i = 0; i < n; i++) {
        uint64_t known = __atomic_load_n(&mirrors[i].block_size, __ATOMIC_ACQUIRE);
        uint64_t offset = (uint64_t)position - mirrors[i].window[0], size = mirrors[i].size * UPFRONT_SPREAD;
        if (known != 0 && offset < 2 * size) {
            *window = offset >= size;
            return &mirrors[i];
        }
    }
    return NULL;
}

static note *note_of(const mirror *m, uint64_t at, int window) { return &m->notes[2 * at + (uint64_t)window]; }

static uint64_t size_of(const mirror *m, uint64_t at, int window) { return note_of(m, at, window)->word & NOTE_SIZE; }

static uintptr_t line_of(const mirror *m, uint64_t at, int window) {
    return m->window[window] + (uintptr_t)(UPFRONT_SPREAD * at);
}

/* Returns the position of the object at canonical offset `at`. */
static uintptr_t start_of(const mirror *m, uint64_t at, int window) {
    uint64_t word = note_of(m, at, window)->word;
    if (word & NOTE_PLAIN)
        return m->origin + (uintptr_t)at;
    if (word & NOTE_PAGED)
        return line_of(m, at, window) + (uintptr_t)(at % NOTE_PAGE);
    return line_of(m, at, window) + (word & NOTE_NODE ? UPFRONT_LINE - sizeof(uint64_t) : 0);
}

static uint64_t behind(uint64_t size) {
    uint64_t gap = (UPFRONT_SPREAD - 1) * size - ZONE_BEFORE, most = ZONE_BEHIND;
    return gap < most ? gap : most;
}

/* Returns the last canonical offset, of the `size` bytes from `at`, whose line holds bytes or
 * redzones of the object at `at`. */
static uint64_t last_line(uint64_t at, uint64_t size) {
    uint64_t lines = (NOTE_PAGE + size + behind(size)) / UPFRONT_SPREAD + 2;
    return at + (lines < size ? lines : size - 1);
}

static uintptr_t edge_size(void) { return (uintptr_t)(UPFRONT_SPREAD * UPFRONT_EDGE); }

/* Returns the nearest offset at or below `at` whose note in the window has the bit; m->size if
 * there is none. */
static uint64_t below(const mirror *m, uint64_t at, int window, uint64_t bit) {
    for (at = at < m->size ? at : m->size - 1; at != UINT64_MAX; at--) {
        if (!m->touched[at / NOTES_AT_ONCE])
            at -= at % NOTES_AT_ONCE;
        else if (note_of(m, at, window)->word & bit)
            return at;
    }
    return m->size;
}

/* Returns the nearest offset from `at` on whose note in the window has one of the bits; `end` if
 * there is none below it. */
static uint64_t above(const mirror *m, uint64_t at, uint64_t end, int window, uint64_t bits) {
    for (end = end < m->size ? end : m->size; at < end; at++) {
        if (!m->touched[at / NOTES_AT_ONCE])
            at |= NOTES_AT_ONCE - 1;
        else if (note_of(m, at, window)->word & bits)
            return at;
    }
    return end;
}

/* Returns the window of the live object that begins at `at`; -1: there is none. */
static int alive_at(const mirror *m, uint64_t at) {
    if (at >= m->size || !m->touched[at / NOTES_AT_ONCE])
        return -1;
    return note_of(m, at, 0)->word & NOTE_LIVE ? 0 : note_of(m, at, 1)->word & NOTE_LIVE ? 1 : -1;
}

/* Returns the offset of the live object, else the dead one, that contains the position or ends
 * there; m->size: none. */
static uint64_t place_of(const mirror *m, uintptr_t p, int window) {
    uint64_t line = (uint64_t)(p - m->window[window]) / UPFRONT_SPREAD, bit = NOTE_LIVE;
    for (; bit != 0; bit = bit == NOTE_LIVE ? NOTE_DIED : 0) {
        uint64_t at = below(m, line, window, bit);
        if (at != m->size && p - start_of(m, at, window) <= size_of(m, at, window))
            return at;
    }
    return m->size;
}

/* Returns the bytes of an edge that lose access. The last page keeps it: it has the redzone before
 * the next edge's first object. */
static uintptr_t closed_size(void) {
#ifdef HAS_PAGES
    return edge_size() - (uintptr_t)sysconf(_SC_PAGESIZE);
#else
    return 0;
#endif
}

static void set_access(const mirror *m, uint64_t index, int window, int access) {
#ifdef HAS_PAGES
    uintptr_t p = m->window[window] + (uintptr_t)index * edge_size();
    edge *e = &m->edges[index];
    if (mprotect((void *)p, closed_size(), access ? PROT_READ | PROT_WRITE : PROT_NONE) == 0)
        e->blocked = (uint8_t)(access ? e->blocked & ~(1 << window) : e->blocked | 1 << window);
#else
    (void)m, (void)index, (void)window, (void)access;
#endif
}

static void find(const mirror *m, uintptr_t p, int window, upfront_found *found) {
    uint64_t line = (uint64_t)(p - m->window[window]) / UPFRONT_SPREAD, at = below(m, line, window, NOTE_LIVE);
    const note *n;
    memset(found, 0, sizeof *found);
    found->what = UPFRONT_NO_OBJECT;
    if (at != m->size) {
        uint64_t size = size_of(m, at, window), start = p - start_of(m, at, window);
        found->what = start < size ? UPFRONT_LIVING : start < size + behind(size) ? UPFRONT_PAST : UPFRONT_NO_OBJECT;
    }
    if (found->what == UPFRONT_NO_OBJECT) {
        at = below(m, (uint64_t)(p - m->window[window] + ZONE_BEFORE) / UPFRONT_SPREAD, window, NOTE_LIVE);
        if (at != m->size && start_of(m, at, window) > p && start_of(m, at, window) - p <= ZONE_BEFORE)
            found->what = UPFRONT_BEFORE;
    }
    if (found->what == UPFRONT_NO_OBJECT && (at = place_of(m, p, window)) != m->size)
        found->what = UPFRONT_ENDED;
    found->address = p;
    found->name = m->name;
    found->block = (const void *)m->block;
    found->canonical = m->origin + (uintptr_t)line;
    if (found->what == UPFRONT_NO_OBJECT)
        return;
    n = note_of(m, at, window);
    found->how = (int)(n->word / NOTE_HOW & NOTE_HOWS);
    found->start = start_of(m, at, window);
    found->size = size_of(m, at, window);
    found->made = n->made;
    found->ended = n->ended;
    found->canonical = m->origin + (uintptr_t)at;
}

/* Returns the first position in [p, end) that isn't dead, or end. Bytes without access count as
 * dead: a write there would have faulted. */
static uintptr_t undead(const mirror *m, uintptr_t p, uintptr_t end, int window) {
    uintptr_t stop;
    for (; p < end; p = stop) {
        const unsigned char *bytes = (const unsigned char *)p;
        uintptr_t offset = p - m->window[window], in = offset % edge_size();
        int is_closed = m->edges[offset / edge_size()].blocked >> window & 1 && in < closed_size();
        stop = p + (is_closed ? closed_size() : edge_size()) - in;
        stop = stop < end ? stop : end;
        if (is_closed || (*bytes == UPFRONT_DEAD && memcmp(bytes, bytes + 1, stop - p - 1) == 0))
            continue;
        while (*bytes == UPFRONT_DEAD)
            bytes++;
        return (uintptr_t)bytes;
    }
    return end;
}

static void expect_dead(const mirror *m, uintptr_t p, uintptr_t end, int window) {
    upfront_found found;
    uintptr_t bad = LOOKS ? undead(m, p, end, window) : end;
    if (bad >= end || m->finder == NULL)
        return;
    find(m, bad, window, &found);
    m->finder(&found);
}

static void check_zones(const mirror *m, uint64_t at, int window) {
    uintptr_t start = start_of(m, at, window);
    uint64_t size = size_of(m, at, window);
    expect_dead(m, start - ZONE_BEFORE, start, window);
    expect_dead(m, start + (uintptr_t)size, start + (uintptr_t)(size + behind(size)), window);
}

/* Checks the dead bytes at which a new object is about to begin. */
static void check_dead(const mirror *m, uint64_t at, int window) {
    uint64_t size = size_of(m, at, window), next = above(m, at + 1, at + size / UPFRONT_SPREAD + 2, window, NOTE_LIVE);
    uintptr_t start = start_of(m, at, window), end = start + (uintptr_t)size, stop = line_of(m, next, window);
    if (note_of(m, at, window)->word & NOTE_DIED)
        expect_dead(m, start, end < stop ? end : stop, window);
}

/* Returns the window of the live object that begins at `start` and contains `at`; -1: none. */
static int holds(const mirror *m, uint64_t start, uint64_t at) {
    int window = alive_at(m, start);
    return window >= 0 && at >= start && at - start < size_of(m, start, window) ? window : -1;
}

/* Returns the offset of the live object that contains `at`; m->size: none. The object begins in the
 * page of notes of `at`, or reaches into that page. */
static uint64_t around(const mirror *m, uint64_t at, int *window) {
    uint64_t start = at;
    for (; m->touched[at / NOTES_AT_ONCE]; start--) {
        if ((*window = alive_at(m, start)) >= 0)
            return (*window = holds(m, start, at)) >= 0 ? start : m->size;
        if (start % NOTES_AT_ONCE == 0)
            break;
    }
    start = m->reach[at / NOTES_AT_ONCE];
    return start <= at && (*window = holds(m, start, at)) >= 0 ? start : m->size;
}

static void reach(const mirror *m, uint64_t at, uint64_t size) {
    uint64_t page = at / NOTES_AT_ONCE;
    while (++page <= (at + size - 1) / NOTES_AT_ONCE)
        m->reach[page] = at;
}

static void fill_zones(uintptr_t start, uint64_t size) {
    fill_dead(start - ZONE_BEFORE, ZONE_BEFORE);
    fill_dead(start + (uintptr_t)size, behind(size));
}

static void use(const mirror *m, uint64_t at, uint64_t size, int window) {
    uint64_t i;
    for (i = at / UPFRONT_EDGE; i <= last_line(at, size) / UPFRONT_EDGE; i++) {
        if (m->edges[i].blocked >> window & 1)
            set_access(m, i, window, 1);
        m->edges[i].used |= (uint8_t)(1 << window);
    }
}

/* Makes an object in the window that the last object at its address did not end in. A new address
 * takes the window of the edge's last allocation. */
static void *live(void *canonical, uint64_t size, uint64_t kind) {
    uint64_t at;
    const mirror *m = mirror_of((uintptr_t)canonical, &at);
    int window;
    note *n;
    uintptr_t start;
    if (m == NULL) {
        fill_fresh((uintptr_t)canonical, size);
        return canonical;
    }
    if (size == 0)
        return canonical;
    m->touched[at / NOTES_AT_ONCE] = 1;
    window = m->edges[at / UPFRONT_EDGE].window;
    if (note_of(m, at, window)->word & NOTE_LAST)
        window = !window;
    n = note_of(m, at, window);
    if (!(kind & NOTE_PLAIN)) {
        use(m, at, size, window);
        check_dead(m, at, window);
    }
    n->word = size | NOTE_LIVE | kind;
    n->made = upfront_site;
    n->ended = 0;
    reach(m, at, size);
    if (kind & NOTE_PLAIN)
        return canonical;
    m->edges[at / UPFRONT_EDGE].window = m->edges[(at + size - 1) / UPFRONT_EDGE].window = (uint8_t)window;
    start = start_of(m, at, window);
    fill_zones(start, size);
    fill_fresh(start, size);
    return (void *)start;
}

void *upfront_mark_live(void *canonical, uint64_t size) {
    return live(canonical, size, (uintptr_t)canonical % UPFRONT_LINE == 0 && size >= PAGED_FROM ? NOTE_PAGED : 0);
}

void *upfront_mark_room(void *canonical, uint64_t size) { return live(canonical, size, 0); }

void *upfront_mark_node(void *canonical, uint64_t size) { return live(canonical, size, NOTE_NODE); }

void upfront_mark_block(void *canonical, uint64_t size) { (void)live(canonical, size, NOTE_PLAIN); }

static void kill(const mirror *m, uint64_t at, int window, int how) {
    note *n = note_of(m, at, window), *other = note_of(m, at, !window);
    if (n->word & NOTE_PLAIN) { /* the objects in it ended before */
        n->word = 0;
        return;
    }
    check_zones(m, at, window);
    fill_dead(start_of(m, at, window), n->word & NOTE_SIZE);
    n->word &= ~NOTE_LIVE;
    n->word |= NOTE_DIED | NOTE_LAST | (uint64_t)how * NOTE_HOW;
    n->ended = upfront_site;
    other->word &= ~NOTE_LAST;
}

void upfront_mark_ended(void *canonical, uint64_t size, int how) {
    uint64_t at, end;
    const mirror *m = mirror_of((uintptr_t)canonical, &at);
    if (m == NULL) {
        fill_dead((uintptr_t)canonical, size);
        return;
    }
    for (end = at + size; at < end;) {
        int window = alive_at(m, at);
        if (window >= 0) {
            uint64_t step = size_of(m, at, window);
            kill(m, at, window, how);
            at += step;
        } else {
            at = m->touched[at / NOTES_AT_ONCE] ? at + 1 : (at | (NOTES_AT_ONCE - 1)) + 1;
        }
    }
}

/* Returns the note of the object that contains `from`; NULL if none does. *m is NULL outside of
 * mirrors. */
static note *note_around(const void *from, const mirror **m, uint64_t *at, int *window) {
    *m = mirror_of((uintptr_t)from, at);
    if (*m == NULL)
        return NULL;
    *at = around(*m, *at, window);
    return *at == (*m)->size ? NULL : note_of(*m, *at, *window);
}

void *upfront_mark_more(void *from, void *end, uint64_t size) {
    const mirror *m;
    int window;
    uint64_t at, had;
    uintptr_t start;
    note *n = note_around(from, &m, &at, &window);
    if (n == NULL || from == end || n->word & NOTE_PLAIN)
        return upfront_mark_live(end, size);
    had = n->word & NOTE_SIZE;
    start = start_of(m, at, window);
    check_zones(m, at, window);
    use(m, at, had + size, window);
    n->word += size;
    reach(m, at, had + size);
    fill_fresh(start + (uintptr_t)had, size);
    fill_dead(start + (uintptr_t)(had + size), behind(had + size));
    return (void *)(start + (uintptr_t)had);
}

void upfront_mark_less(void *from, void *end, uint64_t size) {
    const mirror *m;
    int window;
    uint64_t at, left;
    note *n = note_around(from, &m, &at, &window);
    if (m == NULL)
        fill_dead((uintptr_t)end - (uintptr_t)size, size);
    if (n == NULL)
        return;
    check_zones(m, at, window);
    left = (n->word & NOTE_SIZE) - size;
    fill_dead(start_of(m, at, window) + (uintptr_t)left, size);
    n->word -= size;
    if (left == 0)
        n->word &= ~NOTE_LIVE;
}

void *upfront_position(const void *canonical) {
    const mirror *m;
    uint64_t at;
    int window;
    if (note_around(canonical, &m, &at, &window) == NULL)
        return (void *)(uintptr_t)canonical;
    return (void *)(start_of(m, at, window) + ((uintptr_t)canonical - m->origin - (uintptr_t)at));
}

void upfront_mark_type(const void *p, uint32_t type) {
    const mirror *m;
    uint64_t at;
    int window;
    note *n = note_around(p, &m, &at, &window);
    if (m == NULL && (m = mirror_at((uintptr_t)p, &window)) != NULL &&
        (at = place_of(m, (uintptr_t)p, window)) != m->size)
        n = note_of(m, at, window);
    if (n != NULL && n->word & NOTE_LIVE)
        n->word = n->word % NOTE_TYPE | type * NOTE_TYPE;
}

void upfront_mark_apart(void *canonical, uint64_t size) {
    uint64_t at;
    if (mirror_of((uintptr_t)canonical, &at) != NULL)
        upfront_mark_ended(canonical, size, UPFRONT_CLOSED);
}

uint64_t upfront_place(const void *p, const void *from) {
    uint64_t offset, at;
    int window;
    const mirror *m = mirror_of((uintptr_t)from, &offset);
    if (m == NULL || mirror_at((uintptr_t)p, &window) != m)
        return upfront_distance(p, from);
    at = place_of(m, (uintptr_t)p, window);
    if (at == m->size)
        return upfront_distance(p, from);
    return at + (uint64_t)((uintptr_t)p - start_of(m, at, window)) - offset;
}

/* Returns the number of canonical addresses that a mirror covers, from its origin. */
static uint64_t round_size(const void *block, uint64_t size) {
    return upfront_round_up((uint64_t)((uintptr_t)block % UPFRONT_ALIGN_MAX) + size, UPFRONT_ALIGN_MAX);
}

uint64_t upfront_mirror_size(const void *block, uint64_t size) {
    return size >= UPFRONT_OFFSET_MAX ? 0 : round_size(block, size) * (2 * UPFRONT_SPREAD + 2 * sizeof(note) + 1);
}

int upfront_mirror_open(void *block, uint64_t size, void *memory, upfront_finder finder, uint32_t name) {
    uint32_t i;
    mirror *m;
    uint64_t all = round_size(block, size);
    if (block == NULL || size == 0 || memory == NULL || upfront_mirror_size(block, size) == 0)
        return 0;
    for (i = 0; i < mirrors_used && mirrors[i].block_size != 0; i++) {
    }
    if (i == UPFRONT_MIRRORS)
        return 0;
    m = &mirrors[i];
    m->block = (uintptr_t)block;
    m->origin = m->block - m->block % UPFRONT_ALIGN_MAX;
    m->size = all;
    m->window[0] = (uintptr_t)memory;
    m->window[1] = m->window[0] + (uintptr_t)(all * UPFRONT_SPREAD);
    m->notes = (note *)(m->window[1] + (uintptr_t)(all * UPFRONT_SPREAD));
    m->reach = (uint64_t *)(void *)(m->notes + 2 * all);
    m->touched = (uint8_t *)(m->reach + all / NOTES_AT_ONCE);
    m->edges = (edge *)(void *)(m->touched + all / NOTES_AT_ONCE);
    m->finder = finder;
    m->name = name;
    __atomic_store_n(&m->block_size, size, __ATOMIC_RELEASE);
    if (i == mirrors_used)
        __atomic_store_n(&mirrors_used, i + 1, __ATOMIC_RELEASE);
    return 1;
}

void upfront_mirror_close(void *block) {
    uint64_t at, i;
    int window;
    mirror *m = (mirror *)mirror_of((uintptr_t)block, &at);
    if (m == NULL)
        return;
    for (i = 0; i < m->size / UPFRONT_EDGE; i++)
        for (window = 0; window < 2; window++)
            /* bytes that were never poisoned have no shadow memory; don't touch it */
            if (m->edges[i].used >> window & 1)
                UPFRONT_UNPOISON((void *)(line_of(m, i * UPFRONT_EDGE, window) - ZONE_BEFORE),
                                 edge_size() + ZONE_BEFORE);
    __atomic_store_n(&m->block_size, 0, __ATOMIC_RELEASE);
}

/* Copies without AddressSanitizer's checks: parts of a block that is itself an arena may be
 * poisoned. */
UPFRONT_UNCHECKED static void copy(uintptr_t to, uintptr_t from, uint64_t size) {
    volatile unsigned char *t = (volatile unsigned char *)to;
    const volatile unsigned char *f = (const volatile unsigned char *)from;
    while (size-- != 0)
        *t++ = *f++;
}

static void exchange(void *from, uint64_t size, int gathers) {
    uint64_t at, end;
    const mirror *m = mirror_of((uintptr_t)from, &at);
    int window;
    if (m == NULL)
        return;
    for (window = 0; window < 2; window++) {
        uint64_t i = at;
        for (end = at + size; (i = above(m, i, end, window, NOTE_LIVE)) < end; i++) {
            uint64_t n = note_of(m, i, window)->word & NOTE_SIZE;
            uintptr_t canonical = m->origin + (uintptr_t)i, position = start_of(m, i, window);
            n = n < end - i ? n : end - i;
            if (note_of(m, i, window)->word & NOTE_PLAIN)
                continue;
            if (gathers) {
                copy(canonical, position, n);
                continue;
            }
            /* an arena in the object may have poisoned bytes since; they may be alive again */
            UPFRONT_UNPOISON((void *)position, n);
            copy(position, canonical, n);
        }
    }
}

void upfront_mirror_gather(void *from, uint64_t size) { exchange(from, size, 1); }

void upfront_mirror_scatter(void *from, uint64_t size) { exchange(from, size, 0); }

int upfront_mirror_find(uintptr_t address, upfront_found *found) {
    int window;
    const mirror *m = mirror_at(address, &window);
    if (!LOOKS || m == NULL || found == NULL)
        return 0;
    find(m, address, window, found);
    return 1;
}

static upfront_live_object object_of(const mirror *m, uint64_t at, int window) {
    const note *n = note_of(m, at, window);
    upfront_live_object t;
    t.offset = at;
    t.size = n->word & NOTE_SIZE;
    t.made = n->made;
    t.type = (uint32_t)(n->word / NOTE_TYPE);
    t.kind = n->word & NOTE_NODE ? UPFRONT_LIVE_NODE : n->word & NOTE_PLAIN ? UPFRONT_LIVE_PARTS : 0;
    return t;
}

uint64_t upfront_mirror_objects(const void *from, uint64_t size, upfront_live_object *out, uint64_t room) {
    uint64_t first, at, end, count = 0;
    const mirror *m = mirror_of((uintptr_t)from, &first);
    int window;
    if (m == NULL)
        return UINT64_MAX;
    for (at = first, end = first + size; at < end; at++) {
        if (!m->touched[at / NOTES_AT_ONCE]) {
            at |= NOTES_AT_ONCE - 1;
            continue;
        }
        window = alive_at(m, at);
        if (window >= 0 && count++ < room) {
            out[count - 1] = object_of(m, at, window);
            out[count - 1].offset -= first;
        }
    }
    return count;
}

/* Returns the first position in [p, end) that is neither dead nor in a live object, or end. A paged
 * object may be above objects with higher canonical addresses, so a live object that wasn't visited
 * may be there. */
static uintptr_t wrong(const mirror *m, uintptr_t p, uintptr_t end, int window) {
    while ((p = undead(m, p, end, window)) < end) {
        uint64_t at = below(m, (uint64_t)(p - m->window[window]) / UPFRONT_SPREAD, window, NOTE_LIVE), size;
        if (at == m->size)
            return p;
        size = size_of(m, at, window);
        if (p - start_of(m, at, window) >= size)
            return p;
        p = start_of(m, at, window) + (uintptr_t)size;
    }
    return end;
}

/* Checks the objects that begin in [at, end) in one window. Redzones of live objects must be dead,
 * and so must ended objects, except where a live object is now. Overlapping ended objects are
 * checked once. */
static int check_window(const mirror *m, uint64_t at, uint64_t end, int window, upfront_found *found) {
    uintptr_t from = 0, to = 0, bad;
    for (; (at = above(m, at, end, window, NOTE_LIVE | NOTE_DIED)) < end; at++) {
        uint64_t word = note_of(m, at, window)->word, size = word & NOTE_SIZE;
        uintptr_t start = start_of(m, at, window), stop = start + (uintptr_t)size;
        if (word & NOTE_PLAIN)
            continue;
        if (word & NOTE_LIVE) {
            uintptr_t last = stop + (uintptr_t)behind(size);
            if ((bad = wrong(m, start - ZONE_BEFORE, start, window)) < start ||
                (bad = wrong(m, stop, last, window)) < last)
                break;
            continue;
        }
        if (start < from || start > to)
            from = to = start;
        if ((bad = wrong(m, to, stop, window)) < stop)
            break;
        to = to < stop ? stop : to;
    }
    if (at < end && found != NULL)
        find(m, bad, window, found);
    return at >= end;
}

int upfront_mirror_check(const void *from, uint64_t size, upfront_found *found) {
    uint64_t at;
    const mirror *m = mirror_of((uintptr_t)from, &at);
    return !LOOKS || m == NULL ||
           (check_window(m, at, at + size, 0, found) && check_window(m, at, at + size, 1, found));
}

void upfront_mark_over(void *from, uint64_t size) {
    upfront_found found;
    uint64_t at, i;
    const mirror *m = mirror_of((uintptr_t)from, &at);
    int window;
    if (!LOOKS || m == NULL)
        return;
    if (!upfront_mirror_check(from, size, &found) && m->finder != NULL)
        m->finder(&found);
    for (i = at / UPFRONT_EDGE; i * UPFRONT_EDGE < at + size; i++)
        for (window = 0; window < 2; window++)
            if ((m->edges[i].used & ~m->edges[i].blocked) >> window & 1)
                set_access(m, i, window, 0);
}

#endif
