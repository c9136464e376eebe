// Package arena_c is the C core of upfront, arenas over the caller's memory, with Go bindings.
//
// C programs include upfront.h, and `cc arena_c/*.c` builds the core without Go. Go programs use
// packages arena, scope and budget, which call this one. Your own package with cgo can allocate in
// a scope. It passes the scope's two words to C, header and generation:
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
// These flags make the headers and the core's names known to your package:
//
//	flags=$(go list -f '{{.Dir}} {{join .CgoCFLAGS " "}}' github.com/upfront-mem/upfront/arena_c)
//	export CGO_CFLAGS="-O2 -g -I$flags"
//
// # Contracts
//
// The core returns codes instead of errors, and handles sizes instead of types. Only callbacks.h
// has a lock, so any other arena has one owner at a time.
//
// C headers lay out the control words, and Go structs of this package repeat the layout. The
// binding of an operation is mostly one line. The fast paths are repeated in Go (fast.go,
// fast_block.go). README.md says which calls cross into C and how the two sides are kept equal.
//
// The names of functions that aren't inline begin with the module's path. So a program may have two
// copies of the module, such as a fork or another major version. The flags above pass this prefix
// to your C code. A fork changes UPFRONT_PREFIX in arena.go.
//
// The #cgo line above also compiles your C code for the checked build, because the inlined fast
// paths are part of your code. -asan needs no flags. After an update run go clean -cache: the go
// command doesn't notice changed headers outside of your package.
package arena_c
