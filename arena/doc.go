// Package arena is the Go face of the C core's allocators, each over a block that it is given, and the offsets that may
// live in a block.
//
// An arena never grows, and never asks Go or C for more memory: when its block is used up it says so. It holds no Go
// pointers, because the collector doesn't look into it; CheckPlain says whether a type may live there. It runs no
// finalizers, has no names and no budget: for those use package scope, which works on the same core. And it knows no
// goroutines: one at a time.
//
// # Which arena
//
//	arena       when                                     fast path, a block  gives back                  what it cannot do
//	Linear      made together, dies together             inlined, 0          all, or from a mark up      free one block
//	 .Far       temporaries beside it, in the same room  inlined, 0          all, or from a mark down    resize the last block
//	Frame       made in one frame, read until the next   inlined, 0          a buffer, at its turn       free one block, keep longer
//	Stack       nested lifetimes that free one by one    inlined, 16         the last block, or to mark  free in another order
//	 .Far       a second such order in the same room     inlined, 16         the last block, or to mark  free in another order
//	Ring        streams and commands                     a Go call, 8        the oldest block            free in another order
//	Pool        equal things that come and go            Get inlined, 1      any chunk                   other sizes
//	HandlePool  those, named by who may outlive them     a Go call, 5        any chunk, by its handle    put by address
//	Heap        any size, in any order: C libraries      a call into C, 16   any block                   stay in one piece
//
// Every operation is O(1), but walks, the making of a pool and its Peak; `make bench` prints what fast paths cost beside the
// same loop in C. Bytes are beside the block's own and its alignment. Making an arena is one call into C.
//
// # Blocks
//
// A block is a []byte without pointers: from make, from a region, or from C. It begins at a multiple of 64; NewBlock
// makes one that does. The arena's header lies in its first bytes, so the arena lives as long as the block and a copy
// of the block is a copy of the arena's contents.
//
// A block may come from another arena too: BlockFrom takes one from any Allocator, scope.Scope.BytesUnzeroed one from a scope. It
// dies with what it was taken from.
//
// # Interfaces
//
// Allocator is what all arenas for bytes of any size have in common. Freer, Marker, Resetter, Resizer and Sizer say what
// some can do beyond; an arena that can't has no such method. A Reallocator is a Heap, or a Proxy before one. Sized and
// SizedFree add sizes to any.
//
// # Proxies
//
// A Proxy stands before a heap under a client's name, a PoolProxy or HandlePoolProxy before a pool. Each has totals of its
// own, takes back only what it gave, and says at its Close what never came back. A scope can own one.
//
//	sound := arena.NewProxy("sound", heap)
//	…
//	err := sound.Close() // arena: proxy "sound": 1 block of 64 bytes was never freed: 64 bytes at offset 0x420
//
// # References
//
// An address is no good in a block: it may move, be saved, or be read on another machine. Ptr, Slice and String hold
// offsets from a Base instead.
//
//	type Node struct {
//		Name     arena.String
//		Children arena.Slice[Node]
//	}
//
//	base := level.Base()
//	for _, child := range node.Children.Get(base) { … }
//
// # Adding an arena
//
//  1. arena_c/NAME.h: algorithm, bound, cost, source; the struct; the static inline fast path. upfront.h includes it.
//  2. arena_c/NAME.c: the rest, in the header's order. What lives and what died is marked for asan and checked (upfront_mark_live, _dead).
//  3. arena_c/NAME.go: the struct again, and one line an operation; an address that is to be judged crosses as a number (pool.go).
//     words.go: its size, its last word and its numbers, compared with the C side.
//  4. arena_c/fast.go and fast_cgo.go: the fast path. In the second it asks whether a checked build refuses it (given, or before it
//     Refuse). Whatever moves back tells the race detector what died (raceDead), and each other binding which word it writes.
//  5. arena/NAME.go: the face in this package, NewNAME(block), and a row in the table above. allocator.go: what it can do.
//  6. tests/c/NAME.c: every branch, as test_NAME. check.h declares it, main.c calls it.
//  7. tests/conformance: a subject with its model (subject_test.go); the fast path in package bindings and in a differential test; one that
//     is inlined in package fast and inline_test.go.
//  8. refused_test.go: a request that is refused. tests/race/crossings_test.go: what crosses into C, and what doesn't.
//     tests/misuse: each misuse and what catches it; the README has that table.
//  9. README.md and cross/dist.txt: its name, and how long a pointer into it lives.
//
// What is forgotten of 5 to 8 a test names: tests/conformance/adding_test.go and tests/c/run.sh. The inlining of a fast path, the misuses
// and 9 nobody asks for.
package arena
