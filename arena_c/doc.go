// Package arena_c is for C programs, by upfront.h, and for packages arena, scope and budget, which a Go program uses.
//
// It is the C core of upfront and its bindings: pure functions over memory that is given to them. It checks what costs
// nothing and leaves the rest to its callers: it has no errors, only codes, and no types, only sizes. `cc arena_c/*.c`
// builds it without Go.
//
// The control words are laid out by the C headers, and the Go structs in this package are the same bytes. Each operation has
// a one-line binding; those that a game performs thousands of times a tick are said again in Go (fast.go, fast_block.go).
// README.md says what crosses and when, what that costs, and what holds the two together. One owner at a time: nothing here
// locks.
//
// # From a package of your own
//
// A package with cgo that takes memory of a scope has the scope's two words from scope.Scope.C, and the headers by
//
//	export CGO_CFLAGS="-O2 -g -I$(go list -f '{{.Dir}} {{join .CgoCFLAGS " "}}' github.com/upfront-mem/upfront/arena_c)"
//
// Functions that aren't inline are linked from this package. Their names begin with the module's path, which the second part
// of the line above says: so a program may have two copies of the module, a fork or another major version, and its C code
// calls the one that it names. A fork changes UPFRONT_PREFIX in arena.go. The C side must know a checked build for what it
// is: its marks are in the inlined fast paths, too. -asan needs nothing.
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
package arena_c
