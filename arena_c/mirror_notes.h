/* mirror_notes.h - what mirror.c and mirror_check.c know of mirrors together. Nobody else includes it. */
#ifndef UPFRONT_MIRROR_NOTES_H
#define UPFRONT_MIRROR_NOTES_H

#include "mirror.h"

#ifdef UPFRONT_MIRROR

/* Redzones: so many bytes before, and at most so many behind. Even what has one byte has 63 between it and the next. */
enum { UPFRONT_ZONE_BEFORE = 32, UPFRONT_ZONE_BEHIND = 256 };

/* A page of notes, about so many places: `touched` says which pages have any, and `reach` what reached last into them from the
 * pages before, if it is alive. */
enum { UPFRONT_NOTES_AT_ONCE = 128 };

enum { UPFRONT_NOTE_PAGE = 4096, UPFRONT_PAGED_FROM = 128 };

/* In a note's word, above the size. NODE: a word and what it is about, which lies at the next line. PLAIN: it stays at its canonical
 * place. LAST: it died, and nothing in the other window did so later. PAGED: it lies in its page where it is accounted in its,
 * so that an arena on it scratch arenas as everywhere. */
#define UPFRONT_NOTE_SIZE (UPFRONT_OFFSET_MAX - 1)
#define UPFRONT_NOTE_LIVE (UINT64_C(1) << 40)
#define UPFRONT_NOTE_DIED (UINT64_C(1) << 41)
#define UPFRONT_NOTE_NODE (UINT64_C(1) << 42)
#define UPFRONT_NOTE_PLAIN (UINT64_C(1) << 43)
#define UPFRONT_NOTE_LAST (UINT64_C(1) << 44)
#define UPFRONT_NOTE_PAGED (UINT64_C(1) << 45)
#define UPFRONT_NOTE_HOW (UINT64_C(1) << 46)

typedef struct upfront_note {
    uint64_t word;
    uint32_t made, ended;
} upfront_note;

/* What is known of UPFRONT_EDGE bytes: rows don't share them. */
typedef struct upfront_edge {
    uint8_t window;  /* in which something was given last */
    uint8_t used;    /* a bit for each window */
    uint8_t blocked; /* and whether it has no access */
} upfront_edge;

typedef struct upfront_mirror {
    uintptr_t block, origin; /* the origin is aligned, at or below the block */
    uint64_t block_size;     /* 0: nobody's */
    uint64_t size;           /* places, from the origin */
    uintptr_t window[2];
    upfront_note *notes; /* for each place one a window */
    upfront_edge *edges;
    uint64_t *reach;
    uint8_t *touched;
    upfront_finder finder;
    uint32_t name;
} upfront_mirror;

extern upfront_mirror upfront_mirrors[UPFRONT_MIRRORS];
extern uint32_t upfront_mirrors_used; /* all behind are nobody's */

static inline const upfront_mirror *upfront_mirror_of(uintptr_t canonical, uint64_t *offset) {
    uint32_t i, n = __atomic_load_n(&upfront_mirrors_used, __ATOMIC_ACQUIRE);
    for (i = 0; i < n; i++) {
        uint64_t size = __atomic_load_n(&upfront_mirrors[i].block_size, __ATOMIC_ACQUIRE);
        *offset = (uint64_t)canonical - upfront_mirrors[i].origin;
        if ((uint64_t)canonical - upfront_mirrors[i].block < size)
            return &upfront_mirrors[i];
    }
    return NULL;
}

static inline const upfront_mirror *upfront_mirror_at(uintptr_t position, int *window) {
    uint32_t i, n = __atomic_load_n(&upfront_mirrors_used, __ATOMIC_ACQUIRE);
    for (i = 0; i < n; i++) {
        uint64_t known = __atomic_load_n(&upfront_mirrors[i].block_size, __ATOMIC_ACQUIRE);
        uint64_t offset = (uint64_t)position - upfront_mirrors[i].window[0], size = upfront_mirrors[i].size * UPFRONT_SPREAD;
        if (known != 0 && offset < 2 * size) {
            *window = offset >= size;
            return &upfront_mirrors[i];
        }
    }
    return NULL;
}

static inline upfront_note *upfront_note_of(const upfront_mirror *m, uint64_t at, int window) {
    return &m->notes[2 * at + (uint64_t)window];
}

static inline uintptr_t upfront_line_of(const upfront_mirror *m, uint64_t at, int window) {
    return m->window[window] + (uintptr_t)(UPFRONT_SPREAD * at);
}

/* Where what begins at `at` has its first byte. */
static inline uintptr_t upfront_start_of(const upfront_mirror *m, uint64_t at, int window) {
    uint64_t word = upfront_note_of(m, at, window)->word;
    if (word & UPFRONT_NOTE_PLAIN)
        return m->origin + (uintptr_t)at;
    if (word & UPFRONT_NOTE_PAGED)
        return upfront_line_of(m, at, window) + (uintptr_t)(at % UPFRONT_NOTE_PAGE);
    return upfront_line_of(m, at, window) + (word & UPFRONT_NOTE_NODE ? UPFRONT_LINE - sizeof(uint64_t) : 0);
}

static inline uint64_t upfront_behind(uint64_t size) {
    uint64_t gap = (UPFRONT_SPREAD - 1) * size - UPFRONT_ZONE_BEFORE, most = UPFRONT_ZONE_BEHIND;
    return gap < most ? gap : most;
}

/* The last of `size` bytes' places whose lines what begins at `at` has bytes or redzones in. */
static inline uint64_t upfront_last_line(uint64_t at, uint64_t size) {
    uint64_t lines = (UPFRONT_NOTE_PAGE + size + upfront_behind(size)) / UPFRONT_SPREAD + 2;
    return at + (lines < size ? lines : size - 1);
}

static inline uintptr_t upfront_edge_size(void) { return (uintptr_t)(UPFRONT_SPREAD * UPFRONT_EDGE); }

/* The nearest place at or below `at` whose note in the window has the bit; m->size when there is none. */
static inline uint64_t upfront_below(const upfront_mirror *m, uint64_t at, int window, uint64_t bit) {
    for (at = at < m->size ? at : m->size - 1; at != UINT64_MAX; at--) {
        if (!m->touched[at / UPFRONT_NOTES_AT_ONCE])
            at -= at % UPFRONT_NOTES_AT_ONCE;
        else if (upfront_note_of(m, at, window)->word & bit)
            return at;
    }
    return m->size;
}

/* And the nearest at or above, below `end`; or `end`. */
static inline uint64_t upfront_above(const upfront_mirror *m, uint64_t at, uint64_t end, int window, uint64_t bits) {
    for (end = end < m->size ? end : m->size; at < end; at++) {
        if (!m->touched[at / UPFRONT_NOTES_AT_ONCE])
            at |= UPFRONT_NOTES_AT_ONCE - 1;
        else if (upfront_note_of(m, at, window)->word & bits)
            return at;
    }
    return end;
}

/* The window in which something alive begins there; -1: none. */
static inline int upfront_alive_at(const upfront_mirror *m, uint64_t at) {
    if (at >= m->size || !m->touched[at / UPFRONT_NOTES_AT_ONCE])
        return -1;
    return upfront_note_of(m, at, 0)->word & UPFRONT_NOTE_LIVE ? 0 : upfront_note_of(m, at, 1)->word & UPFRONT_NOTE_LIVE ? 1 : -1;
}

/* The place whose living, or else dead, thing has the position, or ends there; m->size: none. */
static inline uint64_t upfront_place_of(const upfront_mirror *m, uintptr_t p, int window) {
    uint64_t line = (uint64_t)(p - m->window[window]) / UPFRONT_SPREAD, bit = UPFRONT_NOTE_LIVE;
    for (; bit != 0; bit = bit == UPFRONT_NOTE_LIVE ? UPFRONT_NOTE_DIED : 0) {
        uint64_t at = upfront_below(m, line, window, bit);
        if (at != m->size && p - upfront_start_of(m, at, window) <= (upfront_note_of(m, at, window)->word & UPFRONT_NOTE_SIZE))
            return at;
    }
    return m->size;
}

#ifdef UPFRONT_CHECKED

/* Looks at both redzones of what begins at `at`; and at what died where something is to begin. */
void upfront_check_zones(const upfront_mirror *m, uint64_t at, int window);
void upfront_check_dead(const upfront_mirror *m, uint64_t at, int window);

/* Gives access to all that what begins at `at` touches. */
void upfront_enter(const upfront_mirror *m, uint64_t at, uint64_t size, int window);

static inline void upfront_fill_dead(uintptr_t p, uint64_t size) { memset((void *)p, UPFRONT_DEAD, (size_t)size); }

static inline void upfront_fill_fresh(uintptr_t p, uint64_t size) { memset((void *)p, UPFRONT_FRESH, (size_t)size); }

#else

static inline void upfront_check_zones(const upfront_mirror *m, uint64_t at, int window) { (void)m, (void)at, (void)window; }

static inline void upfront_check_dead(const upfront_mirror *m, uint64_t at, int window) { (void)m, (void)at, (void)window; }

static inline void upfront_enter(const upfront_mirror *m, uint64_t at, uint64_t size, int window) {
    (void)m, (void)at, (void)size, (void)window;
}

static inline void upfront_fill_dead(uintptr_t p, uint64_t size) { UPFRONT_POISON((void *)p, size); }

static inline void upfront_fill_fresh(uintptr_t p, uint64_t size) { UPFRONT_UNPOISON((void *)p, size); }

#endif

#endif
#endif
