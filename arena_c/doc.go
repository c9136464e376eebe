// Package arena_c is for C programs, by upfront.h, and for packages arena, scope and budget, which a Go program uses.
//
// It is the C core of upfront and its bindings: pure functions over memory that is given to them. It checks what costs
// nothing and leaves the rest to its callers: it has no errors, only codes, and no types, only sizes. `cc arena_c/*.c`
// builds it without Go.
//
// # One cursor, in C and in Go
//
// The C core owns every byte and every rule; its control words are laid out by the C headers, and the Go structs in
// this package are the same bytes. Each operation has a one-line binding. A cgo call costs many times the allocation
// itself (make bench), so the few operations that a game performs thousands of times a tick are said twice: as `static
// inline` in a header and, side by side, in fast.go. With the build tag upfront_cgo, and in asan and checked
// builds, whose marks only C sets, every fast path crosses into C instead; the differential tests hold the two together.
// scope.Scope.AllocUnzeroed says the bump once more, for the inliner.
//
// # Costs
//
// Hits are O(1) and Go: the bumps, Get, the nodes of chains, and the opening and closing of scopes are inlined at the call
// site, Put and Pop are a call. Everything else is one crossing into C, at play noescape and nocallback; only RunC, which runs a user's own
// C finalizers, may be called back from.
//
// # From a package of your own
//
// A package with cgo that takes memory of a scope has the scope's two words from scope.Scope.C, and the headers by
//
//	export CGO_CFLAGS="-O2 -g -I$(go list -f '{{.Dir}}' github.com/upfront-mem/upfront/arena_c)"
//
// Functions that aren't inline are linked from this package. The C side must know a checked build for what it is: its marks
// are in the inlined fast paths, too. -asan needs nothing.
//
//	// #include "upfront.h"
//	// #cgo checked CFLAGS: -DUPFRONT_CHECKED
//	//
//	// static int *numbers(void *header, uint64_t generation, uint64_t n) {
//	//     upfront_scope s = {(upfront_scopes *)header, generation};
//	//     return upfront_scope_alloc(s, n * sizeof(int), sizeof(int));
//	// }
//	import "C"
//
//	header, generation := s.C()
//	p := C.numbers(header, C.uint64_t(generation), 16) // nil: full, or s doesn't allocate
//
// The go command doesn't look for changes in headers outside of the package: go clean -cache after an update.
//
// # Threads
//
// One owner at a time. Nothing here locks.
package arena_c
