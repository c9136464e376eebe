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
// # What to make
//
//	values that die in silence       Plain: New, Slice, SliceCap, Clone, Append; Bytes and Alloc for raw memory
//	values with a finalizer          Object: New, Slice; Make when the constructor can fail
//	values that come and go          Pool; HandlePool by name; SharedPool among goroutines
//	a number that isn't known yet    List on a pad, then Copy; ReadFile and Sprintf know theirs
//	room for up to n, none if unused Array, Deque, Map; Text for words, 0 bytes while empty
//	Go values                        Own closes, Defer runs, Hold keeps; their Held may lie in the block
//	a reference that knows its end   Ref; inside one block arena.Ptr, arena.Slice, arena.String
//
// # Full
//
// Full is an answer. New, Slice, Alloc, Own and their like never give nil: a full unwinds to the enclosing Do or
// budget.Load, which returns it as an error; outside both it is a panic with the same text. TryNew, TrySlice and
// TryAlloc give nil, for play and for goroutines that a load starts (a panic there would end the process; let them take
// turns, or give each a pad); the scope remembers (Err), and Close returns it. Pool.Get gives nil and Array.Push false
// when all places are taken, and nothing remembers that: it is a state of play. The error says what was asked, what was
// free, who holds most (a scope, or a subsystem that Account names), and which key of the plan to raise.
//
// # Finalizers
//
// An Object's finalizer, Own, Defer and C's own (see Scope.C) stand in one chain and run newest first, exactly once,
// whatever ends the scope: return, error, panic, Goexit, full. Make links an object only after its constructor succeeded;
// one that fails leaves nothing. A finalizer that panics doesn't stop the others; errors come back joined. While its
// finalizers run, a scope refuses to allocate, to open a scope and to close. Plain data costs nothing to clean.
//
// # Costs
//
// Open, Close, New, TryNew, Alloc, Get and Put are Go on the C core's words: inlined or a Go call, no Go allocation, no
// call into C. A scope's header is 64 bytes of the budget's tables, a finalizer 16 bytes of the arena. Own, Defer and Hold
// use a table of planned size (limits.held). Temp's new pieces, pools and files cost a call into C.
//
// # For package budget
//
// Stack, Config, Watch, Site, NewStack, PadsOf, TableBytes and SiteBytes are what package budget makes regions
// and pads of. Programs have no use for them.
//
// # Goroutines
//
// One goroutine at a time uses an arena and its scopes. A pad belongs to one worker. Nothing here locks, but SharedPool.
//
// # On other machines
//
// The same program lays out the same bytes on every target, if its types have one size: no int, uint or uintptr, and
// 64-bit words (arena.Ptr, arena.Slice, arena.String and Held too) at multiples of 8 in a type whose size is one. 32-bit
// targets align such words to 4 bytes inside a type; what holds one begins at a multiple of 8 in an arena there too. A Map
// with 64-bit words in keys or values has smaller entries there.
//
// # For who knows the talk
//
// Andreas Fredriksson, "Scope Stack Allocation", idea by idea; the last column names an example, which
// go test ./scope -run Example -v runs.
//
//	memory map, partitioned once  budget.Plan: init, systems, level; Load, Rewind   initSystemsLevel
//	LinearAllocator, rewind       the arena of a region or pad; arena.Linear        frogSystem
//	ScopeStack, nested scopes     Scope: Open and Close, or Do                      demoAsMeant, demoAsPublished
//	newPOD                        Plain: New, Slice                                 frogSystem
//	newObject                     Object: New, Make, Slice                          frogSystemWithLock
//	finalizer chain               the chain; Close, Rewind and Load run it          ExampleScope
//	thread-local scratch          a pad, held by handle; two a worker (Pads.Pick)   formatString
//	PIMPL, free of charge         a struct behind arena.Ptr                         hiddenStruct
//	array of unknown size         List on a pad, then Copy into the scope           arrayOfUnknownSize
//	dynamic lifetimes             Pool, HandlePool, SharedPool                      objectPool
//	malloc and its fragments      arena.Heap, for C libraries                       sushiBarOnHeap, sushiBarInScopes
//
// What differs: newPOD takes any T, Plain refuses one that holds a Go pointer. There a covered scope goes on allocating
// where its child will rewind; here it refuses, by name. There the end of memory is an assert; here full is an answer.
// There scratch is a thread's; goroutines move between threads. There constructors can't fail.
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
// Why do containers have a fixed capacity? What grows by moving leaves its old bytes behind until the scope closes. A
// List doesn't move, Append moves only what isn't the last thing made, and what must not move knows its bound.
//
// # Sources
//
// Andreas Fredriksson, "Scope Stack Allocation" (DICE). BlackMATov, "Scope Stack Allocation", for the demo; Vincent
// Stehly-Calisto, "Climbing the stack allocator", for the sushi bar; "Alternatives to malloc and new" (#AltDevBlogADay);
// Niklas Frykholm, "Custom Memory Allocation in C++" (Bitsquid), for the stack of scopes, its temporaries, and containers
// that own nothing while empty.
package scope
