package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// Report draws the memory of a budget. The whole budget is at the top, to scale. Below, each part
// has a bar, whose whole length is the part's planned size, filled with the bytes used now. The bar
// of a single arena also shows the peak, in a paler colour. Each slot, buffer of the frame and
// scratch arena has a column; if they are many, a column is the fullest of several. Below a part
// are its largest labels and scopes: eight of each, and the sum of the others. The labels, or else
// the scopes, have the colours of the bar. If the plan expects a size of a label, Report shows that
// size, and adds a line for a peak above the tolerance. At the end are the Go heap, C's malloc,
// proxies and errors.
//
// Sizes are the report's, as [budget.SizeText] writes them. Browsers show the exact bytes at the
// pointer. Metrics are those of [budget.Figures]. If a part has several arenas, "now" and "at most"
// are the fullest arena's. Another column, and the bar, then show the bytes of all arenas together.
// Report also draws a report from another program, as far as the report makes sense.
func Report(w io.Writer, r budget.Report) error {
	d := reportDrawing{lines: reportLines(r)}
	d.measure()
	title := "budget " + clip(r.Name, nameLetters) + ": " + sizeText(r.Size)
	d.text("title", margin, 320, title)
	d.text("small size", width-margin, 320, fmt.Sprintf("%s resident", sizeText(r.Resident)))
	d.whole(r)
	d.y += 360
	for i, text := range cellNames[d.first:] {
		d.text("small size", d.ends[d.first+i], d.y, text)
	}
	var parts []string
	for _, l := range d.lines {
		if d.line(l); l.kind == partLine {
			parts = append(parts, l.detail)
		}
	}
	return d.writeTo(w, title, "Memory of each part: "+strings.Join(parts, "; "), d.y+100)
}

// nameLetters is the number of letters of a name that are shown at most: as many as a plan allows.
const nameLetters = 31

// reportDrawing is the picture of a report. Its columns fit their widest text.
type reportDrawing struct {
	picture
	lines []reportLine
	left  px // of the bars
	right px
	ends  [len(cellNames)]px // of the columns of amounts
	first int                // the first column shown
	y     px                 // of the last line
}

func (d *reportDrawing) measure() {
	names, sizes := 8, cellWidths(d.lines)
	for _, l := range d.lines {
		if l.barred() {
			names = max(names, letters(l.shown()))
		}
	}
	d.first, d.right = firstCell(d.lines), width-margin
	for i := len(sizes) - 1; i >= d.first; i-- {
		d.ends[i] = d.right
		d.right -= letter*px(sizes[i]) + 200
	}
	d.left = min(margin+220+letter*px(names)+240, d.right-600)
}

// whole draws the budget to scale: its parts side by side.
func (d *reportDrawing) whole(r budget.Report) {
	const top, height px = 760, 400
	x := margin
	for _, k := range []struct{ class, text string }{{"region", "used now"}, {"region pale", "used at most"},
		{"ground", "planned"}, {"other pale", "tables, edges, guards"}} {
		d.swatch(k.class, x, 600)
		d.text("small", x+180, 600, k.text)
		x += 180 + long(k.text) + 200
	}
	total, offset := uint64(0), uint64(0)
	parts := reportParts(r)
	for _, p := range parts {
		total += p.size
	}
	bar := scale{margin, width - margin, max(total, r.Size)}
	for _, p := range parts {
		from, to := bar.x(offset), bar.x(offset+p.size)
		arenas := p.Arenas
		if len(arenas) > 1 && to-from < 30*px(len(arenas)) { // too narrow for separate bars
			arenas = []budget.ArenaReport{{Used: p.now, Size: p.size}}
		}
		for _, a := range arenas {
			d.filled(p.class, scale{bar.x(offset) + 5, bar.x(offset+a.Size) - 5, a.Size}, top, height, a.Used, a.Peak,
				nil)
			offset += a.Size
		}
		if to-from > long(p.Name) {
			d.text("small middle", (from+to)/2, top+height+170, p.Name)
		}
	}
	d.rect("other pale", bar.x(offset)+5, top, bar.right-bar.x(offset)-5, height)
	d.y = top + height + 170
}

// filled draws a bar: the planned size, the peak, and the bytes used now, by holder if there is a
// stack.
func (d *reportDrawing) filled(class string, bar scale, y, height px, now, peak uint64, stack []stacked) {
	d.rect("ground", bar.left, y, bar.right-bar.left, height)
	d.rect(class+" pale", bar.left, y, bar.reach(peak, 10), height)
	if len(stack) == 0 {
		d.rect(class, bar.left, y, bar.reach(now, 10), height)
	}
	offset := uint64(0)
	for _, s := range stack {
		from := bar.x(offset)
		offset += s.size
		d.rect(s.class, from, y, bar.x(offset)-from, height)
	}
}

func (d *reportDrawing) line(l reportLine) {
	bar := scale{d.left, d.right, l.of}
	now, peak := l.bar()
	switch l.kind {
	case headLine:
		d.y += 360
		d.path("grid", "M%s %s H%s", margin, d.y-230, width-margin)
		d.text("head", margin, d.y, l.name)
	case partLine, sumLine:
		d.y += 300
		d.swatch(l.class, margin, d.y)
		d.text("head", margin+220, d.y, fitting(l.shown(), d.left-margin-280))
		if l.kind == partLine {
			d.filled(l.class, bar, d.y-140, 180, now, peak, l.stack)
			d.told("tip", bar.left, d.y-140, bar.right-bar.left, 180, l.detail)
		}
		d.sizes("size", l)
		d.fence(l)
	case nameLine, chunkLine:
		d.y += 200
		if l.kind == nameLine {
			d.swatch(l.class, margin+220, d.y)
		}
		d.text("small", margin+400, d.y, fitting(l.shown(), d.left-margin-460))
		d.filled(l.class, bar, d.y-90, 90, now, peak, nil)
		d.told("tip", bar.left, d.y-90, bar.right-bar.left, 90, l.detail)
		d.sizes("small size", l)
	default:
		d.note(l)
	}
}

// note writes a text below the bar of its part, or on its own.
func (d *reportDrawing) note(l reportLine) {
	class, x := "small", margin+220
	if l.kind == badLine {
		class += " wrong"
	}
	if l.class != "" {
		x = d.left
	}
	for i, text := range wrapped(l.name, int((width-margin-x)/small), 4) {
		d.y += 180
		if i == 0 {
			d.y += 30
		}
		d.text(class, x, d.y, text)
	}
}

func (d *reportDrawing) sizes(class string, l reportLine) {
	for i, c := range l.cells {
		if c.text != "" {
			d.text(class, d.ends[i], d.y, c.text)
		}
	}
}

// fence draws a column for each arena of a part, or for the fullest of several neighbours.
func (d *reportDrawing) fence(l reportLine) {
	if len(l.arenas) < 2 {
		return
	}
	const height, least px = 220, 30
	d.y += 300
	each := (len(l.arenas)-1)/int((d.right-d.left)/least) + 1
	columns := slices.Collect(slices.Chunk(l.arenas, each))
	at, bottom := scale{d.left, d.right, uint64(len(columns))}, d.y-140+height
	for i, arenas := range columns {
		left, right := at.x(uint64(i)), at.x(uint64(i)+1)-10
		d.rect("ground", left, bottom-height, right-left, height)
		var now, peak px
		for _, a := range arenas {
			full := scale{0, height, a.Size}
			now, peak = max(now, full.reach(a.Used, 10)), max(peak, full.reach(a.Peak, 10))
		}
		d.rect(l.class+" pale", left, bottom-peak, right-left, peak)
		d.rect(l.class, left, bottom-now, right-left, now)
		if each == 1 {
			d.told("tip", left, bottom-height, right-left, height, arenaLine(arenas[0].Name, arenas[0].Used,
				arenas[0].Peak, arenas[0].Size).detail)
		}
	}
}
