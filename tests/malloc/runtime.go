//go:build linux && cgo

package main

// #include <stdlib.h>
// #include "work.h"
//
// // Returns the number of blocks that it gets in the `size` bytes at `base`. gcc inlines it into
// // cgo's function, as the call of malloc for C.CString is.
// static int steal(uintptr_t base, uintptr_t size) {
//     int i, got = 0;
//     for (i = 0; i < 1000; i++)
//         got += (uintptr_t)malloc(16) - base < size;
//     return got;
// }
import "C"

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
)

// requests fills the heap from C and makes the requests of Go's runtime that a refusal would end
// the process for: C strings, threads, variables. It prints the use of the runtime's part: by the
// variables, which libc keeps, at most, and after all.
func requests(a args, out io.Writer) (int, error) {
	// C resizes its list of variables for the next ones
	if err := os.Setenv("UPFRONT_TEST_0", "before the heap is full"); err != nil {
		return 0, err
	}
	kept := C.work_take_all()
	variables := uint64(0)
	defer func() {
		C.work_free_all(kept)
		s := malloc.ReadStats()
		fmt.Fprintln(out, "runtime", variables, s.RuntimePeak, s.RuntimeUsed, "of", s.Runtime)
	}()
	base, size := runtimePart()
	if n := C.steal(C.uintptr_t(base), C.uintptr_t(size)); n != 0 {
		return 1, fmt.Errorf("code in C got %d blocks of the runtime's part", n)
	}
	for i := range a.number(2) {
		if err := variable(fmt.Sprint("UPFRONT_TEST_", i), strings.Repeat("v", 1+30*int(i))); err != nil {
			return 4, err
		}
	}
	variables = malloc.ReadStats().RuntimeUsed
	for range a.number(0) {
		if err := strings45(); err != nil {
			return 3, err
		}
	}
	grows((*C.char)(C.malloc(100)))
	threads(int(a.number(1)))
	return 0, nil
}

// strings45 makes and frees a C string of 45 bytes, a copy of bytes, and a block.
func strings45() error {
	text := "a string of 44 bytes, as of a query in SQL--"
	p, q, r := C.CString(text), C.CBytes([]byte(text)), C.malloc(24)
	defer C.free(unsafe.Pointer(p))
	defer C.free(q)
	defer C.free(r)
	if got := C.GoString(p); got != text {
		return fmt.Errorf("C.CString made %q", got)
	}
	return nil
}

// variable sets a variable, which C code sees too.
func variable(name, value string) error {
	if err := os.Setenv(name, value); err != nil {
		return err
	}
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	if got := C.getenv(key); got == nil || C.GoString(got) != value {
		return fmt.Errorf("code in C sees no %s", name)
	}
	return nil
}

// grows resizes a block of the runtime's part. C's own code gets no more of it, and may shrink it.
func grows(p *C.char) {
	if q := C.realloc(unsafe.Pointer(p), 2000); q != nil {
		panic("realloc from C grew a block of the runtime's part")
	}
	C.free(C.realloc(unsafe.Pointer(p), 40))
}

// warn prints each warning of C's heap while C fills and frees it, without a frame or a load.
func warn(_ args, out io.Writer) (int, error) {
	warnings := make(chan budget.Warning, 8)
	if err := os.Stdin.Close(); err != nil { // the event for warnings is number 0
		return 0, err
	}
	b, err := budget.Open(budget.Plan{
		Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Pages:  budget.Pages{Prefault: budget.Off},
		CHeap:  budget.CHeapPlan{Size: 4 * budget.MiB, Warn: 50, Profile: budget.NoProfile},
		OnWarn: func(w budget.Warning) { warnings <- w },
	})
	if err != nil {
		return 0, err
	}
	if line := C.work_park(256, 1000) + C.work_spread(950, 2000); line != 0 {
		return int(line), nil
	}
	time.Sleep(200 * time.Millisecond) // for a warning that is wrong
	fmt.Fprintln(out, "below", len(warnings))
	kept := C.work_take_all()
	fmt.Fprintln(out, <-warnings)
	C.work_free_all(kept)
	// small blocks, which go back by way of fronts, and then one large one
	var blocks C.uint64_t
	if line := C.work_fill(500, &blocks); line != 0 {
		return int(line), nil
	}
	fmt.Fprintln(out, <-warnings)
	large := C.malloc(5 * budget.MiB / 2)
	fmt.Fprintln(out, <-warnings)
	C.free(large)
	r := b.Report()
	if err := b.Close(); err != nil {
		return 0, err
	}
	C.work_free_all(C.work_take_all())
	fmt.Fprintln(out, "warnings", r.CHeap.Warnings, len(warnings))
	fmt.Fprint(out, r)
	return 0, nil
}

// threads starts that many threads at once, and ends them.
func threads(n int) {
	var running, done sync.WaitGroup
	running.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread() // and no unlock: the thread ends with the goroutine
			running.Done()
			running.Wait()
		})
	}
	done.Wait()
}

// calls fills the heap, and makes C strings on many goroutines whose stacks grow, during
// collections.
func calls(a args, out io.Writer) (int, error) {
	kept := C.work_take_all()
	defer C.work_free_all(kept)
	var all sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		all.Go(func() {
			for k := range a.number(0) {
				errs[i] = deep(int(k) % 40 * (i + 1))
				if errs[i] != nil {
					return
				}
				if k%64 == 0 {
					runtime.GC()
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return 1, err
		}
	}
	return 0, nil
}

//go:noinline
func deep(n int) error {
	if n == 0 {
		return strings45()
	}
	var frame [64]byte
	frame[n%64] = 1
	if err := deep(n - 1); err != nil || frame[n%64] != 1 {
		return fmt.Errorf("at depth %d: %w", n, err)
	}
	return nil
}
