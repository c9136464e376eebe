// Package budget takes all memory up front, divides it like a console's memory map, and rewinds a level in one move.
//
// It cannot bound the Go heap's use by your code (Plan.GoHeap sets the collector's limit, not a wall), cannot give memory
// from one region to another while they are in use, and never grows: a level that doesn't fit is an error of its [Load].
// Use it where the worst case can be named: game servers, tools, devices without swap. Where it can't, the Go heap serves
// you better.
//
// The example UdpServer goes from an empty folder to a server's first full, step by step.
//
// # A budget
//
//	plan := budget.Plan{
//		Name: "handheld",
//		Regions: []budget.RegionPlan{
//			{Name: "init", Size: 4 * budget.MiB},
//			{Name: "systems", Size: 12 * budget.MiB},
//			{Name: "level", Size: 40 * budget.MiB},
//		},
//		Frame:   budget.FramePlan{Buffers: 2, Size: budget.MiB},   // each buffer
//		Scratch: budget.ScratchPlan{Workers: 2, Size: budget.MiB}, // of each, two a worker
//		GoHeap:  32 * budget.MiB,
//	}
//	b, err := budget.Open(plan)                                // or budget.ReadPlan("handheld.json") first; OpenIn(block, plan)
//	defer b.Close()
//
//	level, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*Level, error) { … })
//	if errors.Is(err, budget.ErrFull) { … }                    // the region is empty, all below and beside as before
//
//	budget.Load(ctx, b.Region("effects").In(s), …)             // inside that function: s is the proof of being there
//	l := level.Get()                                           // nil after a rewind
//	t := b.Scratch(worker, 0).Open("query")                    // scratch that follows the call stack
//	lease, err := b.Lease(ctx)                                 // scratch arenas on loan, for a goroutine that comes and goes
//	room, err := b.Slots("room").Acquire()                     // one of a region's equal siblings; full: admission control
//	b.NextFrame()                                              // the frame's buffers change
//	err = b.SealStrict()                                // set-up is over: no memory is asked of the system until Close
//
// # The map
//
//	| tables | init | systems | level ........... <- temp |   beside the stack:   | frame ×2 | scratch of each worker |
//	            bottom ----------> top; top is rewound first
//
// Rewinding a region rewinds those above it: load a new level and only level goes; reconfigure systems and level goes
// with it. A region may have slots, equal siblings that are loaded and rewound each for itself ([Slots]), and one
// region may take the [Rest] of Plan.Size. While regions are empty, [Budget.Reconfigure] moves their edges. [Plan.String]
// draws the map.
//
// Each part begins at a multiple of 64 KiB. All headers lie in the tables, on pages of their own, so
// that a rewind gives back bytes and nothing else; [Budget.Walk] reads the whole map from them and covers every byte.
//
// # Will it fit?
//
//	report, err := budget.Measure(plan, func(b *budget.Budget) error { … })  // report.Plan is what that needs, to the byte
//	plan, err := budget.Suggest(reports...)                                  // the peaks that programs in the field recorded
//	plan = plan.Headroom(10)                                                 // and 10 % beside
//
// # Reports
//
//   - [Budget.Report] gives the figures of now, and belongs to the goroutine that drives the program.
//   - [Budget.Snapshot] is for everybody else: the figures as of the last Open, Load, Rewind, Reconfigure, NextFrame or
//     Release, of a slot or of a lease.
//   - Both marshal to JSON and back, and log as slog groups. After Close both give the last figures.
//   - A peak and a number of objects is kept for each region, name of a scope, and label ([scope.Label]).
//   - [Budget.Close] names what leaked; checked builds (-tags checked) add where it was opened, given, taken or acquired.
//
// # Tests
//
//   - budgettest.Open fails a test that leaks.
//   - budgettest.FailEach makes each request of a program fail in turn.
//   - [Budget.NoHeap] fails a test that allocates on the Go heap, naming the lines. In checked builds [Strict] makes NextFrame
//     panic, with the lines, when the program did so since the last NextFrame; Load, Rewind and their like are forgiven.
//   - In checked builds what is handed out and what is given back is filled (0xCB, 0xDB): a read of either stands out. Things
//     lie far apart (with redzones between them), and what is given at a place again lies elsewhere (so that the address
//     rests): who wrote past the end, before the first, or to what has ended is found when the thing ends, when its place is
//     given again, when its region ends or the budget closes. The process ends then, with who made and who ended it. A
//     region, a buffer of the frame, or scratch arenas on loan have no access after their end.
//   - That is so for every plan, whatever it says of its pages. It takes addresses of 161 times the budget, and memory of them
//     where they are used: of what is small two pages for each 64 bytes, and half a page for notes. They are beside the plan, not
//     locked, not made present, and counted nowhere; but RLIMIT_AS and RLIMIT_DATA count them, and Open says so when they
//     leave no room. What a program sees of the plan is as in release: when it is
//     full, peaks, offsets; addresses are not. With -race as well, and on Windows, there are fills alone.
//   - -asan lays things out the same way, with poison in place of fills.
//   - A fault on an address of a budget, at a guard, of what was rewound, or after Close, says what lay there, and who closed the
//     budget; then comes Go's own. [Budget.CheckAll] looks whether something wrote over the control words, in every build,
//     and in checked builds at all that nothing lives in.
//
// # Costs
//
// [Open] takes a few system calls and the time to clear the memory (go test ./platform -run - -bench Prefault), since every
// page is made present, unless Plan.Pages says otherwise. Load and Rewind cost the finalizers, and a few microseconds. NextFrame
// costs the frame's finalizers; where there are none, tens of nanoseconds.
//
// # Failure
//
// A plan that can't be is refused before anything is mapped, every fault in one error; so is one that is too large for
// the limits of the process or its container. What the system refuses of what Plan.Pages demands is Open's error when it
// is required, and a line of Report.NotGranted when it is wished. Full is a [scope.FullError]; why it unwinds, package
// scope says. What old contents' finalizers say when a load replaces them goes to the report and Plan.OnError. Misuse
// panics, or is refused, with "BUG" in its text; what comes while something loads, and may not, is
// [ErrLoading]. A loader uses scratch by [scope.Scratch.Do]: a load that fails closes nothing on scratch.
//
// # Goroutines
//
// Load, Rewind, Reconfigure, NextFrame, Seal, Close, Report, Walk and CheckAll belong to the
// goroutine that drives the program; a Load that would touch what one touches already is
// [ErrLoading], but for who proves to be inside ([Region.In]). Slots belong to their owners, who
// may load at the same time where no region lies above ([Slots]). Scratch belongs to a worker,
// or to who leased it. [Budget.Lease], [Lease.Release], [Slots.Acquire], [Budget.Snapshot],
// [Loaded.Get], [Reader.Pin] and [Reader.Unpin] are for any goroutine.
//
// # Why
//
// Why does nothing grow? What may grow has no worst case: it fits on the developer's machine and fails in a player's hand,
// in the middle of play. Here a level that doesn't fit ends in its load, with the key and the size to raise. Nothing moves,
// either, so a pointer is good as long as its scope. The price: the worst case must be known ([Measure] and [Suggest] find
// it), and what one region doesn't use helps no other, until Reconfigure moves their edges.
//
// Why is a frozen region final? What is loaded is what was planned: play that allocates where levels live is how
// budgets die. What play needs has its place before: pools and containers that the load made, the frame, scratch arenas.
package budget
