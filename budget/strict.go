package budget

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena_c"
)

// heapWatch compares the Go heap at two moments, for NoHeap and for the strict budget. The count is
// cheap; the profile has the call stacks.
type heapWatch struct {
	stats   runtime.MemStats // a field: on the stack it would escape to the heap
	made    uint64           // objects made on the Go heap when counting began
	profile goProfile        // of that moment
}

func newHeapWatch() *heapWatch {
	w := new(heapWatch)
	w.restart()
	return w
}

func (w *heapWatch) restart() {
	w.profile = readGoProfile()
	w.begin()
}

func (w *heapWatch) begin() {
	w.count()
	w.made = w.count()
}

// count returns the number of objects ever made on the Go heap. It stops the world for a moment,
// and ends the blocks that small objects share, so that the next object begins a new block and is
// recorded. The first count after a collection may have to wait, which makes the runtime allocate:
// count twice to begin.
func (w *heapWatch) count() uint64 {
	runtime.ReadMemStats(&w.stats)
	return w.stats.Mallocs
}

// look returns the allocations since counting began on stacks for which counts is true. Counting
// begins again.
func (w *heapWatch) look(counts func(stack []runtime.Frame) bool) (sites []goSite) {
	if w.count() == w.made {
		return nil
	}
	before := w.profile
	w.profile = readGoProfile()
	sites = w.profile.since(before, counts)
	w.begin()
	return sites
}

func (w *heapWatch) end(budget string) error {
	sites := w.look(func([]runtime.Frame) bool { return true })
	if len(sites) == 0 {
		return nil
	}
	count, where := w.text(sites)
	return fmt.Errorf("budget %q: NoHeap: %s:%s", budget, count, where)
}

// strictBuild reports whether a strict budget checks the Go heap: in checked builds.
const strictBuild = arena_c.Checked

var strictHeap struct {
	sync.Mutex
	heapWatch
	counting bool   // after the first NextFrame
	ended    uint64 // of atWork, at the last NextFrame
}

// atWork counts the loads, rewinds and similar calls of all budgets, in strict builds.
var atWork struct{ begun, ended atomic.Uint64 }

func watchStrict(on bool) {
	strictHeap.Lock()
	defer strictHeap.Unlock()
	if on {
		recordAll()
		return
	}
	recordLess()
	strictHeap.counting, strictHeap.profile = false, nil
}

// atNextFrame returns the panic value if the program allocated since the last NextFrame, or nil.
func atNextFrame(budget string) (text any) {
	w := &strictHeap
	w.Lock()
	defer w.Unlock()
	ended := w.ended
	w.ended = atWork.ended.Load()
	if !w.counting {
		w.counting = true
		w.restart()
		return nil
	}
	sites := w.look(func(stack []runtime.Frame) bool { return inPlay(stack, atWork.begun.Load() != ended) })
	if len(sites) > 0 {
		count, where := w.text(sites)
		text = fmt.Sprintf("budget %q: BUG: Strict: %s, between frames; allocate at set-up or in a load:%s", budget,
			count, where)
	}
	return text
}

// inPlay reports whether an allocation with this stack counts. While a load runs, only stacks of
// NextFrame's goroutine count, because other goroutines may work for the loader. A stack longer
// than its record doesn't show its goroutine.
func inPlay(stack []runtime.Frame, loads bool) bool {
	if slices.ContainsFunc(stack, isRare) {
		return false
	}
	if !loads {
		return true
	}
	var caller [128]uintptr
	began := goroutineOf(stack)
	return began != "" && began == goroutineOf(goFrames(caller[:runtime.Callers(0, caller[:])]))
}

// goroutineOf returns the first function of the stack's goroutine, or "" if the stack doesn't show
// it.
func goroutineOf(stack []runtime.Frame) string {
	if last := len(stack) - 1; last > 0 && stack[last].Function == "runtime.goexit" {
		return stack[last-1].Function
	}
	return ""
}

const (
	module = "github.com/upfront-mem/upfront/"
	here   = module + "budget."
)

// rare are functions that a frame calls rarely. Their allocations, and those of their callees,
// don't count.
var rare = map[string]bool{
	here + "openPlan":              true,
	here + "(*Budget).Close":       true,
	here + "Load[...]":             true,
	here + "Region.empty":          true, // Rewind and Release
	here + "(*Slots).Acquire":      true, // when none is free
	here + "(*Budget).Reconfigure": true,
	here + "(*Budget).Report":      true,
	here + "(*Budget).Published":   true,
	here + "Region.Report":         true,
	here + "(*Budget).Walk":        true,
	here + "(*Budget).Missing":     true,
	here + "(*Budget).Trim":        true,
	here + "Region.Trim":           true,
	here + "(*Budget).NoHeap":      true,
	here + "(*leftOpen).add":       true, // of leaks at NextFrame
	here + "(*Budget).settle":      true, // after a limit of the process has moved

	module + "platform.(*limitWatch).run": true, // when it moves

	module + "budget/inside.Of":                 true,
	module + "budget/inside.OfRegion":           true,
	module + "budget/timeline.(*Timeline).Read": true,
	module + "budget/save.(*Ring).Diff":         true,
	module + "budget/save.(*Ring).Read":         true,
	module + "budget/save.(*Ring).Write":        true,
	module + "budget/save.(*Ring).fileOf":       true, // the first AppendFile
}

// isRare reports whether the frame is in rare or in package record, which allocates for each new
// name and each write.
func isRare(f runtime.Frame) bool {
	return rare[f.Function] || strings.HasPrefix(f.Function, module+"budget/record.")
}

// recording counts the users of a full record of allocations.
var recording struct {
	sync.Mutex
	users  int
	before int // the rate before the first user
}

// recordAll makes the runtime record each allocation until end.
func recordAll() (end func()) {
	recording.Lock()
	defer recording.Unlock()
	if recording.users++; recording.users == 1 {
		recording.before = runtime.MemProfileRate
		runtime.MemProfileRate = 1
	}
	return recordLess
}

func recordLess() {
	recording.Lock()
	defer recording.Unlock()
	if recording.users--; recording.users == 0 {
		runtime.MemProfileRate = recording.before
	}
}

// goProfile has the recorded allocations of each call stack since the process began;
// runtime.MemProfileRate is 1 during a watch. A stack is its innermost 32 frames.
type goProfile map[[32]uintptr]goCount

type goCount struct{ objects, bytes int64 }

type goSite struct {
	goCount
	frames []string // innermost first, from the first that is not the runtime's
}

// readGoProfile reads all allocations up to now. Records are published by a collection, hence
// runtime.GC. since leaves out its own allocations, which have its name on their stacks.
func readGoProfile() goProfile {
	runtime.GC()
	var records []runtime.MemProfileRecord
	n, ok := runtime.MemProfile(nil, true)
	for !ok {
		records = make([]runtime.MemProfileRecord, n+n/8+64)
		n, ok = runtime.MemProfile(records, true)
	}
	profile := goProfile{}
	for i := range records[:n] {
		r, sum := &records[i], profile[records[i].Stack0]
		profile[r.Stack0] = goCount{sum.objects + r.AllocObjects, sum.bytes + r.AllocBytes}
	}
	return profile
}

// looksAtHeap reports whether the frame reads the profile, writes its text, or finds names for call
// sites in builds that keep them.
func looksAtHeap(f runtime.Frame) bool {
	return f.Function == here+"readGoProfile" || f.Function == here+"newHeapWatch" ||
		f.Function == here+"atNextFrame" || strings.HasPrefix(f.Function, here+"(*heapWatch).") ||
		strings.HasPrefix(f.Function, module+"arena_c.(*siteTable).")
}

// tellsFull reports whether the frame makes a full error.
func tellsFull(f runtime.Frame) bool {
	const stack = module + "scope/stack.(*Stack)."
	return f.Function == stack+"full" || f.Function == stack+"tableFull"
}

// since returns the allocations after the profile before, most objects first. If an arena was full
// meanwhile it returns nil, because making and wrapping the error allocates.
func (p goProfile) since(before goProfile, counts func(stack []runtime.Frame) bool) (sites []goSite) {
	for stack, count := range p {
		count.objects -= before[stack].objects
		count.bytes -= before[stack].bytes
		if count.objects <= 0 {
			continue
		}
		frames := goFrames(stack[:])
		if slices.ContainsFunc(frames, tellsFull) {
			return nil
		}
		if slices.ContainsFunc(frames, looksAtHeap) || !counts(frames) {
			continue
		}
		if own := programFrames(frames); len(own) > 0 {
			sites = append(sites, goSite{count, own})
		}
	}
	slices.SortFunc(sites, func(a, b goSite) int {
		return cmp.Or(cmp.Compare(b.objects, a.objects), slices.Compare(a.frames, b.frames))
	})
	return sites
}

func goFrames(stack []uintptr) (list []runtime.Frame) {
	if end := slices.Index(stack, 0); end >= 0 {
		stack = stack[:end]
	}
	frames := runtime.CallersFrames(stack)
	for more := len(stack) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		list = append(list, f)
	}
	return list
}

// programFrames returns the program's frames on a stack, innermost first, or none if the runtime
// allocated for itself.
func programFrames(stack []runtime.Frame) (list []string) {
	for _, f := range stack {
		switch {
		case len(list) == 0 && runtimeKeeps[f.Function]:
			return nil
		case f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") &&
			!strings.HasPrefix(f.Function, "internal/runtime/"):
			list = append(list, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
	}
	return list
}

// runtimeKeeps are functions with allocations for the runtime itself below a frame of the program.
// The runtime reuses these objects, so a program that waits or sleeps can't know whether it
// allocates.
var runtimeKeeps = map[string]bool{
	// a wait for a channel or a lock; a collection empties the store
	"runtime.acquireSudog": true,
	// a defer in a loop; a collection empties that store too
	"runtime.newdefer": true,
	"runtime.allocm":   true, // a thread
	"runtime.malg":     true, // a goroutine
	"runtime.allgadd":  true, // the list of them
	// a wait for a ticker or a timer: the first on each processor
	"runtime.(*timers).addHeap":         true,
	"runtime.itabAdd":                   true, // the table of interfaces and their types
	"runtime.buildTypeAssertCache":      true, // x.(Interface), one time in a thousand
	"runtime.buildInterfaceSwitchCache": true, // and in a switch over types
	"time.Sleep":                        true, // the first of a goroutine
}

const (
	goSitesShown  = 8
	goFramesShown = 6
)

func (w *heapWatch) text(sites []goSite) (count, where string) {
	var sum goCount
	for _, site := range sites {
		sum.objects += site.objects
		sum.bytes += site.bytes
	}
	var lines strings.Builder
	for i, site := range sites {
		if i == goSitesShown {
			fmt.Fprintf(&lines, "\n  and %d more places", len(sites)-i)
			break
		}
		fmt.Fprintf(&lines, "\n  %s, %d bytes:", plural(site.objects, "object"), site.bytes)
		for k, frame := range site.frames {
			if k == goFramesShown {
				fmt.Fprintf(&lines, "\n    and %s", plural(int64(len(site.frames)-k), "caller"))
				break
			}
			lines.WriteString("\n    " + frame)
		}
	}
	return plural(sum.objects, "Go allocation") + fmt.Sprintf(", %d bytes", sum.bytes), lines.String()
}
