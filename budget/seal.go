package budget

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena_c"
)

// strictBuild says whether Strict looks at the Go heap: in checked builds.
const strictBuild = arena_c.Checked

// SealMode is how strict a sealed budget is.
type SealMode int

const (
	// Sealed: no memory is asked of the system until Close. The budget never does so on its own; Reconfigure does, where
	// Plan.Pages.Guards is not off, and is refused from now on.
	Sealed SealMode = iota + 1

	// Strict is Sealed, and in checked builds NextFrame panics when the program allocated on the Go heap since the last NextFrame,
	// and says where: "if you call malloc or new the engine will assert", as engines for consoles do it. In other builds it
	// is Sealed.
	Strict
)

// String is "Sealed" or "Strict".
func (m SealMode) String() string {
	switch m {
	case Sealed:
		return "Sealed"
	case Strict:
		return "Strict"
	}
	return fmt.Sprintf("SealMode(%d)", int(m))
}

// Seal says that set-up is over: from now on what SealMode says is forbidden. A budget stays sealed until
// Close; another Seal changes the mode, so that play can be Strict and the change of a level merely Sealed.
//
// Strict counts from the first NextFrame after Seal. What every goroutine allocates counts, as the runtime has one heap;
// what the runtime allocates for itself doesn't, and neither does what these allocate inside, a loader with all it
// calls included: Load, Rewind, Release, Acquire, Reconfigure, Report, Snapshot, Walk, Missing, NoHeap, and the Open
// and Close of another budget. What came before them since the last NextFrame counts, also the closure that is given to Load,
// should it escape. So does an error that NextFrame returns, at the next one. Where NextFrame panics it has done nothing yet, and the count
// begins again. While one of these calls runs, on any goroutine, nothing counts, the other goroutines' either: owners of
// slots that load all the time hide what the others do, so let the test that looks for it load less. What is done
// with a Snapshot, to log it, does count.
//
// It is refused after Close, and Strict also while another budget of the process is Strict, in every build. Only the
// goroutine that drives the program calls it. Cost: none for Sealed. Strict in checked builds stops the world at each
// NextFrame, costs a collection at each call that is named above, and records each allocation.
func (b *Budget) Seal(mode SealMode) error {
	if b.closed.Load() {
		return fmt.Errorf("budget %q: Seal: %w", b.plan.Name, ErrClosed)
	}
	if mode != Sealed && mode != Strict {
		return fmt.Errorf("budget %q: BUG: Seal(%v): there are Sealed and Strict", b.plan.Name, mode)
	}
	strictOwner.Lock()
	defer strictOwner.Unlock()
	if owner := strictOwner.budget.Load(); mode == Strict && owner != nil && owner != b {
		return fmt.Errorf("budget %q: Seal(Strict): budget %q is Strict already; only one can, the Go heap is one: use Sealed",
			b.plan.Name, owner.plan.Name)
	}
	b.sealed.Store(true)
	b.beStrict(mode == Strict)
	return nil
}

// strictOwner is the budget that is Strict. Who writes holds the lock.
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
		strictHeap.watch(strict)
	}
}

// unseal is for Close.
func (b *Budget) unseal() {
	strictOwner.Lock()
	defer strictOwner.Unlock()
	b.beStrict(false)
}

// sealRefuses says why the edges of these regions can't move any more.
func (b *Budget) sealRefuses(changed []*region) error {
	if !b.sealed.Load() || b.plan.Pages.Guards <= Off {
		return nil
	}
	keys := make([]string, 0, len(changed))
	for _, r := range changed {
		if r.slot <= 0 { // once for all slots
			keys = append(keys, regionSizeKey(r.level))
		}
	}
	return fmt.Errorf("budget %q: Reconfigure after Seal: to move %s, the system would have to move the guards between them; "+
		"set pages.guards to \"off\", or Reconfigure before Seal", b.plan.Name, strings.Join(keys, ", "))
}

// strictFrame is NextFrame's look at the Go heap.
func (b *Budget) strictFrame() {
	if strictBuild {
		strictHeap.turn(b)
	}
}

// forgive lets what is allocated until end go uncounted. It is for calls of the budget that play uses rarely.
func forgive() (end func()) {
	if strictBuild {
		strictHeap.forgive()
		return strictHeapEnd
	}
	return forgiveNothing
}

func forgiveNothing() {}

func strictHeapEnd() { strictHeap.endForgiving() }
