// Package scope gives lifetimes to memory: closing a scope runs its finalizers and frees all its
// memory in one move.
//
//	var frogs = scope.Plain[Frog]() // once; panics if a field of Frog is a Go pointer
//
//	t := scratch.Open("path query") // or s.Open, b.Frame, or the scope of budget.Load
//	near := frogs.Slice(t, 16)      // zeroed; cap == len
//	f := frogs.New(t)               // zeroed; an inlined bump
//	t.Defer(func() { … })           // runs at Close, newest first
//	err := t.Close()                // finalizers, then one rewind
//	f.X = 1                         // NOT OKAY: f was freed with t
//
// Names to know first:
//
//   - [Scope]: a lifetime. Open and Do nest another in it, and Close ends it. Functions and closers
//     registered with Defer and Own run at its end.
//   - [Plain]: declares a type without a finalizer. Its [Maker] makes one value (New), n (Slice),
//     or a list that grows (Append). From Go 1.27 on, New, Slice and Pool of a Scope need no
//     declaration.
//   - [Object]: declares a type with a finalizer.
//   - [Pool]: values that come and go in any order. [HandlePool] has handles that detect a value
//     put back; [SharedPool] is for many goroutines. For values of different lengths make an
//     [arena.Heap] in a scope ([arena.HeapOf]); the example of a streamed world in package budget
//     does so.
//   - [Builder]: values whose number isn't known yet. [List]: the same for scratch, where several
//     may grow at once. [Text]: a text. Package container has lists, deques and maps for up to n
//     values.
//   - [Owned]: a Go value that a scope closes, calls or keeps (Own, Defer, Keep).
//   - [Ref]: a reference that detects a closed scope. [Addr]: one that doesn't.
//   - [Scratch]: a worker's own arena, for scopes that follow the call stack.
//   - [Label]: the bytes of a subsystem.
//   - [FullError]: the full arena or table, and the key of the plan to raise. [Misuse]: a bug of
//     the caller.
//
// # Rules
//
//   - Scopes of one arena nest like calls; only the topmost allocates. An open scope covers those
//     below it. A covered, closed or stale scope refuses in every build: New panics with the
//     reason, TryNew returns nil and Close returns the reason.
//   - Memory is zeroed unless the function's name says Unzeroed.
//   - A scope can't free one object alone (a Pool can) and can't grow. It can't hold a Go pointer,
//     because the collector doesn't look there.
//   - A pointer kept after its scope closed points to reused memory. Race, asan and checked builds
//     catch that in part.
//   - One goroutine at a time uses an arena and its scopes; only SharedPool locks.
//   - A zero Scope, Scratch, pool or container panics with a message. The inlined methods (New,
//     TryNew, the Allocs, Append, Get and Put of a Pool, Push) dereference nil instead.
//   - Use the Go heap where lifetimes don't nest, or sizes can't be bounded.
//
// # Full
//
// Running out of room, in an arena or a table, is an expected result, not a bug. New, Slice and Own
// never return nil: without room they unwind to the enclosing [Scope.Do] or budget.Load, which
// returns a [FullError]. Outside both they panic with the same text. Any New may end a loader, so
// it must unlock with defer and pass each file or socket to Own at once.
//
// TryNew, TrySlice and TryAllocUnzeroed return nil instead. Use them while the game runs, and on
// goroutines of a load, which have no Load on their stack. The scope remembers the error
// ([Scope.Err]), and Close returns it. Get of a pool returns nil when all chunks are live. The
// scope doesn't remember that, because it is normal.
//
// # Iterators, C and goroutines
//
// A FullError unwinds the stack of its goroutine, as any panic does.
//
//   - If an iterator started by iter.Pull runs out of room or calls Goexit, next or stop unwinds in
//     the caller. The Do around that call returns the FullError; a Goexit goes on. Both sides may
//     use one arena, because only one runs at a time. While the iterator's scope is open, the
//     caller can't allocate in its own. Call stop before the scope around it closes. Otherwise the
//     iterator's scope stays open: Do and Close report it and free its values.
//   - In Go that C calls, the unwinding skips the C frames: a lock that C took stays taken. Where C
//     must return, use the Try functions and check [Scope.Err] afterwards; -asan requires that.
//   - On a goroutine that a load started, no load is on the stack: a New without room ends the
//     process. Use a Do there, and return its error from the load's function. The goroutine may use
//     the load's scope while the load waits for it, or a scratch arena of its own (budget.Lease) at
//     any time. After the load has returned, its scope refuses: New panics, TryNew returns nil.
//
// # Finalizers
//
// Finalizers of [Object], Own, Defer and C (see [Scope.C]) are one chain. They run newest first,
// exactly once, however the scope ends: return, error, FullError, panic or Goexit.
// [ObjectMaker.Make] links an object once its constructor succeeded; a failed constructor leaves
// nothing. A finalizer that panics doesn't stop the others. If a finalizer ends its goroutine, the
// goroutine waits while the other finalizers run on a new one, perhaps on another thread. However
// many fail, the time is linear in their number, and the stack stays the same size. Close returns
// the first 16 errors and the number of the others.
//
// A finalizer may not allocate in its own scope, open a scope there, or close it. It can't load,
// rewind or close the budget that it runs in. It may use other arenas. Objects made after the
// finalizer's own object are finalized already; older objects are whole.
//
// # Arenas in a scope
//
// An [arena.Heap], Buddy or Shared on bytes of a scope must be empty when the scope closes. The
// check runs after the finalizers, which may free blocks. If blocks are live, Close's error names
// the scope, the arena and the number of blocks. A checked build adds the places that allocated
// them: the 16 with the most bytes. The scope's bytes are freed all the same. Rewind and Load of a
// region, NextFrame, Release and the budget's Close check too. A scope that is unwound by an error
// or a panic reports no blocks, only that error.
//
// [arena.Heap.MayLive] allows live blocks. [arena.Ring.MustEmpty] and [arena.BlockPool.MustEmpty]
// add a ring or a block pool to the check.
//
// # Checked builds
//
// A checked build (-tags checked) gives reused memory a new address. The old address stays unused
// for a while, so a stale pointer can't reach the new object. Say a level's first frog is at offset
// 64. The next load puts another frog at offset 64, with an address in a second window. A write
// through the old pointer then faults, and the report names the lines that made and rewound the old
// frog. Offsets and the bytes of saves are the same as in other builds. Package budget has the
// details.
//
// # Costs
//
// In release builds these are Go code on the C core's words: Open, Close, New, TryNew,
// AllocUnzeroed, Get and Put. They make no Go allocation and no call into C. Package arena_c
// describes how the Go and the C code stay equal.
//
//   - A scope takes no byte of the arena: its record is in the budget's tables.
//   - A finalizer takes 8 bytes of the arena; Own, Defer and Keep take 16, and an entry of a
//     table of planned size (limits.owned).
//   - One call into C for each of these: making and closing a pool, each finalizer of its objects,
//     Index, Peak, Put of an [ObjectPool], [Scope.Temp] and its end, and each run of C's
//     finalizers.
//   - Declare a type once: the search for Go pointers takes far longer than a New. Each [Object]
//     takes one of the process's 4,096 entries.
//
// # On other machines
//
// A program lays out the same bytes on every target if its types have the same size on all targets.
// So use no int, uint or uintptr. Put 64-bit words ([arena.Ptr], [arena.Slice], [arena.String] and
// [Owned] too) at multiples of 8, in types of a multiple of 8 bytes. 32-bit targets align such
// words to 4 bytes inside a type; an object that holds such a word still begins at a multiple of 8
// in an arena.
//
// # Sources
//
// Andreas Fredriksson, "Scope Stack Allocation" (DICE): scopes, finalizer chains, the regions of a
// level and pools inside; talk_example_test.go shows the talk's ideas one by one. BlackMATov,
// "Scope Stack Allocation": the demo. "Alternatives to malloc and new" (#AltDevBlogADay): the sushi
// bar. Vincent Stehly-Calisto, "Climbing the stack allocator". Niklas Frykholm, "Custom Memory
// Allocation in C++" (Bitsquid): temporaries, and an allocator that takes its memory from another.
package scope
