// Package record writes a program's use of its budget to a file, and replays the file in another
// plan. So a plan can be tried without the program, and on another machine.
//
//	file, err := os.Create("monday.trace")
//	r, err := record.Start(b, file) // at set-up, after budget.Open
//	r.Mark("E1M1")                  // names the part that follows
//	…                               // load, play, rewind
//	err = errors.Join(b.Close(), r.Close(), file.Close())
//
//	file, err = os.Open("monday.trace")
//	report, played, err := record.Replay(plan, file) // an error names mark, line and knob
//	report, err := record.Measure("monday.trace")    // its Plan is large enough, to the byte
//
// The commands upfront replay and upfront plan suggest do the same. Replay and Measure open no
// budget: they apply its rules to headers of arenas without memory, and warn of nothing.
//
// A recording contains sizes and names: of budgets, regions, scopes and marks, and in checked
// builds the lines that allocate. It contains no memory, types or Go values.
//
// A release build records the opening and closing of scopes, with the most bytes that each had in
// use. A checked build records each allocation, so only its recordings can name the line that
// didn't fit. Both lead to the same peaks in each arena, to the byte. Allocations in an arena, also
// by C, are recorded when its next scope opens or closes, or its load ends. So set a mark when few
// scopes are open, such as between two loads or frames. The peaks include memory in use before
// Start.
//
// # Limits
//
// A recording doesn't contain:
//
//   - The number of slots and leases in use at once; it has only which ones were used.
//   - Refused allocations: a program that continues after a full scope needs less than it
//     requested.
//   - Values of a Builder that a panic abandoned.
//   - Moves by [budget.Reconfigure]. It forgets peaks and a replay doesn't: a measured plan has
//     room for the most that each region had in the whole recording.
//   - Addresses. A replay keeps the program's padding for alignments above 64, and temporaries
//     start at a line. Another plan may need some bytes more or less: fewer than 64, unless
//     alignments are large.
//
// # Costs
//
// Opening and closing a scope on scratch takes 250 ns instead of 27, and a frame 1.1 µs instead of
// 0.1: each takes the slow path, and a lock shared by all arenas (medians of go test -bench .
// ./budget/record). A checked build walks the stack for each allocation (see [arena_c.Site]).
// Inlined fast paths are unchanged. Only the first event of a name makes a Go allocation; 65,536
// names of at most 4 KiB are kept. An event has 2 to 3 bytes; frogpond's 80 maps, 105 ticks each,
// have 1.4 MB. The goroutine that fills the buffer writes its 60 KiB. A replay takes 0.1 µs for
// each event. A program that doesn't record pays nothing.
//
// # The file
//
// A file has the line "upfront recording 1", a line with the plan as JSON, the number of arenas,
// their names, and events. An event is the number arena * 16 + kind, followed by the kind's size,
// text or both. Numbers are varints, as [binary.AppendUvarint] writes them. A known text is its
// number, counted from 0 in order of appearance; a new text is the next number, its length and its
// bytes. The first 65,536 texts have numbers. A file that ends between two events is from a program
// that didn't reach Close, and is valid up to there.
package record
