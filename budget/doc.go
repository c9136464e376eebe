// Package budget takes a program's memory once, divides it by a plan, and frees a whole region (a
// level, a match) in one move.
//
//	b, err := budget.Open(budget.Plan{Name: "game", Regions: []budget.RegionPlan{
//		{Name: "level", Size: 40 * budget.MiB},
//	}})
//	defer b.Close()
//	level, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*Level, error) {
//		return &Level{Frogs: frogs.Pool(s, 1000)}, nil
//	})                            // ErrFull names the size to set; the region is empty then
//	play(level.Get())             // nil after the region is rewound or loaded again
//
// The package's first example is a whole program. The names to know:
//
//   - [Plan] names the parts and their sizes; [Open] takes the memory. [OpenScratch] takes scratch
//     alone.
//   - [Load] fills a [Region], and [Region.Rewind] empties it. [Slots.Acquire] returns one of a
//     region's equal slots.
//   - [Budget.Frame] is the scope of the current frame; [Budget.NextFrame] begins the next.
//   - [Budget.Scratch] returns a worker's scratch arena, and [Budget.Lease] lends scratch to a
//     goroutine that comes and goes.
//   - [Budget.Report] returns the figures of each arena: used, peak, size.
//
// Use it where the worst case can be named: game servers, tools, devices without swap. A budget
// never grows, and regions in use can't lend each other memory. It can't bound your code's use of
// the Go heap: Plan.GoHeap sets the collector's limit, not a wall.
//
// # The map
//
//	| tables | init | systems | level ....... <- temp |  apart: | frame ×2 | scratch of workers |
//	            bottom ----------> top; top is rewound first
//
// Rewinding a region also rewinds the regions above it. A region may have slots: equal siblings
// that are loaded and rewound one by one ([Slots]). One region may take the [Rest] of Plan.Size.
// While regions are empty, [Budget.Reconfigure] moves their edges. [Plan.String] draws the map.
//
// Each part starts at a multiple of 64 KiB. All headers are in the tables, on pages of their own,
// so a rewind frees bytes and changes nothing else. [Budget.Walk] reads the whole map from the
// tables and covers every byte.
//
// [Measure] runs a program and returns the bytes that each part needs. [Suggest] makes a plan from
// peaks that programs in the field recorded, and [Plan.Headroom] adds a margin.
//
// # Over time
//
// [Budget.Timeline] records how much each arena holds at each tick, in Go memory from set-up;
// package view draws it. In a trace of the Go runtime (runtime/trace) each Load, Rewind and Release
// is a task and a region, "upfront.Load", and each NextFrame is a region.
//
// # Tests and checked builds
//
// budgettest.Open fails a test that leaks. budgettest.FailEach makes each allocation of a program
// fail in turn. [Budget.NoHeap] returns the lines that allocate on the Go heap. In a checked build,
// [Budget.SealStrict] makes NextFrame panic if play allocated there, with the lines.
//
// A checked build (-tags checked) finds memory errors at a cost in address space:
//
//   - New memory is filled with 0xCB, freed memory with 0xDB.
//   - Objects are far apart, with redzones between them. A write before or past an object hits a
//     redzone.
//   - An offset that is reused gets a new address, and the old address stays unused for a while. A
//     write through a stale pointer therefore hits freed memory.
//   - A rewound region, an old buffer of the frame and released scratch arenas have no access.
//
// The damage is reported when the object ends, when its offset is reused, when its region is
// rewound, at [Budget.Walk] or at [Budget.Close], at the earliest of these. The report names the
// lines that created and ended the object, and the process exits. A read of memory that a scope or
// a pool freed returns the fill; only -asan reports it. [Budget.Close] names the line where each
// leak began.
//
// A fault on an address of a budget (a guard, rewound memory, any address after Close) reports the
// arena there and the line that closed the budget, before Go's own report.
//
// The cost is addresses of 161 times the budget, and memory where they are used: two pages for each
// 64 bytes of small objects, and half a page for notes. They are outside the plan: not locked, not
// prefaulted, and in no figure. RLIMIT_AS and RLIMIT_DATA count them, and Open says so when a limit
// is too low. The plan behaves as in a release build: fullness, peaks and offsets are equal,
// addresses are not. With -race, and on Windows, there are only fills. -asan spreads objects in the
// same way, with poison in place of fills.
//
// # Failure
//
// A plan with faults is refused before anything is mapped, with every fault in one error. So is a
// plan too large for the limits of the process or its container. If the system refuses a demand of
// Plan.Pages, Open fails if it is required; if it is wished, Report.NotGranted has a line.
//
// A full arena is a [scope.FullError]; package scope explains why it unwinds. When a load replaces
// old contents, errors of their finalizers go to the report and to Plan.OnError. Misuse panics or
// returns an error, with "BUG" in its text. A call that a load at work excludes returns
// [ErrLoading].
//
// The traceback of a crash in C shows Go frames alone. A blank import of
// [github.com/upfront-mem/upfront/platform/symbolize] adds the C functions, files and lines.
//
// # Goroutines
//
// Load, Rewind, Reconfigure, NextFrame, Seal, Close, Report and Walk belong to the goroutine that
// drives the program. A Load of a region that another load touches returns [ErrLoading], unless the
// caller proves that it is inside that load ([Region.In]). A slot belongs to its owner, and owners
// may load at the same time if no region is above the slots. Scratch belongs to its worker or to
// its lease.
//
// Any goroutine may call [Budget.Lease], [Lease.Release], [Slots.Acquire], [Budget.Published],
// [Timeline.Read], [Loaded.Get], [Reader.Pin] and [Reader.Unpin]. Package scope covers goroutines
// that a load starts, iter.Pull, and callbacks from C.
//
// # Why
//
// Why does nothing grow? Memory that may grow has no worst case: it fits on the developer's machine
// and fails in a player's hand. Nothing moves either, so a pointer is valid as long as its scope.
// The price: the worst case must be known, and bytes that one region doesn't use help no other.
//
// Why is a loaded region frozen? Play that allocates among a level's objects fills the level sooner
// or later. Play uses pools and containers that the load made, the frame, and scratch.
package budget
