// Package budget takes all memory up front, divides it like a console's memory map, and rewinds a
// level in one move. It never grows: a level that doesn't fit is an error of its [Load].
//
//	b, err := budget.Open(budget.Plan{            // or ReadPlan("handheld.json")
//		Name: "handheld",
//		Regions: []budget.RegionPlan{
//			{Name: "systems", Size: 12 * budget.MiB},
//			{Name: "level", Size: 40 * budget.MiB},
//		},
//		Frame:   budget.FramePlan{Buffers: 2, Size: budget.MiB},
//		Scratch: budget.ScratchPlan{Workers: 2, Size: budget.MiB},
//	})
//	defer b.Close()
//
//	level, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*Level, error) { … })
//	if errors.Is(err, budget.ErrFull) { … }       // the region is empty, all else as before
//	l := level.Get()                              // nil after a rewind
//
//	t := b.Scratch(worker, 0).Open("query")       // scratch that follows the call stack
//	s := b.Frame()                                // gone after the next frame
//	err = b.NextFrame()
//
// Ten names to know: [Plan] says who gets how much, [Open] takes it, [Load] fills a [Region] and
// [Region.Rewind] empties it; [Budget.Frame] and [Budget.NextFrame]; [Budget.Scratch], and
// [Budget.Lease] for goroutines that come and go; [Slots.Acquire] gives one of a region's equal
// siblings; [Budget.Report] says what was used. [OpenScratch] is for who wants scratch alone.
//
// Use it where the worst case can be named: game servers, tools, devices without swap. It cannot
// bound the Go heap's use by your code (Plan.GoHeap sets the collector's limit, not a wall), and
// cannot give memory from one region to another while they are in use.
//
// # The map
//
//	| tables | init | systems | level ........... <- temp |   beside the stack:   | frame ×2 | scratch of each worker |
//	            bottom ----------> top; top is rewound first
//
// Rewinding a region rewinds those above it. A region may have slots, equal siblings that are
// loaded and rewound each for itself ([Slots]), and one region may take the [Rest] of Plan.Size.
// While regions are empty, [Budget.Reconfigure] moves their edges. [Plan.String] draws the map.
// Each part begins at a multiple of 64 KiB. All headers lie in the tables, on pages of their own,
// so that a rewind gives back bytes and nothing else; [Budget.Walk] reads the whole map from them
// and covers every byte.
//
// [Measure] runs a program and says what each part needs, to the byte; [Suggest] makes a plan of
// the peaks that programs in the field recorded; [Plan.Headroom] adds some.
//
// # Over time
//
// [Budget.Timeline] records what each arena held, from the first tick to the last, in Go memory that
// it takes at set-up; package view draws it. In a trace of the Go runtime (runtime/trace) each Load,
// Rewind and Release is a task and a region, "upfront.Load", and each NextFrame a region.
//
// # Tests and checked builds
//
//   - budgettest.Open fails a test that leaks; budgettest.FailEach makes each request of a program
//     fail in turn.
//   - [Budget.NoHeap] names the lines that allocate on the Go heap. In checked builds (-tags
//     checked) [Budget.SealStrict] makes NextFrame panic, with the lines, when play did so.
//   - In checked builds what is handed out and what is given back is filled (0xCB, 0xDB). Things
//     lie far apart, with redzones between them, and what is given at an offset again lies
//     elsewhere, so that the address rests: who wrote past the end, before the first, or to what
//     has ended is found when the thing ends, when its offset is given again, when its region ends,
//     at [Budget.Walk], or when the budget closes. The process ends then, with who made and who
//     ended it. A region, a buffer of the frame, or scratch arenas on loan have no access after
//     their end. A read of what a scope or a pool gave back has the fill, and nothing tells it but
//     -asan. [Budget.Close] says of each leak where it began.
//   - That takes addresses of 161 times the budget, and memory of them where they are used: of what
//     is small two pages for each 64 bytes, and half a page for notes. They are beside the plan,
//     not locked, not made present, and counted nowhere; but RLIMIT_AS and RLIMIT_DATA count them,
//     and Open says so when they leave no room. What a program sees of the plan is as in release:
//     when it is full, peaks, offsets; addresses are not. With -race as well, and on Windows, there
//     are fills alone. -asan lays things out the same way, with poison in place of fills.
//   - In checked builds a fault on an address of a budget, at a guard, of what was rewound, or
//     after Close, says what lay there, and who closed the budget; then comes Go's own.
//
// # Failure
//
// A plan that can't be is refused before anything is mapped, every fault in one error; so is one
// that is too large for the limits of the process or its container. What the system refuses of what
// Plan.Pages demands is Open's error when it is required, and a line of Report.NotGranted when it
// is wished. Full is a [scope.FullError]; why it unwinds, package scope says. What old contents'
// finalizers say when a load replaces them goes to the report and Plan.OnError. Misuse panics, or
// is refused, with "BUG" in its text; what comes while something loads, and may not, is
// [ErrLoading].
//
// # Goroutines
//
// Load, Rewind, Reconfigure, NextFrame, Seal, Close, Report and Walk belong to the goroutine that
// drives the program; a Load that would touch what one touches already is [ErrLoading], but for who
// proves to be inside ([Region.In]). Slots belong to their owners, who may load at the same time
// where no region lies above. Scratch belongs to a worker, or to who leased it. [Budget.Lease],
// [Lease.Release], [Slots.Acquire], [Budget.Published], [Timeline.Read], [Loaded.Get], [Reader.Pin]
// and [Reader.Unpin] are for any goroutine. What holds of a goroutine that a load starts, of iter.Pull and
// of callbacks of C, package scope says.
//
// # Why
//
// Why does nothing grow? What may grow has no worst case: it fits on the developer's machine and
// fails in a player's hand, in the middle of play. Nothing moves, either, so a pointer is good as
// long as its scope. The price: the worst case must be known, and what one region doesn't use helps
// no other. Why is a loaded region frozen? Play that allocates where levels live is how budgets
// die. What play needs has its own: pools and containers that the load made, the frame, scratch
// arenas.
package budget
