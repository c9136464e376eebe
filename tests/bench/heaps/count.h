/* count.h - requests to callgrind. They do nothing without callgrind, or where its header is
 * missing. */
#ifndef COUNT_H
#define COUNT_H

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define COUNT_KNOWN 1
#endif
#endif

#ifndef COUNT_KNOWN
#define COUNT_KNOWN 0
#define CALLGRIND_ZERO_STATS (void)0
#define CALLGRIND_DUMP_STATS_AT(label) (void)(label)
#endif

#endif
