#include "mirror_notes.h"

#ifdef UPFRONT_MIRROR

__thread uint32_t upfront_site;

upfront_mirror upfront_mirrors[UPFRONT_MIRRORS];
uint32_t upfront_mirrors_used;

/* The window of what is alive, begins at `start` and contains `at`; -1: nothing does. */
static int holds(const upfront_mirror *m, uint64_t start, uint64_t at) {
    int window = upfront_alive_at(m, start);
    return window >= 0 && at - start < (upfront_note_of(m, start, window)->word & UPFRONT_NOTE_SIZE) ? window : -1;
}

/* The place where what is alive and contains `at` begins; m->size: nothing is. It begins in the page of `at`, or reaches into it. */
static uint64_t around(const upfront_mirror *m, uint64_t at, int *window) {
    uint64_t start = at;
    for (; m->touched[at / UPFRONT_NOTES_AT_ONCE]; start--) {
        if ((*window = upfront_alive_at(m, start)) >= 0)
            return (*window = holds(m, start, at)) >= 0 ? start : m->size;
        if (start % UPFRONT_NOTES_AT_ONCE == 0)
            break;
    }
    start = m->reach[at / UPFRONT_NOTES_AT_ONCE];
    return start <= at && (*window = holds(m, start, at)) >= 0 ? start : m->size;
}

/* Notes that what begins at `at` reaches through so many bytes. */
static void reach(const upfront_mirror *m, uint64_t at, uint64_t size) {
    uint64_t page = at / UPFRONT_NOTES_AT_ONCE;
    while (++page <= (at + size - 1) / UPFRONT_NOTES_AT_ONCE)
        m->reach[page] = at;
}

static void fill_zones(uintptr_t start, uint64_t size) {
    upfront_fill_dead(start - UPFRONT_ZONE_BEFORE, UPFRONT_ZONE_BEFORE);
    upfront_fill_dead(start + (uintptr_t)size, upfront_behind(size));
}

/* Gives access to all that what begins at `at` touches, and notes that it does. */
static void use(const upfront_mirror *m, uint64_t at, uint64_t size, int window) {
    uint64_t i;
    upfront_enter(m, at, size, window);
    for (i = at / UPFRONT_EDGE; i <= upfront_last_line(at, size) / UPFRONT_EDGE; i++)
        m->edges[i].used |= (uint8_t)(1 << window);
}

/* What is given lies in the window where its place did not die last; a place that is new follows the one before it. */
static void *live(void *canonical, uint64_t size, uint64_t kind) {
    uint64_t at;
    const upfront_mirror *m = upfront_mirror_of((uintptr_t)canonical, &at);
    int window;
    upfront_note *n;
    uintptr_t start;
    if (m == NULL) {
        upfront_fill_fresh((uintptr_t)canonical, size);
        return canonical;
    }
    if (size == 0)
        return canonical;
    m->touched[at / UPFRONT_NOTES_AT_ONCE] = 1;
    window = m->edges[at / UPFRONT_EDGE].window;
    if (upfront_note_of(m, at, window)->word & UPFRONT_NOTE_LAST)
        window = !window;
    n = upfront_note_of(m, at, window);
    if (!(kind & UPFRONT_NOTE_PLAIN)) {
        use(m, at, size, window);
        upfront_check_dead(m, at, window);
    }
    n->word = size | UPFRONT_NOTE_LIVE | kind;
    n->made = upfront_site;
    n->ended = 0;
    reach(m, at, size);
    if (kind & UPFRONT_NOTE_PLAIN)
        return canonical;
    m->edges[at / UPFRONT_EDGE].window = m->edges[(at + size - 1) / UPFRONT_EDGE].window = (uint8_t)window;
    start = upfront_start_of(m, at, window);
    fill_zones(start, size);
    upfront_fill_fresh(start, size);
    return (void *)start;
}

void *upfront_mark_live(void *canonical, uint64_t size) {
    return live(canonical, size, (uintptr_t)canonical % UPFRONT_LINE == 0 && size >= UPFRONT_PAGED_FROM ? UPFRONT_NOTE_PAGED : 0);
}

void *upfront_mark_room(void *canonical, uint64_t size) { return live(canonical, size, 0); }

void *upfront_mark_node(void *canonical, uint64_t size) { return live(canonical, size, UPFRONT_NOTE_NODE); }

void upfront_mark_block(void *canonical, uint64_t size) { (void)live(canonical, size, UPFRONT_NOTE_PLAIN); }

static void kill(const upfront_mirror *m, uint64_t at, int window, int how) {
    upfront_note *n = upfront_note_of(m, at, window), *other = upfront_note_of(m, at, !window);
    if (n->word & UPFRONT_NOTE_PLAIN) { /* what was in it died before */
        n->word = 0;
        return;
    }
    upfront_check_zones(m, at, window);
    upfront_fill_dead(upfront_start_of(m, at, window), n->word & UPFRONT_NOTE_SIZE);
    n->word &= ~UPFRONT_NOTE_LIVE;
    n->word |= UPFRONT_NOTE_DIED | UPFRONT_NOTE_LAST | (uint64_t)how * UPFRONT_NOTE_HOW;
    n->ended = upfront_site;
    other->word &= ~UPFRONT_NOTE_LAST;
}

void upfront_mark_ended(void *canonical, uint64_t size, int how) {
    uint64_t at, end;
    const upfront_mirror *m = upfront_mirror_of((uintptr_t)canonical, &at);
    if (m == NULL) {
        upfront_fill_dead((uintptr_t)canonical, size);
        return;
    }
    for (end = at + size; at < end;) {
        int window = upfront_alive_at(m, at);
        if (window >= 0) {
            uint64_t step = upfront_note_of(m, at, window)->word & UPFRONT_NOTE_SIZE;
            kill(m, at, window, how);
            at += step;
        } else {
            at = m->touched[at / UPFRONT_NOTES_AT_ONCE] ? at + 1 : (at | (UPFRONT_NOTES_AT_ONCE - 1)) + 1;
        }
    }
}

/* What contains `from`, in a mirror; NULL: nothing is there. */
static upfront_note *note_around(const void *from, const upfront_mirror **m, uint64_t *at, int *window) {
    *m = upfront_mirror_of((uintptr_t)from, at);
    if (*m == NULL)
        return NULL;
    *window = upfront_alive_at(*m, *at);
    if (*window < 0)
        *at = around(*m, *at, window);
    return *at == (*m)->size ? NULL : upfront_note_of(*m, *at, *window);
}

void *upfront_mark_more(void *from, void *end, uint64_t size) {
    const upfront_mirror *m;
    int window;
    uint64_t at, had;
    uintptr_t start;
    upfront_note *n = note_around(from, &m, &at, &window);
    if (n == NULL || from == end || n->word & UPFRONT_NOTE_PLAIN)
        return upfront_mark_live(end, size);
    had = n->word & UPFRONT_NOTE_SIZE;
    start = upfront_start_of(m, at, window);
    upfront_check_zones(m, at, window);
    use(m, at, had + size, window);
    n->word += size;
    reach(m, at, had + size);
    upfront_fill_fresh(start + (uintptr_t)had, size);
    upfront_fill_dead(start + (uintptr_t)(had + size), upfront_behind(had + size));
    return (void *)(start + (uintptr_t)had);
}

void upfront_mark_less(void *from, void *end, uint64_t size) {
    const upfront_mirror *m;
    int window;
    uint64_t at, left;
    upfront_note *n = note_around(from, &m, &at, &window);
    if (m == NULL)
        upfront_fill_dead((uintptr_t)end - (uintptr_t)size, size);
    if (n == NULL)
        return;
    upfront_check_zones(m, at, window);
    left = (n->word & UPFRONT_NOTE_SIZE) - size;
    upfront_fill_dead(upfront_start_of(m, at, window) + (uintptr_t)left, size);
    n->word -= size;
    if (left == 0)
        n->word &= ~UPFRONT_NOTE_LIVE;
}

void *upfront_position(const void *canonical) {
    uint64_t at, offset;
    const upfront_mirror *m = upfront_mirror_of((uintptr_t)canonical, &at);
    int window;
    if (m == NULL)
        return (void *)(uintptr_t)canonical;
    offset = at;
    window = upfront_alive_at(m, at);
    if (window < 0)
        at = around(m, at, &window);
    return at == m->size ? (void *)(uintptr_t)canonical : (void *)(upfront_start_of(m, at, window) + (uintptr_t)(offset - at));
}

void upfront_mark_apart(void *canonical, uint64_t size) {
    uint64_t at;
    if (upfront_mirror_of((uintptr_t)canonical, &at) != NULL)
        upfront_mark_ended(canonical, size, UPFRONT_CLOSED);
}

uint64_t upfront_place(const void *p, const void *from) {
    uint64_t offset, at;
    int window;
    const upfront_mirror *m = upfront_mirror_of((uintptr_t)from, &offset);
    if (m == NULL || upfront_mirror_at((uintptr_t)p, &window) != m)
        return upfront_distance(p, from);
    at = upfront_place_of(m, (uintptr_t)p, window);
    if (at == m->size)
        return upfront_distance(p, from);
    return at + (uint64_t)((uintptr_t)p - upfront_start_of(m, at, window)) - offset;
}

/* The mirror's bytes: windows, notes, edges, and which notes are touched. */
static uint64_t round_size(const void *block, uint64_t size) {
    return upfront_round_up((uint64_t)((uintptr_t)block % UPFRONT_ALIGN_MAX) + size, UPFRONT_ALIGN_MAX);
}

uint64_t upfront_mirror_size(const void *block, uint64_t size) {
    return round_size(block, size) * (2 * UPFRONT_SPREAD + 2 * sizeof(upfront_note) + 1);
}

int upfront_mirror_open(void *block, uint64_t size, void *memory, upfront_finder finder, uint32_t name) {
    uint32_t i;
    upfront_mirror *m;
    uint64_t all = round_size(block, size);
    for (i = 0; i < upfront_mirrors_used && upfront_mirrors[i].block_size != 0; i++) {
    }
    if (i == UPFRONT_MIRRORS)
        return 0;
    m = &upfront_mirrors[i];
    m->block = (uintptr_t)block;
    m->origin = m->block - m->block % UPFRONT_ALIGN_MAX;
    m->size = all;
    m->window[0] = (uintptr_t)memory;
    m->window[1] = m->window[0] + (uintptr_t)(all * UPFRONT_SPREAD);
    m->notes = (upfront_note *)(m->window[1] + (uintptr_t)(all * UPFRONT_SPREAD));
    m->reach = (uint64_t *)(void *)(m->notes + 2 * all);
    m->touched = (uint8_t *)(m->reach + all / UPFRONT_NOTES_AT_ONCE);
    m->edges = (upfront_edge *)(void *)(m->touched + all / UPFRONT_NOTES_AT_ONCE);
    m->finder = finder;
    m->name = name;
    __atomic_store_n(&m->block_size, size, __ATOMIC_RELEASE);
    if (i == upfront_mirrors_used)
        __atomic_store_n(&upfront_mirrors_used, i + 1, __ATOMIC_RELEASE);
    return 1;
}

void upfront_mirror_close(void *block) {
    uint64_t at, i;
    int window;
    upfront_mirror *m = (upfront_mirror *)upfront_mirror_of((uintptr_t)block, &at);
    if (m == NULL)
        return;
    for (i = 0; i < m->size / UPFRONT_EDGE; i++)
        for (window = 0; window < 2; window++)
            if (m->edges[i].used >> window & 1) /* what was never poisoned has no shadow yet, which costs memory */
                UPFRONT_UNPOISON((void *)(upfront_line_of(m, i * UPFRONT_EDGE, window) - UPFRONT_ZONE_BEFORE),
                                 upfront_edge_size() + UPFRONT_ZONE_BEFORE);
    __atomic_store_n(&m->block_size, 0, __ATOMIC_RELEASE);
}

/* A copy that AddressSanitizer doesn't look at: of a block that is an arena's in its turn, parts may be poisoned. */
UPFRONT_UNCHECKED static void copy(uintptr_t to, uintptr_t from, uint64_t size) {
    volatile unsigned char *t = (volatile unsigned char *)to;
    const volatile unsigned char *f = (const volatile unsigned char *)from;
    while (size-- != 0)
        *t++ = *f++;
}

void upfront_mirror_gather(void *from, uint64_t size) {
    uint64_t at, end;
    const upfront_mirror *m = upfront_mirror_of((uintptr_t)from, &at);
    int window;
    if (m == NULL)
        return;
    for (window = 0; window < 2; window++) {
        uint64_t i = at;
        for (end = at + size; (i = upfront_above(m, i, end, window, UPFRONT_NOTE_LIVE)) < end; i++) {
            uint64_t n = upfront_note_of(m, i, window)->word & UPFRONT_NOTE_SIZE;
            if (!(upfront_note_of(m, i, window)->word & UPFRONT_NOTE_PLAIN))
                copy(m->origin + (uintptr_t)i, upfront_start_of(m, i, window), n < end - i ? n : end - i);
        }
    }
}

#endif
