package budget

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/upfront-mem/upfront/arena_c"
)

// String draws the plan for people, bottom first: a line for each part with its bytes, where it lies in the whole, and
// the key that says so. What guards and rounding up to 64 KiB take has lines of its own, so that the sizes above the
// Go heap's sum up exactly. A faulty plan is drawn as far as it can be.
func (p Plan) String() string {
	faults, rest := len(p.faults()), p.rest()
	if faults == 0 {
		p = p.resolved()
	}
	d := planDrawing{plan: p, parts: p.sized()}
	sum := p.sum(d.parts...)
	d.total = max(sum.Whole, planRound(p.Size))
	for i := range d.parts {
		d.part(i, i == rest)
	}
	d.slack(sum)
	if p.GoHeap != 0 {
		d.add("Go heap", planDraw(p.GoHeap), "beside it")
	}
	limits := p.Limits.orDefault()
	head := fmt.Sprintf("plan %s: %s\n", planNameDrawn(p.Name), planDraw(d.total))
	tail := fmt.Sprintf("  limits of each arena: %d scopes, %d pools, %d owned values, %d labels\n  pages: %s\n",
		limits.Scopes, limits.Pools, limits.Owned, limits.Labels, p.Pages.orDefault(p.Base).text(p.Base))
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

// planDrawing is the lines of a plan.
type planDrawing struct {
	plan  Plan
	parts []sizedPart // of it
	total uint64      // of the whole
	lines []planLine
}

type planLine struct{ name, size, text string }

func (d *planDrawing) add(name, size, text string) {
	d.lines = append(d.lines, planLine{name, size, text})
}

// part draws the i-th part; of a faulty plan there may be none of it.
func (d *planDrawing) part(i int, rest bool) {
	p, part := d.plan, d.parts[i]
	var name, text string
	switch part.kind {
	case arena_c.KindRegion:
		name, text = planNameDrawn(p.Regions[i].Name), planRegionText(i, p.Regions[i], rest)
	case arena_c.KindFrame:
		name, text = "frame", planEach(p.Frame.Buffers, "buffer", p.Frame.Size)
	case arena_c.KindScratch:
		name, text = "scratch", planMany(p.Scratch.Workers, "worker")+" x "+planEach(cmp.Or(p.Scratch.Each, planEachUsual), "arena", p.Scratch.Size)
	}
	if part.kind == arena_c.KindRegion && *part.size == Rest {
		d.add(name, "rest", text)
		return
	}
	sum, begin, end := p.sum(part), uint64(0), uint64(0)
	if sum.Whole != 0 {
		begin, end = p.sum(d.parts[:i]...).Whole, p.sum(d.parts[:i+1]...).Whole
	}
	d.mapped(name, sum.Bytes, begin, end, text)
}

func planRegionText(index int, r RegionPlan, rest bool) string {
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
	return strings.Join(words, "  ")
}

// mapped adds a line with a bar: where in the whole it begins and ends, at least one character of
// it. What ends at 0 is nothing.
func (d *planDrawing) mapped(name string, size, begin, end uint64, text string) {
	const width = 32
	from, to := 0, 0
	if end != 0 {
		from = min(d.cells(begin, width), width-1)
		to = max(d.cells(end, width), from+1)
	}
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
func (d *planDrawing) slack(sum arena_c.MapSum) {
	if sum.Guards != 0 {
		d.add("guards", planDraw(sum.Guards), planEach(int(min(sum.Rows, math.MaxInt)), "guard", d.plan.guard()))
	}
	if sum.Edges != 0 {
		d.add("edges", planDraw(sum.Edges), "up to multiples of "+planDraw(planEdge))
	}
	if free := d.total - sum.Whole; free != 0 {
		d.mapped("unplanned", free, sum.Whole, d.total, "size")
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
