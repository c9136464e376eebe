package platform

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"
)

// phase is a step in the life of a Reservation.
type phase uint8

const (
	reserved  phase = iota // addresses only
	committed              // all of it readable and writable
	guarded                // as committed, but parts may be protected
	released               // another Reservation may own the addresses
)

// Reservation is one range of addresses, owned from Reserve to Release. It must not be copied.
type Reservation struct {
	block   block  // at least size bytes
	size    uint64 // the argument of Reserve
	phase   phase
	present bool // Prefault or Lock has made pages present
}

// A range begins at a multiple of Align bytes if the system chooses its place. A chosen base is a
// multiple of 64 KiB, the largest page of any target.
const (
	Align     = 1 << 20
	baseAlign = 64 << 10
)

// Head describes the bytes at a range's base that outlive Release (see the package's text). They
// are zero in a range that had no head. In any other reused range they are as the last owner left
// them. Only an owner with the same Head reuses the range; a range without a head may go to any
// owner.
type Head struct {
	Size uint64
	Kind string // the contents; an owner with another kind doesn't get the range
}

// Reserve takes size bytes of addresses, without access until Commit. With base 0 the system
// chooses a multiple of Align. Any other base must be a multiple of 64 KiB ([SafeBase] returns
// one): the range begins there, or Reserve fails. Reserve never moves a range or other mappings.
// size and the head's size are multiples of the page size, and the head isn't larger than size.
//
// The bytes after the head are always zero. A released range waits for the next owner of its class
// (see the package's text), or, with a chosen base, for the next owner with this base.
//
// Reserve fails if the address space has no such range, or if a limit of the process (RLIMIT_AS)
// doesn't allow it. If a part of the addresses at a base is taken, the error wraps syscall.EEXIST.
// It names a range that is kept there, or quotes the line of /proc/self/maps. With a base in race
// builds and off Linux the error wraps errors.ErrUnsupported.
func Reserve(base uintptr, size uint64, head Head) (*Reservation, error) {
	what := fmt.Sprintf("reserve %d bytes", size)
	if base != 0 {
		what = fmt.Sprintf("%s at %#x", what, base)
	}
	page := uint64(os.Getpagesize())
	switch {
	case base%baseAlign != 0:
		return nil, fmt.Errorf("platform: BUG: %s: the base is not a multiple of %d bytes", what, baseAlign)
	case size == 0 || size%page != 0:
		return nil, fmt.Errorf("platform: BUG: %s: not a multiple of the page, %d bytes", what, page)
	case head.Size > size || head.Size%page != 0:
		return nil, fmt.Errorf("platform: BUG: %s: head %d is not a multiple of the page, %d bytes, within the range",
			what, head.Size, page)
	}
	b, err := supply(want{base: base, size: size, head: head})
	if err != nil {
		return nil, fmt.Errorf("platform: %s: %w", what, err)
	}
	return &Reservation{block: b, size: size}, nil
}

// ReserveSparse takes size bytes that can be read and written, without Commit. The system promises
// no memory for them: each page costs memory from its first use on. size is a multiple of the page
// size. Checked builds place objects far apart in such a range. Only the next ReserveSparse reuses
// the addresses after Release.
//
// ReserveSparse fails if the address space has no such range, or a limit of the process doesn't
// allow it: RLIMIT_AS and RLIMIT_DATA count all of size. The error wraps errors.ErrUnsupported if
// this system or a race build lacks it.
func ReserveSparse(size uint64) (*Reservation, error) {
	if page := uint64(os.Getpagesize()); size == 0 || size%page != 0 {
		return nil, fmt.Errorf("platform: BUG: reserve %d sparse bytes: not a multiple of the page, %d bytes", size,
			page)
	}
	b, err := supply(want{size: size, sparse: true})
	if err == nil {
		if err = host.allow(b.base, size); err != nil {
			spare.put(b)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("platform: reserve %d sparse bytes: %w", size, err)
	}
	return &Reservation{block: b, size: size, phase: committed}, nil
}

func supply(w want) (block, error) {
	// A Go slice and a pointer difference are bounded by MaxInt; on 32-bit targets that is 2 GiB.
	if w.size > math.MaxInt-Align || uint64(w.base) > uint64(^uintptr(0))-w.size {
		return block{}, fmt.Errorf("beyond this target's address space of %d bits", 8*unsafe.Sizeof(w.base))
	}
	b, found, err := spare.take(w)
	if !found && w.base == 0 {
		b, found = spare.lengthen(w)
	}
	if found {
		err = nil
	} else if err == nil || w.base == 0 {
		b = block{size: w.size, sparse: w.sparse}
		if b.base, b.size, err = reserveNew(w); err == nil {
			spare.mutex.Lock()
			spare.hold(b)
			spare.mutex.Unlock()
		}
	}
	b.head, b.placed = w.head, w.base != 0
	return b, err
}

// reserveNew returns a range of the size's class where addresses are plenty. It keeps the addresses
// before and after an aligned range, without access: if they were free, any mapping could take
// them.
func reserveNew(w want) (p unsafe.Pointer, size uint64, err error) {
	reserve := host.reserve
	if w.sparse {
		reserve = host.reserveSparse
	}
	if reserve == nil || w.base != 0 && host.reserveAt == nil {
		return nil, 0, unsupported()
	}
	if !w.sparse { // no test injects a fault there
		if err := injected(doMap); err != nil {
			return nil, 0, err
		}
	}
	if w.base != 0 {
		p, err = host.reserveAt(w.base, w.size)
		return p, w.size, err
	}
	size = newSize(w.size)
	start, err := reserve(size + Align)
	if err != nil && size != w.size {
		size = w.size
		start, err = reserve(size + Align)
	}
	return unsafe.Add(start, -uint64(uintptr(start))&(Align-1)), size, err
}

// newSize returns the size of a new range for size bytes: its class where addresses are plenty,
// else size.
func newSize(size uint64) uint64 {
	if host.plenty != nil && host.plenty() {
		return max(size, classOf(size))
	}
	return size
}

// Base returns the first address. After Release the process still has that address, but only the
// head may be used.
func (r *Reservation) Base() unsafe.Pointer { return r.block.base }

// Size returns the size passed to Reserve, in bytes.
func (r *Reservation) Size() uint64 { return r.size }

// Addresses returns how many bytes of addresses the range takes, without those that align it. It is
// at least Size, and mostly the range's class (see the package's text).
func (r *Reservation) Addresses() uint64 { return r.block.size }

// Commit makes the whole range readable and writable, protected parts included. It makes no page
// present. If the system won't promise so much memory, Commit fails and the range is unchanged.
func (r *Reservation) Commit() error {
	if r.phase == released {
		return errReleased("commit")
	}
	if err := ask(doProtect, host.allow, r.block.base, r.size); err != nil {
		return fmt.Errorf("platform: commit %d bytes: %w", r.size, err)
	}
	r.phase = committed
	return nil
}

// Prefault makes pages of a committed range present: all of them, or those of the given parts. The
// pages' contents stay. granted is true if all these pages were present afterwards, as far as the
// system reports. If the system took pages away again at once, granted is false and err is nil. An
// error without "BUG" means that the system has no memory. Where the system can't make pages
// present on request, Prefault writes to each page. If memory runs out there, the process gets a
// signal (on Linux the OOM killer's).
//
// After Protect, call Commit before Prefault, which would touch the protected pages.
func (r *Reservation) Prefault(parts ...PageRun) (granted bool, err error) {
	if err := r.checkAccess("prefault"); err != nil {
		return false, err
	}
	parts, size, err := r.partsOf("prefault", parts)
	if err != nil {
		return false, err
	}
	r.present = true
	for _, part := range parts {
		err = injected(doPopulate)
		if err == nil && host.populate != nil {
			err = host.populate(r.at(part), part.Size)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			break
		} else if err != nil {
			return false, fmt.Errorf("platform: prefault %d bytes: %w", size, err)
		}
	}
	// An emulator may do nothing and report success, so only the count is believed.
	if pages, ok := r.Missing(parts...); ok && pages == 0 {
		return true, nil
	}
	for _, part := range parts {
		touch(r.at(part), part.Size)
	}
	pages, ok := r.Missing(parts...)
	return !ok || pages == 0, nil
}

// Touch makes pages of a committed range present: all of them, or those of the given parts. It
// writes to each page without changing its contents, and makes no system call. No page may be
// protected. If memory runs out, the process gets a signal (on Linux the OOM killer's).
func (r *Reservation) Touch(parts ...PageRun) error {
	if err := r.checkCommitted("touch"); err != nil {
		return err
	}
	parts, _, err := r.partsOf("touch", parts)
	for i := range parts {
		touch(r.at(parts[i]), parts[i].Size)
	}
	return err
}

func (r *Reservation) at(part PageRun) unsafe.Pointer { return unsafe.Add(r.block.base, part.Offset) }

// partsOf checks parts of the range and returns their total size. No parts mean all of the range.
func (r *Reservation) partsOf(operation string, parts []PageRun) (list []PageRun, size uint64, err error) {
	if len(parts) == 0 {
		return []PageRun{{0, r.size}}, r.size, nil
	}
	for _, part := range parts {
		if err := r.checkPart(operation, part.Offset, part.Size); err != nil {
			return nil, 0, err
		}
		size += part.Size
	}
	return parts, size, nil
}

// checkPart refuses parts that aren't whole pages of the range.
func (r *Reservation) checkPart(operation string, offset, size uint64) error {
	page := uint64(os.Getpagesize())
	switch {
	case offset%page != 0 || size%page != 0:
		return fmt.Errorf("platform: BUG: %s %d bytes at offset %d: not multiples of the page, %d bytes",
			operation, size, offset, page)
	case offset > r.size || size > r.size-offset:
		return fmt.Errorf("platform: BUG: %s %d bytes at offset %d: beyond the range of %d bytes",
			operation, size, offset, r.size)
	}
	return nil
}

// checkCommitted refuses operations that are allowed only between Commit and Release.
func (r *Reservation) checkCommitted(operation string) error {
	switch r.phase {
	case released:
		return errReleased(operation)
	case reserved:
		return fmt.Errorf("platform: BUG: %s before Commit", operation)
	}
	return nil
}

// checkAccess refuses operations that touch every page, if a part is protected.
func (r *Reservation) checkAccess(operation string) error {
	if r.phase == guarded {
		return fmt.Errorf("platform: BUG: %s of a range with protected parts: Commit it first", operation)
	}
	return r.checkCommitted(operation)
}

// touch writes to each page without changing it. The addition is atomic so that no concurrent write
// is lost.
func touch(base unsafe.Pointer, size uint64) {
	page := uint64(os.Getpagesize())
	for offset := uint64(0); offset < size; offset += page {
		atomic.AddUint32((*uint32)(unsafe.Add(base, offset)), 0)
	}
}

// Lock makes pages of a committed range present and keeps them present: all pages, or those of the
// given parts. The system swaps none of them out until Release, which unlocks the pages. Lock costs
// as much as Prefault, and each part takes up to two mappings ([Mappings]).
//
// If the bytes exceed the process's limit (RLIMIT_MEMLOCK; on Windows its minimum working set), the
// error has the limit, the bytes needed, and the way to raise it. If the system refuses, Lock
// unlocks the whole range. In race builds, and on a system without Lock, the error wraps
// errors.ErrUnsupported.
//
// After Protect, call Commit before a Lock of the whole range. A given part must have no protected
// page. Protect may follow Lock.
func (r *Reservation) Lock(parts ...PageRun) error {
	check := r.checkAccess
	if len(parts) != 0 { // the system refuses protected ones
		check = r.checkCommitted
	}
	if err := check("lock"); err != nil {
		return err
	}
	parts, size, err := r.partsOf("lock", parts)
	if err != nil {
		return err
	}
	for i := 0; i < len(parts) && err == nil; i++ {
		err = ask(doLock, host.lock, r.at(parts[i]), parts[i].Size)
	}
	if err == nil {
		r.block.locked, r.present = true, true
		return nil
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		// Some pages may be locked already. If they can't be unlocked now, Release does it.
		r.present = true
		refused := ask(doUnlock, host.unlock, r.block.base, r.size)
		if host.lockAdvice != nil {
			err = host.lockAdvice(err, size)
		}
		if r.block.locked = refused != nil; refused != nil {
			err = errors.Join(err, fmt.Errorf("unlock the pages locked so far: %w", refused))
		}
	}
	return fmt.Errorf("platform: lock %d bytes: %w", size, err)
}

// HugePages asks the system to use transparent huge pages for the range. Prefault then causes fewer
// page faults, and the processor's address cache misses less often. Call it before Prefault and
// Lock, because present pages stay as they are. Release withdraws the advice. Without HugePages the
// range has small pages, also where the system gives huge ones to all.
//
// It fails if no huge page fits into the range, or if the system grants the process no huge pages.
// In the second case the error names the file with the setting, mostly
// /sys/kernel/mm/transparent_hugepage/enabled. Success means that the system will try. When its
// memory is fragmented, it uses small pages instead and doesn't report it.
//
// In race builds, and off Linux, the error wraps errors.ErrUnsupported.
func (r *Reservation) HugePages() error {
	if r.phase == released {
		return errReleased("huge pages")
	}
	if r.present {
		return errors.New("platform: BUG: huge pages after Prefault or Lock: the pages are there, and small")
	}
	err := unsupported()
	if host.checkHuge != nil {
		err = host.checkHuge(uint64(uintptr(r.block.base)), r.size)
	}
	if err == nil {
		err = ask(doAdvise, host.wantHuge, r.block.base, r.size)
	}
	if err != nil {
		return fmt.Errorf("platform: huge pages for %d bytes: %w", r.size, err)
	}
	r.block.huge = true
	return nil
}

// Discard returns the memory of size bytes from offset to the system. size and offset are multiples
// of the page size. The bytes can still be read and written, and are zero. The next use of each
// page causes a page fault. No page may be protected, and no goroutine may use the bytes meanwhile.
// Discard doesn't split the mapping and allocates nothing.
//
// Discard fails, and changes nothing, if the range is locked or not committed, or if the system
// refuses. (On Windows the system may refuse after it took the pages; then they can't be accessed.
// An emulator may change nothing and report success.) In race builds, and on a system without such
// a request, the error wraps errors.ErrUnsupported. A [Tracker] doesn't report the discarded pages
// ([Tracker.Dirty]).
func (r *Reservation) Discard(offset, size uint64) error {
	if err := r.checkCommitted("discard"); err != nil {
		return err
	}
	if err := r.checkPart("discard", offset, size); err != nil {
		return err
	}
	if r.block.locked {
		return fmt.Errorf("platform: discard %d bytes at offset %d: the range is locked", size, offset)
	}
	if err := ask(doDiscard, host.drop, unsafe.Add(r.block.base, offset), size); err != nil {
		return fmt.Errorf("platform: discard %d bytes at offset %d: %w", size, offset, err)
	}
	return nil
}

// Protect takes away access to size bytes from offset, both multiples of the page size. The next
// read or write there ends the process with a fault. The contents stay. The range must be
// committed. Where GoBacked is true, Protect only checks its arguments.
func (r *Reservation) Protect(offset, size uint64) error {
	err := r.change("protect", offset, size, host.deny)
	if err == nil && size > 0 {
		r.phase = guarded
	}
	return err
}

// Unprotect restores access to size bytes from offset, whether they were protected or not. Its
// arguments are as for Protect.
func (r *Reservation) Unprotect(offset, size uint64) error {
	return r.change("unprotect", offset, size, host.allow)
}

func (r *Reservation) change(operation string, offset, size uint64, do change) error {
	if err := r.checkCommitted(operation); err != nil {
		return err
	}
	if err := r.checkPart(operation, offset, size); err != nil {
		return err
	}
	if err := ask(doProtect, do, unsafe.Add(r.block.base, offset), size); err != nil {
		return fmt.Errorf("platform: %s %d bytes at offset %d: %w", operation, size, offset, err)
	}
	return nil
}

// Release unlocks the range, returns the memory to the system, and keeps the addresses for the next
// Reserve that fits. The head keeps its contents and stays readable and writable. Any other access
// faults until the range has a new owner. If the system refuses a step, the error names the step,
// and the next Reserve repeats it before it reuses the range. A second Release returns an error and
// changes nothing.
func (r *Reservation) Release() error { return r.end("release", false) }

// Return is Release, but keeps only the addresses of the head. The system may reuse all other
// addresses for any mapping. The caller must know that no pointer into the range is left, except
// handles into the head. For a range without a head, for one at a chosen base, and where the system
// takes no part of a range back, Return does the same as Release.
func (r *Reservation) Return() error { return r.end("return", true) }

func (r *Reservation) end(operation string, unmap bool) error {
	if r.phase == released {
		return errReleased(operation)
	}
	r.phase = released
	b := &r.block
	err := b.empty(r.size) // the rest was never accessible
	if rest := b.size - b.head.Size; unmap && err == nil && host.unmap != nil && !b.placed && b.head.Size != 0 {
		if err = ask(doDiscard, host.unmap, unsafe.Add(b.base, b.head.Size), rest); err == nil {
			b.size = b.head.Size
		}
	}
	spare.put(*b)
	if err != nil {
		return fmt.Errorf("platform: %s %d bytes: %w", operation, r.size, err)
	}
	return nil
}

// Missing returns how many pages of the range, or of the given parts, aren't present. An access to
// a missing page costs a page fault. A page that was only read counts as present, though the first
// write to it also costs a fault. ok is false where the number isn't measured, and for parts that
// aren't whole pages of the range. Missing allocates nothing, except in builds that check pointers
// (-asan).
func (r *Reservation) Missing(parts ...PageRun) (pages int, ok bool) {
	if len(parts) == 0 {
		return missing(uintptr(r.block.base), r.size)
	}
	for _, part := range parts {
		if r.checkPart("count", part.Offset, part.Size) != nil {
			return 0, false
		}
		n, ok := missing(uintptr(r.at(part)), part.Size)
		if !ok {
			return 0, false
		}
		pages += n
	}
	return pages, true
}

func errReleased(operation string) error {
	return fmt.Errorf("platform: BUG: %s of a range already released", operation)
}
