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
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
)

func init() {
	programs["profile"] = profile
	programs["storm"] = storm
	programs["child"] = func(args, io.Writer) (int, error) { return int(C.storm_child_keeps()), nil }
	programs["users"] = users
	programs["thread"] = thread
	programs["callbacks"] = callbacks
	programs["closes"] = closes
	programs["table"] = table
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

// storm runs storm_run while a goroutine writes the profile, trims and reads the figures. OnWarn
// does the same. It prints the number of writes and of warnings.
func storm(a args, out io.Writer) (line int, err error) {
	name := C.CString(a[0])
	defer C.free(unsafe.Pointer(name))
	var warnings atomic.Int64
	writes, over := 0, make(chan bool)
	look := func() {
		if s := malloc.ReadStats(); s.Used > s.Size {
			panic(fmt.Sprintf("%+v", s))
		}
		malloc.Trim()
		if err := malloc.WriteProfile(io.Discard); err != nil {
			panic(err)
		}
	}
	warned := func(w budget.Warning) {
		warnings.Add(1)
		look()
		C.free(C.malloc(3000))
		if 100*w.Used < w.Size*uint64(w.Share) {
			panic(w.String())
		}
	}
	onWarn.Store(&warned)
	defer onWarn.Store(nil)
	go func() {
		line = int(C.storm_run(name, C.int(a.number(1))))
		close(over)
	}()
	for ; ; writes++ {
		select {
		case <-over:
			// The goroutine that warns may be late.
			for end := time.Now().Add(time.Minute); warnings.Load() == 0 && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			fmt.Fprintln(out, "looks", writes, warnings.Load())
			return line, nil
		default:
			look()
			runtime.Gosched()
		}
	}
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

// stacks calls visit for each stack in the profile, with the functions of Go, the innermost first.
func stacks(visit func(s *C.upfront_profile_stack, functions []string)) {
	var counts C.upfront_profile_counts
	C.upfront_malloc_profile(&counts)
	for i := range counts.stacks {
		var s C.upfront_profile_stack
		var functions []string
		C.upfront_malloc_stack(i, &s)
		for k := range int(s._go) {
			f, _ := runtime.CallersFrames([]uintptr{uintptr(s.frames[int(s.c)+k])}).Next()
			functions = append(functions, f.Function[strings.LastIndexByte(f.Function, '/')+1:])
		}
		visit(&s, functions)
	}
}

// thread keeps blocks of a thread of C, whose stacks have no Go.
func thread(args, io.Writer) (int, error) {
	all := C.storm_thread()
	defer C.work_free_all(all)
	var inC, inGo C.uint64_t
	stacks(func(s *C.upfront_profile_stack, functions []string) {
		if s._go == 0 {
			inC += s.live.bytes
		} else {
			inGo += s.live.bytes
		}
	})
	if inC < 1_500_000 || inGo > 100_000 {
		return 1, fmt.Errorf("%d bytes are of C, and %d of Go", inC, inGo)
	}
	return 0, nil
}

// callbacks allocates in callbacks from C, on goroutines whose stacks grow, during collections. The
// stacks have the call from Go around the callback.
func callbacks(a args, out io.Writer) (int, error) {
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for k := range int(a.number(0)) {
				outside(k%40*(i+1), i)
				if k%64 == 0 {
					runtime.GC()
				}
			}
		})
	}
	all.Wait()
	whole, torn := 0, ""
	stacks(func(s *C.upfront_profile_stack, functions []string) {
		text := strings.Join(functions, " < ")
		_, around, found := strings.Cut(text, ".storm_back < ")
		switch {
		case !found:
		case strings.Contains(around, "._Cfunc_storm_around < ") && strings.Contains(around, ".outside") &&
			!strings.Contains(text, "cgocallback"):
			whole++
		default:
			torn = text
		}
	})
	fmt.Fprintln(out, "whole", whole)
	if torn != "" || whole == 0 {
		return 1, fmt.Errorf("%d stacks are whole, and one is %s", whole, torn)
	}
	return 0, nil
}

//go:noinline
func outside(depth, i int) int {
	var frame [64]byte
	frame[depth%64] = 1
	if depth != 0 {
		return outside(depth-1, i) + int(frame[depth%64])
	}
	C.free(C.storm_around(C.int(i)))
	return 0
}

//export storm_back
func storm_back(n C.int) unsafe.Pointer {
	if n > 8 { // a callback within a callback
		return C.storm_around(n - 8)
	}
	return C.malloc(3000)
}

// table writes the profile of a table that lost samples.
func table(a args, _ io.Writer) (int, error) {
	for _, line := range []C.int{C.storm_moments(), C.storm_table()} {
		if line != 0 {
			return int(line), nil
		}
	}
	file, err := os.Create(a[0])
	if err != nil {
		return 0, err
	}
	return 0, firstOf(malloc.WriteProfile(file), file.Close())
}

// closes lets a library keep blocks that is closed before the profile is written.
func closes(a args, out io.Writer) (int, error) {
	first, second := C.CString(a[0]), C.CString(a[1])
	defer C.free(unsafe.Pointer(first))
	defer C.free(unsafe.Pointer(second))
	line := C.storm_closes(first, second)
	fmt.Fprintln(out, "other address", line != 0)
	file, err := os.Create(a[2])
	if err != nil {
		return 0, err
	}
	return max(0, int(line)), firstOf(malloc.WriteProfile(file), file.Close())
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
