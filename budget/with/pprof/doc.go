// Package pprof shows the memory of a budget in go tool pprof. Go's own profiler doesn't see this
// memory. The package is a module of its own, imported as with:
//
//	import with "github.com/upfront-mem/upfront/budget/with/pprof"
//
//	mux.Handle("/debug/pprof/budget", with.Handler(b)) // next to net/http/pprof
//	mux.Handle("/debug/pprof/cmalloc", with.CHeapHandler())
//
//	go tool pprof -top http://127.0.0.1:8080/debug/pprof/budget
//
// A stack leads from the budget down to the region, scope or label that uses the bytes. The tool
// shows each level as a function:
//
//	budget game > region match > slot match 3 > scope match > label sound
//
// In a checked build, the calls that allocated follow, such as main.load at load.go:31. If bytes
// belong to no inner level, they count as the outer level's. Select a sample type with
// -sample_index=NAME:
//
//	inuse_space         bytes in use: the sum of Used, C's heap and quotas included (default)
//	peak_space          the peak of each arena since Open
//	planned_space       bytes of the plan, with c_heap, tables and padding
//	alloc_space         bytes that scopes of a name ever held; not of scratch
//	scopes_peak_space   the peak of the scopes of a name
//	labels_inuse_space  bytes of labels in inuse_space
//	labels_alloc_space  bytes of labels in alloc_space
//	labels_peak_space   the peak of a label
//	outside_space       the report's Outside: resident bytes that no part of the plan has
//
// Reports of checked builds also have inuse_objects, alloc_objects, scopes_peak_objects and
// padding_space. There is also a sample type for each other nonzero figure of budget.Figures that
// is a sum of bytes: the figure's name and _space.
//
// Peaks of arenas, scopes and labels are from different moments, so their sum is an upper bound of
// the bytes in use at once.
//
// A release build's report shows the bytes of each label, but not the label's scope. If only one
// scope of an arena uses bytes, as in a loaded region, the labels are below that scope in
// inuse_space. If several scopes use bytes, the labels are only in labels_inuse_space. For -tags
// and -tagfocus, samples of arenas have the tags budget, region, arena (unless it is a region
// without slots), scope, label and, in checked builds, type.
package pprof
