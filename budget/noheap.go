package budget

import (
	"fmt"
	"runtime"
	"sync"
)

// NoHeap runs fn once. It is an error when anything was allocated on the Go heap meanwhile: that says
// how many objects and bytes, and where, each place with its callers. Run fn once before when it fills
// caches of its own.
//
// The runtime has one heap: what other goroutines allocate counts and is named too, so a test that calls
// NoHeap is no parallel one, and what Load and its like allocate in fn counts as well. What the runtime
// allocates for itself (threads, lists of waiters and timers) doesn't. Of objects under 16 bytes without
// pointers the runtime records only the first in each block of 16; the others are counted, not named.
//
// Cost: two collections, and each allocation in fn is recorded; the record stays for the life of the
// process. For tests, not for play.
func (b *Budget) NoHeap(fn func()) error {
	defer forgive()() // the collections and the report: a strict budget needn't know
	defer recordAll()()
	w := new(heapWatch)
	w.restart()
	fn()
	w.look()
	if len(w.found) == 0 {
		return nil
	}
	count, where := w.text()
	return fmt.Errorf("budget %q: NoHeap: %s:%s", b.plan.Name, count, where)
}

// recording counts who wants every allocation recorded.
var recording struct {
	sync.Mutex
	users  int
	before int // the rate that was
}

// recordAll makes the runtime record each allocation until end.
func recordAll() (end func()) {
	recording.Lock()
	defer recording.Unlock()
	if recording.users++; recording.users == 1 {
		recording.before = runtime.MemProfileRate
		runtime.MemProfileRate = 1
	}
	return recordLess
}

func recordLess() {
	recording.Lock()
	defer recording.Unlock()
	if recording.users--; recording.users == 0 {
		runtime.MemProfileRate = recording.before
	}
}
