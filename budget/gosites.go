package budget

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
)

// goProfile is what each call stack has allocated on the Go heap since the process began, as far as it was recorded:
// runtime.MemProfileRate is 1 while somebody watches. A stack is its innermost 32 frames.
type goProfile map[[32]uintptr]goCount

type goCount struct{ objects, bytes int64 }

// goSite is a call stack of the program that allocated.
type goSite struct {
	goCount
	frames []string // innermost first, from the first that is not the runtime's
}

// goCounter counts the objects that were made on the Go heap: all, and those that share a block of 16 bytes with one
// before, which no profile sees.
type goCounter struct {
	all, unseen uint64
	stats       runtime.MemStats // here, since on the stack it would be moved to the heap
	samples     [1]metrics.Sample
}

// read stops the world for a moment. It also ends the blocks that small objects share: the next begins a new one. The
// first read after a collection may have to wait, for which the runtime allocates: read twice to begin a count.
func (c *goCounter) read() {
	c.samples[0].Name = "/gc/heap/tiny/allocs:objects"
	runtime.ReadMemStats(&c.stats)
	metrics.Read(c.samples[:])
	c.all, c.unseen = c.stats.Mallocs, c.samples[0].Value.Uint64()
}

// readGoProfile reads what was allocated up to now. Records are published by a collection, hence runtime.GC. What this
// allocates itself is known by its name, and left out by since.
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

// looksAtHeap says whether the frame is one of those that read the profile, or that find names for call sites where a build
// keeps these.
func looksAtHeap(f runtime.Frame) bool {
	const here = "github.com/upfront-mem/upfront/budget."
	return f.Function == here+"readGoProfile" || strings.HasPrefix(f.Function, here+"(*heapWatch).") ||
		strings.HasPrefix(f.Function, here+"(*goCounter).") ||
		strings.HasPrefix(f.Function, "github.com/upfront-mem/upfront/arena_c.(*siteTable).")
}

// since is what was allocated after an earlier profile was read: most objects first.
func (p goProfile) since(before goProfile) (sites []goSite) {
	for stack, count := range p {
		count.objects -= before[stack].objects
		count.bytes -= before[stack].bytes
		if count.objects <= 0 {
			continue
		}
		frames := goFrames(stack[:])
		if slices.ContainsFunc(frames, looksAtHeap) {
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

// programFrames are the frames of the program on a stack, innermost first; none when the runtime allocated for itself.
func programFrames(stack []runtime.Frame) (list []string) {
	for _, f := range stack {
		switch {
		case len(list) == 0 && runtimeKeeps[f.Function]:
			return nil
		case f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") && !strings.HasPrefix(f.Function, "internal/runtime/"):
			list = append(list, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
	}
	return list
}

// runtimeKeeps are functions that the runtime allocates in for itself below a frame of the program: it keeps and reuses
// what they make, and who waits or sleeps can't know whether there is one.
var runtimeKeeps = map[string]bool{
	"runtime.acquireSudog":              true, // who waits for a channel or a lock; a collection empties the store
	"runtime.newdefer":                  true, // a defer in a loop; so does it here
	"runtime.allocm":                    true, // a thread
	"runtime.malg":                      true, // a goroutine
	"runtime.allgadd":                   true, // the list of them
	"runtime.(*timers).addHeap":         true, // who waits for a ticker or a timer: the first on each processor
	"runtime.itabAdd":                   true, // the table of interfaces and their types
	"runtime.buildTypeAssertCache":      true, // x.(Interface), one time in a thousand
	"runtime.buildInterfaceSwitchCache": true, // and in a switch over types
	"time.Sleep":                        true, // the first of a goroutine
}

const (
	goSitesShown  = 8
	goFramesShown = 6
)

// text says how much was allocated and where.
func (w *heapWatch) text() (count, where string) {
	sites, unseen := w.found, w.foundUnseen
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
	if unseen > 0 {
		fmt.Fprintf(&lines, "\n  and %s under 16 bytes without pointers, in blocks with others: where is not recorded",
			plural(int64(unseen), "object"))
		sum.objects += int64(unseen)
	}
	return plural(sum.objects, "Go allocation") + fmt.Sprintf(", %d bytes", sum.bytes), lines.String()
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
