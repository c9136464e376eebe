package platform

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// Requests to the system that may fail, by the names that InjectFault takes.
const (
	doMap      = "map"      // Reserve, unless it takes a kept range; OpenShared
	doProtect  = "protect"  // Commit, Protect, Unprotect, Release
	doPopulate = "populate" // Prefault, OpenShared
	doDiscard  = "discard"  // Release, Return, Discard
	doLock     = "lock"     // Lock
	doUnlock   = "unlock"   // Release of a locked range, and a Lock that failed
	doAdvise   = "advise"   // HugePages, and the Release after it
	doTrack    = "track"    // Track
	doAllocate = "allocate" // OpenShared
)

var requests = []string{doMap, doProtect, doPopulate, doDiscard, doLock, doUnlock, doAdvise, doTrack, doAllocate}

type fault struct {
	request string
	left    int // requests up to and with the one that fails
}

var faultsInPlace struct {
	sync.Mutex
	list []*fault
}

// InjectFault makes one request to the system fail, for tests: the n-th request of that name from
// now on (n = 1, 2, 3 …). The error contains "injected fault". It wraps syscall.ENOMEM, as most
// refusals of Linux do. restore removes the fault and reports whether the request has failed. A
// test that raises n until restore returns false has tried every request.
//
// The names are "map", "protect", "populate", "discard", "lock", "unlock", "advise", "track" and
// "allocate".
// InjectFault panics if the name is another, or n is below 1. Several faults may be in place at
// once. A fault holds for the whole process, so a test that injects one must not run in parallel
// with others. A fault works in every build that makes the request. A race build makes no "lock",
// "unlock" or "advise".
func InjectFault(name string, n int) (restore func() (struck bool)) {
	if !slices.Contains(requests, name) || n < 1 {
		panic(fmt.Sprintf("platform: BUG: inject fault %d of %q: the names are %q, and counting starts at 1",
			n, name, requests))
	}
	f, all := &fault{name, n}, &faultsInPlace
	all.Lock()
	defer all.Unlock()
	all.list = append(all.list, f)
	return func() bool {
		all.Lock()
		defer all.Unlock()
		all.list = slices.DeleteFunc(all.list, func(other *fault) bool { return other == f })
		return f.left <= 0
	}
}

func injected(request string) (err error) {
	faultsInPlace.Lock()
	defer faultsInPlace.Unlock()
	for _, f := range faultsInPlace.list {
		if f.request == request {
			if f.left--; f.left == 0 {
				err = fmt.Errorf("injected fault: %w", syscall.ENOMEM)
			}
		}
	}
	return err
}

func unsupported() error {
	if goBacked {
		return fmt.Errorf("%w: in a race build the memory is the Go heap's", errors.ErrUnsupported)
	}
	return fmt.Errorf("%w on %s", errors.ErrUnsupported, runtime.GOOS)
}

// ask requests a change of pages. Where the system lacks it, the error wraps errors.ErrUnsupported.
func ask(request string, do change, p unsafe.Pointer, size uint64) error {
	if do == nil {
		return unsupported()
	}
	if size == 0 {
		return nil
	}
	if err := injected(request); err != nil {
		return err
	}
	return do(p, size)
}
