package budget

import (
	"context"
	"fmt"
	"sync"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Slots are the slots of a region: equal siblings, each with one owner, loaded and rewound in any order without
// touching the others. A match, a room, a part of a streamed world takes one. A level that is loaded into a free slot
// while the old one plays can be swapped in when it is whole, and the old one stays when it fails.
//
// Any goroutine may acquire a slot; it is then the slot's owner, who loads, rewinds and releases it. Owners do so at the
// same time when no region lies above the slots in the plan. Otherwise each of them empties what lies above, and who
// comes second meanwhile gets ErrLoading: put the slots last ([Plan.Check] warns).
//
// A slot costs its size in whole pages, its tables ([Limits]: with the default 12 KiB, and 40 KiB of the Go heap), and addresses up to the
// next 64 KiB. Set limits of its own for a region of many small slots ([RegionPlan]): a slot of 17 KiB takes 22 KB with limits
// of 4, and 4 KB of the Go heap. [Plan.Cost] says what all of them take.
//
// Slots aren't for everything that comes and goes:
//
//   - Use a slot for a thing with an owner, with finalizers, and with bytes that can't be foreseen in
//     detail; one that may be full on its own and ends as a whole: a match, a room.
//   - Use a pool in one region ([scope.Plain]) for many things of one type: chunks of a world,
//     bullets, connections. A pool's Get takes nanoseconds; each new owner of a slot pays a lock and
//     a Load.
//   - Use an [arena.Heap] in one region where sizes differ. Each slot has the worst case's size; a
//     heap gives the bytes that one thing doesn't need to another.
//   - A slot below some 16 KiB is mostly tables.
//
// A slot that nobody released before Close is a leak, as a pair of scratch arenas is that nobody gave back ([Leaks]). Close empties it
// all the same, but it has an owner who doesn't know that it is gone; and the same oversight in a server that goes on
// makes Acquire full for good. Who shuts down ends the owners first, as it ends its workers.
type Slots struct {
	b     *Budget
	name  string
	index int // of the region in the plan
	slots []*region

	mu     sync.Mutex // guards what follows, and the slots' sites
	closed bool
}

// Slots are the slots of the region of that name. An unknown name, or that of a region without slots, is a caller's bug
// and panics.
func (b *Budget) Slots(name string) *Slots {
	for _, s := range b.slots {
		if s.name == name {
			return s
		}
	}
	panic(fmt.Sprintf("budget: BUG: plan %q has no region %q with slots; it has %s", b.plan.Name, name, b.regionNames(true)))
}

// Acquire gives the first free slot to its new owner, who loads it ([Load]) and gives it back ([Region.Release]). When none is free
// the error is a full that names the key to raise: a server's admission control. Any goroutine may ask. Cost: a lock and a
// look at each slot; no Go allocation.
func (s *Slots) Acquire() (Region, error) {
	if s == nil || s.b == nil {
		panic("budget: BUG: zero Slots: Budget.Slots gives them")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Region{}, fmt.Errorf("budget %q: Acquire of a slot of region %s: %w", s.b.plan.Name, s.name, ErrClosed)
	}
	onPurpose := false
	for _, slot := range s.slots {
		if slot.taken() {
			continue
		}
		if onPurpose = arena_c.Checked && arena_c.Refuse(); onPurpose {
			arena_c.Tell()
			break
		}
		slot.site.Note()
		return slot.take(), nil
	}
	n := uint64(len(s.slots))
	return Region{}, &scope.FullError{Budget: s.b.plan.Name, Arena: "region " + s.name, What: "slots", Asked: 1, Size: n,
		Need: n + 1, Key: fmt.Sprintf("regions[%d].slots", s.index), OnPurpose: onPurpose}
}

// Available is the number of slots that nobody has. Others may acquire before the caller looks at it.
func (s *Slots) Available() (free int) {
	for _, slot := range s.slots {
		if !slot.taken() {
			free++
		}
	}
	return free
}

// Release rewinds a slot (see [Region.Rewind]) and gives it back; from then on this Region and its readers refuse. The errors are
// those of Rewind; the slot is free all the same. When the slot can't be rewound, because workers are inside until
// ctx ends or something loads, nothing has changed. A second Release, or that of a region without slots, is refused.
// No Go allocation, unless it fails or waits.
func (r Region) Release(ctx context.Context) error {
	return r.empty(ctx, "Release", true)
}

// close lets nobody have a slot any more. Those that were never released are leaks.
func (s *Slots) close() (kept leaks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, slot := range s.slots {
		if slot.taken() {
			name := fmt.Sprintf("slot %q", slot.name)
			kept.add(name, slot.site.Tell(name+" acquired"))
		}
	}
	return kept
}
