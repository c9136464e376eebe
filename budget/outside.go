package budget

import (
	"cmp"
	"fmt"
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
// The zeroed data of the program and its libraries counts as their files. The block of another
// budget that was opened with [OpenIn] counts as outside, unless it is a part of a budget. A page
// that was only read counts, though it takes no memory.
type Outside struct {
	Bytes uint64 `json:"bytes"`
	// Error is the part of Bytes that may be Go's: a kernel without CONFIG_ANON_VMA_NAME doesn't
	// say which mappings have the runtime's own tables. The Go heap is never in Bytes.
	Error uint64 `json:"error"`
	// Process is the resident bytes of the whole process, files included.
	Process uint64 `json:"process"`
	// Largest describes the three largest holders of Bytes, the largest first: size, and the
	// kernel's name or the address.
	Largest []string `json:"largest,omitempty"`
	// Unknown is the reason why nothing else is known, and "" if it is.
	Unknown string `json:"unknown,omitempty"`
}

const outsideLargest = 3

// lookOutside is the memory of a look, kept for the next one.
var lookOutside = struct {
	sync.Mutex
	list, except []platform.Mapping
	samples      []metrics.Sample // the runtime's total, then the parts of its heap
}{samples: readMetrics(metricTotal, metricReleased, "/memory/classes/heap/free:bytes",
	"/memory/classes/heap/objects:bytes", "/memory/classes/heap/stacks:bytes", "/memory/classes/heap/unused:bytes")}

// appendAnonymous is platform.AppendAnonymous; tests replace it.
var appendAnonymous = platform.AppendAnonymous

// outside looks at the process. Any goroutine may call it. Without texts it makes no Go allocation
// once it has room for the list of mappings.
func (b *Budget) outside(texts bool) (o Outside) {
	l := &lookOutside
	l.Lock()
	defer l.Unlock()
	l.except = b.appendOwn(l.except[:0])
	var err error
	if l.list, o.Process, err = appendAnonymous(l.list[:0], l.except); err != nil {
		return Outside{Unknown: err.Error()}
	}
	var tables, unnamed uint64
	l.list, tables = withoutGo(l.list, uintptr(unsafe.Pointer(b)), l.samples)
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
		o.Largest = largestOf(l.list)
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
			page := uint64(os.Getpagesize())
			list = append(list, platform.Mapping{Base: c.Base, Size: (c.Size + page - 1) &^ (page - 1)})
		}
	}
	return list
}

// withoutGo removes the runtime's mappings from the list, as far as they are known. tables is the
// bytes of the runtime that may still be in it. object is the address of a Go object, and samples
// are those of lookOutside.
//
// The runtime's heap is a run of adjacent mappings at an address of its own. The runtime's tables
// are mappings like any other, unless the kernel knows the names that the runtime gives them.
func withoutGo(list []platform.Mapping, object uintptr, samples []metrics.Sample) (rest []platform.Mapping,
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
	first, end := runAround(list, object)
	for _, m := range list[first:end] {
		part := min(heap, m.Size)
		heap, tables = heap-part, tables-min(tables, part)
	}
	return slices.Delete(list, first, end), tables
}

// runAround returns the indices of the adjacent mappings around an address: list[first:end].
func runAround(list []platform.Mapping, address uintptr) (first, end int) {
	first = slices.IndexFunc(list, func(m platform.Mapping) bool { return address-m.Base < uintptr(m.Size) })
	if first < 0 {
		return 0, 0
	}
	adjacent := func(i int) bool { return list[i].Base+uintptr(list[i].Size) == list[i+1].Base }
	for end = first + 1; end < len(list) && adjacent(end-1); end++ {
	}
	for first > 0 && adjacent(first-1) {
		first--
	}
	return first, end
}

// largestOf describes the largest holders. Mappings with the same name are one holder.
func largestOf(list []platform.Mapping) (texts []string) {
	var holders []platform.Mapping
	for _, m := range list {
		i := -1
		if m.Name != "" {
			i = slices.IndexFunc(holders, func(h platform.Mapping) bool { return h.Name == m.Name })
		}
		if i < 0 {
			holders = append(holders, m)
		} else {
			holders[i].Present += m.Present
		}
	}
	slices.SortStableFunc(holders, func(a, b platform.Mapping) int { return cmp.Compare(b.Present, a.Present) })
	for _, h := range holders[:min(len(holders), outsideLargest)] {
		if name := cmp.Or(h.Name, fmt.Sprintf("anonymous at %#x", h.Base)); h.Present != 0 {
			texts = append(texts, SizeText(h.Present)+" "+name)
		}
	}
	return texts
}
