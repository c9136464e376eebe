// Package arena_c is the C core of upfront and its bindings: pure functions over memory that is given to them.
//
// It checks what costs nothing and leaves the rest to its callers: it has no errors, only codes, and no types, only
// sizes. Programs use packages arena, scope and budget; a C program uses upfront.h, and `cc arena_c/*.c` builds it
// without Go.
//
// # One cursor, two mouths
//
// The C core owns every byte and every rule; its control words are laid out by the C headers, and the Go structs in
// this package are the same bytes. Each operation has a one-line binding. A cgo call costs many times the allocation
// itself (make bench), so the few operations that a game performs thousands of times a tick are said twice: as `static
// inline` in a header and, side by side, in hit.go. With the build tag upfront_cgo (and in asan and memdebug builds, whose
// marks only C sets, and in memtrace builds, where each request asks whether it is to be refused) every hit crosses into C
// instead; the differential tests hold the two together.
//
// # Costs
//
// Hits are O(1) and Go: the bumps and Get are inlined at the call site, Put, Pop and the opening and closing of scopes are
// a call. Everything else is one crossing into C, noescape and nocallback; only RunC, which runs a user's own C
// finalizers, may be called back from.
//
// # Threads
//
// One owner at a time. Nothing here locks.
package arena_c
