// Package scope gives lifetimes to memory: what is made in a scope dies when the scope closes, in one move, finalizers
// first.
//
// It cannot free one thing alone (a [Pool] can), cannot grow, and cannot hold a Go pointer inside an arena: the collector
// doesn't look there. A pointer into a scope that is kept after the scope closed points at memory that is used again;
// release builds don't catch that, race, asan and checked builds do in part. Where lifetimes don't nest, or sizes
// can't be bounded, use the Go heap.
//
// # A lifetime
//
//	var frogs = scope.Plain[Frog]()                       // once; a Go pointer in Frog stops the program, naming it
//
//	t := scratch.Open("path query")                           // or s.Open, b.Frame, or the scope that budget.Load hands out
//	near := frogs.Slice(t, 16)                            // zeroed; cap == len
//	f := frogs.New(t)                                     // zeroed; an inlined bump
//	t.Defer(func() { … })                                 // runs at Close, newest first
//	err := t.Close()                                      // finalizers, then one rewind
//	f.X = 1                                               // NOT OKAY: f died with t
//
// Scopes of one arena nest like calls; only the topmost allocates. A covered, closed or stale scope refuses, in every
// build: [Maker.New] panics with what is wrong, [Maker.TryNew] gives nil and [Scope.Close] tells. A zero [Scope], [Pool] or
// [Scratch] is a nil dereference.
//
// # What to make
//
//   - Values that die in silence: [Plain], then New, Slice, SliceCap, Clone and Append of its [Maker]; [Scope.Bytes] and
//     [Scope.AllocUnzeroed] for raw memory.
//   - Values with a finalizer: [Object], then New, Slice, or Make when the constructor can fail.
//   - Values that come and go: [Pool]; [HandlePool] by name; [SharedPool] among goroutines.
//   - A number that isn't known yet: [Builder]; [ReadFile] and [Sprintf] know theirs.
//   - Up to n: list, deque, map and string map of package container. A text: [Text].
//   - Go values: [Scope.Own] closes, [Scope.Defer] runs, [Scope.Keep] keeps; their [Owned] may lie in the block.
//   - A reference that knows its end: [Ref]; inside one block [arena.Ptr], [arena.Slice], [arena.String].
//
// # Full
//
// Full is an answer. New, Slice, Alloc, Own and their like never give nil: a full unwinds to the enclosing [Scope.Do] or
// budget.Load, which returns it as an error; outside both it is a panic with the same text. TryNew, TrySlice and TryAlloc
// give nil, for play and for goroutines that a load starts (a panic there would end the process; let them take turns, or
// give each a scratch arena); the scope remembers ([Scope.Err]), and Close returns it. [Pool.Get] gives nil when all
// chunks are taken, and nothing remembers that: it is a state of play. The error, a [FullError], says what was
// asked, what was free, who holds most (a scope, or a subsystem that [Label] names), and which key of the plan to raise.
//
// # Finalizers
//
// The finalizer of [Object], Own, Defer and C's own (see [Scope.C]) stand in one chain and run newest first, exactly once,
// whatever ends the scope: return, error, panic, Goexit, full. Make links an object only after its constructor succeeded;
// one that fails leaves nothing. A finalizer that panics doesn't stop the others, and neither does one that ends its
// goroutine: the rest runs on a fresh one, while the ending one waits, so it may be on another thread. However many fail,
// the cost is linear and the stack constant; the first 16 errors come back as a list, with the number of the others. Plain
// data costs nothing to clean.
//
// # Costs
//
// In release builds Open, Close, New, TryNew, AllocUnzeroed, Get and Put are Go on the C core's words: inlined or a Go call, no Go
// allocation, no call into C. A scope takes no byte of the arena: its record lies in the budget's tables. A finalizer takes
// 8 bytes of the arena, Own, Defer and Keep 16 and a place in a table of planned size (limits.owned). A call into C each are:
// to make a pool, to close it (and, if its objects have a finalizer, each of them), [Pool.Index], [Pool.Peak], Put of an
// [ObjectPool], [Scope.Temp] and its end, and finalizers of C's own.
//
// # Goroutines
//
// One goroutine at a time uses an arena and its scopes. A scratch arena belongs to one worker. Nothing here locks for its callers,
// but [SharedPool].
//
// # On other machines
//
// The same program lays out the same bytes on every target, if its types have one size: no int, uint or uintptr, and
// 64-bit words ([arena.Ptr], [arena.Slice], [arena.String] and [Owned] too) at multiples of 8 in a type whose size is one.
// 32-bit targets align such words to 4 bytes inside a type; what holds one begins at a multiple of 8 in an arena there too.
//
// # Why
//
// Why does full unwind? A level runs or it doesn't. A loader that had to look at each of a thousand allocations would miss
// one, and a level that failed half through is the bug that this library is for. So New gives a value or doesn't return.
// The price: a loader may be left at any New, so locks are unlocked by defer and what it opens is Own's at once; and in a
// goroutine that it starts there is nothing to unwind to.
//
// Why is the cursor moved in Go, not in C? A call into C costs more than ten times the allocation (make bench, work A). The
// price is that the few operations that play does by the thousand are written twice, on the same words; package arena_c
// says what holds the two together. With -tags upfront_cgo all of them are C's.
//
// Why are types declared once? Looking for Go pointers in a type takes far longer than a New, and the answer never changes.
// So a bad type stops the program at its start, not in play. The price is a variable for each type. A declaration inside a
// function looks each time, and each [Object] takes one of the 4,096 places that a process has.
//
// What may a finalizer not do? Allocate in its own scope, open a scope there, or close it: the bytes are about to go back.
// What was made after it is finalized already; what was made before it is whole. One that a load or rewind runs can't load
// or rewind, and none can close the budget. It may use other arenas: one that needs memory takes it from a scratch arena.
//
// Why does an arena know the generation of one scope, the one that may allocate? Because then a stale handle, a covered
// scope, a frozen one and one that closes are told by one comparison, and whether there is room by a second: an allocation
// asks no more. Generations have 64 bits, and a process gives none twice.
//
// # For package budget
//
// [Stack], [Config], [NewStack], [ScratchOf], [TableBytes] and [SiteBytes] are exported because package
// budget makes regions, frame and scratch arenas of them. Programs have no use for them; their comments begin by saying so.
//
// # Sources
//
// Andreas Fredriksson, "Scope Stack Allocation" (DICE); talk_example_test.go has it idea by idea. BlackMATov, "Scope Stack
// Allocation", for the demo; Vincent Stehly-Calisto, "Climbing the stack allocator", for the sushi bar; "Alternatives to
// malloc and new" (#AltDevBlogADay); Niklas Frykholm, "Custom Memory Allocation in C++" (Bitsquid), for the stack of scopes
// and its temporaries.
package scope
