/* upfront.h - the C core of upfront: arenas over memory that is given to them.
 *
 * Include this one header. Every .c file of the directory together is the core, without Go.
 *
 * The common contract; each function says only what differs:
 *
 *   Memory     The caller gives a block. The core never asks for more: no malloc, no system call, nothing of libc but mem*.
 *              A block must be aligned to 64 bytes; a header lies at its front, or in the map's control tables.
 *   Units      size is bytes, count is elements, align is a power of two in bytes (1 ... UPFRONT_ALIGN_MAX).
 *   Offsets    Control words are uint64_t on every target. They hold offsets, never addresses.
 *   Zeroing    Memory is handed out as it is. The typed makers of Go zero it.
 *   Full       is an answer: NULL or UPFRONT_FULL, and nothing has changed but the word that remembers the refusal.
 *   Misuse     is a code below zero; nothing has changed.
 *   Null       and a header of zeros, which nobody made, are answered by every function that isn't inline, but for upfront_mark_...: by a
 *              code, NULL or 0, and what gives nothing does nothing. Inline functions are fast paths. They trust their caller to have an
 *              arena, and in what their comments say before "pre:"; only upfront_scope_alloc, upfront_scope_defer, upfront_scope_is_open
 *              and upfront_intrusive_init ask. Nothing can tell a header that was written over, or copied.
 *   Threads    One owner at a time. The core has no locks and, in release, no globals.
 *   Cost       O(1) where no other is named.
 */
#ifndef UPFRONT_H
#define UPFRONT_H

#define UPFRONT_VERSION "0.1.0"

/* In the order in which they are best read. */
#include "arena.h"
#include "linear.h"
#include "ends.h"
#include "stack.h"
#include "pool.h"
#include "intrusive.h"
#include "ring.h"
#include "frame.h"
#include "heap.h"
#include "buddy.h"
#include "scope.h"
#include "map.h"
#include "room.h"

#endif
