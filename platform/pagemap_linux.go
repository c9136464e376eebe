package platform

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const pagemapFile = "/proc/self/pagemap"

// From include/uapi/linux/fs.h of Linux 6.7. Package unix and the headers of older distributions
// lack it.
const (
	pagemapScan = iowr | unsafe.Sizeof(scanArg{})<<16 | 'f'<<8 | 16 // PAGEMAP_SCAN

	pageIsPresent = 1 << 3 // PAGE_IS_PRESENT
	pageIsZero    = 1 << 5 // PAGE_IS_PFNZERO: only read, and the same for all mappings
)

type (
	scanArg struct { // struct pm_scan_arg
		size, flags, start, end, walkEnd              uint64
		vec, vecLen, maxPages                         uint64
		inverted, allCategories, anyCategory, returns uint64
	}
	pageRegion struct{ start, end, _ uint64 } // struct page_region, with its categories
)

// iowr is a request that reads and writes its argument: _IOWR of include/uapi/asm-generic/ioctl.h.
const iowr = 3 << 30

func control(file int, request uintptr, arg unsafe.Pointer) (result uintptr, errno unix.Errno) {
	result, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(file), request, uintptr(arg))
	return result, errno
}

// pageCount counts pages. Its memory is here, because that of a function is allocated in builds
// that check pointers.
type pageCount struct {
	arg     scanArg
	regions [512]pageRegion
}

// resident returns the bytes of resident pages between two addresses. file is open(pagemapFile).
func (c *pageCount) resident(file int, first, end uint64) (size uint64, errno unix.Errno) {
	for first < end {
		c.arg = scanArg{
			size: uint64(unsafe.Sizeof(c.arg)), start: first, end: end,
			vec: uint64(uintptr(unsafe.Pointer(&c.regions))), vecLen: uint64(len(c.regions)),
			inverted: pageIsZero, allCategories: pageIsPresent | pageIsZero, returns: pageIsPresent,
		}
		n, errno := control(file, pagemapScan, unsafe.Pointer(&c.arg))
		if errno == unix.EINTR {
			continue
		} else if errno != 0 {
			return 0, errno
		}
		for _, r := range c.regions[:n] {
			size += r.end - r.start
		}
		first = c.arg.walkEnd
	}
	return size, 0
}
