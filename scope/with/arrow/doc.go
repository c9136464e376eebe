// Package arrow runs each query of arrow-go (v18) in a budget. The buffers of the query's arrays
// are in a scope or a heap and end with the query; a query that needs more memory returns an error.
// Import the package as with, because arrow-go has a package arrow.
//
//	import with "github.com/upfront-mem/upfront/scope/with/arrow"
//
//	err := with.Query(ctx, lease.Scratch(0), "ages", func(ctx context.Context,
//		mem memory.Allocator) error {
//
//		ages := array.NewInt32Builder(mem)            // its buffers are in the scope
//		…
//		different, err := compute.Unique(ctx, column) // and so are compute's
//		…                                             // read it here: it ends with the query
//	})
//	if errors.Is(err, budget.ErrFull) { … } // the query is over, and its bytes are free
//
// [Query] opens a scope, [In] uses an open one, and [InHeap] a heap or a buddy, for long pipelines.
//
// Its limits:
//
//   - In a scope, Release frees only the newest buffers; the scope's Close frees the others.
//   - It bounds buffers, but neither the small Go values that come with them (some KiB a call of
//     compute) nor calls with another context or allocator than the query's.
//   - An array kept beyond its query is a bug, because it reads reused memory. A checked build
//     fills that memory.
//   - It supports the goroutines of package compute. A reader that allocates on goroutines of its
//     own may wait forever for a goroutine that ended when memory ran out (pqarrow wasn't tried).
//
// # Memory
//
// As with arrow's default allocator, buffers begin at a multiple of 64, and new bytes are zeros. In
// a scope a buffer takes its size, rounded up to 64 bytes. The newest buffer grows in place. Other
// buffers move when they grow, and their old bytes stay in use; Reserve of a builder avoids that.
// In a heap each buffer takes 16 bytes more, and a buffer that shrinks frees bytes. A lock around
// each request lets all goroutines of a query allocate. Until the query ends, nothing else may use
// the arena, unless InHeap got its arena.Shared.
//
// # Full
//
// When a query runs out of memory, its later requests are also refused, so a partial result never
// looks complete. The error is the scope's, which names the scope and the key of the plan to raise;
// a later error or panic of fn follows in the text.
//
// On the query's own goroutine a refused request unwinds, as everywhere in package scope. Another
// goroutine ends, as by Goexit, and the call of compute that waits for it returns the error. This
// needs functions of the context's registry: call them by compute.CallFunction or functions that
// use it, not by their own Execute. A call that was cut short may keep references to its arguments,
// so don't rely on the last Release of another owner's array.
//
// compute.FilterTable, and Filter of a table, can't be stopped half-way. If memory runs out there,
// the indices of the selected rows are on the Go heap until the call returns: 4 bytes each, 64 MiB
// at most.
//
// # Misuse
//
// A request after the query has ended panics (scope.ErrClosed); a Free then does nothing. Query in
// a covered or closed scope also panics, and In returns an error. Retain and Release count as
// usual, but no count keeps an array alive beyond its query.
package arrow
