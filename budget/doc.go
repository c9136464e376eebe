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
//   - [Plan] names the parts and their sizes; [Open] takes the memory. [OpenScratch] takes only
//     scratch.
//   - [Load] fills a [Region], and [Region.Rewind] empties it. [Slots.Acquire] returns one of a
//     region's equal slots.
//   - [Budget.Frame] returns the scope of the current frame; [Budget.NextFrame] begins the next.
//   - [Budget.Scratch] returns a worker's scratch arena, and [Budget.Lease] lends scratch to a
//     goroutine that comes and goes.
//   - [Budget.Report] returns the use, peak and size of each arena.
//   - [Budget.Trim] and [Region.Trim] return free pages to the system.
//
// Use a budget where the worst case can be named: game servers, tools, devices without swap. It
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
// While regions are empty, [Budget.Reconfigure] moves their boundaries. [Plan.String] draws the
// map.
//
// A plan has at most 64 regions, each with up to 4096 slots, and 65535 arenas in all. With its
// tables it takes less than 256 GiB, or 2 GiB on 32-bit targets.
//
// Each arena starts at a multiple of 64 KiB. The alignment padding before it ("edge" in a Range) is
// only addresses. All headers are in the tables, on pages of their own: a rewind itself writes only
// there, except for the fills of checked builds. [Budget.Walk] reads the map from the tables; its
// ranges cover every byte.
//
// [Measure] runs a program and returns the bytes that each part needs. [Suggest] makes a plan from
// peaks that programs in the field recorded, and [Plan.Headroom] adds a margin.
//
// # Over time
//
// [Budget.Timeline] records the use of each arena at each tick, in Go memory allocated at set-up;
// package view draws it, next to the use that the plan expects ([Expected]). A region with a share
// to warn at ([RegionPlan]) calls Plan.OnWarn with a [Warning] before it is full.
//
// In a trace (runtime/trace) each Load, Rewind and Release is a task with a trace region,
// "upfront.Load", and so is each Region.Trim. Each NextFrame is a trace region.
//
// # Pages returned to the system
//
// A page that was used stays resident until Close, also when its region is rewound. [Budget.Trim]
// and [Region.Trim] return free pages to the system, those in heaps included. A region with "trim":
// "empty" in the plan returns them each time it is emptied. The addresses and the bound stay the
// same. Report.Resident is the resident bytes, Report.Cost the planned ones.
//
// # Tests and checked builds
//
// budgettest.Open fails a test that leaks. budgettest.FailEach makes each allocation of a program
// fail in turn. [Budget.NoHeap] returns the lines that allocate on the Go heap. In a checked build,
// [Budget.SealStrict] makes NextFrame panic with the lines that allocated there since the last
// NextFrame.
//
// A checked build (-tags checked) finds memory errors at a cost in address space:
//
//   - New memory is filled with 0xCB, freed memory with 0xDB.
//   - Objects are far apart, with redzones between them. A write just before or just past an object
//     hits a redzone.
//   - An offset that is reused gets a new address, and the old address stays unused for a while. A
//     write through a stale pointer therefore hits freed memory.
//   - A rewound region, an old buffer of the frame and released scratch arenas can't be accessed.
//
// Such a write is reported at the first of: the object ends, its offset is reused, its region is
// rewound, [Budget.Walk], [Budget.Close]. The report names the lines that created and ended the
// object. Walk returns it as an error; otherwise the process exits. A read of memory that a scope
// or a pool freed isn't reported, and returns the fill. tests/misuse/README.md lists each misuse
// and the builds that report it. [Budget.Close] names the lines where leaks began.
//
// Before Go's own report of a fault on a budget's address (a guard, rewound memory), a checked
// build names the object or the arena there. After Close it names the line that closed the budget.
//
// The cost is address space, 161 MiB for each MiB that the budget touches, and memory where it is
// used: two pages for each 64 bytes of small objects, and half a page for notes. This space is
// outside the plan: not locked, not prefaulted, and not in reports. RLIMIT_AS and RLIMIT_DATA count
// it, and Open fails if a limit is too low. The plan behaves as in a release build: fullness, peaks
// and offsets are equal, addresses are not. With -race, and on Windows, there are only fills. -asan
// spreads objects in the same way, with poison in place of fills.
//
// # Failure
//
// Open refuses an invalid plan before it maps memory, with every error in one. It also refuses a
// plan that is too large for the limits of the process or its container. Open fails if the system
// refuses a required demand of Plan.Pages. A demand that is only wished is best effort: if it is
// refused, Report.NotGranted has a line.
//
// An allocation in a full arena fails with a [scope.FullError]; package scope explains why it
// unwinds. When a load replaces old contents, errors of their finalizers go to the report and to
// Plan.OnError. Misuse panics or returns an error, with "BUG" in its text. A call that isn't
// allowed while a load runs returns [ErrLoading].
//
// The traceback of a crash in C shows only Go frames. A blank import of
// [github.com/upfront-mem/upfront/platform/symbolize] adds the C functions, files and lines.
//
// # Goroutines
//
// Load, Rewind, Reconfigure, NextFrame, Seal, Close, Report and Walk belong to the goroutine that
// drives the program. A Load of a region that another load touches returns [ErrLoading], unless it
// is a call inside that load, by [Region.In]. A slot belongs to its owner, and owners may load at
// the same time if no region is above the slots. Scratch belongs to its worker or to its lease.
//
// Any goroutine may call [Budget.Lease], [Lease.Release], [Slots.Acquire], [Budget.Published],
// [Timeline.Read], [Loaded.Get], [Reader.Pin] and [Reader.Unpin]. Package scope has the rules for
// iter.Pull, for callbacks from C, and for goroutines that a load starts.
//
// # Why
//
// Why does nothing grow? Memory that may grow has no worst case: it fits on the developer's machine
// and fails in a player's hand. Nothing moves either, so a pointer is valid as long as its scope.
// In return the worst case must be known, and a region can't use the bytes that another leaves
// free.
//
// Why is a loaded region frozen? Code that allocates among a level's objects in each frame fills
// the level sooner or later. Such code uses the frame, scratch, and the pools and containers that
// the load made.
package budget
