//go:build !race

package platform

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func lockPages(p unsafe.Pointer, size uint64) error {
	err := injected(doLock)
	if err == nil {
		err = unix.Mlock(bytesAt(p, size))
	}
	if err != nil {
		if advice := system().lockRefusal(size); advice != "" {
			return fmt.Errorf("%w: %s", err, advice)
		}
	}
	return err
}

// adviseHuge says whether huge pages are wanted.
func adviseHuge(p unsafe.Pointer, size uint64, want bool) error {
	if err := injected(doAdvise); err != nil {
		return err
	}
	advice := unix.MADV_NOHUGEPAGE
	if want {
		advice = unix.MADV_HUGEPAGE
	}
	return unix.Madvise(bytesAt(p, size), advice)
}

// noHuge is adviseHuge for what no test refuses.
func noHuge(p unsafe.Pointer, size uint64) { _ = unix.Madvise(bytesAt(p, size), unix.MADV_NOHUGEPAGE) }

// checkHuge tells whether the system grants huge pages to those who ask. undo is true when it grants them only to
// those.
func checkHuge(base, size uint64) (undo bool, err error) { return system().checkHuge(base, size) }
