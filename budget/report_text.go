package budget

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// String draws the memory map: a bar for each region, then frame and scratch arenas, then the Go heap where the plan gives it a
// share. What scopes and labels hold and held follows by name, largest peak first, at most 8 of an arena each ("used 384
// in 3", of checked builds, is 384 bytes in 3 allocations that are live).
func (r Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "budget %s: %s\n", r.Name, sizeText(r.Size))
	arenas := slices.Concat(r.Regions, r.Beside)
	for _, x := range arenas {
		fmt.Fprintf(&out, "  %-10s %s used %12d  peak %12d  of %12d\n", x.Name, x.bar(reportBar), x.Used, x.Peak, x.Size)
	}
	if heap := r.GoHeap; heap.Limit != 0 {
		fmt.Fprintf(&out, "  %-10s %s used %12d  collections %5d  of %12d\n", "go heap", bar(heap.Used, 0, heap.Limit, reportBar),
			heap.Used, heap.Collections, heap.Limit)
	}
	for _, x := range arenas {
		usageText(&out, x.Name, "scope", x.Scopes)
		usageText(&out, x.Name, "label", x.Labels)
	}
	for _, x := range r.Proxies {
		fmt.Fprintf(&out, "  proxy %q: %d live, of %d bytes, peak %d; gave %d, refused %d\n",
			x.Name, x.Live, x.Asked, x.Peak, x.Total, x.Failed)
	}
	fmt.Fprintf(&out, "  leaks: %d scopes, %d owned values, %d finalizers failed, %d slots, %d pairs of scratch arenas\n",
		r.Leaks.Scopes, r.Leaks.Owned, r.Leaks.Finalizers, r.Leaks.Slots, r.Leaks.Scratch)
	return out.String()
}

const (
	reportBar   = 32 // cells
	reportNames = 8
)

// usageText writes a line for each name.
func usageText(out *strings.Builder, arena, what string, list []scope.Usage) {
	list = slices.DeleteFunc(slices.Clone(list), func(u scope.Usage) bool { return u.Bytes|u.Peak == 0 })
	slices.SortStableFunc(list, func(a, b scope.Usage) int { return cmp.Compare(b.Peak, a.Peak) })
	for i, u := range list {
		if i == reportNames {
			fmt.Fprintf(out, "  %s: %d more of %ss\n", arena, len(list)-i, what)
			return
		}
		objects := ""
		if arena_c.Checked {
			objects = fmt.Sprintf(" in %d", u.Objects)
		}
		fmt.Fprintf(out, "  %s: %s %q used %d%s, peak %d\n", arena, what, u.Name, u.Bytes, objects, u.Peak)
	}
}

func (x RegionReport) bar(width int) string { return bar(x.Used, x.Peak, x.Size, width) }

// bar shows what is used (#), what was at the peak (+) and what never was (.). What is beyond the size, as the Go heap may
// be, fills the bar.
func bar(used, peak, size uint64, width int) string {
	cells := func(n uint64) int {
		if size == 0 || n == 0 {
			return 0
		}
		return int(math.Ceil(float64(min(n, size)) / float64(size) * float64(width)))
	}
	a, b := cells(used), cells(max(peak, used))
	return "[" + strings.Repeat("#", a) + strings.Repeat("+", b-a) + strings.Repeat(".", width-b) + "]"
}
