package platform_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/upfront-mem/upfront/platform"
)

func ExampleReserve() {
	page := uint64(os.Getpagesize())
	r, err := platform.Reserve(0, 16*page, platform.Head{Size: page, Kind: "tables"})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Size() == 16*page && r.Addresses() >= r.Size(), r.Commit())
	granted, err := r.Prefault()
	missing, measured := r.Missing()
	fmt.Println(granted, err, missing == 0 || !measured)
	bytes := unsafe.Slice((*byte)(r.Base()), r.Size())
	bytes[0], bytes[page] = 1, 1
	fmt.Println(r.Protect(8*page, page), r.Unprotect(8*page, page)) // in between: a fault
	fmt.Println(r.Release(), bytes[0])                              // the head stays
	// Output:
	// true <nil>
	// true <nil> true
	// <nil> <nil>
	// <nil> 1
}

// Memory that is needed for a while gives its addresses back, except the head's.
func ExampleReservation_Return() {
	page := uint64(os.Getpagesize())
	r, err := platform.Reserve(0, 64*page, platform.Head{Size: page, Kind: "tables of a while"})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Commit())
	head := unsafe.Slice((*byte)(r.Base()), page)
	head[0] = 1
	fmt.Println(r.Return(), head[0])
	// Output:
	// <nil>
	// <nil> 1
}

// Pointers into a range at the safe base are the same in each run.
func ExampleSafeBase() {
	base := platform.SafeBase()
	if base == 0 {
		return
	}
	r, err := platform.Reserve(base, 64<<10, platform.Head{})
	if errors.Is(err, syscall.EEXIST) {
		return // the addresses are taken
	}
	fmt.Println(uintptr(r.Base()) == base, r.Release())
}

// A copy of a large range stays up to date by copying the pages that were written to.
func ExampleTrack() {
	page := uint64(os.Getpagesize())
	r, err := platform.Reserve(0, 16*page, platform.Head{})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Commit())
	_, _ = r.Prefault()
	bytes := unsafe.Slice((*byte)(r.Base()), r.Size())
	copied := slices.Clone(bytes)
	tracker, err := platform.Track(r.Base(), r.Size())
	tracked := err == nil // else err has the system's lack

	bytes[3*page], bytes[5*page-1], bytes[9*page] = 1, 1, 1 // pages 3, 4 and 9
	size := uint64(0)
	for more := tracked; more; {
		var runs []platform.PageRun
		if runs, more, err = tracker.Dirty(); err != nil {
			panic(err)
		}
		for _, run := range runs {
			copy(copied[run.Offset:], bytes[run.Offset:run.Offset+run.Size])
			size += run.Size
		}
	}
	if tracked {
		err = tracker.Close()
	} else {
		size, err = 3*page, nil
		copy(copied, bytes)
	}
	fmt.Println(size/page, string(copied) == string(bytes), err, r.Release())
	// Output:
	// <nil>
	// 3 true <nil> <nil>
}

func ExampleLimits() {
	for _, limit := range platform.Limits() { // the tightest first
		fmt.Println(limit.Name, limit.Rest(), "of", limit.Bytes, "are left; to raise it:", limit.Raise)
	}
	minor, major, _ := platform.Faults()
	peak, _ := platform.ResidentPeak()
	if used, most, ok := platform.Mappings(); ok {
		fmt.Println(used, "mappings of", most)
	}
	fmt.Println(minor+major, "page faults so far,", peak, "bytes present at most")
}

func ExampleInjectFault() {
	page := uint64(os.Getpagesize())
	restore := platform.InjectFault("protect", 1)
	r, err := platform.Reserve(0, page, platform.Head{})
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(r.Commit().Error(), "injected fault"), restore())
	fmt.Println(r.Commit(), r.Release())
	// Output:
	// true true
	// <nil> <nil>
}
