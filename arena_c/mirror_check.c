#include "mirror_notes.h"

#ifdef UPFRONT_MIRROR

#ifdef UPFRONT_CHECKED

#if defined(__linux__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define HAS_PAGES 1
#endif

/* The last page of an edge keeps its access: the redzone of what begins behind it lies there. */
static void set_access(const upfront_mirror *m, uint64_t index, int window, int access) {
#ifdef HAS_PAGES
    uintptr_t p = m->window[window] + (uintptr_t)index * upfront_edge_size(), page = (uintptr_t)sysconf(_SC_PAGESIZE);
    upfront_edge *e = &m->edges[index];
    if (mprotect((void *)p, upfront_edge_size() - page, access ? PROT_READ | PROT_WRITE : PROT_NONE) == 0)
        e->blocked = (uint8_t)(access ? e->blocked & ~(1 << window) : e->blocked | 1 << window);
#else
    (void)m, (void)index, (void)window, (void)access;
#endif
}

void upfront_enter(const upfront_mirror *m, uint64_t at, uint64_t size, int window) {
    uint64_t i;
    for (i = at / UPFRONT_EDGE; i <= upfront_last_line(at, size) / UPFRONT_EDGE; i++)
        if (m->edges[i].blocked >> window & 1)
            set_access(m, i, window, 1);
}

/* What lies at a position that isn't as it should be. */
static void find(const upfront_mirror *m, uintptr_t p, int window, upfront_found *found) {
    uint64_t line = (uint64_t)(p - m->window[window]) / UPFRONT_SPREAD, at = upfront_below(m, line, window, UPFRONT_NOTE_LIVE), start;
    const upfront_note *n = NULL;
    found->what = UPFRONT_NOBODYS;
    if (at != m->size) {
        uint64_t size = upfront_note_of(m, at, window)->word & UPFRONT_NOTE_SIZE;
        start = p - upfront_start_of(m, at, window);
        found->what = start < size ? UPFRONT_LIVING : start < size + upfront_behind(size) ? UPFRONT_PAST : UPFRONT_NOBODYS;
    }
    if (found->what == UPFRONT_NOBODYS) {
        at = upfront_below(m, (uint64_t)(p - m->window[window] + UPFRONT_ZONE_BEFORE) / UPFRONT_SPREAD, window, UPFRONT_NOTE_LIVE);
        if (at != m->size && upfront_start_of(m, at, window) - p - 1 < UPFRONT_ZONE_BEFORE)
            found->what = UPFRONT_BEFORE;
    }
    if (found->what == UPFRONT_NOBODYS && (at = upfront_place_of(m, p, window)) != m->size)
        found->what = UPFRONT_ENDED;
    found->address = p;
    found->name = m->name;
    found->block = (const void *)m->block;
    found->how = 0;
    found->start = 0;
    found->size = found->made = found->ended = 0;
    found->canonical = m->origin + (uintptr_t)line;
    if (found->what == UPFRONT_NOBODYS)
        return;
    n = upfront_note_of(m, at, window);
    found->how = (int)(n->word / UPFRONT_NOTE_HOW);
    found->start = upfront_start_of(m, at, window);
    found->size = n->word & UPFRONT_NOTE_SIZE;
    found->made = n->made;
    found->ended = n->ended;
    found->canonical = m->origin + (uintptr_t)at;
}

int upfront_mirror_find(uintptr_t address, upfront_found *found) {
    int window;
    const upfront_mirror *m = upfront_mirror_at(address, &window);
    if (m != NULL)
        find(m, address, window, found);
    return m != NULL;
}

static int is_blocked(const upfront_mirror *m, uintptr_t p, int window) {
    return m->edges[(p - m->window[window]) / upfront_edge_size()].blocked >> window & 1;
}

/* The first position in [p, end) that isn't dead, or end. What has no access nobody wrote to. */
static uintptr_t undead(const upfront_mirror *m, uintptr_t p, uintptr_t end, int window) {
    uintptr_t stop;
    for (; p < end; p = stop) {
        const unsigned char *bytes = (const unsigned char *)p;
        stop = p + (upfront_edge_size() - (p - m->window[window]) % upfront_edge_size());
        stop = stop < end ? stop : end;
        if (is_blocked(m, p, window) || (*bytes == UPFRONT_DEAD && memcmp(bytes, bytes + 1, stop - p - 1) == 0))
            continue;
        while (*bytes == UPFRONT_DEAD)
            bytes++;
        return (uintptr_t)bytes;
    }
    return end;
}

static void expect_dead(const upfront_mirror *m, uintptr_t p, uintptr_t end, int window) {
    upfront_found found;
    uintptr_t bad = undead(m, p, end, window);
    if (bad >= end || m->finder == NULL)
        return;
    find(m, bad, window, &found);
    m->finder(&found);
}

void upfront_check_zones(const upfront_mirror *m, uint64_t at, int window) {
    uintptr_t start = upfront_start_of(m, at, window);
    uint64_t size = upfront_note_of(m, at, window)->word & UPFRONT_NOTE_SIZE;
    expect_dead(m, start - UPFRONT_ZONE_BEFORE, start, window);
    expect_dead(m, start + (uintptr_t)size, start + (uintptr_t)(size + upfront_behind(size)), window);
}

void upfront_check_dead(const upfront_mirror *m, uint64_t at, int window) {
    uint64_t word = upfront_note_of(m, at, window)->word;
    uint64_t next = upfront_above(m, at + 1, at + (word & UPFRONT_NOTE_SIZE) / UPFRONT_SPREAD + 2, window, UPFRONT_NOTE_LIVE);
    uintptr_t start = upfront_start_of(m, at, window), end = start + (uintptr_t)(word & UPFRONT_NOTE_SIZE);
    uintptr_t stop = upfront_line_of(m, next, window);
    if (word & UPFRONT_NOTE_DIED)
        expect_dead(m, start, end < stop ? end : stop, window);
}

/* The first position in [p, end) that is neither dead nor of something alive, or end. What is paged lies further up than what begins
 * behind it, so that something alive may lie there that wasn't gone through yet. */
static uintptr_t wrong(const upfront_mirror *m, uintptr_t p, uintptr_t end, int window) {
    while ((p = undead(m, p, end, window)) < end) {
        uint64_t at = upfront_below(m, (uint64_t)(p - m->window[window]) / UPFRONT_SPREAD, window, UPFRONT_NOTE_LIVE), size;
        if (at == m->size)
            return p;
        size = upfront_note_of(m, at, window)->word & UPFRONT_NOTE_SIZE;
        if (p - upfront_start_of(m, at, window) >= size)
            return p;
        p = upfront_start_of(m, at, window) + (uintptr_t)size;
    }
    return end;
}

/* Goes through what begins in [at, end) in one window: redzones of what is alive are dead, and so is what ended, but for what is alive
 * there now. What ended in the same bytes as what came before is looked at once. */
static int check_window(const upfront_mirror *m, uint64_t at, uint64_t end, int window, upfront_found *found) {
    uintptr_t from = 0, to = 0, bad;
    for (; (at = upfront_above(m, at, end, window, UPFRONT_NOTE_LIVE | UPFRONT_NOTE_DIED)) < end; at++) {
        uint64_t word = upfront_note_of(m, at, window)->word, size = word & UPFRONT_NOTE_SIZE;
        uintptr_t start = upfront_start_of(m, at, window), stop = start + (uintptr_t)size;
        if (word & UPFRONT_NOTE_PLAIN)
            continue;
        if (word & UPFRONT_NOTE_LIVE) {
            uintptr_t behind = stop + (uintptr_t)upfront_behind(size);
            if ((bad = wrong(m, start - UPFRONT_ZONE_BEFORE, start, window)) < start || (bad = wrong(m, stop, behind, window)) < behind)
                break;
            continue;
        }
        if (start < from || start > to)
            from = to = start;
        if ((bad = wrong(m, to, stop, window)) < stop)
            break;
        to = to < stop ? stop : to;
    }
    if (at < end)
        find(m, bad, window, found);
    return at >= end;
}

int upfront_mirror_check(const void *from, uint64_t size, upfront_found *found) {
    uint64_t at;
    const upfront_mirror *m = upfront_mirror_of((uintptr_t)from, &at);
    return m == NULL || (check_window(m, at, at + size, 0, found) && check_window(m, at, at + size, 1, found));
}

void upfront_mark_over(void *from, uint64_t size) {
    upfront_found found;
    uint64_t at, i;
    const upfront_mirror *m = upfront_mirror_of((uintptr_t)from, &at);
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

/* Under AddressSanitizer what has no access would be met before it can say what it knows. */
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
