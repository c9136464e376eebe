package budget

import (
	"runtime"
	"sync"
)

// TB is what NoHeap needs of a *testing.T or *testing.B.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// NoHeap runs fn once and fails the test when anything was allocated on the Go heap meanwhile: it says how many objects
// and bytes, and where, each place with its callers. Run fn once before when it fills caches of its own.
//
// The runtime has one heap: what other goroutines allocate counts and is named too, so a test that calls NoHeap is no
// parallel one, and what Load and its like allocate in fn counts as well. What the runtime allocates for itself
// (threads, lists of waiters and timers) doesn't. Of objects under 16 bytes without pointers the runtime records only
// the first in each block of 16; the others are counted, not named.
//
// Where fn panics or ends the goroutine, NoHeap says nothing. Calls from several goroutines take turns; one inside fn
// is a fault of the test. Cost: two collections, and each allocation in fn is recorded; the record stays for the life
// of the process. For tests, not for play.
func (b *Budget) NoHeap(t TB, fn func()) {
	t.Helper()
	defer forgive()() // the collections and the report: whoever is Strict needn't know
	if insideNoHeap() {
		t.Errorf("budget %q: BUG: NoHeap inside NoHeap", b.plan.Name)
		return
	}
	noHeap.Lock()
	defer noHeap.Unlock()
	defer recordAll()()
	profile := readGoProfile()
	before, after := &noHeap.before, &noHeap.after
	before.read()
	before.read()
	fn()
	after.read()
	if after.all == before.all {
		return
	}
	if sites := readGoProfile().since(profile); len(sites) > 0 {
		count, where := goSitesText(sites, after.unseen-before.unseen)
		t.Errorf("budget %q: NoHeap: %s:%s", b.plan.Name, count, where)
	}
}

// insideNoHeap says whether NoHeap was called by the function of another NoHeap, which would wait
// for ever.
func insideNoHeap() bool {
	calls, found := make([]uintptr, 64), 0
	for skip := 0; ; skip += len(calls) {
		n := runtime.Callers(skip, calls)
		frames := runtime.CallersFrames(calls[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			if f, more = frames.Next(); f.Function == "github.com/upfront-mem/upfront/budget.(*Budget).NoHeap" {
				found++
			}
		}
		if n < len(calls) {
			return found > 1
		}
	}
}

// noHeap is the one NoHeap at work.
var noHeap struct {
	sync.Mutex
	before, after goCounter
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
