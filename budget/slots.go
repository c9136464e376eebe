package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Slots are the slots of a region: equal siblings, each with at most one owner. A slot is loaded
// and rewound without touching the others. Use a slot for a match, a room, or a part of a streamed
// world. A program may load a new level into a free slot while the old level plays, and swap when
// the load is complete. If the load fails, the old level stays.
//
// Any goroutine may acquire a slot. This goroutine is then the slot's owner, and loads, rewinds and
// releases the slot. Owners may do so at the same time if no region stands on the slots. Otherwise
// each load also empties that region, and another owner's load returns [ErrLoading] meanwhile. So
// put slots last, or set RegionPlan.On of the region after them ([Plan.Check] warns otherwise).
//
// A slot takes its size in whole pages, and addresses up to the next 64 KiB. Its tables ([Limits])
// take 4 KiB by default, and 11 KiB of the Go heap. A region of many small slots may have lower
// limits of its own ([RegionPlan]): with limits of 4, a slot of 17 KiB takes 21 KiB, tables
// included, and 5 KiB of the Go heap. [Plan.Cost] returns the cost of all slots; its share of the
// Go heap is a low estimate.
//
// When to use a slot:
//
//   - Use a slot for a unit with an owner, finalizers and unforeseeable sizes, which may be full on
//     its own and ends as a whole: a match, a room.
//   - Use a pool in one region ([scope.Plain]) for many objects of one type: chunks of a world,
//     bullets, connections. A pool's Get takes nanoseconds; a new owner of a slot pays a lock and a
//     Load.
//   - Use an [arena.Heap] in one region for many objects of different sizes. Each slot has the size
//     of the worst case; in a heap one object can use the bytes that another doesn't need.
//
// A slot that isn't released before Close is a leak ([Leaks]). Close empties the slot all the same,
// but its owner isn't notified. At shutdown, end the owners before Close. In a server that runs on,
// slots that are never released make Acquire fail for good.
type Slots struct {
	b     *Budget
	name  string
	index int // of the region in the plan
	slots []*region
	queue *quota // in units of slots; nil: no goroutine may wait

	mu     sync.Mutex // guards closed, and the slots' sites
	closed bool
}

// Slots returns the slots of the region of that name. An unknown name, or a region without slots,
// is a caller's bug and panics.
func (b *Budget) Slots(name string) *Slots {
	for _, s := range b.slots {
		if s.name == name {
			return s
		}
	}
	panic(fmt.Sprintf("budget: BUG: plan %q has no region %q with slots; it has %s", b.plan.Name, name,
		b.regionNames(true)))
}

// Acquire returns the first free slot and makes the caller its owner. The owner loads the slot
// ([Load]) and releases it ([Region.Release]), also after a Load that failed. If no slot is free,
// Acquire returns an [ErrNoSlot], which is a [scope.FullError] that names the key to raise. A
// server can use this error to refuse a new player; [Slots.AcquireWait] waits instead. If the Load
// returns an [ErrFull], the slot itself is too small, and the plan is at fault. After Close Acquire
// returns [ErrClosed]. Any goroutine may call it. Cost: a lock and a check of each slot; no Go
// allocation, unless it fails.
func (s *Slots) Acquire() (Region, error) {
	s.its()
	if q := s.queue; q != nil && !q.takeSlot() {
		s.mu.Lock()
		defer s.mu.Unlock()
		return Region{}, s.noSlot(false)
	}
	return s.acquire()
}

// AcquireWait is [Slots.Acquire], but waits until a slot is free. The first that waits gets the
// next slot; Acquire doesn't overtake it. If the queue is full (RegionPlan.Waiters), AcquireWait
// returns an [ErrNoSlot] at once. If ctx ends first, the error wraps that of ctx, and says how long
// the caller waited, and behind how many others. After Close the error is [ErrClosed].
//
// A goroutine that waits while it holds a slot or a lease can wait forever; [Quota] has the order
// of all that a goroutine may wait for. Cost: that of Acquire, and two locks; a wait is some
// hundred ns. No Go allocation, unless AcquireWait fails or is the first to call ctx.Done.
func (s *Slots) AcquireWait(ctx context.Context) (Region, error) {
	s.its()
	if q := s.queue; q != nil {
		if err := q.waitForSlot(ctx); err != nil {
			if full, ok := errors.AsType[*scope.FullError](err); ok {
				return Region{}, noSlot{full}
			}
			return Region{}, err
		}
		return s.acquire()
	}
	if err := ctx.Err(); err != nil {
		return Region{}, fmt.Errorf("budget %q: AcquireWait of a slot of region %s: %w", s.b.plan.Name, s.name, err)
	}
	r, err := s.acquire()
	if full, ok := errors.AsType[*scope.FullError](err); ok && !full.OnPurpose {
		full.Key, full.What, full.Size, full.Need = fmt.Sprintf("regions[%d].waiters", s.index), "waiters", 0, 1
	}
	return r, err
}

// its panics for the zero Slots.
func (s *Slots) its() {
	if s == nil || s.b == nil {
		panic("budget: BUG: zero Slots: get them from Budget.Slots")
	}
}

// noSlot returns the error of an Acquire without a free slot. pre: s.mu is held.
func (s *Slots) noSlot(onPurpose bool) error {
	if s.closed {
		return fmt.Errorf("budget %q: Acquire of a slot of region %s: %w", s.b.plan.Name, s.name, ErrClosed)
	}
	n := uint64(len(s.slots))
	return noSlot{&scope.FullError{Budget: s.b.plan.Name, Arena: "region " + s.name, What: "slots", Asked: 1,
		Size: n, Need: n + 1, Key: fmt.Sprintf("regions[%d].slots", s.index), OnPurpose: onPurpose}}
}

// acquire takes the first free slot. pre: the caller has one of the queue's slots, if there is a
// queue.
func (s *Slots) acquire() (Region, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Region{}, s.noSlot(false)
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
		return s.take(slot), nil
	}
	if s.queue != nil {
		s.queue.putSlot()
	}
	return Region{}, s.noSlot(onPurpose)
}

// take makes the caller the slot's owner. pre: s.mu is held.
func (s *Slots) take(slot *region) Region {
	if arena_c.Checked {
		slot.site.Note()
		slot.goroutine = goroutine()
	}
	return slot.take()
}

// AcquireAt acquires the slot with that number ([Region.Slot]), as Acquire does. Use it to put a
// match back in its slot after a restart. If the slot isn't free, or the plan has fewer slots,
// AcquireAt returns an [ErrNoSlot]. It makes Go allocations.
func (s *Slots) AcquireAt(slot int) (Region, error) {
	if s == nil || s.b == nil || slot < 0 {
		panic(fmt.Sprintf("budget: BUG: AcquireAt(%d): get Slots from Budget.Slots, and count from 0", slot))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	what := fmt.Sprintf("budget %q: AcquireAt of slot %d of region %s", s.b.plan.Name, slot, s.name)
	switch {
	case s.closed:
		return Region{}, fmt.Errorf("%s: %w", what, ErrClosed)
	case slot >= planSlotsMax:
		return Region{}, noSlotAt(fmt.Sprintf("%s: a region has at most %d slots", what, planSlotsMax))
	case slot >= len(s.slots):
		return Region{}, noSlotAt(fmt.Sprintf("%s: the plan has %d slots: raise regions[%d].slots to %d or more", what,
			len(s.slots), s.index, slot+1))
	case s.slots[slot].taken():
		return Region{}, noSlotAt(what + ": it is acquired")
	case s.queue != nil && !s.queue.takeSlot():
		return Region{}, noSlotAt(what + ": the last free slot is for a goroutine that waited")
	}
	return s.take(s.slots[slot]), nil
}

// noSlot is a full error that is an ErrNoSlot too.
type noSlot struct{ *scope.FullError }

func (noSlot) Is(target error) bool { return target == ErrNoSlot }
func (e noSlot) Unwrap() error      { return e.FullError }

// noSlotAt is the error of one slot, an ErrNoSlot and so an ErrFull.
type noSlotAt string

func (e noSlotAt) Error() string      { return string(e) }
func (noSlotAt) Is(target error) bool { return target == ErrNoSlot || target == ErrFull }

// Available returns the number of free slots. Another goroutine may acquire one before the caller
// uses the number.
func (s *Slots) Available() (free int) {
	for _, slot := range s.slots {
		if !slot.taken() {
			free++
		}
	}
	return free
}

// Release rewinds a slot ([Region.Rewind]) and frees it; from then on this Region and its readers
// fail. If finalizers fail, Release returns their errors, and the slot is free all the same. If a
// worker pins the slot until ctx ends, or a running load excludes the call, Release returns an
// error and nothing changes. A second Release fails, and so does Release of a region without slots.
// Release makes no Go allocation of its own, with the exceptions of [Load].
func (r Region) Release(ctx context.Context) error {
	return r.empty(ctx, "Release", true)
}

// close ends Acquire and returns the slots that were never released, which are leaks.
func (s *Slots) close() (kept leaks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.queue != nil {
		s.queue.close()
	}
	for _, slot := range s.slots {
		if slot.taken() {
			name := fmt.Sprintf("slot %q", slot.name)
			kept.add(name, slot.site.Tell(name+" acquired"))
		}
	}
	return kept
}
