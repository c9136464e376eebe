#include "describe.h"
#include "sites.h"

#ifdef UPFRONT_MEMDEBUG

typedef struct upfront_words {
    char *out;
    size_t room, size;
} upfront_words;

static void add_bytes(upfront_words *w, const char *bytes, size_t size) {
    size_t left = w->room - w->size;
    size = size < left ? size : left;
    memcpy(w->out + w->size, bytes, size);
    w->size += size;
}

static size_t length(const char *text, size_t most) {
    const char *end = (const char *)memchr(text, 0, most);
    return end == NULL ? most : (size_t)(end - text);
}

static void add(upfront_words *w, const char *text) { add_bytes(w, text, length(text, SIZE_MAX / 2)); }

static void add_number(upfront_words *w, uint64_t n, unsigned base, unsigned digits) {
    char text[20];
    size_t at = sizeof text;
    do {
        text[--at] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n != 0 || sizeof text - at < digits);
    add_bytes(w, text + at, sizeof text - at);
}

static void add_decimal(upfront_words *w, uint64_t n) { add_number(w, n, 10, 1); }

static void add_hex(upfront_words *w, uint64_t n, unsigned digits) {
    add(w, "0x");
    add_number(w, n, 16, digits);
}

static void add_quoted(upfront_words *w, const char *text, size_t most) {
    add(w, "\"");
    add_bytes(w, text, length(text, most));
    add(w, "\"");
}

static size_t end_of(upfront_words *w) {
    if (w->size == w->room && w->room != 0)
        w->out[w->room - 1] = '\n';
    return w->size;
}

/* A site: what happened there, and each call a tab further in. */
static void add_site(upfront_words *w, const char *what, uint32_t site) {
    const char *text = upfront_text(site);
    if (*text == 0)
        return;
    add(w, "\t");
    add(w, what);
    add(w, " at:\n");
    while (*text != 0) {
        const char *line = text;
        while (*text != 0 && *text++ != '\n') {
        }
        add(w, "\t");
        add_bytes(w, line, (size_t)(text - line));
    }
}

static void add_sites(upfront_words *w, const upfront_record *r) {
    add_site(w, "made", r->made);
    add_site(w, "closed or rewound", r->gone);
}

/* region "level", frame 0, pad 1.0 */
static void add_row(upfront_words *w, const upfront_map *m, uint64_t index) {
    const upfront_row *row;
    if (index >= m->rows) { /* what is damaged may be the tables */
        add(w, "no region");
        return;
    }
    row = upfront_map_row(m, index);
    if (row->kind == UPFRONT_REGION) {
        add(w, "region ");
        add_quoted(w, row->name, sizeof row->name);
        return;
    }
    add_bytes(w, row->name, length(row->name, sizeof row->name));
}

/* an object of 64 bytes of scope "frogs" (account "sound") */
static void add_thing(upfront_words *w, const char *kind, uint64_t size, const upfront_record *r) {
    const char *scope = upfront_text(r->scope), *account = upfront_text(r->account);
    add(w, kind);
    add(w, " of ");
    add_decimal(w, size);
    add(w, size == 1 ? " byte" : " bytes");
    if (*scope != 0) {
        add(w, " of scope ");
        add_quoted(w, scope, SIZE_MAX / 2);
    }
    if (*account != 0) {
        add(w, " (account ");
        add_quoted(w, account, SIZE_MAX / 2);
        add(w, ")");
    }
}

static void add_byte(upfront_words *w, uint64_t n) {
    add(w, "byte ");
    add_decimal(w, n);
    add(w, " of ");
}

static void add_before(upfront_words *w, uint64_t n) {
    add_decimal(w, n);
    add(w, n == 1 ? " byte before " : " bytes before ");
}

static void begin_fault(upfront_words *w, const char *name, uintptr_t address) {
    add(w, "upfront: BUG: read or write of ");
    add_hex(w, address, 1);
    add(w, " in budget ");
    add_quoted(w, name, SIZE_MAX / 2);
}

/* An address in a window. */
static void add_found(upfront_words *w, const upfront_map *m, const upfront_found *f) {
    const char *thing = f->far_part ? "a temporary" : "an object";
    const upfront_record *r = &f->record;
    int gone = r->gone != 0 || !f->live;
    add(w, ", ");
    add_row(w, m, f->row);
    add(w, ": ");
    if (f->what == UPFRONT_FOUND_THING || (f->what == UPFRONT_FOUND_GAP && r->place != 0)) {
        add_byte(w, f->what == UPFRONT_FOUND_THING ? f->offset : r->size + f->offset);
        add_thing(w, thing, r->size, r);
        add(w, gone ? ", which was closed or rewound\n" : "\n");
        add_sites(w, r);
    } else if (f->what == UPFRONT_FOUND_LOG) {
        add(w, "the records of this build\n");
    } else if (!f->current) {
        add(w, "where it lay before it was rewound; what was there isn't known\n");
    } else if (f->what == UPFRONT_FOUND_GAP) {
        add(w, "before its first object\n");
    } else {
        add(w, "where nothing was made yet\n");
    }
}

/* An address outside of all windows, by its place. */
static void add_place(upfront_words *w, const upfront_map *m, uint64_t place) {
    uint64_t i;
    if (place < m->tables) {
        add(w, ": the control tables\n");
        return;
    }
    if (place >= m->size) {
        add(w, ": the tables of this build\n");
        return;
    }
    for (i = m->rows; i > 0 && place < upfront_map_row(m, i - 1)->start; i--) {
    }
    if (i == 0) {
        add(w, ": the slack or the guard behind the control tables\n");
        return;
    }
    add(w, place < upfront_map_row(m, i - 1)->end ? ": bytes of " : ": the slack or the guard behind ");
    add_row(w, m, i - 1);
    add(w, "\n");
}

size_t upfront_describe(const void *map, const char *name, uintptr_t address, char *out, size_t room) {
    const upfront_map *m = (const upfront_map *)map;
    upfront_words w = {out, room, 0};
    upfront_found found;
    begin_fault(&w, name, address);
    if (upfront_stretch_find(m, (const void *)address, &found))
        add_found(&w, m, &found);
    else
        add_place(&w, m, address - (uintptr_t)m);
    return end_of(&w);
}

size_t upfront_describe_closed(const void *site, const char *name, uintptr_t address, char *out, size_t room) {
    upfront_words w = {out, room, 0};
    begin_fault(&w, name, address);
    add(&w, ", which is closed\n");
    add_site(&w, "closed", (uint32_t)(uintptr_t)site);
    return end_of(&w);
}

/* A gap lies behind a thing, before one, or both. */
static void add_gap(upfront_words *w, const upfront_damage *d) {
    const upfront_record *r = &d->record, *next = &d->next;
    if (r->place == 0)
        add(w, "write before the first object");
    else
        add(w, next->place == 0 ? "write past the end of an object" : "write past the end of an object, or before the next");
    if (r->place != 0) {
        add(w, ": ");
        add_byte(w, d->place - r->place);
        add_thing(w, "an object", r->size, r);
    }
    if (next->place != 0) {
        add(w, r->place == 0 ? ": " : ", ");
        add_before(w, next->place - d->place);
        add_thing(w, "an object", next->size, next);
    }
}

/* Bytes that nobody has. */
static void add_free(upfront_words *w, const upfront_damage *d) {
    const upfront_record *r = &d->record;
    uint64_t at = d->place - r->place;
    add(w, r->place != 0 && at >= r->size ? "write past the end of an object, or to " : "write to ");
    add(w, d->what == UPFRONT_DAMAGE_DEAD ? "what was closed or rewound" : "bytes that nobody had yet");
    if (r->place != 0) {
        add(w, ": ");
        add_byte(w, at);
        add_thing(w, "an object", r->size, r);
    }
}

static void add_chunk(upfront_words *w, const upfront_damage *d) {
    uintptr_t at = (uintptr_t)d->at, chunk = (uintptr_t)d->chunk;
    add(w, d->what == UPFRONT_DAMAGE_CHUNK ? "write after put: " : "write past the end of a chunk, or before the next: ");
    if (at < chunk)
        add_before(w, chunk - at);
    else
        add_byte(w, at - chunk);
    add_thing(w, "a chunk", d->chunk_size, &d->record);
}

static void add_damage(upfront_words *w, const upfront_damage *d) {
    if (d->what == UPFRONT_DAMAGE_GAP)
        add_gap(w, d);
    else if (d->what == UPFRONT_DAMAGE_DEAD || d->what == UPFRONT_DAMAGE_FRESH)
        add_free(w, d);
    else
        add_chunk(w, d);
}

size_t upfront_describe_damage(const upfront_damage *d, char *out, size_t room) {
    upfront_words w = {out, room, 0};
    add(&w, "BUG: ");
    add_damage(&w, d);
    if (d->map != NULL) {
        add(&w, " in ");
        add_row(&w, d->map, d->row);
    }
    add(&w, ": ");
    add_hex(&w, d->found, 2);
    add(&w, " where ");
    add_hex(&w, d->expected, 2);
    add(&w, " should be\n");
    if (d->chunk != NULL)
        add_site(&w, "its pool made", d->record.made);
    else
        add_sites(&w, &d->record);
    add_site(&w, d->record.place == 0 ? "made" : "the next made", d->next.made);
    return end_of(&w);
}

uint32_t upfront_damage_kept;
static upfront_damage kept;
static uint32_t keeping; /* 1 while somebody writes `kept`, and until it was taken */

void upfront_keep_damage(const upfront_damage *d) {
    if (__atomic_exchange_n(&keeping, 1, __ATOMIC_ACQUIRE) == 0) {
        kept = *d;
        __atomic_store_n(&upfront_damage_kept, 1, __ATOMIC_RELEASE);
    }
}

int upfront_take_damage(upfront_damage *out) {
    if (__atomic_exchange_n(&upfront_damage_kept, 0, __ATOMIC_ACQUIRE) == 0)
        return 0;
    *out = kept;
    __atomic_store_n(&keeping, 0, __ATOMIC_RELEASE);
    return 1;
}

#endif
