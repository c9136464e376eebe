package budget

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/platform"
)

// openMirror takes the addresses at which the bytes lie in checked and asan builds, far apart from each other
// (arena_c/mirror.h). They are beside the plan: not locked, not made present, and counted nowhere.
func (b *Budget) openMirror() error {
	size := b.table.MirrorSize()
	if size == 0 {
		return nil
	}
	m, err := platform.ReserveSparse(size)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // fills alone
	}
	if err != nil {
		return fmt.Errorf("this build lays things out far apart from each other, in %s of addresses: %w", sizeText(size), err)
	}
	if !b.table.MirrorOpen(m.Base(), b.plan.Name) {
		return errors.Join(errors.New("this build has no more than 256 budgets open at once"), m.Release())
	}
	b.mirror = m
	return nil
}

func (b *Budget) closeMirror() error {
	if b.mirror == nil {
		return nil
	}
	for i := range b.table.Rows {
		b.table.Row(i).Over() // scratch arenas, too, are looked at once more
	}
	b.table.MirrorClose()
	return b.mirror.Release()
}
