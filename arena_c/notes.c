#include "notes.h"

#ifdef UPFRONT_CHECKED

enum { NOTES_LOOK = 16 }; /* places that a note may have */

static upfront_note notes[UPFRONT_NOTES];
static uint64_t notes_made;
static uint32_t notes_busy;

static void notes_enter(void) {
    while (__atomic_exchange_n(&notes_busy, 1, __ATOMIC_ACQUIRE) != 0)
        ;
}

static void notes_leave(void) { __atomic_store_n(&notes_busy, 0, __ATOMIC_RELEASE); }

static upfront_note *notes_place(uintptr_t address, uint64_t i) {
    uint64_t hash = (uint64_t)(address / 16) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
    return &notes[(hash + i) % UPFRONT_NOTES];
}

static upfront_note *notes_find(uintptr_t address) {
    uint64_t i;
    for (i = 0; i < NOTES_LOOK; i++)
        if (notes_place(address, i)->address == address)
            return notes_place(address, i);
    return NULL;
}

/* Returns a place for a new note: a free one, else a freed block's, else a live block's. */
static upfront_note *notes_new(uintptr_t address) {
    upfront_note *dead = notes_place(address, 0);
    uint64_t i;
    for (i = 0; i < NOTES_LOOK; i++) {
        upfront_note *n = notes_place(address, i);
        if (n->address == 0)
            return n;
        if (!n->live)
            dead = n;
    }
    return dead;
}

void upfront_note_made(const void *p, uint64_t asked) {
    upfront_note made = {(uintptr_t)p, asked, upfront_site, 0, 1, 0}, *n;
    notes_enter();
    made.when = ++notes_made;
    n = notes_find(made.address);
    if (n == NULL)
        n = notes_new(made.address);
    *n = made;
    notes_leave();
}

void upfront_note_ended(const void *p) {
    upfront_note *n;
    notes_enter();
    n = notes_find((uintptr_t)p);
    if (n != NULL) {
        n->ended = upfront_site;
        n->live = 0;
    }
    notes_leave();
}

int upfront_note_of(const void *p, upfront_note *out) {
    const upfront_note *n;
    notes_enter();
    n = notes_find((uintptr_t)p);
    if (n != NULL)
        *out = *n;
    notes_leave();
    return n != NULL;
}

void upfront_note_asked(const void *p, uint64_t asked) {
    upfront_note *n;
    notes_enter();
    n = notes_find((uintptr_t)p);
    if (n != NULL)
        n->asked = asked;
    notes_leave();
}

int upfront_note_near(const void *p, upfront_note *out) {
    uint64_t i, best = 0;
    notes_enter();
    for (i = 0; i < UPFRONT_NOTES; i++)
        if (notes[i].when > best && (uint64_t)(uintptr_t)p - notes[i].address < notes[i].asked + UPFRONT_LINE) {
            best = notes[i].when;
            *out = notes[i];
        }
    notes_leave();
    return best != 0;
}

#endif
