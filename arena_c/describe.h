/* describe.h - what an address of a map means, and what is damaged, in words: for three in the morning.
 *
 * The texts are lines, the first of which says it all; then come the calls that made the thing and those that ended it, as far as they
 * are known. Nothing in them is by chance but the address. Only memdebug has them.
 *
 * Threads    All may be called from a signal handler: no lock, no malloc, no stdio. They read the map, its space and the sites.
 * Room       What doesn't fit is left out at the end; the text still ends its last line. It has no closing zero.
 * Cost       O(records of the window). */
#ifndef UPFRONT_DESCRIBE_H
#define UPFRONT_DESCRIBE_H

#include "stretch.h"

#ifdef UPFRONT_MEMDEBUG

#ifdef __cplusplus
extern "C" {
#endif

/* These two have the form of platform/crash's describing functions, and give the bytes written. `map` is a map that was a whole block's;
 * `name` is its budget's. A fault in a budget that is closed: `site` is a number of sites.h, who closed it. */
size_t upfront_describe(const void *map, const char *name, uintptr_t address, char *out, size_t room);
size_t upfront_describe_closed(const void *site, const char *name, uintptr_t address, char *out, size_t room);

/* Of damage that the core met, or that upfront_stretch_check found. */
size_t upfront_describe_damage(const upfront_damage *d, char *out, size_t room);

/* Damage that was met, until somebody tells of it: an upfront_on_damage that keeps the first. The word isn't 0 when there is some to
 * take; take gives 1 to one of those who ask. */
extern uint32_t upfront_damage_kept;
void upfront_keep_damage(const upfront_damage *d);
int upfront_take_damage(upfront_damage *out);

#ifdef __cplusplus
}
#endif

#endif
#endif
