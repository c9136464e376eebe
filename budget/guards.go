package budget

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/platform"
)

// protectGuards takes access to the guards away: to all, or, when the system refuses one, to none.
func (b *Budget) protectGuards() error {
	err := b.guard(0, b.memory.Protect)
	if b.guarded = err == nil; b.guarded || platform.GoBacked || b.foreign() {
		return err
	}
	if refused := b.guard(0, b.memory.Unprotect); refused != nil {
		b.guarded = true // Reconfigure must try again: an edge may come to lie there
		return errors.Join(err, fmt.Errorf("some guards are in force all the same: %w", refused))
	}
	return err
}

// foreign says whether the memory is a block that was given.
func (b *Budget) foreign() bool {
	_, foreign := b.memory.(given)
	return foreign
}

// guard gives the guards behind the arenas from `first` up, and the one before them, to do: to take access away or to give
// it back.
func (b *Budget) guard(first int, do func(offset, size uint64) error) error {
	if platform.GoBacked {
		return errors.New("the pages of a race build are Go's")
	}
	size := b.table.Guard
	if err := do(b.table.Start(uint64(first))-size, size); err != nil {
		return err
	}
	for i := uint64(first); i < b.table.Rows; i++ {
		if err := do(b.table.GuardStart(i), size); err != nil {
			return err
		}
	}
	return nil
}
