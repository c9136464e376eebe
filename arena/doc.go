// Package arena contains Go's bindings to the allocators of the C core. An arena allocates from one
// block of memory and never grows:
//
//	l, err := arena.NewLinear(arena.NewBlock(4096, 64)) // error: the block is too small
//	p := l.Alloc(100, 8)     // 100 bytes aligned to 8; nil when l is full
//	mark := l.Mark()
//	q := l.Alloc(512, 16)
//	err = l.Rewind(mark)     // frees q, keeps p
//
// These are the arenas. The column "bytes" has the overhead of a block, without alignment:
//
//	arena        for                                  allocates   bytes  frees
//	Linear       blocks that end together             inlined     0      all, or back to a mark
//	Linear.Far   temporary blocks on the same memory  inlined     0      all, or back to a mark
//	Frame        data that lives 1 to 8 frames        inlined     0      the oldest buffer
//	Stack        nested lifetimes                     inlined     16     last, or back to a mark
//	Stack.Far    a second stack on the same memory    inlined     16     last, or back to a mark
//	Ring         streams and commands                 Go call     8      oldest
//	BlockPool    values of one type                   inlined     5      any
//	Heap         any size and order: C libraries      call of C   16     any; fragments
//	Buddy        2^k bytes aligned to 2^k: pages      call of C   0      any; rounds up to 2^k
//
// More names to know:
//
//   - [NewBlock] returns a block from the Go heap.
//   - [Ptr], [Slice] and [String] are pointers that may be stored in a block. [Inline] is a short
//     text stored in place.
//   - [HeapOf] and [NewString] make values, slices and texts on a Heap or a Buddy, without unsafe.
//   - [Shared] puts a lock around a Heap or a Buddy, for several goroutines and for C libraries
//     with threads of their own.
//   - [Proxy] counts one client's allocations: totals, leaks, a trace.
//   - [Allocator], [Freer] and [Reallocator] are the interfaces.
//
// Unless its comment says otherwise, an operation is O(1), or O(log n) for a Buddy. An arena is a
// small value, and copies of the value are the same arena. One goroutine at a time uses an arena.
// The arena's header is in the block's first bytes, so the arena lives as long as the block. The
// collector doesn't look into a block, so a block must hold no Go pointers. An arena has no
// finalizers, names or budget; package scope adds them, on the same core.
//
// If a Heap, Buddy or Shared in a scope has live blocks when the scope closes, the blocks are a
// leak. The scope's Close, or another call that frees the memory, returns an error with the number
// of blocks, and the budget's report counts them. [Heap.MayLive] permits live blocks. A ring or a
// pool may end with live blocks, unless MustEmpty was called.
//
// # Offsets
//
// A block may move, be saved, or be read on another machine. Addresses stored in the block would
// then be wrong. So values in a block refer to each other by offsets from the start of the block,
// which is their [Base]:
//
//	type Node struct {
//		Name     arena.String
//		Children arena.Slice[Node]
//	}
//
//	base := level.Base()
//	for _, child := range node.Children.Get(base) { … }
//
// For example, a base begins at 0x4000 and a node's children at 0x4100. The Slice stores 0x101, the
// offset plus 1 so that 0 is nil, and the number of children. When the block is loaded at 0x9000,
// Get returns the children at 0x9100.
package arena
