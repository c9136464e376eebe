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

// Reservation is one range of addresses, owned from Reserve to Release. It must not be copied.
type Reservation struct {
	block   block  // what the system gave, at least size bytes
	size    uint64 // what the owner asked for
	phase   phase
	present bool // Prefault or Lock has made pages present
}

// Align is what a range begins at a multiple of, in bytes, where the system chooses. A base that is
// chosen is a multiple of baseAlign: the largest page of any target.
const (
	Align     = 1 << 20
	baseAlign = 64 << 10
)

// Head is the bytes at a range's base that outlive Release (see the package's text). They are zero when
// the range is new, the last owner's when it is taken again. A range is only taken again by an owner with
// the same head, so that its address is never anything but such a head; a range without one goes to
// anybody.
type Head struct {
	Size uint64
	Kind string // what lies there: an owner with another kind doesn't get the range
}

// Reserve takes size bytes of addresses. With a base other than 0 they begin there, at a multiple
// of 64 KiB ([SafeBase] gives one), or it fails: nothing is moved, neither the range nor what is
// there. Without one, the system chooses a multiple of Align.
//
// The bytes behind the head are always zero. A released range waits for the next owner of its class (see
// the package's text), one with a chosen base for the next with this base.
//
// size and the head are multiples of the page, the head at most size. There is no access before Commit. It
// fails when the address space has no room, or a limit of the process (RLIMIT_AS) leaves none. Where
// somebody has a part of the addresses at a base, the error wraps syscall.EEXIST and says who, by
// the line of /proc/self/maps. A base is unsupported (errors.ErrUnsupported) in race builds, and off
// Linux.
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

// ReserveSparse takes size bytes of which each page costs memory from its first use on, and nothing
// is promised: where checked builds lay things out apart. They are committed. What Release leaves is
// for the next ReserveSparse alone. It fails when the address space, or a limit of the process,
// leaves no room: RLIMIT_AS and RLIMIT_DATA count all of it. errors.ErrUnsupported: this system, or
// a race build, has none.
func ReserveSparse(size uint64) (*Reservation, error) {
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

// supply gives a block that an earlier owner released, or a new one.
func supply(w want) (block, error) {
	// A Go slice, and a pointer difference, hold no more; on 32-bit targets that is 2 GiB.
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
		b.base, b.size, err = reserveNew(w)
	}
	b.head, b.placed = w.head, w.base != 0
	return b, err
}

// reserveNew gives a range of the size's class where addresses are plenty. It leaves what stands out at
// both ends of an aligned range without access: it is addresses only, and given back it could become
// anything.
func reserveNew(w want) (p unsafe.Pointer, size uint64, err error) {
	reserve := host.reserve
	if w.sparse {
		reserve = host.reserveSparse
	}
	if reserve == nil || w.base != 0 && host.reserveAt == nil {
		return nil, 0, unsupported()
	}
	if !w.sparse { // which no test refuses
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

// newSize is what a new range for so many bytes takes: its class where addresses are plenty.
func newSize(size uint64) uint64 {
	if host.plenty != nil && host.plenty() {
		return max(size, classOf(size))
	}
	return size
}

// Base is the first address. After Release it still is an address of this process, of which only the head may be used.
func (r *Reservation) Base() unsafe.Pointer { return r.block.base }

// Size is what Reserve was asked for, in bytes.
func (r *Reservation) Size() uint64 { return r.size }

// Addresses is how many bytes of addresses the range takes: its class (see the package's text), at least Size.
func (r *Reservation) Addresses() uint64 { return r.block.size }

// Commit makes the whole range readable and writable, protected parts included. It fails when the system will not
// promise so much memory; the range then is as it was. No page becomes present by it.
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

// Prefault makes every page of a committed range present, or those of its parts where some are named; contents stay.
// granted is true when all of them were present afterwards as far as the system tells. It is false without an error when the system took pages away again at once.
// An error means that the system had no memory to give. Where it cannot be asked for pages, each page is written
// to, and then a lack of memory is a signal of the system instead (on Linux the OOM killer's).
//
// After Protect it needs Commit first: it would touch the protected pages.
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
	// An emulator may take the request, do nothing and call it a success: only the count is believed.
	if pages, ok := r.Missing(parts...); ok && pages == 0 {
		return true, nil
	}
	for _, part := range parts {
		touch(r.at(part), part.Size)
	}
	pages, ok := r.Missing(parts...)
	return !ok || pages == 0, nil
}

// Touch writes to each page of a committed range, or of its parts where some are named, and changes none: those that
// weren't present are then. None may be protected. It makes no system call. A lack of memory is a signal of the system (on Linux the OOM killer's).
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

// at is where a part of the range begins.
func (r *Reservation) at(part PageRun) unsafe.Pointer { return unsafe.Add(r.block.base, part.Offset) }

// partsOf checks parts of the range, and adds them up. None are all of it.
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

// checkPart refuses what isn't whole pages of the range.
func (r *Reservation) checkPart(operation string, offset, size uint64) error {
	page := uint64(os.Getpagesize())
	switch {
	case offset%page != 0 || size%page != 0:
		return fmt.Errorf("platform: BUG: %s %d bytes at offset %d: not multiples of the page, %d bytes", operation, size, offset, page)
	case offset > r.size || size > r.size-offset:
		return fmt.Errorf("platform: BUG: %s %d bytes at offset %d: beyond the range of %d bytes", operation, size, offset, r.size)
	}
	return nil
}

// checkCommitted refuses what may be done between Commit and Release alone.
func (r *Reservation) checkCommitted(operation string) error {
	switch r.phase {
	case released:
		return errReleased(operation)
	case reserved:
		return fmt.Errorf("platform: BUG: %s before Commit", operation)
	}
	return nil
}

// checkAccess refuses what touches every page.
func (r *Reservation) checkAccess(operation string) error {
	if r.phase == guarded {
		return fmt.Errorf("platform: BUG: %s of a range with protected parts: Commit it first", operation)
	}
	return r.checkCommitted(operation)
}

// touch writes to each page without changing it. The addition is atomic so that nobody's write is lost meanwhile.
func touch(base unsafe.Pointer, size uint64) {
	page := uint64(os.Getpagesize())
	for offset := uint64(0); offset < size; offset += page {
		atomic.AddUint32((*uint32)(unsafe.Add(base, offset)), 0)
	}
}

// Lock makes every page of a committed range present, or those of its parts where some are named, and keeps them so: the
// system swaps none out until Release, which unlocks. Each part takes up to two mappings ([Mappings]). The cost is that of Prefault. When the process may not lock so many bytes (RLIMIT_MEMLOCK; on
// Windows its least working set), the error gives the limit, what is needed, and what to do. When it
// fails nothing is locked. All of a range needs Commit first after Protect, and a part has no protected page; Protect after
// it is fine.
//
// In race builds, and on a system that has no Lock here, the error wraps errors.ErrUnsupported.
func (r *Reservation) Lock(parts ...PageRun) error {
	check := r.checkAccess
	if len(parts) != 0 { // protected ones the system refuses
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
		// Some pages may be locked already. What cannot be undone now is left to Release.
		r.present = true
		refused := ask(doUnlock, host.unlock, r.block.base, r.size)
		if host.lockAdvice != nil {
			err = host.lockAdvice(err, size)
		}
		if r.block.locked = refused != nil; refused != nil {
			err = errors.Join(err, fmt.Errorf("unlock what is locked already: %w", refused))
		}
	}
	return fmt.Errorf("platform: lock %d bytes: %w", size, err)
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
	undo, err := false, unsupported()
	if host.checkHuge != nil {
		undo, err = host.checkHuge(uint64(uintptr(r.block.base)), r.size)
	}
	if err == nil {
		err = ask(doAdvise, host.wantHuge, r.block.base, r.size)
	}
	if err != nil {
		return fmt.Errorf("platform: huge pages for %d bytes: %w", r.size, err)
	}
	r.block.huge = undo
	return nil
}

// Protect takes away access to size bytes from offset: the next read or write there is a fault that ends the process.
// Contents stay. Both are multiples of the page, and the range is committed. Where GoBacked is true it checks
// its arguments and does nothing else.
func (r *Reservation) Protect(offset, size uint64) error {
	err := r.change("protect", offset, size, host.deny)
	if err == nil && size > 0 {
		r.phase = guarded
	}
	return err
}

// Unprotect gives access back to size bytes from offset, whether protected or not. Arguments are as for Protect.
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

// Release unlocks the range, gives the memory back to the system and the addresses to the next Reserve that fits. The
// head stays as it is, readable and writable; any other access is a fault until somebody owns the range again. When the
// system refuses a part of that, the error names it, and whoever takes the addresses next does that part before he gets
// them. A second Release is refused and changes nothing.
func (r *Reservation) Release() error { return r.end("release", false) }

// Return is Release for who knows that nobody has a pointer into the range any more, but for handles into the head: the
// addresses behind the head are the system's again, and anything may come to lie there. Where the system takes no part
// of a range back, and at a chosen base, it is Release.
func (r *Reservation) Return() error { return r.end("return", true) }

func (r *Reservation) end(operation string, unmap bool) error {
	if r.phase == released {
		return errReleased(operation)
	}
	r.phase = released
	b := &r.block
	err := b.empty(r.size) // what lies beyond was never accessible
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

// Missing counts the pages of the range, or of its parts where some are named, that are not present now: an access to one
// costs a page fault. A page that was only ever read counts as present, though the first write to it costs a fault too. ok
// is false where it is not measured, and for parts that aren't whole pages of the range. It allocates nothing, save in
// builds that check pointers (-asan).
func (r *Reservation) Missing(parts ...PageRun) (pages int, ok bool) {
	if len(parts) == 0 {
		return missing(r.block.base, r.size)
	}
	for _, part := range parts {
		if r.checkPart("count", part.Offset, part.Size) != nil {
			return 0, false
		}
		n, ok := missing(r.at(part), part.Size)
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
