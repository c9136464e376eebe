//go:build (amd64 || arm64) && !race

package platform

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From include/uapi/linux/userfaultfd.h of Linux 6.7. Package unix and the headers of older
// distributions lack it.
const (
	uffdUserModeOnly   = 1       // UFFD_USER_MODE_ONLY
	uffdAPI            = 0xAA    // UFFD_API
	uffdWpUnpopulated  = 1 << 13 // UFFD_FEATURE_WP_UNPOPULATED
	uffdWpAsync        = 1 << 15 // UFFD_FEATURE_WP_ASYNC
	uffdRegisterModeWp = 1 << 1  // UFFDIO_REGISTER_MODE_WP

	uffdioAPI      = iowr | unsafe.Sizeof(uffdioAPIArg{})<<16 | 0xAA<<8 | 0x3F
	uffdioRegister = iowr | unsafe.Sizeof(uffdioRegisterArg{})<<16 | 0xAA<<8 // number 0
)

type (
	uffdioAPIArg      struct{ api, features, ioctls uint64 }
	uffdioRegisterArg struct{ start, size, mode, ioctls uint64 }
)

// From include/uapi/linux/fs.h of Linux 6.7.
const (
	scanProtectMatching = 1 << 0 // PM_SCAN_WP_MATCHING
	scanCheckAsync      = 1 << 1 // PM_SCAN_CHECK_WPASYNC: an error where nothing is watched

	pageIsWritten = 1 << 1 // PAGE_IS_WRITTEN
	pageIsSwapped = 1 << 4 // PAGE_IS_SWAPPED
)

// trackRefusals lists refused steps, each with the part that the system lacks.
var trackRefusals = []struct {
	step  string
	errno unix.Errno
	lack  string
}{
	{"userfaultfd", unix.ENOSYS, "the kernel is without it (CONFIG_USERFAULTFD)"},
	{"userfaultfd", unix.EPERM, forbidden},
	{"userfaultfd", unix.EACCES, forbidden},
	{"userfaultfd", unix.EINVAL, oldKernel},
	{"UFFDIO_API", unix.EINVAL, oldKernel},
	{"open " + pagemapFile, unix.ENOENT, "no /proc, or a kernel without CONFIG_PROC_PAGE_MONITOR"},
	{"open " + pagemapFile, unix.EACCES, "the process may not look at itself (PR_SET_DUMPABLE)"},
	{"PAGEMAP_SCAN", unix.ENOTTY, oldKernel},
}

const (
	forbidden = "it needs no privilege, so a filter of system calls forbids it, " +
		"as Docker's own does: allow userfaultfd in a profile (docker run --security-opt seccomp=FILE)"
	oldKernel = "the kernel has no asynchronous write-protection: " +
		"it takes Linux 6.7, and 6.10 on arm64"
)

func trackRefusal(step string, err error) error {
	err = fmt.Errorf("%s: %w", step, err)
	for _, r := range trackRefusals {
		if r.step == step && errors.Is(err, r.errno) {
			return fmt.Errorf("%w: %w: %s", errors.ErrUnsupported, err, r.lack)
		}
	}
	return err
}

// watch holds the files that track the range. The kernel itself ends the faults of first writes: no
// thread waits for them.
type watch struct {
	faults, pagemap int // files
	start           uint64
	arg             scanArg // here, because a local one is allocated in builds that check pointers
	regions         [runsMost]pageRegion
}

// open needs no privilege: with UFFD_USER_MODE_ONLY, vm.unprivileged_userfaultfd may be 0. That
// mode excludes only faults in the kernel that a thread would end, and no thread does so here.
func (w *watch) open(start unsafe.Pointer, size uint64) (err error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return trackRefusal("userfaultfd", errno)
	}
	w.faults = int(fd)
	defer func() {
		if err != nil {
			err = errors.Join(err, unix.Close(w.faults))
		}
	}()
	api := uffdioAPIArg{api: uffdAPI, features: uffdWpAsync | uffdWpUnpopulated}
	if _, errno := control(w.faults, uffdioAPI, unsafe.Pointer(&api)); errno != 0 {
		return trackRefusal("UFFDIO_API", errno)
	}
	w.start = uint64(uintptr(start))
	register := uffdioRegisterArg{start: w.start, size: size, mode: uffdRegisterModeWp}
	if _, errno := control(w.faults, uffdioRegister, unsafe.Pointer(&register)); errno != 0 {
		return trackRefusal("UFFDIO_REGISTER", errno)
	}
	w.pagemap, err = unix.Open(pagemapFile, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return trackRefusal("open "+pagemapFile, err)
	}
	return nil
}

// scan fills runs with the pages written to between the offsets from and to. On request it protects
// these pages again. The result next is `to`, or the offset where runs was full.
func (w *watch) scan(
	runs *[runsMost]PageRun, from, to uint64, anew bool,
) (n int, next uint64, err error) {
	w.arg = scanArg{
		size:        uint64(unsafe.Sizeof(w.arg)),
		flags:       scanCheckAsync,
		start:       w.start + from,
		end:         w.start + to,
		vec:         uint64(uintptr(unsafe.Pointer(&w.regions))), // on the heap, where it stays
		vecLen:      runsMost,
		anyCategory: pageIsWritten | pageIsSwapped,
	}
	if anew {
		w.arg.flags |= scanProtectMatching
	}
	found, errno := control(w.pagemap, pagemapScan, unsafe.Pointer(&w.arg))
	if errno != 0 {
		err := trackRefusal("PAGEMAP_SCAN", errno)
		if errno == unix.EPERM {
			err = fmt.Errorf("%w: a part of the range was mapped again", err)
		}
		return 0, 0, err
	}
	for i, r := range w.regions[:found] {
		runs[i] = PageRun{r.start - w.start, r.end - r.start}
	}
	return int(found), w.arg.walkEnd - w.start, nil
}

func (w *watch) close() error { return errors.Join(unix.Close(w.faults), unix.Close(w.pagemap)) }
