package budget

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// String draws the memory map: a bar for each region, then for each frame buffer and scratch arena,
// then for the Go heap if it has a limit, for C's malloc if the program has it in a heap, and for
// quotas. The
// use of scopes and labels follows, largest peak first, at most 8 scopes and 8 labels for each
// arena. In checked builds String also counts live allocations: "used 0.4KiB in 3 objects". Sizes,
// except of refused requests, are as [SizeText] writes them. Slots, buffers or scratch arenas with
// the same text share one line.
func (r Report) String() string {
	var bars, names reportLines
	for _, x := range r.Arenas {
		bars.add(x.Part, x.Name, x.line())
	}
	if heap := r.GoHeap; heap.Limit != 0 {
		bars.add("", "go heap", fmt.Sprintf("%s used %10s  collections %5d  of %10s",
			bar(heap.Used, 0, heap.Limit), SizeText(heap.Used), heap.Collections, SizeText(heap.Limit)))
	}
	if x := r.CHeap; x.Name != "" {
		bars.add(x.Part, x.Name, x.line())
	}
	for _, x := range r.Quotas {
		bars.add(x.Part, x.Name, x.line())
	}
	for _, x := range r.rows() {
		if x.Fulls != 0 {
			full := "full"
			if x.waits().Observed {
				full = "observed, would have refused"
			}
			names.add(x.Part, x.Name, strings.TrimSuffix(
				fmt.Sprintf("%s %s; the last: %s", full, times(x.Fulls), x.LastFull), "; the last: "))
		}
		if text := x.waits().text(); text != "" {
			names.add(x.Part, x.Name, text)
		}
	}
	for _, x := range r.Quotas {
		names.usage(x, "tenant", x.Labels)
	}
	if text := r.CHeap.runtimeText(); text != "" {
		names.add(cHeapKey, cHeapKey, text)
	}
	for _, x := range r.Arenas {
		names.usage(x, "scope", x.Scopes)
		names.usage(x, "label", x.Labels)
		for _, in := range x.Inner {
			if in.Kind == "cache" {
				names.add(x.Part, x.Name,
					fmt.Sprintf("cache of %s in scope %q used %s of %s in %d values; %s, evicted %d, refused %d",
						in.Of, in.Scope, SizeText(in.Used), SizeText(in.Size), in.Live,
						hitText(in.CacheCounts), in.Evictions, in.Failed))
				continue
			}
			names.add(x.Part, x.Name, fmt.Sprintf("%s in scope %q used %s in %d blocks, peak %s, of %s", in.Kind,
				in.Scope, SizeText(in.Used), in.Live, SizeText(in.Peak), SizeText(in.Size)))
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "budget %s: %s\n", r.Name, SizeText(r.Size))
	fmt.Fprintf(&out, "  memory: %s reserved, %s committed, %s resident\n", SizeText(r.Reserved), SizeText(r.Committed),
		SizeText(r.Resident))
	if r.Cost != (Cost{}) { // zero in a report of an earlier version
		cost := "cost"
		if len(r.GoHeap.Moves) != 0 { // the Go heap's limit may be another one now
			cost = "cost as of Open"
		}
		fmt.Fprintf(&out, "  %s: %s\n", cost, r.Cost)
		out.WriteString(r.goHeapText())
	}
	out.WriteString(r.Outside.text())
	width := 10
	for _, line := range bars.list {
		width = max(width, len(line.who()))
	}
	for _, line := range bars.list {
		fmt.Fprintf(&out, "  %-*s %s\n", width, line.who(), line.text)
	}
	for _, line := range names.list {
		fmt.Fprintf(&out, "  %s: %s\n", line.who(), line.text)
	}
	for _, x := range r.Proxies {
		fmt.Fprintf(&out, "  proxy %q: %d live in %s, peak %s; allocated %d, refused %d\n",
			x.Name, x.Live, SizeText(x.Asked), SizeText(x.Peak), x.Total, x.Failed)
	}
	fmt.Fprintf(&out, "  leaks: %s\n", r.Leaks.text())
	return out.String()
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// runtimeText returns the use of the part for Go's runtime, and the requests larger than the heap,
// or "" if there are neither.
func (c CHeapReport) runtimeText() string {
	var list []string
	if c.RuntimePeak != 0 {
		list = append(list, fmt.Sprintf("for Go's runtime used %s, peak %s, of %s", SizeText(c.RuntimeUsed),
			SizeText(c.RuntimePeak), SizeText(c.Runtime)))
	}
	if c.Larges != 0 {
		list = append(list, fmt.Sprintf("refused %s: larger than the heap; the last of %d bytes",
			times(int(c.Larges)), c.LastLarge))
	}
	return strings.Join(list, "; ")
}

// hitText returns the share of hits in words.
func hitText(c stack.CacheCounts) string {
	if c.Hits+c.Misses == 0 {
		return "no reads"
	}
	return fmt.Sprintf("%.1f%% hits of %d reads", 100*float64(c.Hits)/float64(c.Hits+c.Misses), c.Hits+c.Misses)
}

// goHeapText returns lines about the Go heap: its limit, if that isn't a number of the plan, its
// collections, and the moves of the limit.
func (r Report) goHeapText() string {
	var out strings.Builder
	switch h := r.GoHeap; {
	case h.Limit == 0 && r.Plan.GoHeap == 0:
		out.WriteString("  Go heap: no limit (the plan has no go_heap)\n")
	case h.Reserve != 0:
		fmt.Fprintf(&out, "  Go heap: limit %s, %s; %s stay in reserve\n", SizeText(h.Limit), h.From,
			SizeText(h.Reserve))
	case h.From != "":
		fmt.Fprintf(&out, "  Go heap: limit %s, %s\n", SizeText(h.Limit), h.From)
	}
	if text := r.GoHeap.pace(); text != "" {
		fmt.Fprintf(&out, "  Go heap: %s\n", text)
	}
	for _, line := range r.GoHeap.Moves {
		fmt.Fprintf(&out, "  Go heap: %s\n", line)
	}
	return out.String()
}

// pace returns how often the collector ran, or "" if it didn't.
func (h GoHeap) pace() string {
	if h.Halving == 0 {
		return ""
	}
	return fmt.Sprintf("the collector ran %s since Open; a go_heap of %s would halve that", times(int(h.Collections)),
		SizeText(h.Halving))
}

// text returns a line, or "" for a report of an earlier version.
func (o Outside) text() string {
	switch {
	case o.Unknown != "":
		return fmt.Sprintf("  outside: not known: %s\n", o.Unknown)
	case o.Process == 0:
		return ""
	}
	text := fmt.Sprintf("  outside: %s of the process's %s resident", SizeText(o.Bytes), SizeText(o.Process))
	if o.Error != 0 {
		text += fmt.Sprintf(", at most %s of it Go's", SizeText(o.Error))
	}
	if len(o.Largest) != 0 {
		text += "; the largest: " + strings.Join(o.Largest, ", ")
	}
	return text + "\n"
}

const (
	reportBar   = 32 // cells
	reportNames = 8
)

// reportLines are lines of a report. Siblings with the same text share a line.
type reportLines struct {
	list []reportLine
	said map[[2]string]int // index in list, by part and text
}

type reportLine struct {
	arena, text string
	more        int // other arenas with the same text
}

func (l reportLine) who() string {
	if l.more == 0 {
		return l.arena
	}
	return fmt.Sprintf("%s and %d more", l.arena, l.more)
}

func (l *reportLines) add(part, arena, text string) {
	key := [2]string{part, text}
	if i, said := l.said[key]; said {
		l.list[i].more++
		return
	}
	if l.said == nil {
		l.said = map[[2]string]int{}
	}
	l.said[key] = len(l.list)
	l.list = append(l.list, reportLine{arena, text, 0})
}

func (l *reportLines) usage(x ArenaReport, what string, list []scope.Usage) {
	list = slices.DeleteFunc(slices.Clone(list), func(u scope.Usage) bool { return u.Bytes|u.Peak == 0 })
	slices.SortStableFunc(list, func(a, b scope.Usage) int { return cmp.Compare(b.Peak, a.Peak) })
	for i, u := range list {
		if i == reportNames {
			l.add(x.Part, x.Name, fmt.Sprintf("%d more of %ss", len(list)-i, what))
			return
		}
		objects := ""
		if x.Counted {
			objects = " in " + plural(int64(u.Objects), "object")
		}
		l.add(x.Part, x.Name, fmt.Sprintf("%s %q used %s%s, peak %s", what, u.Name, SizeText(u.Bytes), objects,
			SizeText(u.Peak)))
	}
}

func (x ArenaReport) line() string {
	return fmt.Sprintf("%s used %10s  peak %10s  of %10s", bar(x.Used, x.Peak, x.Size), SizeText(x.Used),
		SizeText(x.Peak), SizeText(x.Size))
}

// bar draws used cells (#), cells used at the peak (+) and cells never used (.). A use beyond the
// size, which the Go heap may have, fills the bar.
func bar(used, peak, size uint64) string {
	cells := func(n uint64) int {
		if size == 0 || n == 0 {
			return 0
		}
		return int(math.Ceil(float64(min(n, size)) / float64(size) * reportBar))
	}
	a, b := cells(used), cells(max(peak, used))
	return "[" + strings.Repeat("#", a) + strings.Repeat("+", b-a) + strings.Repeat(".", reportBar-b) + "]"
}

// LogValue returns the report as a group of attributes with its JSON keys; sizes are numbers of
// bytes. Each arena is a group under its name: "level", "match.3", "frame.0", "scratch.0.1". The
// group leaves out the plan, the sites, and arenas that were never used.
func (r Report) LogValue() slog.Value {
	r.Arenas = slices.DeleteFunc(slices.Clone(r.Arenas), func(a ArenaReport) bool {
		return a.Peak == 0 && a.Finalizers == 0
	})
	return slog.GroupValue(append([]slog.Attr{slog.String("name", r.Name)}, logged(reflect.ValueOf(r))...)...)
}

// LogValue returns the report as a group of attributes, with the use of scopes and labels by name.
func (r ArenaReport) LogValue() slog.Value { return slog.GroupValue(logged(reflect.ValueOf(r))...) }

// unlogged are the keys that a log leaves out. The name is the group's key, and includes part and
// index.
var unlogged = []string{"name", "part", "index", "kind", "plan", "sites"}

func logged(v reflect.Value) (attrs []slog.Attr) {
	for i := range v.NumField() {
		field := v.Field(i)
		key, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		list := field.Kind() == reflect.Slice
		switch {
		case slices.Contains(unlogged, key) || !v.Type().Field(i).IsExported():
		case option == "omitempty" && (field.IsZero() || list && field.Len() == 0):
		case field.Kind() == reflect.Struct && field.IsZero() && option == "omitzero":
		case field.Kind() == reflect.Struct:
			attrs = append(attrs, slog.Attr{Key: key, Value: slog.GroupValue(logged(field)...)})
		case list && field.Type().Elem().Kind() == reflect.Struct:
			var named []slog.Attr
			for k := range field.Len() {
				name := fmt.Sprint(k) // of a list without names
				if v := field.Index(k).FieldByName("Name"); v.IsValid() {
					name = cmp.Or(strings.ReplaceAll(v.String(), " ", "."), `""`)
				}
				named = append(named, slog.Attr{Key: name, Value: slog.GroupValue(logged(field.Index(k))...)})
			}
			attrs = append(attrs, slog.Attr{Key: key, Value: slog.GroupValue(named...)})
		default:
			attrs = append(attrs, slog.Any(key, field.Interface()))
		}
	}
	return attrs
}
