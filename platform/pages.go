package platform

import "unsafe"

// pages is what a system does with pages; each has its own, named host. What it lacks is nil.
type pages struct {
	reserve   func(size uint64) (unsafe.Pointer, error) // addresses without access
	reserveAt func(base uintptr, size uint64) (unsafe.Pointer, error)
	// reserveSparse is reserve, where allow then is promised no memory, and pages stay small.
	reserveSparse func(size uint64) (unsafe.Pointer, error)

	allow    change // reads and writes, of all pages
	deny     change // allow no access; contents stay
	populate change // make all pages present at once; nil: they are touched
	discard  change // give the memory of pages without access back; allowed again, they are zero
	// discardSparse is discard of what reserveSparse gave, where that is another thing.
	discardSparse change
	unmap         change // give the addresses back, too; reserveAt may have them again
	lock          change
	lockAdvice    func(err error, size uint64) error // says what to do about a lock of so many bytes that failed
	unlock        change
	wantHuge      change
	wantNone      change // takes wantHuge back

	// checkHuge tells whether the system grants huge pages in [base, base+size) to those who ask.
	// undo is true when it grants them only to those.
	checkHuge func(base, size uint64) (undo bool, err error)

	// plenty tells whether addresses beyond those that are asked for harm nobody.
	plenty func() bool

	addressBits func() int // how many bits the program's addresses have, 0 when it is not known
}

// change is what is done with size bytes of pages.
type change func(p unsafe.Pointer, size uint64) error

func bytesAt(p unsafe.Pointer, size uint64) []byte { return unsafe.Slice((*byte)(p), size) }
