// Package record writes down what a program does with its budget, and does it again in another plan: so a plan is tried
// without the program, and on another machine.
//
//	file, err := os.Create("monday.trace")
//	r, err := record.Start(b, file)     // at set-up: after budget.Open
//	r.Mark("E1M1")                      // what comes now has a name
//	…                                   // load, play, rewind
//	err = errors.Join(b.Close(), r.Close(), file.Close())
//
//	report, played, err := record.Replay(plan, file)  // a full says after which mark, who asked, and which key to raise
//	report, err := record.Measure("monday.trace")     // its Plan has just enough, to the byte
//
// The tool does both from the command line: upfront replay, upfront plan suggest.
// Neither opens a budget: the core's rules move the headers of arenas that have no bytes.
//
// A recording knows bytes, not what they are: it holds no content of memory, types or Go values. Names are in it, of
// budgets, regions, scopes and marks, and in those of checked builds the file and line of who allocated.
//
// A release build records scopes as they open and close, with what was in use at most; a checked build each allocation.
// Both come to the same peaks, in each arena, to the byte; only the checked one can say which line didn't fit. What an
// arena holds is told when its next scope opens or closes, or its load ends; what C does in it, too. So set a mark where
// little is open: between two loads, or two frames. What was in use before Start counts.
//
// # What isn't in it
//
//   - How many slots were acquired, and how many leases there were at once: only that they were used.
//   - What was refused: a program that ran on after a full needs less than it asked for.
//   - What a Builder had gathered that a panic abandoned.
//   - What [budget.Reconfigure] moved. It forgets peaks, and a replay doesn't: its plan has for each region the most
//     that it had at any time.
//   - Where things lie. Alignments above 64 left as many bytes unused as in the program, and temporaries begin at a
//     line: in another plan they may take some more or less, below 64 bytes unless alignments are large.
//
// # Costs
//
// Open and Close of a scope on scratch take 250 ns together in place of 27, and a frame 1.1 µs in place of 0.1: each takes
// the long way, and a lock that all arenas share (medians of go test -bench . ./budget/record). In checked builds each
// allocation is told, for which the stack is walked (see [arena_c.Site]). What is inlined stays as it is, and no event
// makes a Go allocation, but for the first of each name: 65,536 names of at most 4 KiB are kept. An event has 2 to 3 bytes;
// frogpond's 80 maps, 105 ticks each, 1.4 MB. About 60 KiB are written at once, by whichever goroutine comes to it. A
// replay takes 0.1 µs for each event. A program that isn't recorded pays nothing.
//
// # The file
//
// A first line, "upfront recording 1"; the plan, as JSON on a line; how many arenas there are, and their names; then
// events. An event is a number, arena * 16 + kind, and what the kind has: a size, a text. Numbers are those of
// [binary.AppendUvarint]. A text is its number among those that came before, counted from 0; or the next number, its length
// and its bytes. The first 65,536 have one. A file that ends between two events is one of a program that didn't come to
// Close, and is as good as it is long.
package record
