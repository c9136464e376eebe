package budget

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// String draws the plan for people, bottom first: a line for each part with its bytes, where it lies in the whole, and
// the key that says so. What guards and rounding up to 64 KiB take has lines of its own, so that the sizes above the
// Go heap's sum up exactly. A faulty plan is drawn as far as it can be.
func (p Plan) String() string {
	faults, rest := len(p.faults()), p.rest()
	if faults == 0 {
		p = p.resolved()
	}
	d := planDrawing{total: max(p.total(), planRound(p.Size)), guard: p.guard()}
	for i, r := range p.Regions {
		d.region(i, r, i == rest)
	}
	if p.Frame != (Frame{}) {
		d.part("frame", planCount(p.Frame.Buffers), p.Frame.Size, planEach(p.Frame.Buffers, "buffer", p.Frame.Size))
	}
	if p.Pads != (Pads{}) {
		d.part("pads", p.Pads.rows(), p.Pads.Size,
			planMany(p.Pads.Workers, "worker")+" x "+planEach(planPadsEach, "pad", p.Pads.Size))
	}
	d.slack(p)
	if p.GoHeap != 0 {
		d.add("Go heap", planDraw(p.GoHeap), "beside it")
	}
	limits := p.Limits.orDefault()
	head := fmt.Sprintf("plan %s: %s\n", planNameDrawn(p.Name), planDraw(d.total))
	tail := fmt.Sprintf("  limits of each arena: %d scopes, %d pools, %d held values, %d accounts\n  pages: %s\n",
		limits.Scopes, limits.Pools, limits.Held, limits.Accounts, p.Pages.orDefault(p.Base).text(p.Base))
	if faults != 0 {
		tail += fmt.Sprintf("  faults: %d (Check names them)\n", faults)
	}
	return head + d.text() + tail
}

// text is the demands in a line.
func (p Pages) text(base uint64) string {
	var words []string
	for _, page := range p.list() {
		words = append(words, page.key+" "+page.demand.String())
	}
	line := strings.Join(words, ", ")
	if base != 0 {
		line += " at " + addressText(base)
	}
	return line
}

// planDrawing is the lines of a plan, and how far up it they have come.
type planDrawing struct {
	total uint64 // of the whole
	guard uint64 // behind each arena
	at    uint64 // where the next part begins
	exact uint64 // what the parts so far have, without rounding
	lines []planLine
}

type planLine struct{ name, size, text string }

func (d *planDrawing) add(name, size, text string) {
	d.lines = append(d.lines, planLine{name, size, text})
}

func (d *planDrawing) region(index int, r Region, rest bool) {
	words := []string{fmt.Sprintf("regions[%d]", index)}
	if rest {
		words = append(words, "the rest")
	}
	if r.Slots != 0 {
		words = append(words, planEach(r.Slots, "slot", r.Size))
	}
	if r.Note != "" {
		words = append(words, planEcho(r.Note))
	}
	if text := strings.Join(words, "  "); r.Size == Rest {
		d.add(planNameDrawn(r.Name), "rest", text)
	} else {
		d.part(planNameDrawn(r.Name), r.rows(), r.Size, text)
	}
}

// part draws equal arenas that lie one behind the other.
func (d *planDrawing) part(name string, rows, each uint64, text string) {
	size := planTimes(rows, each)
	d.exact = planAdd(d.exact, size)
	d.mapped(name, size, planTimes(rows, planAdd(planRound(each), d.guard)), text)
}

// mapped adds a line with a bar: the part's place in the whole, at least one character of it.
func (d *planDrawing) mapped(name string, size, span uint64, text string) {
	const width = 32
	end := min(planAdd(d.at, span), d.total)
	from, to := 0, 0
	if span != 0 {
		from = min(d.cells(d.at, width), width-1)
		to = max(d.cells(end, width), from+1)
	}
	d.at = end
	bar := strings.Repeat(".", from) + strings.Repeat("#", to-from) + strings.Repeat(".", width-to)
	d.add(name, planDraw(size), strings.TrimRight("["+bar+"]  "+text, " "))
}

// cells is offset * width / total to the nearest. The whole is not empty.
func (d *planDrawing) cells(offset, width uint64) int {
	high, low := bits.Mul64(offset, width)
	low, carry := bits.Add64(low, d.total/2, 0)
	cells, _ := bits.Div64(high+carry, low, d.total)
	return int(cells)
}

// slack draws what belongs to no part.
func (d *planDrawing) slack(p Plan) {
	parts := p.parts()
	if parts.guards != 0 {
		d.add("guards", planDraw(parts.guards), planEach(int(min(p.rows(), math.MaxInt)), "guard", d.guard))
	}
	if edges := parts.total() - min(parts.total(), planAdd(d.exact, parts.guards)); edges != 0 {
		d.add("edges", planDraw(edges), "up to multiples of "+planDraw(planEdge))
	}
	if free := d.total - parts.total(); free != 0 {
		d.mapped("unplanned", free, free, "size")
	}
}

// text writes the lines in columns.
func (d *planDrawing) text() string {
	names, sizes := 0, 0
	for _, line := range d.lines {
		names, sizes = max(names, utf8.RuneCountInString(line.name)), max(sizes, len(planUnits(line.size)))
	}
	var out strings.Builder
	for _, line := range d.lines {
		fmt.Fprintf(&out, "  %-*s  %*s  %s\n", names, line.name, sizes, planUnits(line.size), line.text)
	}
	return out.String()
}

// planDraw writes a size for people: "4 MiB", "65537 B".
func planDraw(size uint64) string {
	if size == math.MaxUint64 {
		return "too much"
	}
	text := sizeText(size)
	digits := strings.TrimRight(text, "TGMKiB")
	if unit := text[len(digits):]; unit != "" {
		return digits + " " + unit
	}
	return digits + " B"
}

// planUnits fills a size up so that digits stand below digits.
func planUnits(size string) string {
	if strings.HasSuffix(size, " B") {
		return size + "  "
	}
	return size
}

func planMany(count int, thing string) string {
	if count != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", count, thing)
}

// planEach is so many things of a size each.
func planEach(count int, thing string, size uint64) string {
	return planMany(count, thing) + " of " + planDraw(size)
}

// planNameDrawn quotes a name that isn't one.
func planNameDrawn(name string) string {
	var f planFaults
	if f.name("", name); f != nil {
		return shortQuote(name)
	}
	return name
}
