package budget

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/platform"
)

// Seal says that set-up is over: no memory is asked of the system until Close. The budget never does so
// on its own; Reconfigure does where Plan.Pages.Guards is not off, or where pages are locked and edges part
// others than before, and is refused from now on. After
// SealStrict it ends what is strict: play can be strict, and the change of a level merely sealed.
//
// It is refused after Close. Only the goroutine that drives the program calls it.
func (b *Budget) Seal() error { return b.seal("Seal", false) }

// SealStrict is Seal, and in checked builds NextFrame panics when the program allocated on the Go heap
// since the last NextFrame, and says where: "if you call malloc or new the engine will assert", as
// engines for consoles do it.
//
// It counts from the first NextFrame after SealStrict, and what every goroutine allocates, as the runtime
// has one heap. Call stacks say what doesn't count:
//
//   - The runtime's own.
//   - What the calls that play makes rarely allocate inside, a loader with all that it calls included:
//     Load, Rewind, Release, Acquire, Reconfigure, Report, Published, Inside, Walk, Missing, NoHeap, the
//     Open and Close of another budget, [Timeline.Read], the files of package save and package record.
//     What comes before or after them counts, also the closure that is given to Load, should it escape,
//     and what is done with what Published gives.
//   - Between two NextFrames with a Load, Rewind or Release at work, on whatever goroutine: what other
//     goroutines than NextFrame's allocate, since they may work for a loader, and what is allocated more
//     than 32 calls deep. Where owners of slots load all the time, let the test that looks for the others'
//     garbage load less.
//   - Anything between two NextFrames when something was full meanwhile: that error is the one to see.
//
// An error that NextFrame returns counts at the next one. Where NextFrame panics it has done nothing yet,
// and the count begins again.
//
// It is refused as Seal is, and while another budget of the process is strict, in every build. Cost: in
// checked builds it stops the world at each NextFrame, costs a collection at each that finds an
// allocation, whosever it is, and records each allocation; in others none.
func (b *Budget) SealStrict() error { return b.seal("SealStrict", true) }

func (b *Budget) seal(what string, strict bool) error {
	if b.closed.Load() {
		return fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	}
	strictOwner.Lock()
	defer strictOwner.Unlock()
	if owner := strictOwner.budget.Load(); strict && owner != nil && owner != b {
		return fmt.Errorf("budget %q: SealStrict: budget %q is strict already; only one can, the Go heap is one: use Seal",
			b.plan.Name, owner.plan.Name)
	}
	b.sealed.Store(true)
	b.beStrict(strict)
	return nil
}

// strictOwner is the budget that is strict. Who writes holds the lock.
var strictOwner struct {
	sync.Mutex
	budget atomic.Pointer[Budget]
}

func (b *Budget) isStrict() bool { return strictOwner.budget.Load() == b }

// beStrict makes the budget the strict one, or no longer. pre: the lock is held, and no other budget is.
func (b *Budget) beStrict(strict bool) {
	if strict == b.isStrict() {
		return
	}
	if strict {
		strictOwner.budget.Store(b)
	} else {
		strictOwner.budget.Store(nil)
	}
	if strictBuild {
		watchStrict(strict)
	}
}

// unseal is for Close.
func (b *Budget) unseal() {
	strictOwner.Lock()
	defer strictOwner.Unlock()
	b.beStrict(false)
}

// sealRefuses says why the edges of these regions can't move any more.
func (b *Budget) sealRefuses(changed []*region, parts []platform.PageRun) error {
	key, would := "guards", "move the guards between them"
	if !b.plan.Pages.Guards.asks() {
		key, would = "lock", "lock what edges leave"
		if !b.locked || slices.Equal(parts, b.parts) {
			return nil
		}
	}
	if !b.sealed.Load() {
		return nil
	}
	keys := make([]string, 0, len(changed))
	for _, r := range changed {
		if r.slot <= 0 { // once for all slots
			keys = append(keys, regionSizeKey(r.level))
		}
	}
	return fmt.Errorf("budget %q: Reconfigure after Seal: to move %s, the system would have to %s; "+
		"set pages.%s to \"off\", or Reconfigure before Seal", b.plan.Name, strings.Join(keys, ", "), would, key)
}

// strictFrame is NextFrame's look at the Go heap.
func (b *Budget) strictFrame() {
	if !strictBuild || !b.isStrict() {
		return
	}
	if found := atNextFrame(b.plan.Name); found != nil {
		panic(found)
	}
}

// NoHeap runs fn once. It is an error when anything was allocated on the Go heap meanwhile: that says
// how many objects and bytes, and where, each line with its callers. Run fn once before when it fills
// caches of its own.
//
// The runtime has one heap: what other goroutines allocate counts and is named too, so a test that calls
// NoHeap is no parallel one, and what Load and its like allocate in fn counts as well. What the runtime
// allocates for itself (threads, lists of waiters and timers) doesn't. Of objects under 16 bytes without
// pointers the runtime records only the first in each block of 16.
//
// Cost: two collections, and each allocation in fn is recorded; the record stays for the life of the
// process. For tests, not for play.
func (b *Budget) NoHeap(fn func()) error {
	defer recordAll()()
	w := newHeapWatch()
	fn()
	return w.end(b.plan.Name)
}
