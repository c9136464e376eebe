package budget

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// String draws the memory map: a bar for each region, then frame and pads, then the Go heap where the plan gives it a
// share. What scopes and accounts hold and held follows by name, largest peak first, at most 8 of an arena each ("used 384
// in 3" is 384 bytes in 3 allocations that are live); in memtrace builds the 16 sites that hold most, with the ways by
// which most of it came.
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
		usageText(&out, x.Name, "account", x.Accounts)
	}
	sitesText(&out, r.Sites)
	fmt.Fprintf(&out, "  leaks: %d scopes, %d held values, %d finalizers failed, %d slots, %d pairs of pads\n",
		r.Leaks.Scopes, r.Leaks.Held, r.Leaks.Finalizers, r.Leaks.Slots, r.Leaks.Pads)
	return out.String()
}

const (
	reportBar   = 32 // cells
	reportNames = 8
	reportSites = 16
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
		fmt.Fprintf(out, "  %s: %s %q used %d in %d, peak %d\n", arena, what, u.Name, u.Bytes, u.Objects, u.Peak)
	}
}

// sitesText writes a line for each of the largest sites, and below it the ways to it that have a tenth of it or more.
func sitesText(out *strings.Builder, list []Site) {
	for i, s := range list {
		if i == reportSites {
			fmt.Fprintf(out, "  %d more sites\n", len(list)-i)
			return
		}
		fmt.Fprintf(out, "  %s: %s used %d in %d, peak %d, in all %d in %d\n", s.Arena, short(s.call()), s.Bytes, s.Objects, s.Peak,
			s.Total, s.TotalObjects)
		for _, way := range s.Stacks {
			if callers := way.Calls[1:]; len(callers) > 0 && way.Total*10 >= s.Total {
				names := make([]string, 0, 3)
				for _, call := range callers[:min(3, len(callers))] {
					names = append(names, short(call))
				}
				fmt.Fprintf(out, "    %d%% by %s\n", way.Total*100/max(s.Total, 1), strings.Join(names, ", "))
			}
		}
	}
}

// short is a call without the directories of its package and file.
func short(call string) string {
	words := strings.Fields(call)
	for i, word := range words {
		words[i] = path.Base(word)
	}
	return strings.Join(words, " ")
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
