package budget

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// String draws the plan as text of at most 80 columns, bottom first; notes and warnings may be
// longer. The tables and each part have a line with the size ([SizeText]) and a bar that shows the
// place in the whole; a part's line also has the key or count. Guards, and the padding up to 64
// KiB, have lines of their own. Apart from rounding, all sizes, except those of the Go heap, the C
// heap and quotas, add up to the whole: the addresses of [Plan.Cost], which are a Report's Size.
// The warnings of [Plan.Check] come last. For a plan with errors String returns only its name and
// the number of errors.
func (p Plan) String() string {
	if errors := len(p.faults()); errors != 0 {
		return fmt.Sprintf("plan %s: %s (Check names them)\n", jsonfile.Quote(p.Name), plural(errors, "error"))
	}
	rest := p.rest()
	p = p.resolved()
	l, refused := p.layout()
	d := planDrawing{total: l.size}
	from := l.bottom + p.guard()
	d.add("tables", l.bottom, 0, from)
	for i, part := range p.sized() {
		name, texts := p.partText(i, part.kind, i == rest)
		sum := p.sum(part)
		d.add(name, sum.bytes, from, from+sum.whole, texts...)
		from += sum.whole
	}
	if p.guard() != 0 {
		d.add("guards", l.sum.guards+p.guard(), 0, 0, planEach(int(l.sum.arenas)+1, "guard", p.guard()))
	}
	if edges := l.sum.whole - l.sum.bytes - l.sum.guards; edges != 0 {
		d.add("edges", edges, 0, 0, "up to multiples of "+SizeText(planEdge))
	}
	if free := d.total - from; free != 0 {
		d.add("unplanned", free, from, d.total, "size")
	}
	switch p.GoHeap {
	case 0:
	case Rest:
		d.add("Go heap", p.goShare(), 0, 0, noted([]planNote{{true, "at least, outside it: the rest"},
			{p.GoHeapMax != 0, "at most " + SizeText(p.GoHeapMax)}})...)
	default:
		d.add("Go heap", p.GoHeap, 0, 0, "outside it")
	}
	if p.CHeap.Size != 0 {
		d.add("C heap", p.CHeap.Size, 0, 0, p.CHeap.texts()...)
	}
	for _, q := range p.Quotas {
		d.add(q.Name, q.Size, 0, 0, q.texts()...)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "plan %s: %s\n%s", p.Name, SizeText(d.total), d.text())
	planItems(&out, "  limits of each arena: ", ", ", p.Limits.texts())
	planItems(&out, "  pages: ", ", ", p.Pages.texts(p.Base))
	if refused == nil {
		planItems(&out, "  cost: ", ", ", strings.Split(l.cost().String(), ", "))
		when := "when touched"
		if p.Pages.Prefault.asks() || p.Pages.Lock.asks() {
			when = "from Open on"
		}
		fmt.Fprintf(&out, "  resident %s\n", when)
	}
	for _, warning := range p.warnings() {
		out.WriteString("  warning: " + warning.key + ": " + warning.text + "\n")
	}
	return out.String()
}

// partText returns the name of the i-th part, and its description in pieces.
func (p Plan) partText(i int, kind uint64, rest bool) (name string, texts []string) {
	switch kind {
	case arena_c.KindFrame:
		return "frame", []string{planEach(p.Frame.Buffers, "buffer", p.Frame.Size)}
	case arena_c.KindScratch:
		return "scratch", []string{plural(p.Scratch.Workers, "worker") + " x " +
			planEach(p.Scratch.Each, "arena", p.Scratch.Size)}
	}
	r := p.Regions[i]
	return r.Name, noted([]planNote{{true, fmt.Sprintf("regions[%d]", i)},
		{r.On != "", "on " + r.On}, {rest, "the rest"},
		{r.Slots != 0, planEach(r.Slots, "slot", r.Size)},
		{r.Limits != (Limits{}), strings.Join(r.Limits.texts(), ", ")}, {r.State, "state"}, {r.Track, "tracked"},
		{r.Trim == TrimEmpty, "trimmed when emptied"}, r.Warn.note(),
		{r.Waiters != 0, plural(r.Waiters, "waiter")}, {r.Note != "", jsonfile.Echo(r.Note)}})
}

func (c CHeapPlan) texts() []string {
	return noted([]planNote{{true, "outside it"}, {c.Reserve != 0, "reserve " + SizeText(c.Reserve)},
		{c.Runtime != 0, "for Go's runtime " + SizeText(c.Runtime)},
		{c.Trim != 0, "trimmed after " + c.Trim.String()}, c.Warn.note(),
		{c.Profile == NoProfile, "no profile"},
		{c.Profile != 0 && c.Profile != NoProfile, "a sample each " + SizeText(c.Profile)}})
}

func (q QuotaPlan) texts() []string {
	where := "quota, outside it"
	if q.In != "" {
		where = "quota in " + q.In
	}
	return noted([]planNote{{true, where}, {q.Tenants != 0, planEach(q.Tenants, "tenant", q.tenant())},
		{true, plural(q.waiters(), "waiter")}, {q.Piece != 0, "pieces of " + SizeText(q.Piece)}, q.Warn.note(),
		{q.Observe, "only observes"}})
}

func (w Percent) note() planNote { return planNote{w != 0, fmt.Sprintf("warns at %d%%", w)} }

// planNote is a text about a setting, for a plan that has the setting.
type planNote struct {
	has  bool
	text string
}

func noted(notes []planNote) (texts []string) {
	for _, n := range notes {
		if n.has {
			texts = append(texts, n.text)
		}
	}
	return texts
}

func (l Limits) texts() (texts []string) {
	for _, limit := range []keyed[int]{{"scope", l.Scopes}, {"pool", l.Pools}, {"owned value", l.Owned},
		{"label", l.Labels}} {
		if limit.value != 0 {
			texts = append(texts, plural(limit.value, limit.key))
		}
	}
	return texts
}

func (p Pages) texts(base uint64) (texts []string) {
	for _, page := range p.byKey() {
		texts = append(texts, page.key+" "+string(*page.value))
	}
	if base != 0 {
		texts[len(texts)-1] += " at " + addressText(base)
	}
	return texts
}

type planDrawing struct {
	total uint64 // of the whole
	lines []planLine
}

type planLine struct {
	name, size string
	begin, end uint64 // the place in the whole; no bar if they are equal
	texts      []string
}

// planWidth is the most columns of a line, but for a note or a warning, and planBar the most cells
// of a bar.
const (
	planWidth = 80
	planBar   = 20
)

// add adds a line with a bar from begin to end of the whole.
func (d *planDrawing) add(name string, size, begin, end uint64, texts ...string) {
	d.lines = append(d.lines, planLine{name, SizeText(size), begin, end, texts})
}

func (d *planDrawing) text() string {
	names, sizes := 0, 0
	for _, line := range d.lines {
		names, sizes = max(names, len(line.name)), max(sizes, len(line.size))
	}
	var out strings.Builder
	for _, line := range d.lines {
		head := fmt.Sprintf("  %-*s  %*s  ", names, line.name, sizes, line.size)
		if line.begin != line.end {
			head += d.bar(line, min(planBar, planWidth-len(head)-2)) + "  "
		}
		planItems(&out, head, "  ", line.texts)
	}
	return out.String()
}

// bar returns a bar of a line's place in the whole, at least one character wide.
func (d *planDrawing) bar(line planLine, width int) string {
	cells := func(offset uint64) int { return int((offset*uint64(width) + d.total/2) / d.total) }
	from := min(cells(line.begin), width-1)
	to := max(cells(line.end), from+1)
	return "[" + strings.Repeat(".", from) + strings.Repeat("#", to-from) + strings.Repeat(".", width-to) + "]"
}

// planItems writes items after head, with ", " or two spaces between them. An item that doesn't fit
// into planWidth begins a line of its own.
func planItems(out *strings.Builder, head, separator string, items []string) {
	line, gap := head, ""
	for i, item := range items {
		if i < len(items)-1 {
			item += strings.TrimSpace(separator)
		}
		if utf8.RuneCountInString(line+gap+item) > planWidth {
			fmt.Fprintln(out, strings.TrimRight(line, " "))
			line, gap = "    ", ""
		}
		line += gap + item
		gap = strings.TrimPrefix(separator, ",")
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}

// planEach returns a count and a size: "2 buffers of 64KiB".
func planEach(count int, thing string, size uint64) string {
	return plural(count, thing) + " of " + SizeText(size)
}
