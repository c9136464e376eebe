package platform

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"
)

// phase is where a Reservation stands in its life.
type phase uint8

const (
	reserved  phase = iota // addresses only
	committed              // all of it readable and writable
	guarded                // as committed, but parts may be protected
	released               // no longer ours; another Reservation may own the addresses
)

// access is what a page allows.
type access uint8

const (
	accessNone  access = iota
	accessWrite        // and read
)

// Reservation is one range of addresses, owned from Reserve to Release. It must not be copied.
type Reservation struct {
	block   block  // what the system gave, at least size bytes
	size    uint64 // what the owner asked for
	phase   phase
	present bool // Prefault or Lock has made pages present
}

// PageSize is the system's page in bytes: 4 KiB on most machines, 16 or 64 KiB on some arm64.
func PageSize() int { return os.Getpagesize() }

// Head is the bytes at a range's base that outlive Release (see the package's text). They are zero when
// the range is new, the last owner's when it is taken again. A range is only taken again by an owner with
// the same head, so that its address is never anything but such a head; a range without one goes to
// anybody.
type Head struct {
	Size uint64
	Kind string // what lies there: an owner with another kind doesn't get the range
}

// Reserve takes size bytes of addresses whose first is a multiple of align. The bytes behind the head are
// always zero.
//
// size and the head are multiples of the page, the head at most size; align is a power of two and at least a page. There is no
// access before Commit. It fails when the address space has no room, or a limit of the process (RLIMIT_AS) leaves none.
func Reserve(size, align uint64, head Head) (*Reservation, error) {
	page := uint64(PageSize())
	switch {
	case size == 0 || size%page != 0:
		return nil, fmt.Errorf("platform: BUG: reserve %d bytes: not a multiple of the page, %d bytes", size, page)
	case align < page || align&(align-1) != 0:
		return nil, fmt.Errorf("platform: BUG: reserve %d bytes: alignment %d is not a power of two of at least a page, %d bytes",
			size, align, page)
	case head.Size > size || head.Size%page != 0:
		return nil, fmt.Errorf("platform: BUG: reserve %d bytes: head %d is not a multiple of the page, %d bytes, within the range",
			size, head.Size, page)
	case align > math.MaxInt || size > math.MaxInt-align:
		// A Go slice, and a pointer difference, hold no more; on 32-bit targets that is 2 GiB.
		return nil, fmt.Errorf("platform: reserve %d bytes aligned to %d: beyond this target's address space of %d bits",
			size, align, 8*unsafe.Sizeof(uintptr(0)))
	}
	b, found := spare.takeClean(size, align, head)
	if !found {
		base, err := mapBlock(size, align)
		if err != nil {
			return nil, fmt.Errorf("platform: reserve %d bytes aligned to %d: %w", size, align, err)
		}
		b = block{base: base, size: size}
	}
	b.head = head
	return &Reservation{block: b, size: size}, nil
}

// Base is the first address. After Release it still is an address of this process, of which only the head may be used.
func (r *Reservation) Base() unsafe.Pointer { return r.block.base }

// Size is what Reserve was asked for, in bytes.
func (r *Reservation) Size() uint64 { return r.size }

// Commit makes the whole range readable and writable, protected parts included. It fails when the system will not
// promise so much memory; the range then is as it was. No page becomes present by it.
func (r *Reservation) Commit() error {
	if r.phase == released {
		return errReleased("commit")
	}
	if err := setAccess(r.block.base, r.size, accessWrite); err != nil {
		return fmt.Errorf("platform: commit %d bytes: %w", r.size, err)
	}
	r.phase = committed
	return nil
}

// Prefault makes every page of a committed range present; contents stay. granted is true when every page was present
// afterwards as far as the system tells. It is false without an error when the system took pages away again at once.
// An error means that the system had no memory to give. Where it cannot be asked for pages, each page is written
// to, and then a lack of memory is a signal of the system instead (on Linux the OOM killer's).
//
// After Protect it needs Commit first: it would touch the protected pages.
func (r *Reservation) Prefault() (granted bool, err error) {
	if err := r.checkAccess("prefault"); err != nil {
		return false, err
	}
	r.present = true
	if err := populate(r.block.base, r.size); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return false, fmt.Errorf("platform: prefault %d bytes: %w", r.size, err)
	}
	// An emulator may take the request, do nothing and call it a success: only the count is believed.
	if pages, ok := r.Missing(); ok && pages == 0 {
		return true, nil
	}
	touch(r.block.base, r.size)
	pages, ok := r.Missing()
	return !ok || pages == 0, nil
}

// checkAccess tells whether every page may be touched.
func (r *Reservation) checkAccess(operation string) error {
	switch r.phase {
	case released:
		return errReleased(operation)
	case reserved:
		return fmt.Errorf("platform: BUG: %s before Commit", operation)
	case guarded:
		return fmt.Errorf("platform: BUG: %s of a range with protected parts: Commit it first", operation)
	}
	return nil
}

// touch writes to each page without changing it. The addition is atomic so that nobody's write is lost meanwhile.
func touch(base unsafe.Pointer, size uint64) {
	page := uint64(PageSize())
	for offset := uint64(0); offset < size; offset += page {
		atomic.AddUint32((*uint32)(unsafe.Add(base, offset)), 0)
	}
}

// Protect takes away access to size bytes from offset: the next read or write there is a fault that ends the process.
// Contents stay. Both are multiples of the page, and the range is committed. Where GoBacked is true it checks
// its arguments and does nothing else.
func (r *Reservation) Protect(offset, size uint64) error {
	err := r.change("protect", offset, size, func(p unsafe.Pointer, size uint64) error { return setAccess(p, size, accessNone) })
	if err == nil && size > 0 {
		r.phase = guarded
	}
	return err
}

// Unprotect gives access back to size bytes from offset, whether protected or not. Arguments are as for Protect.
func (r *Reservation) Unprotect(offset, size uint64) error {
	return r.change("unprotect", offset, size, func(p unsafe.Pointer, size uint64) error { return setAccess(p, size, accessWrite) })
}

func (r *Reservation) change(operation string, offset, size uint64, do func(unsafe.Pointer, uint64) error) error {
	page := uint64(PageSize())
	switch {
	case r.phase == released:
		return errReleased(operation)
	case r.phase == reserved:
		return fmt.Errorf("platform: BUG: %s before Commit", operation)
	case offset%page != 0 || size%page != 0:
		return fmt.Errorf("platform: BUG: %s %d bytes at offset %d: not multiples of the page, %d bytes", operation, size, offset, page)
	case offset > r.size || size > r.size-offset:
		return fmt.Errorf("platform: BUG: %s %d bytes at offset %d: beyond the range of %d bytes", operation, size, offset, r.size)
	case size == 0:
		return nil
	}
	if err := do(unsafe.Add(r.block.base, offset), size); err != nil {
		return fmt.Errorf("platform: %s %d bytes at offset %d: %w", operation, size, offset, err)
	}
	return nil
}

// Release unlocks the range, gives the memory back to the system and the addresses to the next Reserve that fits. The
// head stays as it is, readable and writable; any other access is a fault until somebody owns the range again. When the
// system refuses a part of that, the error names it, and whoever takes the addresses next does that part before he gets
// them. A second Release is refused and changes nothing.
func (r *Reservation) Release() error {
	if r.phase == released {
		return errReleased("release")
	}
	r.phase = released
	err := r.block.empty(r.size) // what lies beyond was never accessible
	spare.put(r.block)
	if err != nil {
		return fmt.Errorf("platform: release %d bytes: %w", r.size, err)
	}
	return nil
}

// Missing counts the pages of the range that are not present now: an access to one costs a page fault. A page that was
// only ever read counts as present, though the first write to it costs a fault too. ok is false where it is
// not measured. It allocates nothing, save in builds that check pointers (-asan).
func (r *Reservation) Missing() (pages int, ok bool) { return missing(r.block.base, r.size) }

// Faults counts the process's page faults since its start: minor ones were served from memory, major ones from a disk.
// They are the whole process's, the Go runtime's included. ok is false where it is not measured. It
// allocates nothing, save in builds that check pointers (-asan).
func Faults() (minor, major uint64, ok bool) { return faults() }

// ResidentPeak is the most memory, in bytes, that the process ever had present at once (VmHWM on Linux). ok is false
// where it is not measured. It reads a file: not for a frame.
func ResidentPeak() (bytes uint64, ok bool) { return residentPeak() }

func errReleased(operation string) error {
	return fmt.Errorf("platform: BUG: %s of a range already released", operation)
}
