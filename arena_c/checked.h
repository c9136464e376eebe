/* checked.h - what the checked build has beside fills and mirrors (mirror.h): texts of call sites, and what an address of a map
 * means, in words.
 *
 * Texts are kept once each and named by a number: where something was called from, a line for each call, "\tfunction file:line\n", the
 * newest first. Who notes a place keeps a number.
 *
 * Memory     Static tables, touched as far as they are used: they are no part of a budget.
 * Threads    One adds at a time; any number may read and describe meanwhile. All but upfront_text_add may be called from a signal
 *            handler: no lock, no malloc, no stdio.
 * Full       UPFRONT_TEXTS texts or UPFRONT_TEXTS_BYTES of them: what comes then has the number 0, whose text is "". */
#ifndef UPFRONT_CHECKED_H
#define UPFRONT_CHECKED_H

#include "map.h"

#ifdef UPFRONT_CHECKED

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_TEXTS 8192
#define UPFRONT_TEXTS_BYTES (UINT32_C(8) << 20)

/* upfront_text_add keeps a copy of `size` bytes and gives its number, 0 when there is no room. */
uint32_t upfront_text_add(const char *text, uint64_t size);

/* upfront_text is the text of a number, with its closing zero; "" for 0 and for a number that nobody gave. It stays for ever. */
const char *upfront_text(uint32_t id);

/* upfront_fail_at has the n-th request from now on refused, once, of all threads; 0: none.
 * upfront_failed says whether that request came: upfront_fail_at of 0 leaves it. */
void upfront_fail_at(uint64_t n);
int upfront_failed(void);

/* These two have the form of platform/crash's describing functions, and give the bytes written. What doesn't fit is left out at the end;
 * the text still ends its last line, and has no closing zero. `map` is a map that has the whole block; `name` is its budget's. A fault in
 * a budget that is closed: `site` is the number of a text, who closed it. */
size_t upfront_describe(const void *map, const char *name, uintptr_t address, char *out, size_t room);
size_t upfront_describe_closed(const void *site, const char *name, uintptr_t address, char *out, size_t room);

/* What somebody wrote where nothing lives, in the map's first row that has such: as upfront_describe, 0: nobody did. */
size_t upfront_damage(const upfront_map *m, char *out, size_t room);

/* The finder of mirrors whose block is a map and whose name is a text: writes what was found to standard error, and aborts. */
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
