// Package arrow runs each query of arrow-go (v18) in a budget. The buffers of the query's arrays
// are in a scope or a heap, and end with the scope or the query; a query that runs out of memory
// returns an error. Import the package as with, because arrow-go has a package arrow.
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
// [Query] opens a scope, and [In] uses an open scope. [InHeap] uses a heap or a buddy, for long
// pipelines.
//
// Its limits:
//
//   - In a scope, Release frees only the newest buffers; the scope's Close frees the others.
//   - Only buffers are bounded. The small Go values around buffers (some KiB for a call of compute)
//     aren't, and neither are calls with another context or allocator than the query's.
//   - An array kept beyond its query is a bug, because it reads reused memory. A checked build
//     fills that memory.
//   - The goroutines of package compute are supported. A reader that allocates on goroutines of its
//     own may wait forever for a goroutine that ended when memory ran out (pqarrow wasn't tried).
//
// # Memory
//
// As with arrow's default allocator, buffers begin at a multiple of 64, and new buffers are zeros.
// In a scope a buffer takes its size, rounded up to 64 bytes. The newest buffer grows in place,
// unless another allocation of the scope follows it. Other buffers move when they grow, and their
// old bytes stay in use. To avoid that, call Reserve of the builder. In a heap a buffer takes some
// bytes more, and in a buddy a power of two. A lock around each request lets all goroutines of a
// query allocate. Until the query ends, only the query may use the arena. If InHeap got an
// arena.Shared, other goroutines may use the arena through it.
//
// # Full
//
// When a query runs out of memory, its later requests are also refused, so a partial result never
// looks complete. In a scope the error is the scope's, which names the scope and the key of the
// plan to raise. A later error or panic of fn follows in the error's text.
//
// On the query's own goroutine a refused request unwinds, as everywhere in package scope. Another
// goroutine ends, as by runtime.Goexit, and the call of compute that waits for that goroutine
// returns the error. This works only for functions of the context's registry. Call such a function
// by compute.CallFunction, or by a function that uses CallFunction, and not by the function's own
// Execute. A call that was cut short may keep references to its arguments, so don't rely on the
// last Release of another owner's array.
//
// compute.FilterTable, and Filter of a table, can't be stopped half-way. If memory runs out there,
// the requests of the call are served on the Go heap, up to 64 MiB in a query.
//
// # Misuse
//
// After the query has ended, a request panics (scope.ErrClosed), and a Free does nothing. In a
// covered or closed scope, Query panics, and the first request of In makes it return an error.
// Retain and Release count as usual, but no count keeps an array alive beyond its query or scope.
package arrow
