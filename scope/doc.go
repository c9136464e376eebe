// Package scope gives lifetimes to memory: what is made in a scope dies when the scope closes, in one
// move, finalizers first.
//
//	var frogs = scope.Plain[Frog]()  // once; a Go pointer in Frog stops the program, naming it
//
//	t := scratch.Open("path query")  // or s.Open, b.Frame, or the scope that budget.Load hands out
//	near := frogs.Slice(t, 16)       // zeroed; cap == len
//	f := frogs.New(t)                // zeroed; an inlined bump
//	t.Defer(func() { … })            // runs at Close, newest first
//	err := t.Close()                 // finalizers, then one rewind
//	f.X = 1                          // NOT OKAY: f died with t
//
// Ten names to know:
//
//   - [Scope]: a lifetime. Open and Do nest another in it, Close ends it, Defer and Own run at its end.
//   - [Plain]: declares a type that dies in silence. Its [Maker] makes one (New), n (Slice), or a list
//     that grows (Append).
//   - [Object]: declares a type with a finalizer.
//   - [Pool]: values that come and go in any order; [HandlePool] names them, so that a stale name is
//     told; [SharedPool] is for many goroutines. What differs in length is on an [arena.Heap] in a scope
//     (see [arena.HeapOf]); package budget has a world that streams as an example.
//   - [Builder]: values whose number isn't known yet. [List]: several such, side by side, on scratch.
//     [Text]: a text. Package container: a list, a deque and maps for up to n.
//   - [Owned]: a Go value that a scope closes or keeps (Own, Defer, Keep).
//   - [Ref]: a reference that knows when its scope has closed. [Addr]: one that needn't know.
//   - [Scratch]: a worker's own arena, for scopes that follow the call stack.
//   - [Label]: who holds how much, by subsystem.
//   - [FullError]: what was full, and which key of the plan to raise. [Misuse]: a program to mend.
//
// Scopes of one arena nest like calls; only the topmost allocates. A covered, closed or stale scope
// refuses, in every build: New panics with what is wrong, TryNew gives nil and Close tells. What isn't
// zeroed says so in its name. A scope can't free one thing alone (a Pool can), can't grow, and can't
// hold a Go pointer: the collector doesn't look there. A pointer that is kept after its scope closed
// points at memory that is used again; race, asan and checked builds catch that in part. One goroutine
// at a time uses an arena and its scopes; only SharedPool locks. A zero Scope, Scratch, pool or container
// panics and says what it is; what is inlined (New, TryNew, the Allocs, Append, Get and Put of a Pool,
// Push) dereferences nil instead. Where lifetimes don't nest, or sizes can't be bounded, use the Go heap.
//
// # Full
//
// Full is an answer. New, Slice, Own and their like never give nil: a full unwinds to the enclosing
// [Scope.Do] or budget.Load, which returns it as an error; outside both it is a panic with the same
// text. So a loader may be left at any New: locks are unlocked by defer, and what it opens is Own's at
// once. TryNew, TrySlice and TryAllocUnzeroed give nil, for play and for goroutines that a load starts,
// where there is nothing to unwind to; the scope remembers ([Scope.Err]), and Close returns it. Get of
// a pool gives nil when all chunks are taken, and nothing remembers that: it is a state of play.
//
// # Iterators, C and goroutines
//
// A full unwinds the stack that it happens on, as any panic does.
//
//   - In a sequence behind iter.Pull it comes out of next or stop, and the Do around those returns it;
//     so does a Goexit. The two sides take turns, so they may use one arena: where the sequence's scope
//     is the topmost, the other side's is covered. Call stop before the scope around closes: else the
//     sequence's scope is left open, which Do and Close tell, and what it yielded is gone.
//   - In Go that C calls it leaves the frames of C behind, whose own ends don't run: a lock that C took
//     stays taken. Where C must come to its end use the Trys, and look at [Scope.Err] afterwards; with
//     -asan one has to.
//   - On a goroutine that a load started there is no load around: a full of New ends the process. So it
//     has a Do of its own, whose error the load returns. It may use the load's scope in the load's
//     place while the load waits for it, or scratch on loan beside the load. One that outlives the
//     load is refused: New panics, TryNew gives nil.
//
// # Finalizers
//
// The finalizer of [Object], Own, Defer and C's own (see [Scope.C]) stand in one chain and run newest
// first, exactly once, whatever ends the scope: return, error, panic, Goexit, full. Make links an
// object only after its constructor succeeded; one that fails leaves nothing. A finalizer that panics
// doesn't stop the others, and neither does one that ends its goroutine: the rest runs on a fresh one,
// while the ending one waits, so it may be on another thread. However many fail, the cost is linear and
// the stack constant; the first 16 errors come back as a list, with the number of the others.
//
// A finalizer may not allocate in its own scope, open a scope there, or close it: the bytes are about
// to go back. What was made after it is finalized already; what was made before it is whole. It can't
// load, rewind or close the budget where one runs it. It may use other arenas.
//
// # Arenas in a scope
//
// A heap of package arena, on bytes of a scope, must be empty when the scope closes, and so must a Buddy
// and a Shared. Close looks after the finalizers have run, which may free. If blocks are live, it returns
// an error that names the scope, the arena, and how many blocks, beside the errors of finalizers; a
// checked build adds the places that allocated them, the 16 with the most bytes. The bytes of the scope
// are free all the same. So does whatever else ends the bytes: Rewind and Load of a region,
// NextFrame, Release, the budget's Close. [arena.Heap.MayLive] says that blocks may be live, and
// [arena.Ring.MustEmpty] has a ring or a block pool tell, too. A scope that is unwound because its
// function failed, was full or panicked tells nothing of blocks: that error is told.
//
// # Costs
//
// In release builds Open, Close, New, TryNew, AllocUnzeroed, Get and Put are Go on the C core's words:
// inlined or a Go call, no Go allocation, no call into C (package arena_c says what holds the two
// together). A scope takes no byte of the arena: its record lies in the budget's tables. A finalizer
// takes 8 bytes of the arena; Own, Defer and Keep 16 and a place in a table of planned size
// (limits.owned). A call into C each are: to make a pool, to close it (and, if its objects have a
// finalizer, each of them), Index, Peak, Put of an [ObjectPool], [Scope.Temp] and its end, and
// finalizers of C's own. A type is declared once, because to look for Go pointers takes far longer than
// a New; each [Object] takes one of the 4,096 places that a process has.
//
// # On other machines
//
// The same program lays out the same bytes on every target, if its types have one size: no int, uint or
// uintptr, and 64-bit words ([arena.Ptr], [arena.Slice], [arena.String] and [Owned] too) at multiples of
// 8 in a type whose size is one. 32-bit targets align such words to 4 bytes inside a type; what holds
// one begins at a multiple of 8 in an arena there too.
//
// # For package budget
//
// [Stack] is exported because package budget makes regions, frame and scratch arenas of it. Programs
// have no use for it.
//
// # Sources
//
// Andreas Fredriksson, "Scope Stack Allocation" (DICE): scopes, finalizer chains, the regions of a
// level and pools inside; talk_example_test.go has it idea by idea. BlackMATov, "Scope Stack
// Allocation": the demo. "Alternatives to malloc and new" (#AltDevBlogADay): the sushi bar. Vincent
// Stehly-Calisto, "Climbing the stack allocator". Niklas Frykholm, "Custom Memory Allocation in C++"
// (Bitsquid): temporaries, and an allocator that takes its memory from another.
package scope
