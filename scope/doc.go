// Package scope gives lifetimes to memory: closing a scope runs its finalizers and frees all that
// was made in it, in one move.
//
//	var frogs = scope.Plain[Frog]() // once; a Go pointer in Frog stops the program, naming it
//
//	t := scratch.Open("path query") // or s.Open, b.Frame, or the scope of budget.Load
//	near := frogs.Slice(t, 16)      // zeroed; cap == len
//	f := frogs.New(t)               // zeroed; an inlined bump
//	t.Defer(func() { … })           // runs at Close, newest first
//	err := t.Close()                // finalizers, then one rewind
//	f.X = 1                         // NOT OKAY: f was freed with t
//
// Ten names to know:
//
//   - [Scope]: a lifetime. Open and Do nest another in it, Close ends it, Defer and Own run at its
//     end.
//   - [Plain]: declares a type without a finalizer. Its [Maker] makes one value (New), n (Slice),
//     or a list that grows (Append).
//   - [Object]: declares a type with a finalizer.
//   - [Pool]: values that come and go in any order. [HandlePool] detects stale names of them;
//     [SharedPool] is for many goroutines. For values of different lengths make an [arena.Heap] in
//     a scope ([arena.HeapOf]); package budget has a streamed world as an example.
//   - [Builder]: values whose number isn't known yet. [List]: several such on scratch. [Text]: a
//     text. Package container has lists, deques and maps for up to n values.
//   - [Owned]: a Go value that a scope closes, calls or keeps (Own, Defer, Keep).
//   - [Ref]: a reference that detects a closed scope. [Addr]: one that doesn't.
//   - [Scratch]: a worker's own arena, for scopes that follow the call stack.
//   - [Label]: the bytes of a subsystem.
//   - [FullError]: the full arena or table, and the key of the plan to raise. [Misuse]: a bug to
//     mend.
//
// # Rules
//
//   - Scopes of one arena nest like calls; only the topmost allocates. A covered, closed or stale
//     scope refuses in every build: New panics with the reason, TryNew returns nil and Close
//     returns the reason.
//   - Memory is zeroed unless the function's name says Unzeroed.
//   - A scope can't free one object alone (a Pool can), can't grow, and can't hold a Go pointer,
//     because the collector doesn't look there.
//   - A pointer kept after its scope closed points at memory that is used again. Race, asan and
//     checked builds catch that in part.
//   - One goroutine at a time uses an arena and its scopes; only SharedPool locks.
//   - A zero Scope, Scratch, pool or container panics with a message. The inlined methods (New,
//     TryNew, the Allocs, Append, Get and Put of a Pool, Push) dereference nil instead.
//   - Use the Go heap where lifetimes don't nest, or sizes can't be bounded.
//
// # Full
//
// A full is an answer, not a failure. New, Slice, Own and their like never return nil: a full
// unwinds to the enclosing [Scope.Do] or budget.Load, which returns it as an error. Outside both it
// is a panic with the same text. A loader may therefore end at any New: it unlocks with defer, and
// passes each file or socket to Own at once.
//
// TryNew, TrySlice and TryAllocUnzeroed return nil. They are for play, and for goroutines that a
// load starts, where no Load is on the stack. The scope remembers the full ([Scope.Err]), and Close
// returns it. Get of a pool returns nil when all chunks are live, and is not remembered: that is a
// state of play.
//
// # Iterators, C and goroutines
//
// A full unwinds its own stack, as any panic does.
//
//   - In a sequence of iter.Pull, a full or a Goexit comes out of next or stop, and the Do around
//     those returns it. The two sides take turns, so they may use one arena: while the sequence's
//     scope is the topmost, the other side's is covered. Call stop before the scope around it
//     closes. Otherwise the sequence's scope is left open, which Do and Close report, and its
//     values are freed.
//   - In Go that C calls, a full skips the C frames: a lock that C took stays taken. Where C must
//     return, use the Try functions and check [Scope.Err] afterwards; with -asan this is necessary.
//   - On a goroutine that a load started, no load is on the stack: a full of New ends the process.
//     Use a Do there, whose error the load returns. The goroutine may use the load's scope while
//     the load waits for it, or scratch on loan at any time. After the load has returned, its scope
//     refuses: New panics, TryNew returns nil.
//
// # Finalizers
//
// Finalizers of [Object], Own, Defer and C (see [Scope.C]) are one chain. They run newest first,
// exactly once, however the scope ends: return, error, panic, Goexit or full. Make links an object
// only after its constructor succeeded; a failed one leaves nothing. A finalizer that panics
// doesn't stop the others. After one that ends its goroutine the rest run on a fresh one, perhaps
// on another thread, while the first waits. However many fail, the cost is linear and the stack
// constant. Close returns the first 16 errors, and the number of the others.
//
// A finalizer may not allocate in its own scope, open a scope there, or close it. It can't load,
// rewind or close the budget that it runs in. It may use other arenas. Objects made after its own
// are finalized already; objects made before are whole.
//
// # Arenas in a scope
//
// An [arena.Heap], Buddy or Shared on bytes of a scope must be empty when the scope closes. The
// check runs after the finalizers, which may free blocks. If blocks are live, Close returns an
// error with the scope, the arena and the number of blocks; a checked build adds the places that
// allocated them, the 16 with the most bytes. The bytes of the scope are freed all the same. Rewind
// and Load of a region, NextFrame, Release and the budget's Close check too. A scope that is
// unwound by an error, a full or a panic reports no blocks, only that error.
//
// [arena.Heap.MayLive] allows live blocks; [arena.Ring.MustEmpty] has a ring or a block pool
// checked, too.
//
// # Checked builds
//
// A checked build (-tags checked) gives memory that is used again another address and leaves the
// old one unused for a while, so a stale pointer can't reach the new object. Say a level's first
// frog is at offset 64. After the next load, offset 64 has another frog, at an address in a second
// window. A write through the old pointer then faults, and the report names the lines that made and
// rewound the old frog. Offsets, and the bytes of saves, are those of other builds. Package budget
// has the details.
//
// # Costs
//
// In release builds Open, Close, New, TryNew, AllocUnzeroed, Get and Put work on the C core's words
// in Go: inlined or a Go call, no Go allocation, no call into C. Package arena_c describes how the
// two stay equal.
//
//   - A scope takes no byte of the arena: its record is in the budget's tables.
//   - A finalizer takes 8 bytes of the arena; Own, Defer and Keep take 16, and a place in a table
//     of planned size (limits.owned).
//   - One call into C each: making and closing a pool, each finalizer of its objects, Index, Peak,
//     Put of an [ObjectPool], [Scope.Temp] and its end, and finalizers of C.
//   - Declare a type once: the search for Go pointers takes far longer than a New. Each [Object]
//     takes one of the process's 4,096 places.
//
// # On other machines
//
// The same program lays out the same bytes on every target, if its types have the same size on all
// of them. That means no int, uint or uintptr, and 64-bit words ([arena.Ptr], [arena.Slice],
// [arena.String] and [Owned] too) at multiples of 8, in a type whose size is a multiple of 8.
// 32-bit targets align such words to 4 bytes inside a type; an object that holds one begins at a
// multiple of 8 in an arena there too.
//
// # Sources
//
// Andreas Fredriksson, "Scope Stack Allocation" (DICE): scopes, finalizer chains, the regions of a
// level and pools inside; talk_example_test.go has it idea by idea. BlackMATov, "Scope Stack
// Allocation": the demo. "Alternatives to malloc and new" (#AltDevBlogADay): the sushi bar. Vincent
// Stehly-Calisto, "Climbing the stack allocator". Niklas Frykholm, "Custom Memory Allocation in
// C++" (Bitsquid): temporaries, and an allocator that takes its memory from another.
package scope
