// Package pprof gives a budget to go tool pprof: what lives in memory that Go's own profiler doesn't
// see. It is a module of its own, and imported as with:
//
//	import with "github.com/upfront-mem/upfront/budget/with/pprof"
//
//	mux.Handle("/debug/pprof/budget", with.Handler(b)) // beside net/http/pprof
//
//	go tool pprof -top http://127.0.0.1:8080/debug/pprof/budget
//
// A stack goes from the budget to what holds the bytes, in levels that are functions to the tool:
//
//	budget game > region match > slot match 3 > scope match > label sound
//
// Of a checked build the calls follow that made it, main.load at load.go:31. What no inner level has
// is the outer one's own. The sample types, of which
// -sample_index=NAME shows one, are
//
//	inuse_space         what is in use: their total is the sum of the report's Used (default)
//	peak_space          the most that each arena held since Open; the sum of the report's Peak
//	planned_space       what the plan took: arenas, tables and edges; the report's Size
//	alloc_space         all that scopes of a name ever held, what is gone among it: not of scratch
//	scopes_peak_space   the most that scopes of a name held
//	labels_inuse_space  what labels hold, of inuse_space
//	labels_alloc_space  all that a label ever held, of alloc_space
//	labels_peak_space   the most that a label held
//
// and of reports of checked builds, which count objects, inuse_objects, alloc_objects,
// scopes_peak_objects and padding_space. Any other figure of budget.Figures that is a sum in bytes is
// one too, where it isn't 0: its name and _space.
//
// Peaks are of different moments, each arena's, scope's and label's its own: their sums say what
// would do for all at once.
//
// A release's report says what labels hold, but not in which scope. Where one scope of an arena holds
// something, as in a region that is loaded, inuse_space has labels below it; where several do,
// labels_inuse_space alone has them. Samples have the tags budget, region, arena (of slots, buffers
// and scratch arenas), scope, label and, of a checked build, type, for -tags and -tagfocus.
package pprof
