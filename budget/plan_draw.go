package budget

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// String draws the plan as text, bottom first: a line for each part with its size ([SizeText]), its
// place in the whole, and its key or count. Guards, and rounding up to 64 KiB, have lines of their
// own, so the sizes of all lines but those of the Go heap and the C heap add up to the whole.
// Check's warnings come last. For an invalid plan it returns the number of its errors.
func (p Plan) String() string {
	if faults := len(p.faults()); faults != 0 {
		return fmt.Sprintf("plan %s: %s (Check names them)\n", jsonfile.Quote(p.Name), plural(faults, "fault"))
	}
	rest := p.rest()
	p = p.resolved()
	l, refused := p.layout()
	d := planDrawing{total: max(l.sum.whole, planRound(p.Size))}
	from := uint64(0)
	for i, part := range p.sized() {
		name, text := p.partText(i, part.kind, i == rest)
		sum := p.sum(part)
		d.mapped(name, sum.bytes, from, from+sum.whole, text)
		from += sum.whole
	}
	if l.sum.guards != 0 {
		d.add("guards", l.sum.guards, planEach(int(l.sum.arenas), "guard", p.guard()))
	}
	if edges := l.sum.whole - l.sum.bytes - l.sum.guards; edges != 0 {
		d.add("edges", edges, "up to multiples of "+SizeText(planEdge))
	}
	if free := d.total - l.sum.whole; free != 0 {
		d.mapped("unplanned", free, l.sum.whole, d.total, "size")
	}
	switch p.GoHeap {
	case 0:
	case Rest:
		d.add("Go heap", p.goShare(), "at least, outside it: the rest")
	default:
		d.add("Go heap", p.GoHeap, "beside it")
	}
	if p.CHeap.Size != 0 {
		d.add("C heap", p.CHeap.Size, "beside it"+p.CHeap.text())
	}
	text := fmt.Sprintf("plan %s: %s\n%s  limits of each arena: %s\n  pages: %s\n",
		p.Name, SizeText(d.total), d.text(), p.Limits.text(), p.Pages.text(p.Base))
	if refused == nil {
		text += l.memoryText()
	}
	for _, warning := range p.warnings() {
		text += "  warning: " + warning.key + ": " + warning.text + "\n"
	}
	return text
}

// memoryText describes the plan's cost. Report.Reserved may be larger: the budget takes more
// addresses where they are plentiful.
func (l layout) memoryText() string {
	when := "from Open on"
	if pages := l.plan.Pages; !pages.Prefault.asks() && !pages.Lock.asks() {
		when = "when touched"
	}
	return fmt.Sprintf("  cost: %s\n    with tables of %s; resident %s\n", l.cost(), SizeText(l.bottom), when)
}

// partText returns the name of the i-th part, and a description.
func (p Plan) partText(i int, kind uint64, rest bool) (name, text string) {
	switch kind {
	case arena_c.KindFrame:
		return "frame", planEach(p.Frame.Buffers, "buffer", p.Frame.Size)
	case arena_c.KindScratch:
		return "scratch", plural(p.Scratch.Workers, "worker") + " x " + planEach(p.Scratch.Each, "arena", p.Scratch.Size)
	}
	r := p.Regions[i]
	text = fmt.Sprintf("regions[%d]", i)
	if rest {
		text += "  the rest"
	}
	if r.Slots != 0 {
		text += "  " + planEach(r.Slots, "slot", r.Size)
	}
	if r.Limits != (Limits{}) {
		text += "  " + r.Limits.text()
	}
	if r.State {
		text += "  state"
	}
	if r.Track {
		text += "  tracked"
	}
	if r.Trim == TrimEmpty {
		text += "  trimmed when emptied"
	}
	text += r.Warn.text()
	if r.Note != "" {
		text += "  " + jsonfile.Echo(r.Note)
	}
	return r.Name, text
}

func (c CHeapPlan) text() (text string) {
	if c.Reserve != 0 {
		text += "  reserve " + SizeText(c.Reserve)
	}
	if c.Runtime != 0 {
		text += "  for Go's runtime " + SizeText(c.Runtime)
	}
	if c.Trim != 0 {
		text += "  trimmed after " + c.Trim.String()
	}
	return text + c.Warn.text()
}

func (w Percent) text() string {
	if w == 0 {
		return ""
	}
	return fmt.Sprintf("  warns at %d%%", w)
}

func (l Limits) text() string {
	var words []string
	for _, limit := range []keyed[int]{{"scope", l.Scopes}, {"pool", l.Pools}, {"owned value", l.Owned}, {"label", l.Labels}} {
		if limit.value != 0 {
			words = append(words, plural(limit.value, limit.key))
		}
	}
	return strings.Join(words, ", ")
}

func (p Pages) text(base uint64) string {
	var words []string
	for _, page := range p.byKey() {
		words = append(words, page.key+" "+string(*page.value))
	}
	line := strings.Join(words, ", ")
	if base != 0 {
		line += " at " + addressText(base)
	}
	return line
}

type planDrawing struct {
	total uint64 // of the whole
	lines []planLine
}

type planLine struct{ name, size, text string }

func (d *planDrawing) add(name string, size uint64, text string) {
	d.lines = append(d.lines, planLine{name, SizeText(size), text})
}

// mapped adds a line with a bar from begin to end of the whole, at least one character wide.
func (d *planDrawing) mapped(name string, size, begin, end uint64, text string) {
	const width = 32
	cells := func(offset uint64) int { return int((offset*width + d.total/2) / d.total) }
	from := min(cells(begin), width-1)
	to := max(cells(end), from+1)
	bar := strings.Repeat(".", from) + strings.Repeat("#", to-from) + strings.Repeat(".", width-to)
	d.add(name, size, "["+bar+"]  "+text)
}

func (d *planDrawing) text() string {
	names, sizes := 0, 0
	for _, line := range d.lines {
		names, sizes = max(names, len(line.name)), max(sizes, len(line.size))
	}
	var out strings.Builder
	for _, line := range d.lines {
		fmt.Fprintf(&out, "  %-*s  %*s  %s\n", names, line.name, sizes, line.size, line.text)
	}
	return out.String()
}

// planEach returns a count and a size: "2 buffers of 64KiB".
func planEach(count int, thing string, size uint64) string {
	return plural(count, thing) + " of " + SizeText(size)
}
