package budget

import (
	"fmt"
	"strings"
)

// String draws the memory map: a bar for each region, then frame and pads.
func (r Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "budget %s: %s\n", r.Name, sizeText(r.Size))
	line := func(x RegionReport) {
		fmt.Fprintf(&out, "  %-10s %s used %12d  peak %12d  of %12d\n", x.Name, x.bar(32), x.Used, x.Peak, x.Size)
	}
	for _, x := range r.Regions {
		line(x)
	}
	for _, x := range r.Beside {
		line(x)
	}
	fmt.Fprintf(&out, "  leaks: %d pad scopes, %d held values, %d finalizers failed\n", r.Leaks.Scopes, r.Leaks.Held, r.Leaks.Finalizers)
	return out.String()
}

// bar shows what is used (#), what was at the peak (+) and what never was (.).
func (x RegionReport) bar(width int) string {
	cells := func(n uint64) int { return int((n*uint64(width) + x.Size - 1) / x.Size) }
	used, peak := cells(x.Used), cells(max(x.Peak, x.Used))
	return "[" + strings.Repeat("#", used) + strings.Repeat("+", peak-used) + strings.Repeat(".", width-peak) + "]"
}
