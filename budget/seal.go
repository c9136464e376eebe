package budget

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/platform"
)

// Seal ends set-up: the budget makes no more requests to the system for memory until Close, except
// where the program asks: in a Trim, and where the plan has "trim". So Reconfigure fails from now
// on if it would move guards, or lock pages that were padding. After SealStrict, Seal ends the
// strict mode: a program can be strict in its frames and merely sealed while it changes levels.
//
// Seal fails after Close. It belongs to the goroutine that drives the program.
func (b *Budget) Seal() error { return b.seal("Seal", false) }

// SealStrict is Seal. In a checked build NextFrame then panics if the program allocated on the Go
// heap since the last NextFrame, and names the lines. Engines for consoles assert on malloc in the
// same way.
//
// It counts from the first NextFrame after SealStrict, and counts every goroutine's allocations,
// because the process has one Go heap. Some allocations don't count, by their call stacks:
//
//   - The runtime's own.
//   - Those inside calls that a frame makes rarely, a loader and its calls included: Load, Rewind,
//     Release, Acquire, Trim, Reconfigure, Report, Published, Inside, Walk, Missing, NoHeap, the
//     Open and Close of another budget, [Timeline.Read], the files and Ring.Diff of package save,
//     and package record. Allocations before or after these calls count. So do an escaping closure
//     for Load, and work on the result of Published.
//   - If a Load, Rewind or Release runs between two NextFrames: those of other goroutines, which
//     may work for a loader, and those more than 32 calls deep. If owners load slots all the time,
//     look for garbage in a test with fewer loads.
//   - All between two NextFrames if an arena was full, because making its error allocates.
//
// An error that NextFrame returns counts at the next NextFrame. If NextFrame panics, it has done
// nothing else, and the count begins again.
//
// SealStrict fails as Seal does, and in every build while another budget of the process is strict.
// Cost in a checked build: each NextFrame stops the world, and runs a collection if any goroutine
// has allocated; each allocation is recorded. In other builds it costs nothing.
func (b *Budget) SealStrict() error { return b.seal("SealStrict", true) }

func (b *Budget) seal(what string, strict bool) error {
	if b.closed.Load() {
		return fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	}
	strictOwner.Lock()
	defer strictOwner.Unlock()
	if owner := strictOwner.budget.Load(); strict && owner != nil && owner != b {
		return fmt.Errorf("budget %q: SealStrict: budget %q is strict already; the process has one Go heap, so use Seal",
			b.plan.Name, owner.plan.Name)
	}
	b.sealed.Store(true)
	b.beStrict(strict)
	return nil
}

// strictOwner holds the strict budget. Writers hold the lock.
var strictOwner struct {
	sync.Mutex
	budget atomic.Pointer[Budget]
}

func (b *Budget) isStrict() bool { return strictOwner.budget.Load() == b }

// beStrict makes b the strict budget, or ends its strict mode. pre: the lock is held, and no other
// budget is strict.
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

func (b *Budget) unseal() {
	strictOwner.Lock()
	defer strictOwner.Unlock()
	b.beStrict(false)
}

// sealRefuses returns an error if these regions' boundaries can't move after Seal.
func (b *Budget) sealRefuses(changed []*region, parts []platform.PageRun) error {
	key, would := "guards", "move the guards between them"
	if !b.plan.Pages.Guards.asks() {
		key, would = "lock", "lock the pages at the old edges"
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

func (b *Budget) strictFrame() {
	if !strictBuild || !b.isStrict() {
		return
	}
	if found := atNextFrame(b.plan.Name); found != nil {
		panic(found)
	}
}

// NoHeap runs fn once. It returns an error if there was an allocation on the Go heap meanwhile,
// with the number of objects and bytes, and the lines with their callers. If fn fills caches of its
// own, run it once before.
//
// The process has one Go heap: allocations of other goroutines also count and are named, so don't
// run such a test in parallel. Allocations of Load and similar calls in fn count as well.
// Allocations of the runtime itself (threads, lists of waiters and timers) don't. Of objects under
// 16 bytes without pointers the runtime records only the first in each block of 16.
//
// Cost: two collections, and a record of each allocation in fn that stays for the life of the
// process. It is for tests.
func (b *Budget) NoHeap(fn func()) error {
	defer recordAll()()
	w := newHeapWatch()
	fn()
	return w.end(b.plan.Name)
}
