// Package arena is the Go face of the C core's allocators, each over a block that it is given. An arena never grows and
// never asks for more memory: when its block is used up it says nil. It holds no Go pointers, as the collector doesn't look
// into it; it runs no finalizers, has no names and no budget: for those use package scope, which works on the same core.
// One goroutine at a time uses it. The names to know:
//
//	arena            when                                     fast path, a block  gives back                  what it cannot do
//	Linear           made together, dies together             inlined, 0          all, or from a mark up      free one block
//	 .Far            temporaries beside it, in the same room  inlined, 0          all, or from a mark down    resize the last block
//	Frame            made in one frame, read until the next   inlined, 0          a buffer, at its turn       free one block, keep longer
//	Stack            nested lifetimes that free one by one    inlined, 16         the last block, or to mark  free in another order
//	 .Far            a second such order in the same room     inlined, 16         the last block, or to mark  free in another order
//	Ring             streams and commands                     a Go call, 8        the oldest block            free in another order
//	BlockPool        equal things that come and go            Get inlined, 1      any chunk                   other sizes
//	Heap             any size, in any order: C libraries      a call into C, 16   any block                   stay in one piece
//	Buddy            blocks of 2^k aligned to 2^k: pages      a call into C, 0    any block                   odd sizes without waste
//
//	NewBlock, BlockFrom   a block: at a multiple of 64; of the Go heap, or of another arena
//	Ptr, Slice, String    pointers that may live in a block: offsets from a Base
//	Inline                a short text that lies where it is declared
//	HeapOf, NewString     values, slices and texts on a Heap or a Buddy, without unsafe: New, Slice, Grow, Delete
//	Shared                a Heap or Buddy behind a lock: for goroutines, and for C libraries on threads of their own
//	Proxy, PoolProxy      before an allocator or a pool, for one client: totals, leaks, a trace
//
// Every operation is O(1), but walks, a Stack's Stats, a Heap's LargestFree, the making of a pool and its Peak; a Buddy's are
// O(log n). Bytes are beside the block's own and its alignment.
// The arena's header lies in the block's first bytes: the arena lives as long as the block, and a copy of the block is a copy
// of its contents. What an arena is for bytes of any size is the interface Allocator; Freer and Reallocator say what some
// can do beyond.
//
// In a scope of a budget, a Heap, Buddy or Shared of which blocks are live when the scope closes is a leak: its users free
// one by one, and one forgot. The scope's Close, or whatever else ends the memory, returns an error that says how many
// blocks, and the budget's report counts them. Heap.MayLive says that they may live. Rings and pools may end with what is in
// them, unless MustEmpty is said.
//
// An address is no good in a block that may move, be saved, or be read on another machine. Offsets are:
//
//	type Node struct {
//		Name     arena.String
//		Children arena.Slice[Node]
//	}
//
//	base := level.Base()
//	for _, child := range node.Children.Get(base) { … }
package arena
