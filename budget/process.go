package budget

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget/internal/mallocs"
)

// CHeapReport describes C's malloc at the time of the report. Used includes the headers of blocks.
// Used and Free leave out the part for Go's runtime. Fulls counts refused requests, except requests
// larger than the heap.
type CHeapReport struct {
	ArenaReport
	// Runtime is the size of the part for Go's runtime (CHeapPlan.Runtime).
	Runtime     uint64 `json:"runtime"`
	RuntimeUsed uint64 `json:"runtime_used"`
	RuntimePeak uint64 `json:"runtime_peak"`
	// Larges counts requests larger than the heap, such as those of a program that probes the size
	// of memory. LastLarge is the size of the last such request.
	Larges    uint64 `json:"larges,omitempty"`
	LastLarge uint64 `json:"last_large,omitempty"`
	// Static is the size of the heap in the program's image that serves C until Open. Blocks of
	// this heap stay in it after Open; StaticUsed is the bytes of these blocks.
	Static     uint64 `json:"static"`
	StaticUsed uint64 `json:"static_used"`
	// Trimmed is the bytes that were returned to the system since the start.
	Trimmed uint64 `json:"trimmed,omitempty"`
}

const mallocPackage = "github.com/upfront-mem/upfront/arena/with/malloc"

// cHeapOwner is the open budget with a c_heap. A process has one malloc, so only one budget may.
var cHeapOwner struct {
	sync.Mutex
	name  string
	taken bool
}

// openCHeap makes the plan's c_heap the memory of C's malloc. It is the last step of Open, because
// the heap stays until the process ends.
func (b *Budget) openCHeap() error {
	c := b.plan.CHeap
	if c.Size == 0 {
		return nil
	}
	h := arena_c.ProcessHeapOf()
	if h == nil {
		return fmt.Errorf("c_heap is %s, but the program keeps C's own malloc; import %s, or remove c_heap",
			sizeInPlan(c.Size), mallocPackage)
	}
	cHeapOwner.Lock()
	defer cHeapOwner.Unlock()
	if cHeapOwner.taken {
		return fmt.Errorf("c_heap: budget %q, which is open, has C's malloc; remove c_heap here", cHeapOwner.name)
	}
	p := c.process()
	p.Prefault, p.Lock = b.plan.Pages.Prefault.asks(), b.plan.Pages.Lock.asks()
	page, err := h.Begin(p)
	for page != "" && b.isWished(page) {
		b.refused = append(b.refused, fmt.Sprintf("pages.%s: c_heap: %v", page, err))
		p.Prefault, p.Lock = p.Prefault && page != "prefault", p.Lock && page != "lock"
		page, err = h.Begin(p)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported): // a build with another malloc on purpose
		b.refused = append(b.refused, fmt.Sprintf("c_heap: %v", err))
		return nil
	case err != nil:
		return fmt.Errorf("c_heap: %w", err)
	}
	for _, m := range mallocs.Find() {
		b.refused = append(b.refused, fmt.Sprintf("c_heap: %s is linked (%s in %s): c_heap doesn't bound its "+
			"memory; lower its own limit, or build without it", m.Name, m.Symbol, m.File))
	}
	if c.Warn != 0 {
		at := (uint64(c.Warn)*c.room() + 99) / 100
		if err := h.Watch(at, at-at/10, b.cHeapCrossed); err != nil {
			return fmt.Errorf("c_heap.warn: %w", err)
		}
	}
	cHeapOwner.name, cHeapOwner.taken, b.cHeap = b.plan.Name, true, true
	return nil
}

// cHeapCrossed warns of C's heap, on a goroutine of package malloc.
func (b *Budget) cHeapCrossed(used uint64) {
	c := b.plan.CHeap
	b.warn(Warning{Arena: cHeapKey, Key: cHeapKey, Used: used, Size: c.room(), Share: c.Warn})
}

// isWished reports whether a demand of pages is wished in the plan, so that Open continues without
// it.
func (b *Budget) isWished(key string) bool {
	for _, page := range b.plan.Pages.byKey() {
		if page.key == key {
			return *page.value == Wished
		}
	}
	return false
}

func (b *Budget) closeCHeap() {
	if !b.cHeap {
		return
	}
	cHeapOwner.Lock()
	defer cHeapOwner.Unlock()
	_ = arena_c.ProcessHeapOf().Watch(0, 0, nil) // nil: it ends the watch, which can't fail
	cHeapOwner.taken = false
}

// cHeapReport describes C's malloc now, if the program has it in a heap. Any goroutine may call it.
func (b *Budget) cHeapReport() CHeapReport {
	r, c := b.cHeapFigures()
	if c.Fulls != 0 {
		r.LastFull = b.cHeapFull(c)
	}
	return r
}

// cHeapFigures returns the numbers without texts, and makes no Go allocation.
func (b *Budget) cHeapFigures() (r CHeapReport, c arena_c.ProcessCounts) {
	h := arena_c.ProcessHeapOf()
	if h == nil {
		return r, c
	}
	c = h.Counts()
	r.Static, r.StaticUsed, r.Trimmed = c.Static, c.StaticUsed, c.Trimmed
	r.Name, r.Part, r.Kind, r.Counted = cHeapKey, cHeapKey, cHeapKey, arena_c.Checked
	if c.Size == 0 { // no budget has had a c_heap
		c.Size, c.Used, c.Peak = c.Static+c.Runtime, c.StaticUsed, max(c.Peak, c.StaticUsed)
	}
	r.Runtime, r.RuntimeUsed, r.RuntimePeak = c.Runtime, c.RuntimeUsed, c.RuntimePeak
	r.Larges, r.LastLarge = c.Larges, c.LargeSize
	r.Size, r.Used, r.Peak, r.LoadPeak, r.Objects = c.Size, c.Used, c.Peak, c.Peak, c.Live
	r.Free = c.Size - min(c.Size, c.Used+c.Runtime+c.Samples)
	r.Fulls, r.Warnings, r.LastWarning = int(c.Fulls), int(c.Warnings), c.Warned
	return r, c
}

// cHeapFull returns the text of the last refusal, with the size that C's malloc suggests in its
// line: a heap that fragments has no size that is surely enough.
func (b *Budget) cHeapFull(c arena_c.ProcessCounts) string {
	text := fmt.Sprintf("budget %q: C's malloc is full: %d bytes asked%s%s; ", b.plan.Name, c.FullSize, caller(c),
		holders(c))
	if c.FullRuntime {
		return text + fmt.Sprintf("%d of %d of the part for Go's runtime were free; set c_heap.runtime to %s or more",
			c.Runtime-min(c.Runtime, c.FullUsed), c.Runtime, sizeInPlan(2*c.Runtime))
	}
	size, pieces := c.Size-min(c.Size, c.Reserve+c.Runtime+c.Samples), ""
	if c.FullUsed+c.FullSize <= size {
		pieces = ", in pieces too small for it"
	}
	return text + fmt.Sprintf("%d of %d were free%s; set c_heap to %s or more", size-min(size, c.FullUsed), size,
		pieces, sizeInPlan(2*c.Size))
}

// holders names the lines of Go, or the functions of C, that had the most bytes by the profile.
func holders(c arena_c.ProcessCounts) string {
	var list []string
	for i, pc := range c.FullHolders {
		if c.FullHeld[i] == 0 {
			break
		}
		list = append(list, fmt.Sprintf("%s (%s)", codeAt(pc), SizeText(c.FullHeld[i])))
	}
	if list == nil {
		return ""
	}
	return "; the profile's largest users: " + strings.Join(list, ", ")
}

// codeAt names the line at a return address, or returns the address.
func codeAt(pc uintptr) string {
	if f, _ := runtime.CallersFrames([]uintptr{pc}).Next(); f.Function != "" {
		return fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line)
	}
	return fmt.Sprintf("%#x", pc)
}

// caller names the caller of the last refused request: the line of C, if the program links package
// platform/symbolize, else its address; and the line of Go that called C.
func caller(c arena_c.ProcessCounts) (text string) {
	if c.FullCaller != 0 {
		text = " by " + codeAt(c.FullCaller)
	}
	calls := c.FullGo[:]
	calls = calls[:max(0, slices.Index(append(calls, 0), 0))]
	for frames, more := runtime.CallersFrames(calls), len(calls) > 0; more; {
		var f runtime.Frame
		if f, more = frames.Next(); !strings.HasSuffix(f.File, "_cgo_gotypes.go") {
			return text + fmt.Sprintf(", from Go at %s %s:%d", f.Function, f.File, f.Line)
		}
	}
	return text
}
