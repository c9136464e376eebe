//go:build !race

package platform

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

var host = pages{
	reserve:       mapAnywhere(0),
	reserveAt:     mapAt,
	reserveSparse: mapAnywhere(unix.MAP_NORESERVE),
	allow:         protect(unix.PROT_READ | unix.PROT_WRITE),
	deny:          protect(unix.PROT_NONE),
	populate:      populatePages,
	discard:       discardPages(0),
	discardSparse: discardPages(unix.MAP_NORESERVE),
	drop:          advise(unix.MADV_DONTNEED),
	unmap:         func(p unsafe.Pointer, size uint64) error { return unix.MunmapPtr(p, uintptr(size)) },
	lock:          lockPages,
	lockAdvice:    lockAdvice,
	unlock:        unlockPages,
	wantHuge:      advise(unix.MADV_HUGEPAGE),
	wantNone:      advise(unix.MADV_NOHUGEPAGE),
	checkHuge:     system.checkHuge,
	plenty:        plentyOfAddresses,
	addressBits:   addressBits,
}

func advise(what int) change {
	return func(p unsafe.Pointer, size uint64) error { return unix.Madvise(bytesAt(p, size), what) }
}

// mapAnywhere maps a range anywhere. Without MAP_NORESERVE, pages without access are charged
// nothing, and Commit fails if the system can't promise the memory.
func mapAnywhere(flags int) func(size uint64) (unsafe.Pointer, error) {
	return func(size uint64) (unsafe.Pointer, error) { return mapSmall(nil, size, flags) }
}

// mapSmall is mapNone with small pages, also where the system would give huge ones: those take
// memory for bytes that are never touched. A kernel without huge pages refuses the advice and
// doesn't need it.
func mapSmall(at unsafe.Pointer, size uint64, flags int) (unsafe.Pointer, error) {
	p, err := mapNone(at, size, flags)
	if err == nil {
		_ = unix.Madvise(bytesAt(p, size), unix.MADV_NOHUGEPAGE)
	}
	return p, err
}

// populatePages makes all pages present at once. Linux before 5.14 returns EINVAL; a sandbox may
// return ENOSYS, EPERM or EAGAIN.
func populatePages(p unsafe.Pointer, size uint64) error {
	for {
		err := unix.Madvise(bytesAt(p, size), unix.MADV_POPULATE_WRITE)
		switch err {
		case unix.EINTR:
			continue
		case unix.EINVAL, unix.ENOSYS, unix.EPERM, unix.EAGAIN:
			return errors.ErrUnsupported
		}
		return err
	}
}

// discardPages maps new pages in place of the old ones. MADV_DONTNEED, which suits drop, would
// leave the mapping split wherever access ever changed, and all its bytes charged. After mlockall
// the new pages are locked too, so discardPages unlocks them for the next owner.
func discardPages(flags int) change {
	return func(p unsafe.Pointer, size uint64) error {
		b := bytesAt(p, size)
		if err := unix.Munlock(b); err != nil {
			return err
		}
		if _, err := mapSmall(p, size, unix.MAP_FIXED|flags); err != nil {
			return err
		}
		return unix.Munlock(b)
	}
}

func lockAdvice(err error, size uint64) error {
	if advice := system.lockRefusal(size); advice != "" {
		return fmt.Errorf("%w: %s", err, advice)
	}
	return err
}

// mapAt looks into /proc first, so that an address of the Go heap never becomes a pointer; the
// system decides.
func mapAt(base uintptr, size uint64) (unsafe.Pointer, error) {
	if err := taken(base, size); err != nil {
		return nil, err
	}
	p, err := mapExactly(base, size)
	if err != nil {
		if owner := taken(base, size); owner != nil { // the range was mapped after the first look
			err = owner
		}
		return nil, err
	}
	return p, nil
}

// mapExactly maps pages at base or fails. Linux before 4.17, and some emulators, take
// MAP_FIXED_NOREPLACE for a hint; a range at another address is unmapped unused.
func mapExactly(base uintptr, size uint64) (unsafe.Pointer, error) {
	p, err := mapSmall(unsafe.Add(nil, base), size, unix.MAP_FIXED_NOREPLACE)
	if err == nil && uintptr(p) != base {
		err = fmt.Errorf("%w: the system gives %p instead", unix.EEXIST, p)
		return nil, errors.Join(err, unix.MunmapPtr(p, uintptr(size)))
	}
	return p, err
}

// taken returns an error with the first mapping that has some of the bytes. It returns nil if there
// is none, or if /proc can't be read.
func taken(base uintptr, size uint64) error {
	maps, _ := os.ReadFile("/proc/self/maps")
	if line, found := collision(maps, uint64(base), uint64(base)+size); found {
		return fmt.Errorf("%w: /proc/self/maps has %q there", unix.EEXIST, line)
	}
	return nil
}

// collision returns the first line of /proc/self/maps that shares an address with [first, end):
//
//	7f435bf60000-7f435c100000 rw-p 00000000 00:00 0     [heap]
func collision(maps []byte, first, end uint64) (line string, found bool) {
	for line := range bytes.Lines(maps) {
		span, _, _ := bytes.Cut(line, []byte(" "))
		from, to, separated := bytes.Cut(span, []byte("-"))
		low, lowError := strconv.ParseUint(string(from), 16, 64)
		high, highError := strconv.ParseUint(string(to), 16, 64)
		if separated && lowError == nil && highError == nil && low < end && first < high {
			return string(bytes.Join(bytes.Fields(line), []byte(" "))), true
		}
	}
	return "", false
}

// addressBits looks at the stack, the highest mapping of all: the C library's 16 random bytes are
// on it.
func addressBits() int {
	const randomBytes = 25 // AT_RANDOM
	vector, _ := unix.Auxv()
	for _, entry := range vector {
		if entry[0] == randomBytes {
			return bits.Len64(uint64(entry[1]))
		}
	}
	return 0
}
