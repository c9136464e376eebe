package seam

import "sync/atomic"

// Watched is the use of a budget's arenas, for a timeline.
type Watched struct {
	Gauges []Gauge // in map order, then C's heap if the budget has it
	CHeap  func()  // passes the use of C's heap to its gauge; nil: the budget has none
	Size   func(gauge int) uint64
	Closed *atomic.Bool
}

// Events of an arena, a bit for each kind.
const (
	Load   uint16 = 1 << iota // a Load ended, or failed
	Rewind                    // the arena was emptied, and not loaded
	Full                      // the arena was full
	Moved                     // Reconfigure moved or resized it, or regions on both sides
	Warn                      // the arena reached its warn share
)

// Gauge holds an arena's use since the last sample. Publishing writes it, under the lock of the
// published reports; a timeline reads it without a lock.
type Gauge struct {
	now, most atomic.Uint64
	marks     atomic.Uint32
}

// Saw records that the arena used most bytes at once since it was published, and uses now. It
// stores most first: if Take reads in between, a peak appears in a neighbouring tick and isn't
// lost.
func (g *Gauge) Saw(most, now uint64) {
	if g == nil {
		return
	}
	for {
		before := g.most.Load()
		if most <= before || g.most.CompareAndSwap(before, most) {
			break
		}
	}
	g.now.Store(now)
}

// Mark records events.
func (g *Gauge) Mark(events uint16) {
	if g != nil && events != 0 {
		g.marks.Or(uint32(events))
	}
}

// Take adds the use and the events since the last Take to a sample. The use now is the start of the
// next tick.
func (g *Gauge) Take(most *uint64, events *uint16) {
	now, seen := g.now.Load(), g.most.Load()
	if seen != now {
		seen = g.most.Swap(now)
	}
	*most = max(*most, seen, now) // if Saw wrote both in between, the peak is in the next tick
	if g.marks.Load() != 0 {
		*events |= uint16(g.marks.Swap(0))
	}
}
