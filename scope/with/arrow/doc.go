// Package arrow runs each query of arrow-go (v18) in a budget: the buffers of its arrays are in a
// scope or a heap and end with the query, and a query that needs more returns an error. Import it
// as with, because arrow's own package has its name.
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
//   - In a scope, Release frees the newest buffers alone; the others are freed when the scope
//     closes.
//   - It bounds buffers, not the small Go values that come with them, some 3 KiB a call of compute,
//     nor calls with another context or allocator than the query's.
//   - An array kept beyond its query is a bug: it reads memory that is used again. A checked build
//     fills it.
//   - It knows the goroutines of package compute. A reader that allocates on others (pqarrow's
//     weren't tried) may wait for ever for one that ended in a full.
//
// # Memory
//
// The allocator is like arrow's default: buffers begin at a multiple of 64 and are zeros, and so
// are the bytes that they grow by. In a scope a buffer takes its size, rounded up to 64 bytes. The
// newest grows in place. Others move when they grow, and their old bytes stay taken: Reserve of a
// builder avoids that. In a heap each takes 16 bytes more, and frees the bytes that it shrinks by.
// A lock around each request lets all goroutines of a query allocate; the arena itself is the
// query's until it ends.
//
// # Full
//
// The first full ends a query: later requests are refused too, so half a result never passes for a
// whole one. The error is the scope's, which names the scope and the key of the plan to raise; a
// later error or panic of fn follows it.
//
// On the query's own goroutine a full unwinds, as everywhere in package scope. On another it ends
// that goroutine by its deferred calls, and the call of compute that waits for it returns the full.
// Functions come from the registry of the context for that: call them by compute.CallFunction and
// the functions on top of it, not by their own Execute. A call that was cut short may keep
// references to its arguments: don't rely on the last Release of another owner's array.
//
// compute.FilterTable can't be left half-way, nor can Filter of a table. When it is full, the
// indices of the selected rows are on the Go heap until it returns: 4 bytes each, 64 MiB at most.
//
// # Misuse
//
// A request after the query has ended panics (scope.ErrClosed); a Free then does nothing. Query in
// a covered or closed scope panics too; In returns that as an error. Retain and Release count as
// usual, but no count keeps an array alive beyond its query.
package arrow
