package budget

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// Outside is the resident memory of the process that isn't the plan's, C's heap, Go's, or a file's:
// memory that C libraries map for themselves, threads' stacks, compiled code of a wasm runtime.
// Without a c_heap it includes all blocks of C's malloc. Sizes are in bytes, as of the report.
//
// The memory of another budget doesn't count, unless its block is of [OpenIn] and of no budget. The
// zeroed data of the program and its libraries counts as their files. Before Linux 6.7 some pages
// count that take no memory ([platform.AppendAnonymous]). In race and asan builds nothing is known.
type Outside struct {
	Bytes uint64 `json:"bytes"`
	// Error is the most bytes of Bytes that may be Go's, by the runtime's own totals. A kernel
	// without CONFIG_ANON_VMA_NAME doesn't say which mappings have the runtime's tables. The Go
	// heap isn't in Bytes, except for a part at an address of its own, which Error then includes.
	Error uint64 `json:"error"`
	// Process is the resident bytes of the whole process, files included.
	Process uint64 `json:"process"`
	// Largest describes the three largest holders of Bytes, the largest first: size, and the
	// kernel's name or the address. To find the owner of an address, stop a debugger at mmap. The
	// owner may name its mappings by prctl(PR_SET_VMA_ANON_NAME).
	Largest []string `json:"largest,omitempty"`
	// Unknown is the reason why nothing else is known, and "" if it is.
	Unknown string `json:"unknown,omitempty"`
}

// lookOutside is the memory of a look, kept for the next one.
var lookOutside = struct {
	sync.Mutex
	list, except []platform.Mapping
	named        map[string]uint64 // present bytes of the mappings of a name
	samples      []metrics.Sample  // the runtime's total, then the parts of its heap
}{named: map[string]uint64{}, samples: readMetrics(metricTotal, metricReleased, metricFree, metricObjects,
	"/memory/classes/heap/stacks:bytes", "/memory/classes/heap/unused:bytes")}

// appendAnonymous is platform.AppendAnonymous; tests replace it.
var appendAnonymous = platform.AppendAnonymous

// outside looks at the process. Any goroutine may call it. Without texts it makes no Go allocation
// once it has room for the list of mappings.
func (b *Budget) outside(texts bool) (o Outside) {
	if arena_c.Asan {
		return Outside{Unknown: "AddressSanitizer maps terabytes of addresses"}
	}
	l := &lookOutside
	l.Lock()
	defer l.Unlock()
	l.except = b.appendOwn(l.except[:0])
	var err error
	if l.list, o.Process, err = appendAnonymous(l.list[:0], l.except); err != nil {
		return Outside{Unknown: err.Error()}
	}
	var tables, unnamed uint64
	l.list, tables = withoutGo(l.list, l.except, uintptr(unsafe.Pointer(b)), l.samples)
	for _, m := range l.list {
		o.Bytes += m.Present
		if m.Name == "" {
			unnamed += m.Present
		}
	}
	if o.Bytes > o.Process {
		return Outside{Unknown: fmt.Sprintf("the system counts %d bytes of it, but %d in the whole process", o.Bytes,
			o.Process)}
	}
	o.Error = min(tables, unnamed)
	if texts {
		o.Largest = largestOf(l.list, l.named)
	}
	return o
}

// appendOwn appends the budget's ranges that package platform didn't supply.
func (b *Budget) appendOwn(list []platform.Mapping) []platform.Mapping {
	if b.foreign() && !b.closed.Load() {
		list = append(list, platform.Mapping{Base: uintptr(b.memory.Base()), Size: b.Size()})
	}
	if h := arena_c.ProcessHeapOf(); h != nil {
		if c := h.Counts(); c.Base != 0 {
			list = append(list, mappingOf(c))
		}
	}
	return list
}

// mappingOf returns the pages of C's heap.
func mappingOf(c arena_c.ProcessCounts) platform.Mapping {
	page := uint64(os.Getpagesize())
	return platform.Mapping{Base: c.Base, Size: (c.Size + page - 1) &^ (page - 1)}
}

// withoutGo removes the runtime's mappings from the list, as far as they are known. tables is the
// bytes of the runtime that may still be in it. object is the address of a Go object, and samples
// are those of lookOutside.
//
// The runtime's heap is a run of adjacent mappings at an address of its own. The runtime's tables
// are mappings like any other, unless the kernel knows the names that the runtime gives them.
func withoutGo(list, except []platform.Mapping, object uintptr, samples []metrics.Sample) (rest []platform.Mapping,
	tables uint64) {
	isGo := func(m platform.Mapping) bool { return strings.HasPrefix(m.Name, "[anon: Go: ") }
	if slices.ContainsFunc(list, isGo) {
		return slices.DeleteFunc(list, isGo), 0
	}
	metrics.Read(samples)
	heap := uint64(0)
	for _, s := range samples[1:] {
		heap += s.Value.Uint64()
	}
	tables = samples[0].Value.Uint64()
	first, end := runAround(list, except, object)
	for _, m := range list[first:end] {
		if m.Name != "---" {
			part := min(heap, m.Size)
			heap, tables = heap-part, tables-min(tables, part)
		}
	}
	return slices.Delete(list, first, end), tables
}

// runAround returns the indices of the adjacent mappings around an address: list[first:end]. A
// range of except may be between two of them.
func runAround(list, except []platform.Mapping, address uintptr) (first, end int) {
	first = slices.IndexFunc(list, func(m platform.Mapping) bool { return address-m.Base < uintptr(m.Size) })
	if first < 0 {
		return 0, 0
	}
	adjacent := func(i int) bool {
		from, to := list[i].Base+uintptr(list[i].Size), list[i+1].Base
		return from == to || slices.ContainsFunc(except, func(m platform.Mapping) bool {
			return m.Base == from && m.Base+uintptr(m.Size) == to
		})
	}
	for end = first + 1; end < len(list) && adjacent(end-1); end++ {
	}
	for first > 0 && adjacent(first-1) {
		first--
	}
	return first, end
}

// largestOf describes the three largest holders. Mappings with the same name are one holder. named
// is memory for their sums.
func largestOf(list []platform.Mapping, named map[string]uint64) (texts []string) {
	var top [3]platform.Mapping
	add := func(m platform.Mapping) {
		for i := range top {
			if m.Present > top[i].Present {
				top[i], m = m, top[i]
			}
		}
	}
	clear(named)
	for _, m := range list {
		if m.Name == "" {
			add(m)
		} else {
			named[m.Name] += m.Present
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		add(platform.Mapping{Name: name, Present: named[name]})
	}
	for _, m := range top {
		if name := cmp.Or(m.Name, fmt.Sprintf("anonymous at %#x", m.Base)); m.Present != 0 {
			texts = append(texts, SizeText(m.Present)+" "+name)
		}
	}
	return texts
}
