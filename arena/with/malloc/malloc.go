//go:build linux && cgo && !asan

package malloc

// // The core's headers, and its names in this module: see go doc ../../../arena_c.
// #cgo CFLAGS: -I${SRCDIR}/../../../arena_c -UUPFRONT_PREFIX -DUPFRONT_PREFIX=github_com_upfront_mem_upfront_
// #cgo checked CFLAGS: -DUPFRONT_CHECKED
// #cgo LDFLAGS: -lpthread -ldl
// #include "caller.h"
// #include "process.h"
// #cgo noescape upfront_malloc_begin
// #cgo nocallback upfront_malloc_begin
// #cgo noescape upfront_malloc_count
// #cgo nocallback upfront_malloc_count
// #cgo nocallback upfront_malloc_trim
// #cgo nocallback upfront_malloc_lend
// #cgo nocallback upfront_malloc_watch
// #cgo nocallback upfront_malloc_look
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
)

func init() { arena_c.SetProcessHeap(&process) }

// heap is C's malloc of the process.
type heap struct {
	lock  sync.Mutex
	plan  arena_c.ProcessPlan
	begun bool
	event *os.File // of the watch, or nil
}

var process heap

const defaultFronts = 4

// Begin is [arena_c.ProcessHeap]'s.
func (h *heap) Begin(p arena_c.ProcessPlan) (page string, err error) {
	p.Fronts, p.Runtime = cmp.Or(p.Fronts, defaultFronts), cmp.Or(p.Runtime, C.UPFRONT_MALLOC_RUNTIME)
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.begun {
		if page, err := differs(h.plan, p); err != nil {
			return page, err
		}
		p = h.plan
	}
	if samples := p.Samples(); samples > p.Size/2 {
		return "", fmt.Errorf("profile %d: its samples take %d bytes, more than half of the size %d", p.Profile,
			samples, p.Size)
	}
	if p.Runtime > p.Size/2 {
		return "", fmt.Errorf("size %d is too small: at most half of it may be for Go's runtime, and that takes %d "+
			"bytes", p.Size, p.Runtime)
	}
	plan := C.upfront_malloc_plan{size: C.uint64_t(p.Size), reserve: C.uint64_t(p.Reserve),
		profile: C.uint64_t(p.Profile), samples: C.uint64_t(p.Samples()),
		runtime: C.uint64_t(p.Runtime), fronts: C.uint64_t(p.Fronts),
		prefault: number(p.Prefault), lock: number(p.Lock)}
	code, errno := C.upfront_malloc_begin(&plan)
	switch code {
	case C.UPFRONT_MALLOC_OK:
		if !h.begun && p.Trim != 0 && !arena_c.Checked {
			go trim(p.Trim)
		}
		h.plan, h.begun = p, true
		sayUncovered()
		return "", nil
	case C.UPFRONT_MALLOC_OTHER:
		return "", fmt.Errorf("the process has another malloc, in %s: this package was loaded too late to define it. "+
			"Import the package in the program itself, not in a plugin or a shared library, and preload no other "+
			"malloc", cmp.Or(C.GoString(C.upfront_malloc_other()), "an unknown file"))
	case C.UPFRONT_MALLOC_TAKEN:
		return "", fmt.Errorf("size %d: C code has %d bytes already", p.Size, counts().StaticUsed)
	case C.UPFRONT_MALLOC_PREFAULT:
		return refusedPages("prefault", p.Size, errno)
	case C.UPFRONT_MALLOC_LOCK:
		return refusedPages("lock", p.Size, errno)
	case C.UPFRONT_MALLOC_SMALL:
		return "", fmt.Errorf("size %d is out of range for a heap", p.Size)
	}
	return "", fmt.Errorf("the system refuses %d bytes of addresses: %w", p.Size, errno)
}

// refusedPages returns page, and the error of the system that refuses to make pages present or to
// keep them.
func refusedPages(page string, size uint64, err error) (string, error) {
	verb := "make"
	if page == "lock" {
		verb = "keep"
	}
	return page, fmt.Errorf("the system refuses to %s %d bytes present: %w", verb, size, err)
}

// trim gives pages back that stayed free for a time, until the process ends.
func trim(after time.Duration) {
	for {
		time.Sleep(after)
		C.upfront_malloc_look()
	}
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
func differs(was, now arena_c.ProcessPlan) (page string, err error) {
	for _, f := range []struct {
		name     string
		was, now any
	}{
		{"size", was.Size, now.Size},
		{"reserve", was.Reserve, now.Reserve},
		{"runtime", was.Runtime, now.Runtime},
		{"fronts", was.Fronts, now.Fronts},
		{"trim", was.Trim, now.Trim},
		{"profile", was.Profile, now.Profile},
	} {
		if f.was != f.now {
			return "", fmt.Errorf("%s %v: the process began with %v, and keeps it until its end", f.name, f.now, f.was)
		}
	}
	switch {
	case now.Prefault && !was.Prefault:
		return refusedPages("prefault", now.Size, errBegan)
	case now.Lock && !was.Lock:
		return refusedPages("lock", now.Size, errBegan)
	}
	return "", nil
}

// Counts is [arena_c.ProcessHeap]'s.
func (h *heap) Counts() arena_c.ProcessCounts { return counts() }

func counts() arena_c.ProcessCounts {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	out := arena_c.ProcessCounts{
		Base: uintptr(c.base), Size: uint64(c.size), Used: uint64(c.used), Peak: uint64(c.peak),
		Reserve: uint64(c.reserve), Live: uint64(c.live),
		Runtime: uint64(c.runtime), RuntimeUsed: uint64(c.runtime_used), RuntimePeak: uint64(c.runtime_peak),
		Fulls: uint64(c.fulls), FullSize: uint64(c.full_size), FullUsed: uint64(c.full_used),
		FullRuntime: c.full_runtime != 0,
		FullCaller:  uintptr(c.full_caller), Larges: uint64(c.larges), LargeSize: uint64(c.large_size),
		Warnings: uint64(c.warnings), Warned: uint64(c.warned),
		Samples: uint64(c.samples),
		Static:  uint64(c.boot), StaticUsed: uint64(c.boot_used), Trimmed: uint64(c.trimmed),
	}
	for i := range out.FullGo {
		out.FullGo[i] = uintptr(c.full_go[i])
	}
	for i := range out.FullHolders {
		out.FullHolders[i], out.FullHeld[i] = uintptr(c.full_holder[i].line), uint64(c.full_holder[i].bytes)
	}
	return out
}

// Watch is [arena_c.ProcessHeap]'s.
func (h *heap) Watch(at, again uint64, crossed func(used uint64)) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.event != nil {
		C.upfront_malloc_watch(math.MaxUint64, 0, -1)
		_ = h.event.Close() // its reader ends
		h.event = nil
	}
	if crossed == nil {
		return nil
	}
	event, err := C.upfront_malloc_event()
	if event < 0 {
		return fmt.Errorf("the system refuses an event for warnings: %w", err)
	}
	h.event = os.NewFile(uintptr(event), "warnings of C's malloc")
	go read(h.event, crossed)
	C.upfront_malloc_watch(C.uint64_t(at), C.uint64_t(again), event)
	return nil
}

// read calls crossed for each crossing until the event is closed.
func read(event *os.File, crossed func(used uint64)) {
	var n [8]byte
	for seen := uint64(0); ; {
		if _, err := event.Read(n[:]); err != nil {
			return
		}
		if c := counts(); c.Warnings > seen {
			seen = c.Warnings
			crossed(c.Warned)
		}
	}
}

// Trim is [arena_c.ProcessHeap]'s.
func (h *heap) Trim() uint64 { return uint64(C.upfront_malloc_trim()) }

func lend(more int) { C.upfront_malloc_lend(C.int(more)) }
