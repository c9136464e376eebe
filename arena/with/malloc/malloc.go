//go:build linux && cgo && !asan

package malloc

// // The core's headers, and its names in this module: see go doc ../../../arena_c.
// #cgo CFLAGS: -I${SRCDIR}/../../../arena_c -UUPFRONT_PREFIX -DUPFRONT_PREFIX=github_com_upfront_mem_upfront_
// #cgo checked CFLAGS: -DUPFRONT_CHECKED
// #cgo LDFLAGS: -lpthread
// #include "process.h"
// #cgo noescape upfront_malloc_begin
// #cgo nocallback upfront_malloc_begin
// #cgo noescape upfront_malloc_count
// #cgo nocallback upfront_malloc_count
// #cgo nocallback upfront_malloc_trim
// #cgo nocallback upfront_malloc_lend
import "C"

import (
	"errors"
	"fmt"
	"sync"

	"github.com/upfront-mem/upfront/arena_c"
)

func init() { arena_c.SetProcessHeap(&process) }

// heap is C's malloc of the process.
type heap struct {
	lock  sync.Mutex
	plan  arena_c.ProcessPlan
	begun bool
}

var process heap

const defaultFronts = 4

// Begin is [arena_c.ProcessHeap]'s.
func (h *heap) Begin(p arena_c.ProcessPlan) error {
	if p.Fronts == 0 {
		p.Fronts = defaultFronts
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.begun {
		if err := differs(h.plan, p); err != nil {
			return err
		}
		p = h.plan
	}
	plan := C.upfront_malloc_plan{size: C.uint64_t(p.Size), reserve: C.uint64_t(p.Reserve), fronts: C.uint64_t(p.Fronts),
		trim: C.uint64_t(p.Trim), prefault: number(p.Prefault), lock: number(p.Lock)}
	code, errno := C.upfront_malloc_begin(&plan)
	switch code {
	case C.UPFRONT_MALLOC_OK, C.UPFRONT_MALLOC_THREAD:
		h.plan, h.begun = p, true
	}
	switch code {
	case C.UPFRONT_MALLOC_OK:
		return nil
	case C.UPFRONT_MALLOC_THREAD:
		return fmt.Errorf("the thread that trims doesn't start: %w", errno)
	case C.UPFRONT_MALLOC_OTHER:
		return errors.New("the process has another malloc: this package was loaded too late to define it. Import the package " +
			"in the program itself, not in a plugin or a shared library, and preload no other malloc")
	case C.UPFRONT_MALLOC_TAKEN:
		return fmt.Errorf("size %d: C code has %d bytes already", p.Size, counts().StaticUsed)
	case C.UPFRONT_MALLOC_PREFAULT:
		return &arena_c.ProcessPageError{Key: "prefault", Size: p.Size, Err: errno}
	case C.UPFRONT_MALLOC_LOCK:
		return &arena_c.ProcessPageError{Key: "lock", Size: p.Size, Err: errno}
	case C.UPFRONT_MALLOC_SMALL:
		return fmt.Errorf("size %d is out of range for a heap", p.Size)
	}
	return fmt.Errorf("the system refuses %d bytes of addresses: %w", p.Size, errno)
}

func number(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

var errBegan = errors.New("the process began without it")

// differs returns the error of a plan that differs from the first one. A heap that has its pages
// present, or keeps them, serves a plan without that demand too.
func differs(was, now arena_c.ProcessPlan) error {
	for _, f := range []struct {
		name     string
		was, now any
	}{
		{"size", was.Size, now.Size},
		{"reserve", was.Reserve, now.Reserve},
		{"fronts", was.Fronts, now.Fronts},
		{"trim", was.Trim, now.Trim},
	} {
		if f.was != f.now {
			return fmt.Errorf("%s %v: the process began with %v, and keeps it until its end", f.name, f.now, f.was)
		}
	}
	switch {
	case now.Prefault && !was.Prefault:
		return &arena_c.ProcessPageError{Key: "prefault", Size: now.Size, Err: errBegan}
	case now.Lock && !was.Lock:
		return &arena_c.ProcessPageError{Key: "lock", Size: now.Size, Err: errBegan}
	}
	return nil
}

// Counts is [arena_c.ProcessHeap]'s.
func (h *heap) Counts() arena_c.ProcessCounts { return counts() }

func counts() arena_c.ProcessCounts {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return arena_c.ProcessCounts{
		Size: uint64(c.size), Used: uint64(c.used), Peak: uint64(c.peak), Reserve: uint64(c.reserve), Live: uint64(c.live),
		Fulls: uint64(c.fulls), FullSize: uint64(c.full_size), FullUsed: uint64(c.full_used), FullCaller: uintptr(c.full_caller),
		Static: uint64(c.boot), StaticUsed: uint64(c.boot_used), Trimmed: uint64(c.trimmed),
	}
}

// Trim is [arena_c.ProcessHeap]'s.
func (h *heap) Trim() uint64 { return uint64(C.upfront_malloc_trim()) }

func lend(more int) { C.upfront_malloc_lend(C.int(more)) }
