package budget

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/platform"
)

// Seal ends set-up. From now on until Close the budget makes no memory requests to the system,
// except to return pages in a Trim or where the plan has "trim". So, if the plan asks for guards,
// Reconfigure can't change a size, even if the system refused the guards. If pages are locked,
// Reconfigure fails if the new sizes change which pages hold arenas. After SealStrict, Seal ends
// the strict mode: a program can call SealStrict for its frames, and Seal while it changes levels.
//
// Seal fails after Close. It belongs to the goroutine that drives the program.
func (b *Budget) Seal() error { return b.seal("Seal", false) }

// SealStrict is Seal, with a check in checked builds: NextFrame panics if the program allocated on
// the Go heap since the last NextFrame. The panic names the lines.
//
// The check begins at the first NextFrame after SealStrict. It counts the allocations of all
// goroutines, because the process has one Go heap. By their call stacks, these allocations don't
// count:
//
//   - Allocations of the runtime for itself, and the library's notes of leaked scopes and of call
//     sites.
//   - Allocations inside calls that a frame makes rarely, and inside the functions that these calls
//     run, such as a loader: Load, Rewind, [Region.Release], Acquire, Trim, Reconfigure, Report,
//     Published, Walk, Missing, NoHeap, the Open and Close of another budget, Of and OfRegion of
//     package inside, Timeline.Read, the files and Ring.Diff of package save, and package record.
//     Allocations before or after these calls do count, such as an escaping closure for Load, or
//     work on the result of Published.
//   - If a Load, Rewind, Release, Trim or Reconfigure runs between two NextFrames: allocations of
//     goroutines that began with another function, which may work for a loader, and allocations
//     more than 32 calls deep. If owners load slots all the time, look for garbage in a test with
//     fewer loads.
//   - If an arena was full between two NextFrames: all allocations between them, because making the
//     full error allocates.
//
// If NextFrame returns an error, the allocations for the error count at the next NextFrame. If
// NextFrame panics, it has done nothing else, and the count begins again.
//
// SealStrict fails as Seal does. In every build it also fails while another budget of the process
// is strict. Cost in a checked build: the runtime records each allocation, and each NextFrame stops
// the world, and runs a collection if any goroutine has allocated. In other builds SealStrict costs
// nothing.
func (b *Budget) SealStrict() error { return b.seal("SealStrict", true) }

func (b *Budget) seal(what string, strict bool) error {
	if b.closed.Load() {
		return fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	}
	strictOwner.Lock()
	defer strictOwner.Unlock()
	if owner := strictOwner.budget.Load(); strict && owner != nil && owner != b {
		return fmt.Errorf("budget %q: SealStrict: budget %q is strict already; the process has one Go heap, so use "+
			"Seal", b.plan.Name, owner.plan.Name)
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

// NoHeap runs fn once. If the program allocates on the Go heap meanwhile, NoHeap returns an error
// with the number of objects and bytes, and the allocating lines with their callers. If an arena
// was full meanwhile, NoHeap returns nil, because making the full error allocates. If fn fills
// caches of its own, run fn once before.
//
// The process has one Go heap, so allocations of other goroutines also count. Don't run such a test
// in parallel. Allocations inside Load and similar calls in fn count. Allocations of the runtime
// for itself (threads, lists of waiters and timers) don't count. Several objects under 16 bytes
// without pointers may share a block of 16 bytes; the runtime records only the first object of such
// a block.
//
// Cost: a collection, another if the program allocates, and a record of each call stack that
// allocates, which stays for the life of the process. It is for tests.
func (b *Budget) NoHeap(fn func()) error {
	defer recordAll()()
	w := newHeapWatch()
	fn()
	return w.end(b.plan.Name)
}
