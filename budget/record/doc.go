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
//
// A recording knows bytes, not what they are: it holds no content of memory, types or Go values. Names are in it, of
// budgets, regions, scopes and marks, and in those of checked builds the file and line of who allocated.
//
// A release build records scopes as they open and close, with what was in use at most; a checked build each allocation.
// Both come to the same peaks, in each arena, to the byte; only the checked one can say which line didn't fit. What C
// allocates is told with what comes next in that arena. Bytes that alignments above 64 left unused are as they were in the
// program: another plan may need some more. Not in it: how many slots were acquired, and what [budget.Reconfigure]
// moved; a replay is in one plan from its beginning to its end.
//
// # Costs
//
// While recorded, each Open and Close of a scope takes the long way and a lock, some 100 ns; what is inlined stays as it
// is. Names are kept: who opens scopes of ever new names keeps ever more. Every 64 KiB are written at once, by whichever
// goroutine comes to it. A frame of a game has some ten bytes for each scope. A program that isn't recorded pays nothing.
//
// # The file
//
// A first line, "upfront recording 1"; the plan, as JSON on a line; how many arenas there are, and their names; then events.
// An event is a number, arena * 16 + kind, and what the kind has: a size, a text. Numbers are those of [binary.AppendUvarint]. A text is its number, and the first
// time, where that is one more than there were, its length and its bytes. A file that ends between two events is one of a
// program that didn't come to Close, and is as good as it is long.
package record
