// Package pprof shows a budget in go tool pprof: memory that Go's own profiler doesn't see. It is a
// module of its own, imported as with:
//
//	import with "github.com/upfront-mem/upfront/budget/with/pprof"
//
//	mux.Handle("/debug/pprof/budget", with.Handler(b)) // next to net/http/pprof
//
//	go tool pprof -top http://127.0.0.1:8080/debug/pprof/budget
//
// A stack leads from the budget to the holder of the bytes. The tool shows each level as a
// function:
//
//	budget game > region match > slot match 3 > scope match > label sound
//
// In a checked build the calls that allocated follow, such as main.load at load.go:31. Bytes that
// belong to no inner level are the outer level's. Select a sample type with -sample_index=NAME:
//
//	inuse_space         bytes in use: the sum of the report's Used (default)
//	peak_space          the most that each arena held since Open: the sum of the report's Peak
//	planned_space       bytes of the plan, with tables and edges: the report's Size
//	alloc_space         all bytes that scopes of a name held, released ones too; not of scratch
//	scopes_peak_space   the most that scopes of a name held
//	labels_inuse_space  bytes of labels in inuse_space
//	labels_alloc_space  bytes of labels in alloc_space
//	labels_peak_space   the most that a label held
//
// Reports of checked builds also have inuse_objects, alloc_objects, scopes_peak_objects and
// padding_space. Any other nonzero figure of budget.Figures that is a sum of bytes is a sample type
// with _space after its name.
//
// Peaks of arenas, scopes and labels are from different moments, so their sum would be enough for
// all at once.
//
// A release build's report has the bytes of labels, but not their scopes. If only one scope of an
// arena holds bytes, as in a loaded region, inuse_space has the labels below it; else only
// labels_inuse_space has them. Samples have the tags budget, region, arena (for slots, buffers and
// scratch arenas), scope, label and, in checked builds, type, for -tags and -tagfocus.
package pprof
