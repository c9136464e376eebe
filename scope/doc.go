// Package scope gives lifetimes to memory: what is made in a scope dies when the scope closes, in one move, finalizers
// first.
//
// It cannot free one thing alone (a Pool can), cannot grow, and cannot hold a Go pointer inside an arena: the collector
// doesn't look there. A pointer into a scope that is kept after the scope closed points at memory that is used again;
// release builds don't catch that, race, asan and memdebug builds do in part. Where lifetimes don't nest, or sizes
// can't be bounded, use the Go heap.
//
// # A lifetime
//
//	var frogs = scope.Plain[Frog]()                       // once; a Go pointer in Frog stops the program, naming it
//
//	t := pad.Open("path query")                           // or s.Open, or the scope that budget.Load hands out
//	near := frogs.Slice(t, 16)                            // zeroed; cap == len
//	f := frogs.New(t)                                     // zeroed; an inlined bump
//	t.Defer(func() { … })                                 // runs at Close, newest first
//	err := t.Close()                                      // finalizers, then one rewind
//	f.X = 1                                               // NOT OKAY: f died with t
//
// Scopes of one arena nest like calls; only the topmost allocates. A covered, closed or stale scope refuses, in every
// build, in the same comparison that finds an arena full: New panics with what is wrong, TryNew gives nil and Close
// tells. A zero Scope, Pool or Pad is a nil dereference.
//
// What must outlive a call of play, a name that a player sent for one, belongs into a chunk of a pool that the level
// made when it was loaded: as an array of fixed size, since a frozen region gives nothing.
//
// # Full
//
// Full is an answer. New, Slice, Alloc, Own and their like never give nil: a full unwinds to the enclosing Do or
// budget.Load, which returns it as an error; outside both it is a panic with the same text. TryNew, TrySlice and
// TryAlloc give nil, for play and for goroutines that a load starts (a panic there would end the process; let them take
// turns, or give each a pad); the scope remembers (Err), and Close returns it. Pool.Get gives nil when all chunks are
// live, and nothing remembers that: a full pool is a state of play. The error says what was asked, what was free, who
// holds most, and which key of the plan to raise.
//
// # Finalizers
//
// An Object's finalizer, Own and Defer stand in one chain and run newest first, exactly once, whatever ends the scope:
// return, error, panic, Goexit, full. Make links an object only after its constructor succeeded; one that fails leaves
// nothing. A finalizer that panics doesn't stop the others; errors come back joined. While its finalizers run, a scope
// refuses to allocate. Plain data costs nothing to clean.
//
// # Costs
//
// Open, Close, New, TryNew, Alloc, Get and Put are Go on the C core's words: inlined or a Go call, no Go allocation, no
// call into C. A scope's header is 64 bytes of the budget's tables, a finalizer 16 bytes of the arena. Own and Defer
// use a table of planned size (limits.held). Temp's new pieces, pools and files cost a call into C.
//
// # Goroutines
//
// One goroutine at a time uses an arena and its scopes. A pad belongs to one worker. Nothing here locks.
//
// # Why
//
// Why does full unwind? A level runs or it doesn't. A loader that had to look at each of a thousand allocations would
// miss one, and a level that failed half through is the bug that this library is for.
//
// Why are types declared once? Looking for pointers in a type takes as long as a hundred New.
//
// Why is the generation in the limit? Because the check for "full" is there anyway. A stale handle, a covered scope and
// a full arena become one comparison; the price is that a handle kept for exactly 2^24 openings of its slot is taken
// for the newest.
//
// # Sources
//
// Andreas Fredriksson, "Scope Stack Allocation" (DICE), whose ScopeStack this is: newObject is Object.New, newPOD is
// Plain.New, the rewind-allocator is the arena, the finalizer chain is the chain. BlackMATov, "Scope Stack Allocation";
// "Alternatives to malloc and new" (#AltDevBlogADay); Niklas Frykholm, "Custom Memory Allocation in C++" (Bitsquid),
// for the stack of scopes and its temporaries.
package scope
