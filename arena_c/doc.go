// Package arena_c is the C core of upfront, arenas over the caller's memory, with Go bindings.
//
// C programs include upfront.h, and `cc arena_c/*.c` builds the core without Go. Go programs use
// packages arena, scope and budget, which call this one. Your own package with cgo allocates in a
// scope by the scope's two words, header and generation:
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
// These flags make the headers and the core's names known to it:
//
//	flags=$(go list -f '{{.Dir}} {{join .CgoCFLAGS " "}}' github.com/upfront-mem/upfront/arena_c)
//	export CGO_CFLAGS="-O2 -g -I$flags"
//
// # Contracts
//
// The core makes only checks that cost nothing. It returns codes, not errors, and handles sizes,
// not types. It has no locks: each arena has one owner at a time.
//
// C headers lay out the control words, and the Go structs of this package are the same bytes. Each
// operation has a binding of one line. The fast paths are repeated in Go (fast.go, fast_block.go).
// README.md says which calls cross into C and how the two sides are kept equal.
//
// Functions that aren't inline have names that begin with the module's path, so that a program may
// have two copies of the module, a fork or another major version. The flags above pass that prefix
// to your C code. A fork changes UPFRONT_PREFIX in arena.go.
//
// C code must be compiled for the checked build as well, because the inlined fast paths are part of
// it. -asan needs no flags. After an update run go clean -cache: the go command doesn't notice
// changed headers outside of your package.
package arena_c
