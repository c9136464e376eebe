package platform

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// The requests to the system that may fail, by the names that InjectFault takes.
const (
	doMap      = "map"      // Reserve and ReserveAt, unless they take a kept range
	doUnmap    = "unmap"    // Reserve, of what alignment leaves over; ReserveAt, of a wrong address
	doProtect  = "protect"  // Commit, Protect, Unprotect, Release
	doPopulate = "populate" // Prefault
	doDiscard  = "discard"  // Release
	doLock     = "lock"     // Lock
	doUnlock   = "unlock"   // Release of a locked range, and a Lock that failed
	doAdvise   = "advise"   // HugePages, and the Release after it
)

var requests = []string{doMap, doUnmap, doProtect, doPopulate, doDiscard, doLock, doUnlock, doAdvise}

var errInjected = fmt.Errorf("injected fault: %w", errNoMemory)

type fault struct {
	request string
	left    atomic.Int64 // requests up to the one that fails
}

var (
	faultMutex sync.Mutex
	faultList  atomic.Pointer[[]*fault] // nil when there is none; a list is never changed
)

// InjectableFaults lists what InjectFault can make fail.
func InjectableFaults() []string { return slices.Clone(requests) }

// InjectFault is for tests. It makes the n-th request of that name from now on fail, n = 1, 2, 3 …, and no other. The
// error says "injected fault" and on Linux is syscall.ENOMEM, as most refusals of the system are. restore takes the
// fault away and tells whether it has struck: a test that raises n until it has not has tried them all.
//
// The names are those of InjectableFaults; another, or an n below 1, panics. Several faults may be in place at once. A fault
// is the whole process's: a test that injects one does not run in parallel with others. It works in every build, as far
// as a build makes the request: a race build makes no "unmap", "lock", "unlock" and "advise".
func InjectFault(name string, n int) (restore func() (struck bool)) {
	if !slices.Contains(requests, name) || n < 1 {
		panic(fmt.Sprintf("platform: BUG: inject fault %d of %q: the names are %q, and counting starts at 1", n, name, requests))
	}
	f := &fault{request: name}
	f.left.Store(int64(n))
	changeFaults(func(list []*fault) []*fault { return append(list, f) })
	return func() bool {
		changeFaults(func(list []*fault) []*fault {
			return slices.DeleteFunc(list, func(other *fault) bool { return other == f })
		})
		return f.left.Load() <= 0
	}
}

func changeFaults(change func([]*fault) []*fault) {
	faultMutex.Lock()
	defer faultMutex.Unlock()
	var list []*fault
	if old := faultList.Load(); old != nil {
		list = slices.Clone(*old)
	}
	if list = change(list); len(list) == 0 {
		faultList.Store(nil)
		return
	}
	faultList.Store(&list)
}

// injected counts a request and tells whether it is to fail. Without a fault in place it costs a load.
func injected(request string) (err error) {
	list := faultList.Load()
	if list == nil {
		return nil
	}
	for _, f := range *list {
		if f.request == request && f.left.Add(-1) == 0 {
			err = errInjected
		}
	}
	return err
}

// setAccess asks for access, or for none.
func setAccess(p unsafe.Pointer, size uint64, to access) error {
	if size == 0 {
		return nil
	}
	if err := injected(doProtect); err != nil {
		return err
	}
	return protectPages(p, size, to)
}

// populate asks for all pages at once. ErrUnsupported means that they have to be touched.
func populate(p unsafe.Pointer, size uint64) error {
	if err := injected(doPopulate); err != nil {
		return err
	}
	return populatePages(p, size)
}

// discard gives the memory of pages without access back; when they are accessible again they are zero.
func discard(p unsafe.Pointer, size uint64) error {
	if size == 0 {
		return nil
	}
	if err := injected(doDiscard); err != nil {
		return err
	}
	return discardPages(p, size)
}
