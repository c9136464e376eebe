//go:build memtrace

package arena_c

import "sync/atomic"

// Trace says whether each request asks Refuse, and is booked at its call site: in a memtrace build. A request is what a
// plan can be too small for, and what would be given: bytes, a chunk of a pool, a place in a table. What is refused anyway,
// for want of room or as misuse, is none, and what is served on a second way, as by a new piece for temporaries, is one.
const Trace = true

// OnPurpose is added to what a header remembers as refused (Linear.Refused) when FailAt was why: a bit between the sizes
// and the generation.
const OnPurpose = OffsetMax << 1

// trace is that of the process: it counts the requests of all goroutines.
var trace struct {
	left    atomic.Int64 // requests until the one to refuse, with it
	refused atomic.Bool
	told    atomic.Bool
}

// FailAt has the n-th request from now on refused, once; 0 has no more refused, and Failed stays as it is.
func FailAt(n uint64) {
	trace.left.Store(0)
	if n != 0 {
		trace.refused.Store(false)
		trace.told.Store(false)
		trace.left.Store(int64(n))
	}
}

// Failed says whether the request came that FailAt named, and whether an error told of it (Tell): one that got nothing
// but nil or false for an answer has none.
func Failed() (refused, told bool) { return trace.refused.Load(), trace.told.Load() }

// Refuse is the one place that each request passes. True: it is to be answered as if there were no room.
func Refuse() bool {
	if trace.left.Load() <= 0 || trace.left.Add(-1) != 0 {
		return false
	}
	trace.refused.Store(true)
	return true
}

// Tell notes that an error was made of the refusal.
func Tell() { trace.told.Store(true) }

// Asked is the size of the header's last refusal, and whether it was FailAt's.
func (l *Linear) Asked() (size uint64, onPurpose bool) {
	return l.Refused & (OnPurpose - 1), l.Refused&OnPurpose != 0
}

// given says whether what a header gave stays given, and books it then. Else the header is again as it was.
func given[H any](header *H, was H) bool {
	if !Refuse() {
		if l, ok := any(header).(*Linear); ok {
			booked(l, any(&was).(*Linear))
		}
		return true
	}
	*header = was
	return false
}
