package platform

import "unsafe"

// pages are the page operations of a system. Each system has a variable of its own, named host; an
// operation that it lacks is nil.
type pages struct {
	reserve   func(size uint64) (unsafe.Pointer, error) // addresses without access
	reserveAt func(base uintptr, size uint64) (unsafe.Pointer, error)
	// reserveSparse is reserve of a range with small pages, for which allow promises no memory.
	reserveSparse func(size uint64) (unsafe.Pointer, error)

	allow    change // reads and writes, of all pages
	deny     change // allow no access; contents stay
	populate change // make all pages present at once; nil: touch them
	discard  change // free the memory of pages without access; allowed again, they are zero
	// discardSparse is discard of a range of reserveSparse, nil where discard does both.
	discardSparse change
	// drop frees the memory of pages with access. They keep it, and are zero.
	drop       change
	unmap      change // also free the addresses; reserveAt may take them again
	lock       change
	lockAdvice func(err error, size uint64) error // adds advice to a lock's error
	unlock     change
	wantHuge   change
	wantNone   change // takes wantHuge back

	// checkHuge returns an error if the system refuses huge pages in [base, base+size).
	checkHuge func(base, size uint64) error

	// plenty reports whether a range may take more addresses than it needs.
	plenty func() bool

	addressBits func() int // the bits of the program's addresses, 0 if not known
}

type change func(p unsafe.Pointer, size uint64) error

func bytesAt(p unsafe.Pointer, size uint64) []byte { return unsafe.Slice((*byte)(p), size) }
