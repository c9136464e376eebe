package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget/timeline"
)

// Positions of the bands and of their contents, and limits.
const (
	timeLeft   px = margin + 1600 // of the plots; names are left of it
	timeRight     = width - margin
	timeTop    px = 860 // of the first band
	bandPitch  px = 860 // from band to band
	peakLine   px = 120 // baseline of the peak's text, in a band
	plotTop    px = 170 // in a band
	plotHeight px = 440
	markHeight px = 50
	bandsMost     = 24
	columns       = int((timeRight - timeLeft) / 10) // a sample is at least a pixel wide
)

// Timeline draws the memory of each part of a plan over time, as a band. The height of a band is
// the part's planned size. The bytes in use have the part's colour, and a text has the highest
// peak. The slots of a region share a band, and so do the frame's buffers, and the scratch arenas.
// Such a band shows the fullest arena in each sample. Marks below a band are loads, rewinds and
// moves, a triangle on a band is a warning, and a red cross is a full error. An expectation
// ([budget.Expected]) is a dashed line in a hatched area, as high as the tolerance. The note of a
// region is above the region's band. A picture has at most 24 bands; the last line counts the other
// parts. If several samples share a column of pixels, the column shows the highest of these
// samples. Timeline draws any data, so it returns only errors of w.
func Timeline(w io.Writer, data timeline.Data) error {
	d := timelineDrawing{folded: fold(data, columns)}
	d.bottom = timeTop + bandPitch*px(len(d.bands))
	d.at = scale{timeLeft, timeRight, d.ticks}
	d.head()
	d.axis()
	for i, b := range d.bands {
		d.band(b, timeTop+bandPitch*px(i))
	}
	height := d.bottom + 300
	if more := d.parts - len(d.bands); more != 0 {
		d.text("small", margin, height, "and "+many(more, "more part"))
		height += 200
	}
	return d.writeTo(w, d.title(), d.description(), height)
}

type timelineDrawing struct {
	picture
	folded
	at     scale
	bottom px
}

func (t *folded) title() string {
	return fmt.Sprintf("timeline of %s: %s ticks", clip(t.name, 60), exact(t.ticks))
}

func (d *timelineDrawing) description() string {
	var parts []string
	for _, b := range d.bands {
		text := fmt.Sprintf("%s: at most %s of %s", b.title(), sizeText(b.peak), sizeText(b.size))
		if b.ever != 0 {
			text += ", marked " + b.ever.String()
		}
		if b.expected != nil {
			text += fmt.Sprintf(", expected %s ±%d %%", sizeText(b.expected.Most()), b.expected.Tolerance)
		}
		if b.note != "" {
			text += ", noted " + clip(b.note, noteLetters)
		}
		parts = append(parts, text)
	}
	return "The memory of each part over time. " + strings.Join(parts, "; ")
}

func (d *timelineDrawing) head() {
	d.text("title", margin, 320, d.title())
	if d.samples != 0 {
		d.text("small size", timeRight, 320, "a column is "+many(d.step, "tick"))
	}
	const y = 590
	x := margin
	say := func(wide px, text string) {
		d.text("small", x+wide, y, text)
		x += wide + small*px(letters(text)) + 240
	}
	d.rect("ground", x, y-110, 120, 120)
	say(180, "planned")
	d.rect("region", x, y-110, 40, 120)
	d.rect("frame", x+40, y-110, 40, 120)
	d.rect("scratch", x+80, y-110, 40, 120)
	say(180, "in use (the fullest of several)")
	d.pointer(x+50, y-20)
	say(160, "its peak")
	d.rect("point", x, y-90, 30, 90)
	say(100, "load")
	d.rect("c6", x, y-90, 30, 90) // not grey like a load's
	say(100, "rewind")
	d.cross(x+50, y-45)
	say(160, "full")
	if slices.ContainsFunc(d.bands, func(b *band) bool { return b.ever&timeline.MarkWarn != 0 }) {
		d.alert(x+50, y-45)
		say(160, "warning")
	}
	if slices.ContainsFunc(d.bands, func(b *band) bool { return b.expected != nil }) {
		d.rect("hatch", x, y-110, 200, 120)
		d.dashes(fmt.Sprintf("M%s %sH%s", x, px(y-50), x+200))
		say(260, "expected")
	}
}

func (d *timelineDrawing) axis() {
	d.text("small size", timeLeft-120, d.bottom+100, "tick")
	each := roundStep(d.ticks, uint64((timeRight-timeLeft)/(small*px(letters(exact(d.ticks)))*3/2+100)))
	for i := range d.ticks/each + 1 {
		tick := i * each
		x := d.at.x(tick)
		d.path("grid", "M%s %sV%s", x, timeTop+plotTop, d.bottom-60)
		class := "small middle"
		if x+small*px(letters(exact(tick)))/2 > timeRight {
			class = "small size"
		}
		if tick == 0 {
			class = "small"
		}
		d.text(class, x, d.bottom+100, exact(tick))
	}
}

// roundStep returns a round step (1, 2 or 5 with zeros); at most `most` of them, and at most 8, fit
// in all.
func roundStep(all, most uint64) uint64 {
	step := uint64(1)
	for i := 0; all/step > min(most, 8); i++ {
		if i%3 == 1 {
			step = step / 2 * 5
		} else {
			step *= 2
		}
	}
	return step
}

func (d *timelineDrawing) band(b *band, y px) {
	top, base := y+plotTop, y+plotTop+plotHeight
	names := timeLeft - margin - 160
	d.swatch(b.class, margin, y+plotTop+110)
	d.text("head", margin+180, y+plotTop+110, fitting(b.title(), names-180))
	d.text("small", margin+180, y+plotTop+290, fitting("of "+sizeText(b.size), names-180))
	d.rect("ground", timeLeft, top, timeRight-timeLeft, plotHeight)
	d.area(b, base)
	d.path("line", "M%s %sH%s", timeLeft, b.level(b.size, base), timeRight)
	d.expected(b, base)
	for _, run := range b.runs(timeline.MarkLoad) {
		d.mark("point", run, base+20)
	}
	for _, run := range b.runs(timeline.MarkRewind | timeline.MarkMoved) {
		d.mark("c6", run, base+20+markHeight+10)
	}
	for _, run := range b.runs(timeline.MarkWarn) {
		d.alert((d.begin(run[0])+d.begin(run[1]))/2, top)
	}
	for _, run := range b.runs(timeline.MarkFull) {
		d.cross((d.begin(run[0])+d.begin(run[1]))/2, top)
	}
	d.peak(b, y)
}

func (d *timelineDrawing) begin(sample int) px { return d.at.x(times(uint64(sample), d.step)) }

// level returns the position of a size in a band whose bottom is at base. A peak may be above the
// planned size, because Reconfigure may have made the size smaller. Larger expectations are at the
// top.
func (b *band) level(size uint64, base px) px {
	return base - scale{0, plotHeight, max(b.size, b.peak)}.reach(size, 10)
}

// area draws the bytes in use: a step for each sample that differs from the one before.
func (d *timelineDrawing) area(b *band, base px) {
	if b.peak == 0 {
		return
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M%s %s", timeLeft, base)
	last := base
	for i, most := range b.most {
		if y := b.level(most, base); y != last {
			fmt.Fprintf(&path, "H%sV%s", d.begin(i), y)
			last = y
		}
	}
	d.path(b.class, "%sH%sV%sz", path.String(), d.begin(d.samples), base)
}

// expected draws the curve of an expectation: a piece for each run of samples of one size.
func (d *timelineDrawing) expected(b *band, base px) {
	var areas, lines strings.Builder
	for i := 0; i < len(b.curve); {
		from, size := i, b.curve[i]
		for i < len(b.curve) && b.curve[i] == size {
			i++
		}
		if size == 0 {
			continue
		}
		least, most := b.expected.Band(size)
		left, right, top := d.begin(from), d.begin(i), b.level(most, base)
		fmt.Fprintf(&areas, "M%s %sH%sV%sH%sz", left, top, right, b.level(least, base), left)
		fmt.Fprintf(&lines, "M%s %sH%s", left, b.level(size, base), right)
	}
	if lines.Len() != 0 {
		d.path("hatch", "%s", areas.String())
		d.dashes(lines.String())
	}
}

func (d *timelineDrawing) dashes(path string) {
	fmt.Fprintf(&d.body, `<path class="line" stroke-dasharray="5 3" d="%s"/>`+"\n", path)
}

func (d *timelineDrawing) mark(class string, run [2]int, y px) {
	from := d.begin(run[0])
	wide := max(d.begin(run[1])-from, 10)
	d.rect(class, min(from, timeRight-wide), y, wide, markHeight)
}

// peak writes the highest peak above its sample, and the note in the rest of the line.
func (d *timelineDrawing) peak(b *band, y px) {
	const gap = 160
	text, x := "never used", timeLeft-80
	if b.peak != 0 {
		x = min((d.begin(b.peakAt)+d.begin(b.peakAt+1))/2, timeRight-50)
		d.pointer(x, y+peakLine+40)
		text = sizeText(b.peak)
		if b.count > 1 {
			text = b.fullest + ": " + text
		}
		text = clip(text, 50)
	}
	wide := small * px(letters(text))
	class, noteClass, at, noteAt, rest := "small", "small size", x+80, timeRight, timeRight-(x+80+wide+gap)
	if x >= (timeLeft+timeRight)/2 {
		class, noteClass, at, noteAt, rest = noteClass, class, x-80, timeLeft, x-80-wide-gap-timeLeft
	}
	d.text(class, at, y+peakLine, text)
	if note := fitting(b.note, rest); note != "" {
		d.text(noteClass, noteAt, y+peakLine, note)
	}
}

// pointer draws a small triangle that points down.
func (d *timelineDrawing) pointer(x, y px) { d.path("point", "M%s %sl-4-7h8z", x, y) }

// alert draws a triangle that points up.
func (d *timelineDrawing) alert(x, y px) { d.path("heap", "M%s %sl5 8h-10z", x, y-50) }

func (d *timelineDrawing) cross(x, y px) {
	d.path("bad", "M%s %sl1-1l3 3l3-3l1 1l-3 3l3 3l-1 1l-3-3l-3 3l-1-1l3-3z", x-40, y-30)
}
