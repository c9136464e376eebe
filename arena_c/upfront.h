/* upfront.h - the C core of upfront: arenas that allocate from a block that the caller provides.
 *
 * Include only this header. All .c files of the directory together are the core; it needs no Go.
 *
 * This is the contract of all functions. A function's comment has only the differences:
 *
 * Memory     The caller provides a block. The core never takes more memory: it uses no malloc, no
 *            system call, and of libc only mem*.
 * Units      size is in bytes, count in elements; align is a power of two in bytes, 1 to
 *            UPFRONT_ALIGN_MAX.
 * Offsets    Control words are uint64_t on every target. They hold offsets, never addresses.
 * Init       makes an arena with its header at the front of the block. The arena allocates from the
 *            block's other bytes. NULL: the block is null, not aligned to 64, too small or too
 *            large. The block's contents don't matter.
 * Alloc      returns memory as it is, not zeroed. NULL: full, or size or align out of bounds.
 * Full       is an expected result: NULL or UPFRONT_FULL. Only words that count or remember the
 *            refusal change.
 * Misuse     returns a code below zero; nothing changes.
 * Null       For a null argument or a header of zeros, each function that isn't inline returns a
 *            code, NULL or 0, or does nothing; upfront_mark_... don't check. Inline functions are
 *            fast paths: they trust that the arena exists and that their "pre:" holds. Of the
 *            inline functions only upfront_scope_alloc, upfront_scope_defer and
 *            upfront_scope_is_open check for null. A header that was overwritten or copied isn't
 *            detected.
 * Walk       lists ranges by address and checks the words. It writes at most `room` ranges; *count
 *            is the number of all ranges. UPFRONT_CORRUPT: the words contradict each other; then
 *            *count is the number of ranges before the damage.
 * Threads    One owner at a time. The core has no locks and, in a release build, one global: the
 *            table of room.h.
 * Cost       O(1) unless the comment says otherwise. */
#ifndef UPFRONT_H
#define UPFRONT_H

#define UPFRONT_VERSION "0.1.0"

/* In reading order. */
#include "arena.h"
#include "linear.h"
#include "ends.h"
#include "stack.h"
#include "pool.h"
#include "ring.h"
#include "frame.h"
#include "heap.h"
#include "buddy.h"
#include "scope.h"
#include "map.h"
#include "room.h"

#endif
