#include "checked.h"

#ifdef UPFRONT_CHECKED

#include <stdlib.h>
#include <unistd.h>

/* `count` is written last, so that a reader finds the texts below it whole. */
static struct {
    uint32_t count, used;
    uint32_t at[UPFRONT_TEXTS];
    char text[UPFRONT_TEXTS_BYTES];
} texts;

uint32_t upfront_text_add(const char *text, uint64_t size) {
    uint32_t id = texts.count + 1, at = texts.used;
    if (id == UPFRONT_TEXTS || size >= UPFRONT_TEXTS_BYTES - at)
        return 0;
    /* an empty text may have no address */
    if (size != 0)
        memcpy(texts.text + at, text, (size_t)size);
    texts.text[at + size] = 0;
    texts.at[id] = at;
    texts.used = at + (uint32_t)size + 1;
    __atomic_store_n(&texts.count, id, __ATOMIC_RELEASE);
    return id;
}

const char *upfront_text(uint32_t id) {
    return id != 0 && id <= __atomic_load_n(&texts.count, __ATOMIC_ACQUIRE) ? texts.text + texts.at[id] : "";
}

static struct {
    int64_t left; /* requests up to and including the one to refuse */
    int refused;
} failing;

__thread int upfront_request;

void upfront_fail_at(uint64_t n) {
    __atomic_store_n(&failing.left, 0, __ATOMIC_SEQ_CST);
    if (n == 0)
        return;
    __atomic_store_n(&failing.refused, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&failing.left, (int64_t)n, __ATOMIC_SEQ_CST);
}

int upfront_failed(void) { return __atomic_load_n(&failing.refused, __ATOMIC_SEQ_CST); }

int upfront_refuses(void) {
    int asks = upfront_request;
    upfront_request = 0;
    if (!asks || __atomic_load_n(&failing.left, __ATOMIC_SEQ_CST) <= 0 ||
        __atomic_sub_fetch(&failing.left, 1, __ATOMIC_SEQ_CST) != 0)
        return 0;
    __atomic_store_n(&failing.refused, 1, __ATOMIC_SEQ_CST);
    return 1;
}

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

static void add_number(upfront_words *w, uint64_t n, unsigned base) {
    char text[20];
    size_t at = sizeof text;
    do {
        text[--at] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n != 0);
    add_bytes(w, text + at, sizeof text - at);
}

static void add_hex(upfront_words *w, uint64_t n) {
    add(w, "0x");
    add_number(w, n, 16);
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

/* Adds a call site: its heading, then each call one tab further in. */
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

/* Returns the number of rows that begin at or before the offset. */
static uint64_t rows_up_to(const upfront_map *m, uint64_t offset) {
    uint64_t i;
    for (i = m->rows; i > 0 && offset < upfront_map_start(m, upfront_map_row(m, i - 1)); i--) {
    }
    return i;
}

/* Adds the row's name: region "level", frame 0 or scratch 1.0. */
static void add_row(upfront_words *w, const upfront_map *m, uint64_t index) {
    const upfront_row *row = upfront_map_row(m, index);
    if (row->kind == UPFRONT_REGION) {
        add(w, "region ");
        add_quoted(w, row->name, sizeof row->name);
        return;
    }
    add_bytes(w, row->name, length(row->name, sizeof row->name));
}

static void begin_fault(upfront_words *w, const char *name, uintptr_t address) {
    add(w, "upfront: BUG: read or write of ");
    add_hex(w, address);
    add(w, " in budget ");
    add_quoted(w, name, SIZE_MAX / 2);
}

static const char *const ended[] = {"closed", "put", "rewound"};

/* Adds the object at an address, "24 bytes of region "level" at 0x1234", and where it was made and
 * ended. */
static void add_thing(upfront_words *w, const upfront_map *m, const upfront_found *f) {
    uint64_t rows = rows_up_to(m, upfront_distance((const void *)f->canonical, m));
    if (f->size != 0) {
        add_number(w, f->size, 10);
        add(w, " bytes of ");
    }
    add_row(w, m, rows == 0 ? 0 : rows - 1);
    if (f->size != 0) {
        add(w, " at ");
        add_hex(w, f->start);
    }
    add(w, "\n");
    add_site(w, "made", f->made);
    add_site(w, f->how == UPFRONT_PUT ? "put" : "ended", f->ended);
}

/* `verb` is the access; `to` precedes how the object ended. */
static void add_found(upfront_words *w, const upfront_found *f, const char *name, const char *verb, const char *to) {
    static const char *const what[] = {"", "past the end of an object", "before the start of an object",
                                       "", "to a live object",          "to bytes of no object"};
    add(w, "upfront: BUG: ");
    add(w, verb);
    add(w, " ");
    if (f->what == UPFRONT_ENDED) {
        add(w, f->how == UPFRONT_PUT ? "after " : to);
        add(w, ended[f->how]);
    } else {
        add(w, what[f->what]);
    }
    add(w, ", at ");
    add_hex(w, f->address);
    add(w, " in budget ");
    add_quoted(w, name, SIZE_MAX / 2);
    add(w, ": ");
    add_thing(w, (const upfront_map *)f->block, f);
}

size_t upfront_damage(const upfront_map *m, char *out, size_t room) {
    upfront_words w = {out, room, 0};
    upfront_found f;
    uint64_t i;
    for (i = 0; i < m->rows; i++) {
        const upfront_row *r = upfront_map_row(m, i);
        const upfront_arena *a = &r->arena.arena;
        if (!upfront_mirror_check(upfront_arena_at(a, a->start), r->end - a->start, &f)) {
            add_found(&w, &f, upfront_text(f.name), "write", "to memory that was ");
            return end_of(&w);
        }
    }
    return 0;
}

void upfront_tell(const upfront_found *f) {
    char out[8192];
    upfront_words w = {out, sizeof out, 0};
    add_found(&w, f, upfront_text(f->name), "write", "to memory that was ");
    if (write(STDERR_FILENO, out, end_of(&w)) >= 0)
        abort();
    abort();
}

/* Adds the part of the map that an offset is in. */
static void add_place(upfront_words *w, const upfront_map *m, uint64_t offset) {
    uint64_t rows = rows_up_to(m, offset);
    if (offset < m->tables) {
        add(w, ": the control tables\n");
    } else if (rows == 0) {
        add(w, ": the unused bytes or the guard after the control tables: an index or a size is out of range\n");
    } else {
        int inside = offset < upfront_map_end(m, upfront_map_row(m, rows - 1));
        add(w, inside ? ": bytes of " : ": the unused bytes or the guard after ");
        add_row(w, m, rows - 1);
        add(w, inside ? "\n" : ": an index or a size is out of range\n");
    }
}

size_t upfront_describe(const void *map, const char *name, uintptr_t address, char *out, size_t room) {
    upfront_words w = {out, room, 0};
    upfront_found f;
    if (upfront_mirror_find(address, &f)) {
        add_found(&w, &f, name, "read or write", "of memory that was ");
        return end_of(&w);
    }
    begin_fault(&w, name, address);
    add_place(&w, (const upfront_map *)map, upfront_distance((const void *)address, map));
    return end_of(&w);
}

size_t upfront_describe_closed(const void *site, const char *name, uintptr_t address, char *out, size_t room) {
    upfront_words w = {out, room, 0};
    begin_fault(&w, name, address);
    add(&w, ", which is closed\n");
    add_site(&w, "closed", (uint32_t)(uintptr_t)site);
    return end_of(&w);
}

#endif
