package budget

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// In asan and memdebug builds the budget is stretched (arena_c/stretch.h): behind it lies a tail of addresses, where each
// arena has a few windows and moves to the next one when it is rewound. Here is what the system must do for it: give
// access to the window in use, and in memdebug builds take it from the one that a region left.

// tail is the bytes of addresses behind the budget that a stretched build wants; 0 in others. A plan whose pages are
// promised to be somewhere, or present for good, is laid out as in release.
func (p Plan) tail(l layout) uint64 {
	if !arena_c.Stretched || platform.GoBacked || p.Pages.Base > Off || p.Pages.Lock > Off || p.Pages.Huge > Off {
		return 0
	}
	return arena_c.StretchSize(l.arenas, l.shape.Slots, l.shape.Pools, l.shape.Guard)
}

// tailed is a supply that has a tail.
type tailed interface {
	Unprotect(offset, size uint64) error
	Discard(offset, size uint64) error
	Protect(offset, size uint64) error
	Tail() uint64
}

// reach is the bytes from the budget's first address to the last that something in it may have.
func (b *Budget) reach() uint64 {
	if t, ok := b.memory.(tailed); ok {
		return b.Size() + t.Tail()
	}
	return b.Size()
}

// stretch lays the windows out.
func (b *Budget) stretch() error {
	t, ok := b.memory.(tailed)
	if !ok || t.Tail() == 0 {
		return nil
	}
	if err := t.Unprotect(b.Size(), t.Tail()); err != nil {
		return err
	}
	if code := b.table.Stretch(t.Tail()); code != arena_c.OK {
		return fmt.Errorf("BUG: the C core refuses the addresses that it measured itself: %v", code)
	}
	return b.retireAll(0, b.table.Rows)
}

// retireAll takes access to the windows away that regions among the rows have and don't use.
func (b *Budget) retireAll(first, last uint64) (err error) {
	for i := first; i < last && b.table.Row(i).Stretched(); i++ {
		row := b.table.Row(i)
		for w := uint64(0); row.Kind == arena_c.KindRegion && w < arena_c.Windows; w++ {
			if w != row.Current() {
				err = errors.Join(err, b.retire(row, w))
			}
		}
	}
	return err
}

// retire takes access to a window away, in memdebug builds. In asan builds it is poisoned: that report says more than a fault.
func (b *Budget) retire(row *arena_c.Row, window uint64) error {
	if !arena_c.Notes {
		return nil
	}
	place, size, _ := row.WindowAt(window)
	return b.memory.Protect(place, size)
}

// wake makes all windows of regions accessible and empty, for Reconfigure to lay them anew in the same place.
func (b *Budget) wake(regions []*region) error {
	first, last := b.table.Row(uint64(regions[0].row)), b.table.Row(uint64(regions[len(regions)-1].row))
	if !first.Stretched() {
		return nil
	}
	t := b.memory.(tailed)
	start, _, _ := first.WindowAt(0)
	end, _, all := last.WindowAt(arena_c.Windows - 1)
	return errors.Join(t.Unprotect(start, end+all-start), t.Discard(start, end+all-start))
}

// redrawn takes access away from what Reconfigure laid and nobody uses yet.
func (b *Budget) redrawn(regions []*region) error {
	for _, r := range regions {
		r.window = b.table.Row(uint64(r.row)).Current()
	}
	return b.retireAll(uint64(regions[0].row), uint64(regions[len(regions)-1].row)+1)
}

// moved follows a region to the window that it went to when it was rewound.
func (r *region) moved() {
	row := r.b.table.Row(uint64(r.row))
	if !row.Stretched() || row.Current() == r.window {
		return
	}
	t, left := r.b.memory.(tailed), r.window
	r.window = row.Current()
	place, size, _ := row.WindowAt(r.window)
	err := errors.Join(t.Unprotect(place, size), t.Discard(place, size), r.b.retire(row, left))
	if err != nil {
		panic(fmt.Sprintf("budget %q: region %s can't move to fresh addresses, as this build has it: %v", r.b.plan.Name, r.name, err))
	}
	row.Renew()
}
