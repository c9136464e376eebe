/* sites.h - texts that are kept once each and named by a number: where something was called from, and names of scopes.
 *
 * Only builds that are asked to remember have it: memdebug and memtrace. A record of an allocation holds a number, not a text.
 *
 * Memory     Static tables, touched as far as they are used: they are no part of a budget.
 * Threads    One adds at a time; any number may read meanwhile. upfront_text may be called from a signal handler.
 * Full       UPFRONT_SITES texts or UPFRONT_SITES_BYTES of them: what comes then has the number 0, whose text is "". */
#ifndef UPFRONT_SITES_H
#define UPFRONT_SITES_H

#include "base.h"

#if defined(UPFRONT_MEMDEBUG) || defined(UPFRONT_MEMTRACE)

#ifdef __cplusplus
extern "C" {
#endif

#define UPFRONT_SITES 8192
#define UPFRONT_SITES_BYTES (UINT32_C(8) << 20)

/* upfront_text_add keeps a copy of `size` bytes and gives its number, 0 when there is no room. */
uint32_t upfront_text_add(const char *text, uint64_t size);

/* upfront_text is the text of a number, with its closing zero; "" for 0 and for a number that nobody gave. It stays for ever.
 *
 * That of a place is a line for each call, "\tfunction file:line\n", the newest first. */
const char *upfront_text(uint32_t id);

#ifdef __cplusplus
}
#endif

#endif
#endif
