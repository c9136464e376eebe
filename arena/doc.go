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
//	arena   when                                     cost          gives back                  what it cannot do
//	Linear  made together, dies together             ~1 ns         all, or from a mark up      free one block
//	Stack   nested lifetimes that free one by one    ~1 ns, 16 B   the last block, or to mark  free in another order
//	Pool    equal things that come and go            ~3 ns, 1 B    any chunk                   other sizes
//
// Costs are those of a hit on a desktop machine, and bytes beside the block's own. Making an arena is one call into C.
//
// # Blocks
//
// A block is a []byte without pointers: from make, from a region, or from C. It begins at a multiple of 64; NewBlock
// makes one that does. The arena's header lies in its first bytes, so the arena lives as long as the block and a copy
// of the block is a copy of the arena's contents.
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
//  1. arena_c/NAME.h: algorithm, bound, cost, source; the struct; the static inline hit. upfront.h includes it.
//  2. arena_c/NAME.c: the rest.
//  3. arena_c/NAME.go: the struct again, and one line an operation. words.go: its size, compared with the C side.
//  4. arena_c/hit.go and hit_cgo.go: the hit.
//  5. arena/NAME.go: the face in this package, and a row in the table above.
//  6. tests/c/NAME.c: every branch. tests/conformance: a subject of the suite, the model, the differential.
package arena
