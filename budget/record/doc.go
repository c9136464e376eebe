// Package record writes a program's use of its budget to a file, and replays the file in another
// plan. Use the package to try a plan without the program, or on another machine.
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
// budget. They apply a budget's rules to tables of arenas that have no memory, and don't call
// OnWarn.
//
// A recording contains the plan, sizes, and the names of scopes and marks. A checked build's
// recording also contains the lines that allocate. A recording contains no memory, types or Go
// values.
//
// A release build records each opening and closing of a scope, and the bytes in use between these
// events. It records an allocation when the next scope of the arena opens or closes, when the
// arena's load ends, or when the arena's figures are read. So set a mark when few scopes are open,
// such as between two loads or frames. A checked build records each allocation by Go at once, so
// only a checked build's recording names the line that didn't fit. Any build records allocations by
// C with the arena's next event. Within the limits below, a replay in the program's own plan has
// the program's peak in each arena, to the byte. Peaks include memory in use before Start.
//
// # Limits
//
// A recording doesn't contain:
//
//   - The number of slots and leases in use at once. A recording shows only which slots and leases
//     were used.
//   - Refused allocations. If the program continues after a full error, its replay needs less
//     memory than the program requested.
//   - Values of a Builder that a panic abandoned.
//   - Moves of regions by [budget.Budget.Reconfigure]. Reconfigure also begins peaks again, but a
//     replay doesn't. So a measured plan has room for each region's highest use in the whole
//     recording.
//   - Addresses. A replay keeps the program's padding for alignments above 64. If no alignment is
//     above 64, the program's need in another plan differs by fewer than 64 bytes.
//
// # Costs
//
// During a recording, opening and closing a scope on scratch takes some 250 ns instead of 27 ns. A
// frame takes 1.1 µs instead of 0.1 µs (go test -bench . ./budget/record). Each of these calls
// takes the slow path, and a lock shared by all arenas. Inlined allocations are unchanged, except
// in a checked build, which walks the stack for each allocation (see [arena_c.Site]). The first
// event with a name makes Go allocations. The recording keeps at most 65,536 names of at most 4
// KiB. Most events take 2 to 3 bytes. The recording of frogpond's 68 maps, with 105 ticks each,
// takes 1.2 MB. When the buffer of 60 KiB is full, the goroutine that filled it writes it. A replay
// takes 0.1 to 0.2 µs for each event.
//
// # The file
//
// A file consists of the line "upfront recording 1", a line with the plan as JSON, the number of
// arenas, their names, and events. An event is the number arena * 16 + kind. Depending on the kind,
// a size, a text, both or neither follow. Numbers are varints, as [binary.AppendUvarint] writes
// them. Texts are numbered from 0 in order of appearance. A known text is written as its number,
// and a new text as the next number, its length and its bytes. Only the first 65,536 texts get
// numbers. A file may end between two events, if the program didn't reach Close.
package record
