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
//   - [Plan] names the parts and their sizes; [Open] takes the memory. [OpenScratch] opens a budget
//     that has only scratch arenas.
//   - [Load] fills a [Region], and [Region.Rewind] empties the region. [Slots.Acquire] returns one
//     of a region's equal slots.
//   - [Budget.Frame] returns the scope of the current frame; [Budget.NextFrame] begins the next
//     frame.
//   - [Budget.Scratch] returns a scratch arena of a worker, by the worker's number. [Budget.Lease]
//     lends a worker to a goroutine that comes and goes: its scratch, its number and its readers.
//   - [Budget.Report] returns the use, peak and size of each arena.
//   - [Budget.Trim] and [Region.Trim] return free pages to the system.
//
// Use a budget where the worst case can be named: game servers, tools, devices without swap. A
// budget never grows, and regions in use can't lend each other memory. A budget can't bound your
// code's use of the Go heap: Plan.GoHeap only sets the limit at which the collector runs.
//
// # The map
//
//	| tables | init | systems | level ....... <- temp |  apart: | frame ×2 | scratch of workers |
//	            bottom ----------> top; top is rewound first
//
// Rewinding a region also rewinds the regions above it, which stand on it. Two regions may stand on
// the same one ([RegionPlan]): each is loaded and rewound while the other stays. A region may have
// slots: equal siblings that are loaded and rewound one by one ([Slots]). One region may take the
// [Rest] of Plan.Size. While regions are empty, [Budget.Reconfigure] moves their boundaries.
// [Plan.String] draws the map.
//
// A plan has at most 64 regions, each with up to 4096 slots. It has at most 65535 arenas: regions,
// slots, frame buffers and scratch arenas together. With its tables a budget takes less than 256
// GiB, or 2 GiB on 32-bit targets.
//
// Each arena starts at a multiple of 64 KiB. The alignment padding between arenas ("slack: edge" in
// a [Range]) takes only addresses, unless huge pages cover it. The headers of arenas and pools are
// in the tables, on pages of their own. A rewind itself writes only to the tables, except for the
// fills of checked builds. [Budget.Walk] reads the map from the tables and returns ranges that
// cover every byte.
//
// [Measure] runs a program and returns the bytes that each part needs. [Suggest] makes a plan from
// reports of programs in the field, and [Plan.Headroom] adds a margin.
//
// # Over time
//
// Package timeline records the highest use of each arena in each sample of one or more ticks, in Go
// memory allocated at set-up. Package view draws the timeline next to the use that the plan expects
// ([Expected]). If the plan sets a share of a region to warn at ([RegionPlan]), the budget
// calls Plan.OnWarn with a [Warning] when it finds the use there.
//
// In a trace (runtime/trace) each Load, Rewind, Release and Region.Trim is a task with a trace
// region, such as "upfront.Load". Each NextFrame is a trace region without a task.
//
// # Pages returned to the system
//
// A page that was used isn't returned to the system before Close, even if its region is rewound,
// except as follows. [Budget.Trim] and [Region.Trim] return free pages, including those inside a
// region's heaps. The Trim of a heap or a cache returns that heap's or cache's free pages. A region
// with "trim": "empty" in the plan returns its pages when it is emptied after a load, unless
// something keeps them (Report.NotGranted). The addresses and the bound stay the same.
// Report.Resident is the resident bytes, and Report.Cost is the most that the plan takes.
//
// # Tests and checked builds
//
// budgettest.Open fails a test that leaks. budgettest.FailEach runs a program again and again, with
// one size or limit too small. [Budget.NoHeap] runs a function and returns an error with the lines
// that allocate on the Go heap. In a checked build, [Budget.SealStrict] makes NextFrame panic with
// the lines that allocated on the Go heap since the last NextFrame.
//
// A checked build (-tags checked) finds memory errors at a cost in address space:
//
//   - New memory is filled with 0xCB, freed memory with 0xDB.
//   - Objects are far apart, with redzones between them. A write just before or just past an object
//     hits a redzone.
//   - Each reuse of an offset in an arena gets a new address, and the old address stays unused for
//     a while. A write through a stale pointer therefore hits freed memory.
//   - A rewound region, an old buffer of the frame and released scratch arenas can't be accessed.
//
// A write to a redzone or to freed memory is reported at the first of these moments: the object
// ends, its offset is reused, its region or frame buffer is emptied, its lease ends, [Budget.Walk],
// [Budget.Close]. The report names the lines that created and ended the object. Walk returns the
// report as an error; in the other cases the process exits. A read of memory that a scope or a pool
// freed isn't reported; it returns the fill. tests/misuse/README.md lists kinds of misuse and the
// builds that report them.
// The error of [Budget.Close] has the lines where leaks began ([Leaks]).
//
// If the program faults on an address of a budget (a guard, rewound memory), a checked build on
// Linux names the object or the arena at that address, before Go's own report. For a closed budget
// it names the line that called Close.
//
// A checked build takes 161 MiB of address space for each MiB of the budget's size, from Open on.
// The part of this space that is used also takes memory: two pages for each 64 bytes of small
// objects, and half a page for notes about them. The space is outside the plan: not locked, not
// prefaulted, and not in reports. RLIMIT_AS and RLIMIT_DATA count the space, and Open fails if a
// limit is too low. The plan behaves as in a release build: the same allocations fail, and peaks
// and offsets are equal; only addresses differ. With -race, and on Windows, a checked build only
// fills memory. An -asan build spreads objects in the same way, and poisons memory instead of
// filling it.
//
// # Failure
//
// Open refuses an invalid plan before it maps memory, and returns the errors that [Plan.Check]
// finds as one. Open also refuses a plan that is too large for the limits of the process or its
// container. Open fails if the system refuses a required demand of Plan.Pages. A demand that is
// only wished is best effort: if the system refuses it, Report.NotGranted has a line.
//
// An allocation in a full arena fails with a [scope.FullError]. Package scope explains why such an
// allocation unwinds the stack. When a load replaces old contents, errors of the old finalizers go
// to the report and to Plan.OnError. Misuse that is detected panics or returns an error, mostly
// with "BUG" in its text, or ends the process of a checked build. A Load, Rewind, Release, Trim,
// Reconfigure or Close that isn't allowed while a load runs returns [ErrLoading].
//
// The traceback of a crash in C shows only Go frames. A blank import of
// [github.com/upfront-mem/upfront/platform/symbolize] adds the C functions, files and lines.
//
// # Goroutines
//
// Reconfigure, NextFrame, Seal, Close, Report and Walk belong to the goroutine that drives the
// program. Any goroutine may Load, Rewind or Trim a region. If another load touches the region, or
// one that stands on it, the call returns [ErrLoading], so goroutines that load one region need a
// lock of their own. The one exception is a call inside that load, by [Region.In], of a region
// above. Report and Walk need that no load runs meanwhile; use [Budget.Published] elsewhere. A slot
// belongs to its owner. A scratch arena belongs to its worker, or to the goroutine that leased it.
//
// Any goroutine may call [Budget.Lease], [Lease.Release], [Budget.Region], [Budget.Slots], the
// methods of [Slots], [Region.Name], [Region.Slot], [Region.Reader], [Budget.Published], Read of a
// timeline, [Loaded.Get] and [Get]. A [Reader] is its worker's. Package scope has the rules for
// iter.Pull, for callbacks from C, and for goroutines that a load starts.
//
// # Why
//
// Why does nothing grow? Memory that may grow has no worst case: it fits on the developer's machine
// and fails in a player's hand. Nothing moves either, so a pointer is valid until its object ends,
// with its scope at the latest. In return you must know the worst case, and a region can't use
// another region's free bytes.
//
// Why is a loaded region frozen? Code that allocates among a level's objects in each frame fills
// the level sooner or later. In a frame, allocate from the frame's scope, from scratch, or from the
// pools and containers that the load made.
package budget
