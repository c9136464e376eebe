// Package arrow gives each query of arrow-go (v18) a budget: the buffers of its arrays lie in a
// scope, or in a heap, and end with the query; one that needs more is an error. Since arrow's own
// package has that name, it is imported as with.
//
// It can't give back what lies between other things in a scope: Release takes effect for the newest
// buffers alone, and everything else goes when the scope closes; InHeap is for long pipelines. It
// bounds buffers, not the small Go values beside them, some 3 KiB a call of compute; nor what is
// called with another context or allocator than the query's. An array that is kept beyond its query
// is a bug, which reads another's bytes; a checked build fills them. It knows the goroutines of
// package compute: a reader that allocates on others (pqarrow's weren't tried) may wait for ever
// for one that was full.
//
//	import with "github.com/upfront-mem/upfront/scope/with/arrow"
//
//	err := with.Query(ctx, lease.Scratch(0), "ages", func(ctx context.Context, mem memory.Allocator) error {
//		ages := array.NewInt32Builder(mem)            // its buffers lie in the scope
//		…
//		different, err := compute.Unique(ctx, column) // and so does what compute makes
//		…                                             // read it here: it ends with the query
//	})
//	if errors.Is(err, budget.ErrFull) { … } // the query is over, its bytes are back, all else is as before
//
// # Memory
//
// The allocator does what arrow's default does: buffers begin at a multiple of 64 and are zeros, and
// so is what they grow by. In a scope each takes its size, rounded up to 64 bytes, and no more; the
// newest grows where it lies, and others move, whose old bytes stay taken: Reserve of a builder
// saves that. In a heap each takes 16 bytes more, and gives back what it shrinks by. A lock around
// each request lets all goroutines of a query allocate; the arena itself is the query's until it
// ends.
//
// # Full
//
// The first full ends a query: whatever it asks for after that is refused too, so no half of a
// result passes for one. The error is that of the scope, which names who asked and the key of the
// plan to raise; what fn returned or panicked with afterwards follows it.
//
// On the query's own goroutine a full unwinds, as everywhere in package scope. On another it ends
// that goroutine by its deferred calls, and a call of compute that waits for it returns the full.
// For that, functions come from the registry of the context: call them by compute.CallFunction and
// what stands on it, not by their own Execute. What was cut short may keep references: don't count
// on the last Release of another owner's array that was an argument then.
//
// One function can't be left half-way, compute.FilterTable, and so Filter of a table: where it is
// full, the indices of the rows that it selects, 4 bytes each and 64 MiB at most, are the Go heap's
// until it returns.
//
// # Misuse
//
// A request through an allocator whose query has ended panics, and says so (scope.ErrClosed); a
// Free then does nothing. Query in a scope that is covered or closed panics too; In gives it as an
// error. Retain and Release count as ever: a count keeps no array alive beyond its query.
package arrow
