package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// Close rewinds every region, top first, closes frame and scratch, and releases the memory. Its
// error has the errors of finalizers and names the leaks ([Leaks]): scopes, owned values, blocks of
// heaps, leases, slots and
// reservations. The addresses stay reserved until a later Open takes them, except those
// of an [OpenIn] block; package platform explains why. Close fails, and changes nothing, during a
// load, from a finalizer or while one of lent scratch runs, and while a worker pins a region. So
// end the workers first. A second Close returns [ErrClosed].
func (b *Budget) Close() (err error) {
	l, err := b.begin(Region{}, "Close", b.along(nil))
	if err != nil {
		return err
	}
	if busy := b.finalizing(); busy != "" {
		b.end(l)
		return fmt.Errorf("budget %q: Close from a finalizer of %s: %w", b.plan.Name, busy, ErrLoading)
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if inside := b.keepOut(ctx, l, l.along); len(inside) > 0 {
		b.end(l)
		return fmt.Errorf("budget %q: Close while %s; nothing has changed: call Unpin, then Close again", b.plan.Name,
			strings.Join(inside, ", "))
	}
	if busy := b.leases.close(ctx); busy != "" {
		b.end(l)
		return fmt.Errorf("budget %q: Close while finalizers of %s run; nothing has changed: call Close again: %w",
			b.plan.Name, busy, ErrLoading)
	}
	b.countOpenScratch(true)
	b.countOpenFrame()
	// also when a finalizer ends the goroutine
	defer func() { err = errors.Join(err, b.release(l)) }()
	return errors.Join(b.closeStacks(l)...)
}

func (b *Budget) closeStacks(l *load) (errs []error) {
	beside := b.stacks[len(b.regions):]
	insist(1+len(beside), func(i int) {
		if i == 0 {
			errs = append(errs, l.emptyAll(false)...)
		} else {
			errs = append(errs, beside[i-1].CloseTo(0))
		}
	})
	return errs
}

// release ends Close. The regions stay shut: no worker gets inside any more.
func (b *Budget) release(l *load) error {
	errs := []error{b.leakErrors(), b.leases.keptError()}
	b.last = b.report(func(int) bool { return true })
	b.last.Leaks.Scratch = b.leases.kept.count
	for _, s := range b.slots {
		kept := s.close()
		b.last.Leaks.Slots += kept.count
		wrong := fmt.Sprintf("budget %q: never released: ", b.plan.Name)
		errs = append(errs, kept.err(wrong, "; call Release on each acquired slot"))
	}
	for _, q := range b.quotas {
		kept := q.close()
		b.last.Leaks.Quotas += kept.count
		wrong := fmt.Sprintf("budget %q: never released: ", b.plan.Name)
		errs = append(errs, kept.err(wrong, "; call Release on each Reservation"))
	}
	b.closed.Store(true)
	b.mu.Lock()
	for _, r := range b.regions {
		r.wake(false)
	}
	b.mu.Unlock()
	b.heaps.end()
	b.unseal()
	for _, st := range b.stacks {
		st.Drop()
	}
	l.shut = reach{}
	b.end(l)
	b.unwatchFaults()
	errs = append(errs, b.untrack(b.regions))
	errs = append(errs, b.closeMirror())
	errs = append(errs, b.giveBack())
	b.closeCHeap()
	b.follow.end()
	b.restoreGo()
	return errors.Join(errs...)
}

func (b *Budget) leakErrors() error {
	var errs []error
	for _, st := range b.stacks {
		var held leaks
		st.EachOwned(func(what string, given *arena_c.Site) { held.add(what, given.Tell(what+" given")) })
		wrong := fmt.Sprintf("budget %q: %s: %d owned values outlived their scopes, as a stray write has "+
			"overwritten the chain of finalizers: ", b.plan.Name, st.Arena, held.count)
		errs = append(errs, held.err(wrong, ""))
	}
	for _, st := range b.stacks {
		errs = append(errs, b.left.err(b.plan.Name, st))
	}
	return errors.Join(errs...)
}
