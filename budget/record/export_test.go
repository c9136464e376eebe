package record

// Exports for the tests of package record_test.
var (
	Dry       = dry
	DryReport = report
	Stacks    = stacks
)

// Play is Replay in empty arenas, and leaves them empty.
var Play = play
