package budget

import (
	"context"
	"fmt"
	"os"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Trimmed is the result of a Trim.
type Trimmed struct {
	Bytes  uint64 `json:"bytes"`  // of returned pages; where known, of those that were present
	Slots  int    `json:"slots"`  // skipped: acquired, or in a load
	Leases int    `json:"leases"` // workers with lent scratch, which Trim skipped
	// Keeps is the reason why none of the budget's own pages were returned; "" if they were. Pages
	// of C's malloc may be returned all the same.
	Keeps string `json:"keeps,omitempty"`
}

// String returns a line: "trimmed 12288KiB; skipped 2 slots and the scratch of 1 lease".
func (t Trimmed) String() string {
	switch {
	case t.Keeps != "" && t.Bytes == 0:
		return "trimmed nothing: " + t.Keeps
	case t.Keeps != "":
		return fmt.Sprintf("trimmed only %s, of C's malloc: %s", SizeText(t.Bytes), t.Keeps)
	}
	return fmt.Sprintf("trimmed %s; skipped %s and the scratch of %s", SizeText(t.Bytes), plural(t.Slots, "slot"),
		plural(t.Leases, "lease"))
}

// Trim returns free pages of the budget to the system:
//
//   - the whole pages between the objects and the temporaries of each region, slot, frame buffer
//     and scratch arena
//   - the whole pages inside free blocks of heaps in regions ([arena.Heap.Trim])
//   - the free pages of C's malloc, if the plan has a c_heap
//
// A rewound region and a released slot are free as a whole. Trim rewinds nothing and moves no
// object, and the plan stays the bound. The next use of a returned page is a page fault, and the
// system must have the memory then.
//
// Trim skips slots that have an owner ([Region.Trim] is for the owner) or are part of a load, and
// scratch that is lent. The result counts the skipped slots and leases. As [Region.Rewind] does,
// Trim waits for workers that pin a region without slots ([Reader]), and fails during a load that
// touches such a region, and after Close. Call Trim as NextFrame: on the goroutine that drives the
// program, while no worker uses the frame or numbered scratch. A heap that C or other goroutines
// use needs an [arena.Shared]; Trim takes its lock. Trim doesn't reach a heap inside a block or a
// chunk of another arena, because that block may have been freed. Call the Trim of such a heap
// itself.
//
// If pages.lock is in force or pages.prefault is required, every page stays, and Trim returns an
// error that names the key. A wished pages.prefault is no obstacle. Checked and race builds and
// [OpenIn] return no pages; Trimmed.Keeps says why. Trim is allowed after Seal.
//
// Cost: two system calls for each run of pages, a measurement of all pages as in [Budget.Missing],
// and for each returned page about the time that its next use takes.
func (b *Budget) Trim(ctx context.Context) (t Trimmed, err error) {
	if err := ctx.Err(); err != nil {
		return t, fmt.Errorf("budget %q: Trim: %w", b.plan.Name, err)
	}
	l, err := b.begin(Region{}, "Trim", reach{from: b.unslotted()})
	if err != nil {
		return t, err
	}
	defer b.end(l)
	if busy := b.finalizing(); busy != "" {
		return t, fmt.Errorf("budget %q: Trim from a finalizer of %s: %w", b.plan.Name, busy, ErrLoading)
	}
	if still := b.keepOut(ctx, l, l.along); still != nil {
		return t, b.waited(ctx, l, still)
	}
	if err := b.mayTrim(l); err != nil {
		return t, err
	}
	defer b.measure()
	err = b.trimAll(l, &t)
	return t, err
}

// unslotted returns the regions without slots.
func (b *Budget) unslotted() (list []*region) {
	for _, r := range b.regions {
		if r.slot < 0 {
			list = append(list, r)
		}
	}
	return list
}

func (b *Budget) trimAll(l *load, t *Trimmed) error {
	t.Keeps = b.keepsPages()
	for _, r := range l.along.each {
		if err := t.add(r.stack, (*stack.Stack).TrimHeaps, (*stack.Stack).TrimUnused); err != nil {
			return err
		}
	}
	for _, s := range b.slots {
		for _, slot := range s.slots {
			if err := s.trim(slot, l, t); err != nil {
				return err
			}
		}
	}
	for _, st := range b.frame {
		if err := t.add(st, (*stack.Stack).TrimUnused); err != nil {
			return err
		}
	}
	if b.cHeap {
		t.Bytes += arena_c.ProcessHeapOf().Trim()
	}
	return b.leases.trim(t)
}

// add trims an arena.
func (t *Trimmed) add(st *stack.Stack, parts ...func(*stack.Stack) (uint64, error)) error {
	for _, part := range parts {
		bytes, err := part(st)
		if t.Bytes += bytes; err != nil {
			return fmt.Errorf("budget %q: Trim of %s: %w", st.Budget, st.Arena, err)
		}
	}
	return nil
}

// trim trims a free slot, and counts one that has an owner or is a part of a load. Meanwhile
// Acquire waits, and the slot is a part of l.
func (s *Slots) trim(slot *region, l *load, t *Trimmed) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.b
	b.mu.Lock()
	skipped := slot.taken() || slot.busy != nil
	if !skipped {
		slot.busy = l
	}
	b.mu.Unlock()
	if skipped {
		t.Slots++
		return nil
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		slot.busy = nil
	}()
	return t.add(slot.stack, (*stack.Stack).TrimUnused)
}

// trim trims the scratch of numbered and of free workers, and counts the others.
func (p *leases) trim(t *Trimmed) error {
	p.mu.Lock() // for Scratches, which takes a worker by number
	defer p.mu.Unlock()
	for i := range p.workers {
		if err := p.trimOf(&p.workers[i], t); err != nil {
			return err
		}
	}
	return nil
}

func (p *leases) trimOf(w *lendable, t *Trimmed) error {
	switch {
	case w.is(scratchFixed):
	case w.swap(scratchFree, scratchGiving):
		defer p.put(w)
	default:
		t.Leases++
		return nil
	}
	for _, st := range w.stacks {
		if err := t.add(st, (*stack.Stack).TrimUnused); err != nil {
			return err
		}
	}
	return nil
}

// Trim is [Budget.Trim] of only this region or slot, for its owner; regions above stay as they are.
// Inside a load of a lower region, call Trim on the result of [Region.In]. After a slot's release
// Trim fails as Rewind does. No Go allocation, unless it fails, waits or is traced, or the region
// has heaps.
func (r Region) Trim(ctx context.Context) (t Trimmed, err error) {
	b := r.its().b
	defer traced(ctx, "Trim", r.region)()
	l, err := b.enter(ctx, r, "Trim", reach{from: b.regions[r.index : r.index+1]})
	if err != nil {
		return t, err
	}
	defer b.end(l)
	if err := b.mayTrim(l); err != nil {
		return t, err
	}
	t.Keeps = b.keepsPages()
	err = t.add(r.stack, (*stack.Stack).TrimHeaps, (*stack.Stack).TrimUnused)
	return t, err
}

// trimEmptied trims a region that was emptied, if the plan has "trim": "empty". An error goes to
// the report.
func (r *region) trimEmptied() {
	if !r.trims || r.trimmed || r.b.mayTrim(nil) != nil || r.b.keepsPages() != "" {
		return
	}
	r.trimmed = true
	if _, err := r.stack.TrimUnused(); err != nil {
		r.b.note(fmt.Errorf("budget %q: trim of region %s: %w", r.b.plan.Name, r.name, err))
		return
	}
	// An emulator may keep the pages. Then they aren't zero.
	p, size := r.stack.Unused()
	m, at := r.b.pagesAt(p)
	missing, ok := m.Missing(platform.PageRun{Offset: at, Size: size})
	r.zero = ok && size >= r.stack.Row().Size() && uint64(missing)*uint64(os.Getpagesize()) == size
}

// keepsPages returns the reason why no page of this budget is returned to the system, or "".
func (b *Budget) keepsPages() string {
	switch {
	case b.foreign():
		return "the pages of OpenIn's block are the caller's"
	case arena_c.Checked:
		return "a checked build keeps the fills of free bytes"
	case platform.GoBacked:
		return "the memory of a race build is the Go heap's"
	}
	return ""
}

// mayTrim returns an error if the plan holds all pages. A nil l is the Trim of a heap.
func (b *Budget) mayTrim(l *load) error {
	key, do, what := "", "", "Trim"
	switch {
	case b.locked:
		key, do = `pages.lock is in force`, `set pages.lock to "off"`
	case b.plan.Pages.Prefault == Required:
		key, do = `pages.prefault is "required"`, `set pages.prefault to "wished" or "off"`
	default:
		return nil
	}
	if l != nil {
		what = l.name()
	}
	return fmt.Errorf("budget %q: %s refused: %s, so every page stays present; %s", b.plan.Name, what, key, do)
}

// trimKeys adds a line to the report for each trim of the plan that does nothing.
func (b *Budget) trimKeys() {
	switch {
	case b.plan.CHeap.Trim == 0:
	case arena_c.Checked:
		b.refused = append(b.refused, cHeapKey+".trim: "+b.keepsPages())
	case b.locked:
		b.refused = append(b.refused, cHeapKey+".trim: pages.lock is in force, so every page stays present")
	}
	for i, r := range b.plan.Regions {
		if r.Trim == "" {
			continue
		}
		why := b.keepsPages()
		if b.locked {
			why = "pages.lock is in force, so every page stays present"
		}
		if why != "" {
			b.refused = append(b.refused, fmt.Sprintf("regions[%d].trim: %s", i, why))
		}
	}
}

// pagesAt returns the range that contains p and may return pages, and p's offset in it: the
// budget, or the mirror of an asan build.
func (b *Budget) pagesAt(p unsafe.Pointer) (r *platform.Reservation, at uint64) {
	r = b.pages()
	if m := b.mirror; m != nil && uint64(uintptr(p)-uintptr(m.Base())) < m.Size() {
		r = m
	}
	return r, uint64(uintptr(p) - uintptr(r.Base()))
}

// budgetPages and regionPages are stack.Pages: of frame and scratch, and of a region.
type (
	budgetPages Budget
	regionPages region
)

func (o *budgetPages) Discard(p unsafe.Pointer, size uint64) (bytes uint64, err error) {
	b := (*Budget)(o)
	if err := b.mayTrim(nil); err != nil || b.keepsPages() != "" {
		return 0, err
	}
	r, at := b.pagesAt(p)
	missing, _ := r.Missing(platform.PageRun{Offset: at, Size: size})
	if err := r.Discard(at, size); err != nil {
		return 0, err
	}
	return size - min(size, uint64(missing)*uint64(os.Getpagesize())), nil
}

// Discard marks the region's pages as written: the system doesn't report a returned page.
func (o *regionPages) Discard(p unsafe.Pointer, size uint64) (bytes uint64, err error) {
	bytes, err = (*budgetPages)(o.b).Discard(p, size)
	if o.tracker != nil {
		o.tracker.MarkAll()
	}
	return bytes, err
}

// measure measures the resident bytes for reports.
func (b *Budget) measure() {
	if missing, ok := b.memory.Missing(); ok {
		b.resident.Store(b.Size() - min(b.Size(), uint64(missing)*uint64(os.Getpagesize())))
	}
}
