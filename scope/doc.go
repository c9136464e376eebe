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
//   - [Scope]: a lifetime. Open and Do open a scope inside another, and Close ends a scope. At its
//     end a scope calls the functions passed to Defer, and closes the values passed to Own, unless
//     they were cancelled or closed before.
//   - [Plain]: declares a type without a finalizer. Its [Maker] makes one value (New) or a slice of
//     n values (Slice), and appends to a list (Append). From Go 1.27 on, Scope itself has New,
//     Slice and Pool, which need no declaration.
//   - [Object]: declares a type with a finalizer.
//   - [Pool]: values of one type that are allocated and freed in any order. A [HandlePool] names
//     each value by a handle, and a handle of a freed value finds no value. Several goroutines may
//     share a [SharedPool]. For slices of different lengths make an [arena.Heap] in a scope, and
//     use [arena.HeapOf]. The example of a streamed world in package budget does so.
//   - [Builder]: gathers values whose number isn't known yet. A [List] does so on a scratch arena,
//     where several Lists may grow at once. A [Text] builds a text. Package container has lists,
//     deques and maps for up to n values.
//   - [Owned]: identifies a Go value that a scope closes (Own), calls (Defer) or keeps alive
//     (Keep).
//   - [Ref]: a reference to an object. A Ref detects that the object's scope has closed. An [Addr]
//     is a reference without this check.
//   - [Scratch]: a worker's own arena, for scopes that follow the call stack.
//   - [Label]: counts the bytes that a subsystem takes.
//   - [FullError]: the error of an arena or table that is out of room. It names the key of the plan
//     to raise. A [Misuse] is the error for a bug of the caller.
//
// # Rules
//
//   - Scopes of one arena nest like calls, and only the topmost scope allocates. An open scope
//     covers the scopes below it, except that one of [Scope.Temp] covers only older temporaries. A
//     covered or closed scope refuses each request, in every build: New panics with the reason,
//     TryNew returns nil, and Close returns the reason.
//   - Memory from this package is zeroed unless the function's name says Unzeroed.
//   - A scope frees its objects together. A Pool frees objects one by one. An arena doesn't grow.
//     An object in a scope can't hold a Go pointer, because the garbage collector doesn't look into
//     arenas.
//   - A pointer kept after its scope closed points to reused memory. Race, asan and checked builds
//     detect some uses of that pointer.
//   - One goroutine at a time uses an arena and its scopes. Goroutines may share a SharedPool.
//   - Methods of a zero Scope, Scratch, pool or container panic with a message. The inlined methods
//     (New, TryNew, the Allocs, Append, the Gets and Put of a Pool, the Pushes) dereference nil
//     instead.
//   - Use the Go heap where lifetimes don't nest, or sizes can't be bounded.
//
// # Full
//
// An arena or a table may run out of room. This is an expected result, not a bug. New, Slice and
// Own never return nil. Without room they panic, and the enclosing [Scope.Do] or budget.Load
// recovers the panic and returns a [FullError]. The docs call this unwinding, as in "a full scope
// unwinds". Outside of Do and Load the panic goes on, with the same text. Any New may end a loader.
// So a loader unlocks with defer, and passes each file or socket to Own at once.
//
// TryNew, TrySlice and TryAllocUnzeroed return nil instead. Use these functions while the game
// runs, and on goroutines that a load starts, because the stack of such a goroutine has no Load.
// The scope remembers the error: [Scope.Err] returns it, and so does Close unless another call has.
// Get of a pool returns nil when none of its chunks, the places for values, is free. The scope
// doesn't remember a full pool, because a full pool is normal.
//
// # Iterators, C and goroutines
//
// A FullError unwinds the stack of its goroutine, as any panic does.
//
//   - If an iterator started by iter.Pull runs out of room, the caller's call of next or stop
//     unwinds, and the Do around that call returns the FullError. If the iterator calls Goexit, the
//     caller's goroutine ends. The iterator and its caller may use one arena, because only one of
//     them runs at a time. While the iterator's scope is open, the caller can't allocate in the
//     scope below. Call stop before the scope around the iterator closes. Otherwise the iterator's
//     scope stays open, until the Do around it, or the budget's Close, reports that scope and frees
//     its values.
//   - If C calls Go code that runs out of room, the unwinding skips the frames of C, so a lock that
//     C took stays locked. Where the C code must return, use the Try functions in Go, and check
//     [Scope.Err] afterwards. Builds with -asan require the Try functions there.
//   - The stack of a goroutine that a load started has no Load, so a New without room ends the
//     process. Use a Do on that goroutine, and return the error of the Do from the load's function.
//     The goroutine may use the load's scope while the load waits for the goroutine. It may use a
//     scratch arena of its own (budget.Lease). But take the lease before the load: workers that
//     wait for the load to end may have all leases. After the load has returned, the load's scope
//     refuses: New panics, and TryNew returns nil.
//
// # Finalizers
//
// The finalizers of objects ([Object]) and of C code ([Scope.C]), the Close calls of Own, and the
// calls of Defer form one chain. Each that isn't cancelled runs exactly once, the newest first,
// however the scope ends: by a return, an error, a FullError, a panic or Goexit. A pool of objects
// counts as one object, made when Pool was called; its live values are finalized in the order of
// their chunks. [ObjectMaker.Make] adds an object to the chain when its constructor has succeeded.
// A constructor that fails leaves no object. A finalizer that panics doesn't stop the others. If a
// finalizer calls Goexit, its goroutine waits while the other finalizers run on a new goroutine,
// perhaps on another thread. If many finalizers fail, the time is linear in their number, and the
// stack doesn't grow. Close returns the first 16 errors and the number of the others.
//
// A finalizer may not allocate in its own scope, open a scope in it, or close it. It can't close
// the budget, or load or rewind a region that is being emptied. A finalizer may use other arenas.
// When a closing scope finalizes an object, newer objects are finalized already, and older objects
// are whole.
//
// # Arenas in a scope
//
// An [arena.Heap], Buddy or Shared on bytes of a scope must be empty when the scope closes. An
// arena that C made, or that is in a block of another arena, isn't checked. The check runs after
// the finalizers, which may free blocks. If blocks are live, Close's error names the scope and the
// arena, and says how many blocks are live. In a checked build the error also lists the lines that
// allocated the live blocks: the 16 lines with the most bytes. The scope's bytes are freed in any
// case. Rewind and Load of a region, NextFrame, Release and the budget's Close make the same check.
// If a scope is unwound by an error or a panic, only that error is reported, and no live blocks.
//
// [arena.Heap.MayLive] allows live blocks. [arena.Ring.MustEmpty] and [arena.BlockPool.MustEmpty]
// add a ring or a block pool to the check.
//
// # Checked builds
//
// A checked build (-tags checked) gives reused memory a new address. The old address stays unused
// for a while, so a stale pointer can't reach the new object. Say a level's first frog is at offset
// 64. The next load puts another frog at offset 64, but at another address. A write through the old
// pointer then faults, and the report names the lines that made and rewound the old frog. Offsets,
// and the bytes of saves, are the same as in other builds. Package budget describes checked builds.
//
// # Costs
//
// In release builds Open, Close, New, TryNew, AllocUnzeroed, Get and Put are Go code that reads and
// writes the words of the C core. They make no Go allocation and no call into C, except as below.
// Package arena_c describes how the Go and the C code stay equal.
//
//   - A scope takes no byte of the arena: its record is in the budget's tables. One of [Scope.Temp]
//     takes 16 bytes. Open copies a name that is in the budget's memory to the Go heap.
//   - A finalizer takes bytes of the arena: 8 for an object, 16 for a pool, 40 for a slice of
//     objects, and 24 for C. Own, Defer and Keep take 16 bytes each, and an entry of a table whose
//     size is in the plan (limits.owned). All begin at a multiple of 8.
//   - Each of these makes one call into C: making a pool, closing a pool, a finalizer of a pool's
//     object, Index without a handle, Peak, Put of an [ObjectPool], [Scope.Temp], the end of
//     temporaries, and a run of C's finalizers. Closing an ObjectPool makes up to three calls.
//     Where a region with a warn share has heaps, Open and Close call C for each heap.
//   - Declare a type once: the search for Go pointers takes far longer than a New. A process can
//     declare at most 4,089 Objects.
//
// # On other machines
//
// A program lays out the same bytes on every target if its types have the same size on all targets.
// So use no int, uint or uintptr. Put each 64-bit field at an offset that is a multiple of 8, and
// make the type's size a multiple of 8. [arena.Ptr], [arena.Slice], [arena.String] and [Owned] hold
// 64-bit words as well. The reason is that 32-bit targets align a 64-bit field only to 4 bytes
// inside a type. On every target, an object with a 64-bit field begins at a multiple of 8 in an
// arena.
//
// # Sources
//
// Andreas Fredriksson, "Scope Stack Allocation" (DICE): scopes, finalizer chains, the regions of a
// level, and pools in a level. The file talk_example_test.go shows the talk's ideas one by one.
// BlackMATov, "Scope Stack Allocation": the example named demo in that file. "Alternatives to
// malloc and new" (#AltDevBlogADay): the file's examples of a sushi bar. Vincent Stehly-Calisto,
// "Climbing the stack allocator". Niklas Frykholm, "Custom Memory Allocation in C++" (Bitsquid):
// temporaries, and an allocator that takes its memory from another.
package scope
