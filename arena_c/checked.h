/* checked.h - the checked build's reports: texts of call sites, and the meaning of an address in a
 * map, in words. Fills and mirrors are in mirror.h.
 *
 * Each text is kept once and has a number. It has a line for each call, "\tfunction file:line\n",
 * newest first. A note of a call site keeps the number alone.
 *
 * Memory     Static tables, touched only as far as they are used; they are no part of a budget.
 * Threads    One thread adds at a time; any number may read and describe meanwhile. All functions
 *            but upfront_text_add may be called from a signal handler: no lock, no malloc, no
 *            stdio.
 * Full       At UPFRONT_TEXTS texts or UPFRONT_TEXTS_BYTES bytes a new text gets number 0, which
 *            stands for "". */
#ifndef UPFRONT_CHECKED_H
#define UPFRONT_CHECKED_H

#include "map.h"

#ifdef UPFRONT_CHECKED

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_TEXTS 8192
#define UPFRONT_TEXTS_BYTES (UINT32_C(8) << 20)

/* Keeps a copy of `size` bytes and returns its number, 0 if there is no room. */
uint32_t upfront_text_add(const char *text, uint64_t size);

/* Returns the text of a number, with its closing zero; "" for 0 and for an unknown number. It is
 * valid for the life of the process. */
const char *upfront_text(uint32_t id);

/* upfront_fail_at refuses the n-th request from now on, once, counting all threads; 0 refuses none.
 * upfront_failed reports whether that request came; upfront_fail_at of 0 keeps its answer. */
void upfront_fail_at(uint64_t n);
int upfront_failed(void);

/* Describe an address in the form that platform/crash calls, and return the bytes written. A text
 * that doesn't fit is cut at the end; it still ends with a newline, and has no closing zero. `map`
 * is a map with its whole block; `name` is its budget's. For an address in a closed budget, `site`
 * is the number of the text that says where it was closed. */
size_t upfront_describe(const void *map, const char *name, uintptr_t address, char *out, size_t room);
size_t upfront_describe_closed(const void *site, const char *name, uintptr_t address, char *out, size_t room);

/* Describes the first stray write into dead bytes of the map, as upfront_describe does. Returns 0
 * if there is none. */
size_t upfront_damage(const upfront_map *m, char *out, size_t room);

/* Is the finder of mirrors whose block is a map and whose name is a text: writes the finding to
 * standard error and aborts. */
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
