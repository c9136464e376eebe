package budget

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// CHeapReport has the figures of C's malloc, as of the report. Used includes the headers of blocks.
type CHeapReport struct {
	ArenaReport
	// Static is the size of the heap in the program's image that serves C until Open. The blocks
	// that it holds stay there; StaticUsed is their bytes.
	Static     uint64 `json:"static"`
	StaticUsed uint64 `json:"static_used"`
	// Trimmed is the bytes that went back to the system since the start.
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
		return fmt.Errorf("c_heap is %s, but the program keeps C's own malloc; import %s, or remove c_heap", sizeInPlan(c.Size), mallocPackage)
	}
	cHeapOwner.Lock()
	defer cHeapOwner.Unlock()
	if cHeapOwner.taken {
		return fmt.Errorf("c_heap: budget %q, which is open, has C's malloc; remove c_heap here", cHeapOwner.name)
	}
	p := arena_c.ProcessPlan{Size: c.Size, Reserve: c.Reserve, Fronts: c.Fronts, Trim: c.Trim,
		Prefault: b.plan.Pages.Prefault.asks(), Lock: b.plan.Pages.Lock.asks()}
	err := h.Begin(p)
	var page *arena_c.ProcessPageError
	for errors.As(err, &page) && b.isWished(page.Key) {
		b.refused = append(b.refused, fmt.Sprintf("pages.%s: c_heap: %v", page.Key, err))
		p.Prefault, p.Lock = p.Prefault && page.Key != "prefault", p.Lock && page.Key != "lock"
		err, page = h.Begin(p), nil
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported): // a build with another malloc on purpose
		b.refused = append(b.refused, fmt.Sprintf("c_heap: %v", err))
		return nil
	case err != nil:
		return fmt.Errorf("c_heap: %w", err)
	}
	cHeapOwner.name, cHeapOwner.taken, b.cHeap = b.plan.Name, true, true
	b.cWatch.Share = int(c.Warn)
	return nil
}

// isWished reports whether the plan wishes a demand of pages, so that Open continues without it.
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
	cHeapOwner.taken = false
}

// cHeapReport returns the figures of C's malloc now, if the program has it in a heap. Any goroutine
// may call it.
func (b *Budget) cHeapReport() CHeapReport {
	r, c := b.cHeapFigures()
	if c.Fulls != 0 {
		r.LastFull = b.cHeapFull(c)
	}
	return r
}

// cHeapFigures returns the figures without texts, and makes no Go allocation.
func (b *Budget) cHeapFigures() (r CHeapReport, c arena_c.ProcessCounts) {
	h := arena_c.ProcessHeapOf()
	if h == nil {
		return r, c
	}
	c = h.Counts()
	r.Static, r.StaticUsed, r.Trimmed = c.Static, c.StaticUsed, c.Trimmed
	r.Name, r.Part, r.Kind, r.Counted = cHeapKey, cHeapKey, cHeapKey, arena_c.Checked
	if c.Size == 0 { // no budget has had a c_heap
		c.Size, c.Used, c.Peak = c.Static, c.StaticUsed, max(c.Peak, c.StaticUsed)
	}
	r.Size, r.Used, r.Peak, r.LoadPeak, r.Free, r.Objects = c.Size, c.Used, c.Peak, c.Peak, c.Size-min(c.Size, c.Used), c.Live
	b.cWatch.mu.Lock()
	r.Warnings, r.LastWarning = b.cWatch.count, b.cWatch.last
	b.cWatch.mu.Unlock()
	r.Fulls = int(c.Fulls)
	return r, c
}

// cWatch compares the use of C's heap with its share.
type cWatch struct {
	scope.Warner
	mu    sync.Mutex // guards the fields below, and the Warner
	count int        // of crossings
	last  uint64     // bytes at the last crossing
}

// warnOfC compares C's heap with its share, and warns. Goroutines that load slots may call it at
// once. Cost: a comparison, and with a share a call into C that takes the locks of C's malloc.
func (b *Budget) warnOfC() {
	if w := &b.cWatch; w.Share != 0 {
		w.mu.Lock()
		c := arena_c.ProcessHeapOf().Counts()
		used := w.Crossed(c.Used, c.Peak, c.Size-c.Reserve)
		if used != 0 {
			w.count, w.last = w.count+1, used
		}
		w.mu.Unlock()
		if used != 0 {
			b.warn(Warning{Arena: cHeapKey, Key: cHeapKey, Used: used, Size: c.Size - c.Reserve, Share: b.plan.CHeap.Warn})
		}
	}
}

// cHeapFull returns the text of the last refusal, with a size that would have been enough.
func (b *Budget) cHeapFull(c arena_c.ProcessCounts) string {
	by := ""
	if c.FullCaller != 0 {
		by = fmt.Sprintf(" by %#x", c.FullCaller)
		// names C's lines if the program links package platform/symbolize
		if f, _ := runtime.CallersFrames([]uintptr{c.FullCaller}).Next(); f.Function != "" {
			by = fmt.Sprintf(" by %s %s:%d", f.Function, f.File, f.Line)
		}
	}
	size, used := c.Size-c.Reserve, c.FullUsed
	pieces := ""
	if used+c.FullSize <= size {
		pieces = ", in pieces too small for it"
	}
	return fmt.Sprintf("budget %q: C's malloc is full: %d bytes asked%s; %d of %d were free%s; set c_heap to %s or more",
		b.plan.Name, c.FullSize, by, size-min(size, used), size, pieces, sizeInPlan(planRound(c.Size+c.FullSize+c.FullSize/16)))
}
