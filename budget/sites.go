package budget

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// Site is a line of the program that asked for memory of a region, of a buffer of the frame or of a pad, and what it got.
// Reports have sites in memtrace builds (-tags memtrace), where each request is booked at the first call outside of the
// library that leads to it, and booked out when its bytes go back: when its scope closes, when a constructor fails, when the
// region is rewound. Sizes are the bytes that were asked for, without padding.
//
// A site of Chunks asked pools for chunks (Get). The bytes of a pool are booked where the pool was made, too, so they are
// there twice. Blocks of package arena are their owner's: what was asked for is the block that they lie on.
//
// Not seen is what C code takes by itself, in a scope that was given to it. A Go function that C calls is seen, with the Go
// frames on both sides of the C ones; those have no names, since the Go runtime doesn't walk them.
//
// Cost of such a build: a few us a request, most of it the walk up the stack, and several times that where the whole stack is
// kept (go test -tags memtrace ./budget -run - -bench Traced). Its tables are 36 MiB of static memory, touched as far as they
// are used: no part of the budget, and not on the Go heap. They hold, for the process, 262,144 runs of equal requests that are
// live, 131,072 live chunks with all arenas and pools, 8192 sites of arenas, 16,384 stacks and 8192 texts of sites and stacks;
// Report.SitesLost says how much found no place.
type Site struct {
	Arena        string      `json:"arena"` // as in RegionReport.Name
	Function     string      `json:"function"`
	File         string      `json:"file"`
	Line         int         `json:"line"`
	Chunks       bool        `json:"chunks,omitempty"`
	Bytes        uint64      `json:"bytes"`   // held now
	Objects      uint64      `json:"objects"` // allocations that are live; what makes a slice longer where it lies is none
	Peak         uint64      `json:"peak"`    // the most Bytes that the site had at once since Open
	PeakObjects  uint64      `json:"peak_objects"`
	Total        uint64      `json:"total"` // all bytes since Open
	TotalObjects uint64      `json:"total_objects"`
	Stacks       []SiteStack `json:"stacks,omitempty"` // the ways to the site that were sampled: largest Total first
}

// SiteStack is a way to a site, and its share of the site's bytes as the samples have it ([SampleStacks]).
type SiteStack struct {
	Bytes uint64   `json:"bytes"` // of Site.Bytes; 0 too when no request is live that was sampled
	Total uint64   `json:"total"` // of Site.Total
	Calls []string `json:"calls"` // "function file:line", from the site's own line outwards
}

// SampleStacks has memtrace builds keep the stack of each request that gets the n-th byte of its site, or the 2n-th and so
// on, and that of the site's first: from now on, in all budgets. It says what n was; at first it is 4096. 1 keeps every stack,
// 0 changes nothing. The same program has the same samples, whatever its goroutines do. In other builds it does nothing.
func SampleStacks(n uint64) (was uint64) { return arena_c.SampleStacks(n) }

// sites are the figures of all arenas as of now. Any goroutine may ask.
func (b *Budget) sites() (list []Site) {
	for i, st := range b.stacks() {
		name := st.Name()
		if i < len(b.regions) {
			name = b.regions[i].name
		}
		for _, f := range st.Sites() {
			list = append(list, siteOf(name, f))
		}
	}
	slices.SortStableFunc(list, func(a, b Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Peak, a.Peak), cmp.Compare(b.Total, a.Total),
			cmp.Compare(a.Function, b.Function), cmp.Compare(a.Line, b.Line))
	})
	return list
}

func siteOf(arena string, f arena_c.SiteFigures) Site {
	s := Site{Arena: arena, Chunks: f.Chunks, Bytes: f.Live.Bytes, Objects: f.Live.Objects, Peak: f.Peak.Bytes,
		PeakObjects: f.Peak.Objects, Total: f.Total.Bytes, TotalObjects: f.Total.Objects}
	s.Function, s.File, s.Line = parseCall(strings.Trim(arena_c.Text(f.Site), "\t\n"))
	var live, total uint64
	for _, x := range f.Stacks {
		live += x.Live
		total += x.Total
	}
	for _, x := range f.Stacks {
		calls := strings.Split(strings.Trim(arena_c.Text(x.Calls), "\t\n"), "\n\t")
		s.Stacks = append(s.Stacks, SiteStack{share(s.Bytes, x.Live, live), share(s.Total, x.Total, total), calls})
	}
	slices.SortStableFunc(s.Stacks, func(a, b SiteStack) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), slices.Compare(a.Calls, b.Calls))
	})
	return s
}

// share is what a part of the samples stands for.
func share(bytes, samples, all uint64) uint64 {
	if all == 0 {
		return 0
	}
	return uint64(float64(bytes) * float64(samples) / float64(all))
}

// parseCall takes a call apart: "function file:line".
func parseCall(call string) (function, file string, line int) {
	function, rest, _ := strings.Cut(call, " ")
	if colon := strings.LastIndexByte(rest, ':'); colon >= 0 {
		line, _ = strconv.Atoi(rest[colon+1:])
		rest = rest[:colon]
	}
	return cmp.Or(function, "unknown"), rest, line
}

// call is the site as a call.
func (s Site) call() string {
	what := ""
	if s.Chunks {
		what = "chunks of "
	}
	return what + s.Function + " " + s.File + ":" + strconv.Itoa(s.Line)
}
