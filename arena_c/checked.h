/* checked.h - the checked build's reports: texts of call sites, and descriptions of addresses in a
 * map. Fills and mirrors are in mirror.h.
 *
 * Each text has a number, and a note keeps only the number. A call site's text has a line for each
 * call, "\tfunction file:line\n", newest first.
 *
 * Memory     Static tables, touched only as far as they are used; they aren't part of a budget.
 * Threads    One thread adds at a time; any number may read and describe meanwhile. All functions
 *            except upfront_text_add may be called from a signal handler: they use no lock, no
 *            malloc and no stdio.
 * Full       After UPFRONT_TEXTS - 1 texts or UPFRONT_TEXTS_BYTES bytes a new text gets number 0,
 *            which stands for "". */
#ifndef UPFRONT_CHECKED_H
#define UPFRONT_CHECKED_H

#include "map.h"

#ifdef UPFRONT_CHECKED

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_TEXTS 8192
#define UPFRONT_TEXTS_BYTES (UINT32_C(8) << 20)

/* Keeps a copy of the text's `size` bytes and returns its number; 0 if the tables are full. */
uint32_t upfront_text_add(const char *text, uint64_t size);

/* Returns the text of a number, with its closing zero; "" for 0 and for an unknown number. It is
 * valid for the life of the process. */
const char *upfront_text(uint32_t id);

/* upfront_fail_at refuses the n-th request from now on, once, counting all threads; 0 refuses none.
 * upfront_failed reports whether that request was refused; upfront_fail_at of 0 doesn't change its
 * answer. */
void upfront_fail_at(uint64_t n);
int upfront_failed(void);

/* Describe an address and return the bytes written; Go's budget/internal/crash calls them. A text
 * that doesn't fit is cut at the end; it still ends with a newline, and has no closing zero. `map`
 * is a map with its whole block; `name` is the budget's name. For an address in a closed budget,
 * `site` is the number of the closing call's text. */
size_t upfront_describe(const void *map, const char *name, uintptr_t address, char *out, size_t room);
size_t upfront_describe_closed(const void *site, const char *name, uintptr_t address, char *out, size_t room);

/* Describes the first stray write into dead bytes of the map, as upfront_describe does. Returns 0
 * if there is none. */
size_t upfront_damage(const upfront_map *m, char *out, size_t room);

/* The finder of a map's mirrors; their name is a text's number. It writes the finding to standard
 * error and aborts. */
void upfront_tell(const upfront_found *found);

#ifdef __cplusplus
}
#endif

#else

#define upfront_tell NULL

static inline size_t upfront_damage(const upfront_map *m, char *out, size_t room) {
    (void)m, (void)out, (void)room;
    return 0;
}

#endif
#endif
