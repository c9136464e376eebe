package platform

import (
	"errors"
	"fmt"
)

// Lock makes every page of a committed range present and keeps it so: the system swaps none out until Release, which
// unlocks. The cost is that of Prefault. The process may lock so many bytes as LockLimit says; when that is too few,
// the error gives the limit, what is needed, and what to do. When it fails nothing is locked. It needs Commit first
// after Protect; Protect after it is fine.
//
// In race builds, and on a system that has no Lock here, the error wraps errors.ErrUnsupported.
func (r *Reservation) Lock() error {
	if err := r.checkAccess("lock"); err != nil {
		return err
	}
	err := lockPages(r.block.base, r.size)
	if err == nil {
		r.block.locked, r.present = true, true
		return nil
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		// Some pages may be locked already. What cannot be undone now is left to Release.
		r.present = true
		refused := step("unlock what is locked already", unlockPages(r.block.base, r.size))
		r.block.locked, err = refused != nil, errors.Join(err, refused)
	}
	return fmt.Errorf("platform: lock %d bytes: %w", r.size, err)
}

// HugePages asks that the range be made of transparent huge pages: fewer page faults in Prefault, and fewer misses of
// the processor's address cache in play. It comes before Prefault and Lock, because pages that are there stay as they
// are. Release takes the wish back.
//
// It fails when the system has no such pages, or grants them to nobody, and then names the file that says so (mostly
// /sys/kernel/mm/transparent_hugepage/enabled), or when no such page fits into the range. That it succeeds means that
// the system will try: when its memory is in pieces, it gives small pages instead and does not tell.
//
// In race builds, and off Linux, the error wraps errors.ErrUnsupported.
func (r *Reservation) HugePages() error {
	if r.phase == released {
		return errReleased("huge pages")
	}
	if r.present {
		return errors.New("platform: BUG: huge pages after Prefault or Lock: the pages are there, and small")
	}
	undo, err := checkHuge(uint64(uintptr(r.block.base)), r.size)
	if err == nil {
		err = adviseHuge(r.block.base, r.size, true)
	}
	if err != nil {
		return fmt.Errorf("platform: huge pages for %d bytes: %w", r.size, err)
	}
	r.block.huge = undo
	return nil
}
