#include "mirror.h"

#ifdef UPFRONT_MIRROR

/* Under AddressSanitizer what has no access would be met before it can say what it knows. */
#if defined(UPFRONT_CHECKED) && (defined(__linux__) || defined(__APPLE__))
#include <sys/mman.h>
#include <unistd.h>
#define HAS_PAGES 1
#endif

__thread uint32_t upfront_site;

/* Redzones: so many bytes before, and at most so many behind. Even what has one byte has 63 between it and the next. */
enum { ZONE_BEFORE = 32, ZONE_BEHIND = 256 };

/* A page of notes, about so many places: `touched` says which pages have any. */
enum { NOTES_AT_ONCE = 128 };

enum { PAGE = 4096, PAGED_FROM = 128 };

/* In a note's word, above the size. NODE: a word and what it is about, which lies at the next line. PLAIN: it stays at its canonical
 * place. LAST: it died, and nothing in the other window did so later. PAGED: it lies in its page where it is accounted in its, so that an
 * arena on it pads as everywhere. */
#define SIZE (UPFRONT_OFFSET_MAX - 1)
#define LIVE (UINT64_C(1) << 40)
#define DIED (UINT64_C(1) << 41)
#define NODE (UINT64_C(1) << 42)
#define PLAIN (UINT64_C(1) << 43)
#define LAST (UINT64_C(1) << 44)
#define PAGED (UINT64_C(1) << 45)
#define HOW (UINT64_C(1) << 46)

typedef struct note {
    uint64_t word;
    uint32_t made, ended;
} note;

/* What is known of UPFRONT_EDGE bytes: rows don't share them. */
typedef struct edge {
    uint8_t window;  /* in which something was given last */
    uint8_t used;    /* a bit for each window */
    uint8_t blocked; /* and whether it has no access */
} edge;

typedef struct mirror {
    uintptr_t origin;
    uint64_t size; /* 0: nobody's */
    uintptr_t window[2];
    note *notes; /* for each place one a window */
    edge *edges;
    uint8_t *touched;
    const void *block;
    upfront_finder finder;
    uint32_t name;
} mirror;

static mirror mirrors[UPFRONT_MIRRORS];
static uint32_t mirrors_used; /* all behind are nobody's */

static const mirror *mirror_of(uintptr_t canonical, uint64_t *offset) {
    uint32_t i, n = __atomic_load_n(&mirrors_used, __ATOMIC_ACQUIRE);
    for (i = 0; i < n; i++) {
        *offset = (uint64_t)canonical - mirrors[i].origin;
        if (*offset < __atomic_load_n(&mirrors[i].size, __ATOMIC_ACQUIRE))
            return &mirrors[i];
    }
    return NULL;
}

static const mirror *mirror_at(uintptr_t position, int *window) {
    uint32_t i, n = __atomic_load_n(&mirrors_used, __ATOMIC_ACQUIRE);
    for (i = 0; i < n; i++) {
        uint64_t offset = (uint64_t)position - mirrors[i].window[0];
        uint64_t size = __atomic_load_n(&mirrors[i].size, __ATOMIC_ACQUIRE) * UPFRONT_SPREAD;
        if (offset < 2 * size) {
            *window = offset >= size;
            return &mirrors[i];
        }
    }
    return NULL;
}

static note *note_of(const mirror *m, uint64_t at, int window) { return &m->notes[2 * at + (uint64_t)window]; }

static uintptr_t line_of(const mirror *m, uint64_t at, int window) {
    return m->window[window] + (uintptr_t)(UPFRONT_SPREAD * at);
}

/* Where what begins at `at` has its first byte. */
static uintptr_t start_of(const mirror *m, uint64_t at, int window) {
    uint64_t word = note_of(m, at, window)->word;
    if (word & PLAIN)
        return m->origin + (uintptr_t)at;
    if (word & PAGED)
        return line_of(m, at, window) + (uintptr_t)(at % PAGE);
    return line_of(m, at, window) + (word & NODE ? UPFRONT_LINE - sizeof(uint64_t) : 0);
}

static uint64_t behind(uint64_t size) {
    uint64_t gap = (UPFRONT_SPREAD - 1) * size - ZONE_BEFORE, most = ZONE_BEHIND;
    return gap < most ? gap : most;
}

/* The nearest place at or below `at` whose note in the window has the bit; m->size when there is none. */
static uint64_t below(const mirror *m, uint64_t at, int window, uint64_t bit) {
    for (at = at < m->size ? at : m->size - 1; at != UINT64_MAX; at--) {
        if (!m->touched[at / NOTES_AT_ONCE])
            at -= at % NOTES_AT_ONCE;
        else if (note_of(m, at, window)->word & bit)
            return at;
    }
    return m->size;
}

/* And the nearest at or above, below `end`; or `end`. */
static uint64_t above(const mirror *m, uint64_t at, uint64_t end, int window, uint64_t bits) {
    for (end = end < m->size ? end : m->size; at < end; at++) {
        if (!m->touched[at / NOTES_AT_ONCE])
            at |= NOTES_AT_ONCE - 1;
        else if (note_of(m, at, window)->word & bits)
            return at;
    }
    return end;
}

/* The window in which something alive begins there; -1: none. */
static int alive_at(const mirror *m, uint64_t at) {
    if (at >= m->size || !m->touched[at / NOTES_AT_ONCE])
        return -1;
    return note_of(m, at, 0)->word & LIVE ? 0 : note_of(m, at, 1)->word & LIVE ? 1 : -1;
}

/* The place where what is alive and contains `at` begins; m->size: nothing is. */
static uint64_t around(const mirror *m, uint64_t at, int *window) {
    uint64_t first = below(m, at, 0, LIVE), second = below(m, at, 1, LIVE);
    *window = first == m->size || (second != m->size && second > first);
    first = *window ? second : first;
    return first != m->size && at - first < (note_of(m, first, *window)->word & SIZE) ? first : m->size;
}

/* The place whose living, or else dead, thing has the position, or ends there; m->size: none. */
static uint64_t place_of(const mirror *m, uintptr_t p, int window) {
    uint64_t line = (uint64_t)(p - m->window[window]) / UPFRONT_SPREAD, bit = LIVE;
    for (; bit != 0; bit = bit == LIVE ? DIED : 0) {
        uint64_t at = below(m, line, window, bit);
        if (at != m->size && p - start_of(m, at, window) <= (note_of(m, at, window)->word & SIZE))
            return at;
    }
    return m->size;
}

#ifdef UPFRONT_CHECKED

/* The last of `size` bytes' places whose lines what begins at `at` has bytes or redzones in. */
static uint64_t last_line(uint64_t at, uint64_t size) {
    uint64_t lines = (PAGE + size + behind(size)) / UPFRONT_SPREAD + 2;
    return at + (lines < size ? lines : size - 1);
}

static uintptr_t edge_size(void) { return (uintptr_t)(UPFRONT_SPREAD * UPFRONT_EDGE); }

/* The last page of an edge keeps its access: the redzone of what begins behind it lies there. */
static void set_access(const mirror *m, uint64_t index, int window, int access) {
#ifdef HAS_PAGES
    uintptr_t p = m->window[window] + (uintptr_t)index * edge_size(), page = (uintptr_t)sysconf(_SC_PAGESIZE);
    edge *e = &m->edges[index];
    if (mprotect((void *)p, edge_size() - page, access ? PROT_READ | PROT_WRITE : PROT_NONE) == 0)
        e->blocked = (uint8_t)(access ? e->blocked & ~(1 << window) : e->blocked | 1 << window);
#else
    (void)m, (void)index, (void)window, (void)access;
#endif
}

/* Gives access to all that what begins at `at` touches. */
static void enter(const mirror *m, uint64_t at, uint64_t size, int window) {
    uint64_t i;
    for (i = at / UPFRONT_EDGE; i <= last_line(at, size) / UPFRONT_EDGE; i++) {
        if (m->edges[i].blocked >> window & 1)
            set_access(m, i, window, 1);
        m->edges[i].used |= (uint8_t)(1 << window);
    }
}

/* What lies at a position that isn't as it should be. */
static void find(const mirror *m, uintptr_t p, int window, upfront_found *found) {
    uint64_t line = (uint64_t)(p - m->window[window]) / UPFRONT_SPREAD, at = below(m, line, window, LIVE), start;
    const note *n = NULL;
    found->what = UPFRONT_NOBODYS;
    if (at != m->size) {
        uint64_t size = note_of(m, at, window)->word & SIZE;
        start = p - start_of(m, at, window);
        found->what = start < size ? UPFRONT_LIVING : start < size + behind(size) ? UPFRONT_PAST : UPFRONT_NOBODYS;
    }
    if (found->what == UPFRONT_NOBODYS) {
        at = below(m, (uint64_t)(p - m->window[window] + ZONE_BEFORE) / UPFRONT_SPREAD, window, LIVE);
        if (at != m->size && start_of(m, at, window) - p - 1 < ZONE_BEFORE)
            found->what = UPFRONT_BEFORE;
    }
    if (found->what == UPFRONT_NOBODYS && (at = place_of(m, p, window)) != m->size)
        found->what = UPFRONT_ENDED;
    found->address = p;
    found->name = m->name;
    found->block = m->block;
    found->how = 0;
    found->start = 0;
    found->size = found->made = found->ended = 0;
    found->canonical = m->origin + (uintptr_t)line;
    if (found->what == UPFRONT_NOBODYS)
        return;
    n = note_of(m, at, window);
    found->how = (int)(n->word / HOW);
    found->start = start_of(m, at, window);
    found->size = n->word & SIZE;
    found->made = n->made;
    found->ended = n->ended;
    found->canonical = m->origin + (uintptr_t)at;
}

int upfront_mirror_find(uintptr_t address, upfront_found *found) {
    int window;
    const mirror *m = mirror_at(address, &window);
    if (m != NULL)
        find(m, address, window, found);
    return m != NULL;
}

static int is_blocked(const mirror *m, uintptr_t p, int window) {
    return m->edges[(p - m->window[window]) / edge_size()].blocked >> window & 1;
}

/* The first position in [p, end) that isn't dead, or end. What has no access nobody wrote to. */
static uintptr_t undead(const mirror *m, uintptr_t p, uintptr_t end, int window) {
    uintptr_t stop;
    for (; p < end; p = stop) {
        const unsigned char *bytes = (const unsigned char *)p;
        stop = p + (edge_size() - (p - m->window[window]) % edge_size());
        stop = stop < end ? stop : end;
        if (is_blocked(m, p, window) || (*bytes == UPFRONT_DEAD && memcmp(bytes, bytes + 1, stop - p - 1) == 0))
            continue;
        while (*bytes == UPFRONT_DEAD)
            bytes++;
        return (uintptr_t)bytes;
    }
    return end;
}

static void expect_dead(const mirror *m, uintptr_t p, uintptr_t end, int window) {
    upfront_found found;
    uintptr_t bad = undead(m, p, end, window);
    if (bad >= end || m->finder == NULL)
        return;
    find(m, bad, window, &found);
    m->finder(&found);
}

static void fill_dead(uintptr_t p, uint64_t size) { memset((void *)p, UPFRONT_DEAD, (size_t)size); }

static void fill_fresh(uintptr_t p, uint64_t size) { memset((void *)p, UPFRONT_FRESH, (size_t)size); }

/* Looks at both redzones of what begins at `at`. */
static void check_zones(const mirror *m, uint64_t at, int window) {
    uintptr_t start = start_of(m, at, window);
    uint64_t size = note_of(m, at, window)->word & SIZE;
    expect_dead(m, start - ZONE_BEFORE, start, window);
    expect_dead(m, start + (uintptr_t)size, start + (uintptr_t)(size + behind(size)), window);
}

/* Looks at what died where something is to begin. */
static void check_dead(const mirror *m, uint64_t at, int window) {
    uint64_t word = note_of(m, at, window)->word;
    uint64_t next = above(m, at + 1, at + (word & SIZE) / UPFRONT_SPREAD + 2, window, LIVE);
    uintptr_t start = start_of(m, at, window), end = start + (uintptr_t)(word & SIZE), stop = line_of(m, next, window);
    if (word & DIED)
        expect_dead(m, start, end < stop ? end : stop, window);
}

#else

static void check_zones(const mirror *m, uint64_t at, int window) { (void)m, (void)at, (void)window; }

static void check_dead(const mirror *m, uint64_t at, int window) { (void)m, (void)at, (void)window; }

static void enter(const mirror *m, uint64_t at, uint64_t size, int window) { (void)m, (void)at, (void)size, (void)window; }

static void fill_dead(uintptr_t p, uint64_t size) { UPFRONT_POISON((void *)p, size); }

static void fill_fresh(uintptr_t p, uint64_t size) { UPFRONT_UNPOISON((void *)p, size); }

#endif

static void fill_zones(uintptr_t start, uint64_t size) {
    fill_dead(start - ZONE_BEFORE, ZONE_BEFORE);
    fill_dead(start + (uintptr_t)size, behind(size));
}

/* What is given lies in the window where its place did not die last; a place that is new follows the one before it. */
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
    if (note_of(m, at, window)->word & LAST)
        window = !window;
    n = note_of(m, at, window);
    if (!(kind & PLAIN)) {
        enter(m, at, size, window);
        check_dead(m, at, window);
    }
    n->word = size | LIVE | kind;
    n->made = upfront_site;
    n->ended = 0;
    if (kind & PLAIN)
        return canonical;
    m->edges[at / UPFRONT_EDGE].window = m->edges[(at + size - 1) / UPFRONT_EDGE].window = (uint8_t)window;
    start = start_of(m, at, window);
    fill_zones(start, size);
    fill_fresh(start, size);
    return (void *)start;
}

void *upfront_mark_live(void *canonical, uint64_t size) {
    return live(canonical, size, (uintptr_t)canonical % UPFRONT_LINE == 0 && size >= PAGED_FROM ? PAGED : 0);
}

void *upfront_mark_room(void *canonical, uint64_t size) { return live(canonical, size, 0); }

void *upfront_mark_node(void *canonical, uint64_t size) { return live(canonical, size, NODE); }

void upfront_mark_block(void *canonical, uint64_t size) { (void)live(canonical, size, PLAIN); }

static void kill(const mirror *m, uint64_t at, int window, int how) {
    note *n = note_of(m, at, window), *other = note_of(m, at, !window);
    if (!(n->word & PLAIN)) {
        check_zones(m, at, window);
        fill_dead(start_of(m, at, window), n->word & SIZE);
    }
    n->word = (n->word & (SIZE | NODE | PAGED)) | (n->word & PLAIN ? 0 : DIED | LAST) | (uint64_t)how * HOW;
    n->ended = upfront_site;
    other->word &= ~LAST;
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
            uint64_t step = note_of(m, at, window)->word & SIZE;
            kill(m, at, window, how);
            at += step;
        } else {
            at = m->touched[at / NOTES_AT_ONCE] ? at + 1 : (at | (NOTES_AT_ONCE - 1)) + 1;
        }
    }
}

/* What contains `from`, in a mirror; NULL: nothing is there. */
static note *note_around(const void *from, const mirror **m, uint64_t *at, int *window) {
    *m = mirror_of((uintptr_t)from, at);
    if (*m == NULL)
        return NULL;
    *window = alive_at(*m, *at);
    if (*window < 0)
        *at = around(*m, *at, window);
    return *at == (*m)->size ? NULL : note_of(*m, *at, *window);
}

void *upfront_mark_more(void *from, void *end, uint64_t size) {
    const mirror *m;
    int window;
    uint64_t at, had;
    uintptr_t start;
    note *n = note_around(from, &m, &at, &window);
    if (n == NULL || from == end || n->word & PLAIN)
        return upfront_mark_live(end, size);
    had = n->word & SIZE;
    start = start_of(m, at, window);
    check_zones(m, at, window);
    enter(m, at, had + size, window);
    n->word += size;
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
    left = (n->word & SIZE) - size;
    fill_dead(start_of(m, at, window) + (uintptr_t)left, size);
    n->word -= size;
    if (left == 0)
        n->word &= ~LIVE;
}

void *upfront_position(const void *canonical) {
    uint64_t at, offset;
    const mirror *m = mirror_of((uintptr_t)canonical, &at);
    int window;
    if (m == NULL)
        return (void *)(uintptr_t)canonical;
    offset = at;
    window = alive_at(m, at);
    if (window < 0)
        at = around(m, at, &window);
    return at == m->size ? (void *)(uintptr_t)canonical : (void *)(start_of(m, at, window) + (uintptr_t)(offset - at));
}

int upfront_is_mirrored(const void *canonical) {
    uint64_t at;
    return mirror_of((uintptr_t)canonical, &at) != NULL;
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

/* The mirror's bytes: windows, notes, edges, and which notes are touched. */
static uint64_t round_size(const void *block, uint64_t size) {
    return upfront_round_up((uint64_t)((uintptr_t)block % UPFRONT_ALIGN_MAX) + size, UPFRONT_ALIGN_MAX);
}

uint64_t upfront_mirror_size(const void *block, uint64_t size) {
    return round_size(block, size) * (2 * UPFRONT_SPREAD + 2 * sizeof(note) + 1);
}

int upfront_mirror_open(void *block, uint64_t size, void *memory, upfront_finder finder, uint32_t name) {
    uint32_t i;
    mirror *m;
    uint64_t all = round_size(block, size);
    for (i = 0; i < mirrors_used && mirrors[i].size != 0; i++) {
    }
    if (i == UPFRONT_MIRRORS)
        return 0;
    m = &mirrors[i];
    m->origin = (uintptr_t)block - (uintptr_t)block % UPFRONT_ALIGN_MAX;
    m->window[0] = (uintptr_t)memory;
    m->window[1] = m->window[0] + (uintptr_t)(all * UPFRONT_SPREAD);
    m->notes = (note *)(m->window[1] + (uintptr_t)(all * UPFRONT_SPREAD));
    m->touched = (uint8_t *)(m->notes + 2 * all);
    m->edges = (edge *)(void *)(m->touched + all / NOTES_AT_ONCE);
    m->finder = finder;
    m->name = name;
    m->block = block;
    __atomic_store_n(&m->size, all, __ATOMIC_RELEASE);
    if (i == mirrors_used)
        __atomic_store_n(&mirrors_used, i + 1, __ATOMIC_RELEASE);
    return 1;
}

void upfront_mirror_close(void *block) {
    uint64_t at;
    mirror *m = (mirror *)mirror_of((uintptr_t)block, &at);
    if (m == NULL)
        return;
    UPFRONT_UNPOISON((void *)m->window[0], 2 * UPFRONT_SPREAD * m->size);
    __atomic_store_n(&m->size, 0, __ATOMIC_RELEASE);
}

/* A copy that AddressSanitizer doesn't look at: of a block that is an arena's in its turn, parts may be poisoned. */
#if defined(UPFRONT_ASAN)
__attribute__((no_sanitize_address))
#endif
static void copy(uintptr_t to, uintptr_t from, uint64_t size) {
    volatile unsigned char *t = (volatile unsigned char *)to;
    const volatile unsigned char *f = (const volatile unsigned char *)from;
    while (size-- != 0)
        *t++ = *f++;
}

void upfront_mirror_gather(void *from, uint64_t size) {
    uint64_t at, end;
    const mirror *m = mirror_of((uintptr_t)from, &at);
    int window;
    if (m == NULL)
        return;
    for (window = 0; window < 2; window++) {
        uint64_t i = at;
        for (end = at + size; (i = above(m, i, end, window, LIVE)) < end; i++) {
            uint64_t n = note_of(m, i, window)->word & SIZE;
            if (!(note_of(m, i, window)->word & PLAIN))
                copy(m->origin + (uintptr_t)i, start_of(m, i, window), n < end - i ? n : end - i);
        }
    }
}

#ifdef UPFRONT_CHECKED

/* Goes through what begins in [at, end) in one window: between what is alive, all up to where something ended or a redzone does is dead. */
static int check_window(const mirror *m, uint64_t at, uint64_t end, int window, upfront_found *found) {
    uintptr_t p = line_of(m, at, window) - ZONE_BEFORE, until = p, bad;
    for (;; at++) {
        uintptr_t start, low;
        uint64_t word = 0;
        at = above(m, at, end, window, LIVE | DIED);
        word = at < end ? note_of(m, at, window)->word : 0;
        start = at < end ? start_of(m, at, window) : line_of(m, end, window) + ZONE_BEFORE;
        if (word & PLAIN)
            continue;
        low = word & DIED ? start : start - ZONE_BEFORE;
        if (low > until) {
            if ((bad = undead(m, p, until, window)) < until)
                break;
            p = until = low;
        }
        if (at >= end)
            return 1;
        if (word & LIVE) {
            if ((bad = undead(m, p, start, window)) < start)
                break;
            p = start + (uintptr_t)(word & SIZE);
            start = p + (uintptr_t)behind(word & SIZE);
        } else {
            start += (uintptr_t)(word & SIZE);
        }
        until = until < start ? start : until;
    }
    find(m, bad, window, found);
    return 0;
}

int upfront_mirror_check(const void *from, uint64_t size, upfront_found *found) {
    uint64_t at;
    const mirror *m = mirror_of((uintptr_t)from, &at);
    return m == NULL || (check_window(m, at, at + size, 0, found) && check_window(m, at, at + size, 1, found));
}

void upfront_mark_over(void *from, uint64_t size) {
    upfront_found found;
    uint64_t at, i;
    const mirror *m = mirror_of((uintptr_t)from, &at);
    int window;
    if (m == NULL)
        return;
    if (!upfront_mirror_check(from, size, &found) && m->finder != NULL)
        m->finder(&found);
    for (i = at / UPFRONT_EDGE; i * UPFRONT_EDGE < at + size; i++)
        for (window = 0; window < 2; window++)
            if ((m->edges[i].used & ~m->edges[i].blocked) >> window & 1)
                set_access(m, i, window, 0);
}

#else

int upfront_mirror_find(uintptr_t address, upfront_found *found) {
    (void)address, (void)found;
    return 0;
}

int upfront_mirror_check(const void *from, uint64_t size, upfront_found *found) {
    (void)from, (void)size, (void)found;
    return 1;
}

void upfront_mark_over(void *from, uint64_t size) { (void)from, (void)size; }

#endif

#endif
