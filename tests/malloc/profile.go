//go:build linux && cgo && !asan

package main

// #include <stdlib.h>
// #include "../../arena/with/malloc/process.h"
// #include "storm.h"
// #include "work.h"
import "C"

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/with/malloc"
)

func init() {
	programs["profile"] = profile
	programs["storm"] = storm
	programs["child"] = func(args, io.Writer) (int, error) { return int(C.storm_child_keeps()), nil }
	programs["users"] = users
}

// profiled returns the counts of the profile, and the sums of live blocks by it.
func profiled() (counts C.upfront_profile_counts, live C.upfront_profile_sums) {
	C.upfront_malloc_profile(&counts)
	for i := range counts.stacks {
		var s C.upfront_profile_stack
		C.upfront_malloc_stack(i, &s)
		live.bytes += s.live.bytes
		live.objects += s.live.objects
	}
	return counts, live
}

// profile holds a number of bytes, in blocks of up to a size, and prints them and the
// profile's sums, once for each of so many seeds.
func profile(a args, out io.Writer) (int, error) {
	// One thread allocates, so that the samples are the same in each run.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for seed := range a.number(2) {
		before := malloc.ReadStats()
		list := C.storm_hold(C.uint64_t(a.number(0)), C.uint64_t(a.number(1)), C.uint64_t(seed+1))
		counts, live := profiled()
		after := malloc.ReadStats()
		fmt.Fprintln(out, "held", after.Used-before.Used, live.bytes, after.Live-before.Live,
			live.objects/C.UPFRONT_PROFILE_OBJECT, counts.lost)
		C.work_free_all(list)
		counts, live = profiled()
		fmt.Fprintln(out, "left", counts.samples, live.bytes, live.objects)
	}
	return 0, nil
}

func storm(a args, _ io.Writer) (int, error) {
	name := C.CString(a[0])
	defer C.free(unsafe.Pointer(name))
	return int(C.storm_run(name, C.int(a.number(1)))), nil
}

// users keeps blocks from two lines, and writes a profile to a file.
func users(a args, _ io.Writer) (int, error) {
	for range 3000 {
		large() // line LARGE
	}
	small := C.storm_hold(2<<20, 100, 1) // line SMALL
	defer C.work_free_all(small)
	file, err := os.Create(a[0])
	if err != nil {
		return 0, err
	}
	return 0, firstOf(malloc.WriteProfile(file), file.Close())
}

func large() unsafe.Pointer { return C.malloc(2000) } // line MALLOC

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
