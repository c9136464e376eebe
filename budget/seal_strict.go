package budget

import (
	"fmt"
	"slices"
	"sync"
)

// strictHeap watches the Go heap for the budget that is Strict: the count is the cheap look, the profile says whose the
// objects were.
var strictHeap heapWatch

type heapWatch struct {
	mu        sync.Mutex
	counting  bool // NextFrame came
	forgiving int  // calls at work whose allocations don't count

	now         goCounter
	all, unseen uint64    // when counting began again
	profile     goProfile // then
	found       []goSite  // since the last NextFrame, in times that are over
	foundUnseen uint64    // in these times too
}

// watch begins and ends it.
func (w *heapWatch) watch(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if on {
		recordAll()
		return
	}
	recordLess()
	w.counting, w.profile, w.found, w.foundUnseen = false, nil, nil, 0
}

// turn panics when the program allocated since the last one.
func (w *heapWatch) turn(b *Budget) {
	if found := w.atNextFrame(b); found != nil {
		panic(found)
	}
}

// atNextFrame is what to panic with, or nil.
func (w *heapWatch) atNextFrame(b *Budget) (text any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !b.isStrict() || w.forgiving > 0 {
		return nil
	}
	if !w.counting {
		w.counting = true
		w.restart()
		return nil
	}
	w.look()
	if len(w.found) > 0 {
		count, where := w.text()
		text = fmt.Sprintf("budget %q: BUG: Strict: %s, between frames; allocate at set-up or in a load:%s", b.plan.Name, count, where)
		w.restart() // after the text: it doesn't count for a program that recovers
	}
	w.found, w.foundUnseen = nil, 0
	return text
}

// look adds what was allocated since counting began again, and begins again.
func (w *heapWatch) look() {
	w.now.read()
	if w.now.all == w.all {
		return
	}
	before, unseen := w.profile, w.now.unseen-w.unseen
	w.profile = readGoProfile()
	if sites := w.profile.since(before); len(sites) > 0 { // else the runtime's own
		w.found = slices.Concat(w.found, sites)
		w.foundUnseen += unseen
	}
	w.begin()
}

func (w *heapWatch) restart() {
	w.profile = readGoProfile()
	w.begin()
}

func (w *heapWatch) begin() {
	w.now.read()
	w.now.read()
	w.all, w.unseen = w.now.all, w.now.unseen
}

func (w *heapWatch) forgive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.forgiving++; w.forgiving == 1 && w.counting {
		w.look()
	}
}

func (w *heapWatch) endForgiving() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.forgiving--; w.forgiving == 0 && w.counting {
		w.restart()
	}
}
