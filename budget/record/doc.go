// Package record writes a program's use of its budget to a file, and replays the file in another
// plan. Use it to try a plan without the program, or on another machine.
//
//	file, err := os.Create("monday.trace")
//	r, err := record.Start(b, file) // at set-up, after budget.Open
//	r.Mark("E1M1")                  // names the part that follows
//	…                               // load, play, rewind
//	err = errors.Join(b.Close(), r.Close(), file.Close())
//
//	file, err = os.Open("monday.trace")
//	report, played, err := record.Replay(plan, file) // its error names mark, line and key
//	report, err := record.Measure("monday.trace")    // its Plan is large enough, to the byte
//
// The commands upfront replay and upfront plan suggest do the same. Replay and Measure open no
// budget: they apply a budget's rules to tables of arenas that have no memory. They call no OnWarn.
//
// A recording contains sizes and names: of budgets, regions, scopes and marks, and in checked
// builds the lines that allocate. It contains no memory, types or Go values.
//
// A release build records when scopes open and close, with the bytes in use between. Allocations,
// including those by C, are recorded when the arena's next scope opens or closes, or its load ends.
// So set a mark when few scopes are open, such as between two loads or frames. A checked build
// records each allocation at once, so only its recordings name the line that didn't fit. A replay
// of either recording has the program's peak in each arena, to the byte. Peaks include memory in
// use before Start.
//
// # Limits
//
// A recording doesn't contain:
//
//   - The number of slots and leases in use at once. It shows only which ones were used.
//   - Refused allocations. A program that continues after a full error needs less than it
//     requested.
//   - Values of a Builder that a panic abandoned.
//   - Moves by [budget.Budget.Reconfigure], which also begins peaks again. A replay doesn't: a
//     measured plan has room for each region's highest use in the whole recording.
//   - Addresses. A replay keeps the program's padding for alignments above 64. Another plan may
//     need fewer than 64 bytes more or less, unless alignments are larger.
//
// # Costs
//
// Opening and closing a scope on scratch takes some 250 ns instead of 27, and a frame 1.1 µs
// instead of 0.1. Each takes the slow path, and a lock shared by all arenas (go test -bench .
// ./budget/record). Inlined allocations are unchanged, except in a checked build, which walks the
// stack for each (see [arena_c.Site]). The first event of a name makes Go allocations; 65,536 names
// of at most 4 KiB are kept. An event takes 2 to 3 bytes, and frogpond's 68 maps, 105 ticks each,
// 1.2 MB. The goroutine that fills the buffer writes its 60 KiB. A replay takes 0.1 to 0.2 µs for
// each event.
//
// # The file
//
// A file consists of the line "upfront recording 1", a line with the plan as JSON, the number of
// arenas, their names, and events. An event is the number arena * 16 + kind, followed by the kind's
// size, text or both. Numbers are varints, as [binary.AppendUvarint] writes them. Texts are
// numbered from 0 in order of appearance. A known text is written as its number, and a new text as
// the next number, its length and its bytes. Only the first 65,536 texts get numbers. A file that
// ends between two events is valid: its program didn't reach Close.
package record
