package view

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// px is a length in tenths of a pixel. Integers have the same digits on every target; sums of
// floating point, which some targets fuse, don't.
type px int64

func (p px) String() string { return strconv.FormatFloat(float64(p)/10, 'f', -1, 64) }

// All pictures have the width of a README's column.
const (
	width      px = 8800
	margin     px = 200
	letter     px = 72 // approximate width of a letter of 13 pixels
	small      px = 66 // of 12 pixels
	lineHeight px = 240
)

// scale maps bytes to positions in a picture.
type scale struct {
	left, right px
	total       uint64
}

// x returns the position of an offset, or the right end for an offset beyond total.
func (s scale) x(offset uint64) px {
	if s.total == 0 {
		return s.left
	}
	high, low := bits.Mul64(uint64(s.right-s.left), min(offset, s.total))
	x, _ := bits.Div64(high, low, s.total)
	return s.left + px(x)
}

// reach returns the length of a bar for size bytes: at least `least`, unless size is 0.
func (s scale) reach(size uint64, least px) px {
	if size == 0 {
		return 0
	}
	return min(max(s.x(size)-s.left, least), s.right-s.left)
}

// picture is an SVG. Later shapes cover earlier ones.
type picture struct{ body bytes.Buffer }

// writeTo writes the picture at once: title, description and shapes. It has its own background, so
// that texts are legible on a page of any colour.
func (p *picture) writeTo(w io.Writer, title, description string, height px) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" `+
		`width="%s" height="%s" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<title>%s</title>\n<desc>%s</desc>\n", escaped(title), escaped(description))
	out.WriteString(style)
	fmt.Fprintf(&out, `<rect class="paper" width="%s" height="%s" rx="6"/>`+"\n", width, height)
	out.Write(p.body.Bytes())
	out.WriteString("</svg>\n")
	_, err := w.Write(out.Bytes())
	return err
}

// rect draws a rectangle, unless its area is 0.
func (p *picture) rect(class string, x, y, w, h px) { p.told(class, x, y, w, h, "") }

// This rect has a text that browsers show at the pointer.
func (p *picture) told(class string, x, y, w, h px, text string) {
	if w <= 0 || h <= 0 {
		return
	}
	fmt.Fprintf(&p.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, x, y, w, h)
	if text == "" {
		p.body.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&p.body, "><title>%s</title></rect>\n", escaped(text))
}

// text writes a line with its baseline at y. Depending on the class, x is its start, middle or end.
func (p *picture) text(class string, x, y px, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(&p.body, `<text%s x="%s" y="%s">%s</text>`+"\n", class, x, y, escaped(text))
}

// path draws a line or a shape: d is SVG's, with verbs for the numbers, which are px.
func (p *picture) path(class, d string, at ...any) {
	fmt.Fprintf(&p.body, `<path class="%s" d="%s"/>`+"\n", class, fmt.Sprintf(d, at...))
}

// swatch draws the small square before a line of a legend.
func (p *picture) swatch(class string, x, baseline px) { p.rect(class, x, baseline-110, 120, 120) }

// style has a colour for each class in both modes; text of class "in" is legible on all of them.
// The colours "c0" to "c7" have no meaning, and "other" is the rest. The class "pale" makes a
// colour faint, "hatch" draws lines, and a "tip" is invisible, with a text for the pointer.
const style = `<style>
  text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
  .paper { fill: #ffffff }
  .title { font-weight: 600; font-size: 15px }
  .head { font-weight: 600 }
  .small { font-size: 12px; fill: #59636e }
  .size { text-anchor: end; font-variant-numeric: tabular-nums }
  .middle { text-anchor: middle }
  .in { text-anchor: middle; fill: #ffffff }
  .region, .c0 { fill: #0969da } .frame, .c1 { fill: #8250df } .scratch, .c2 { fill: #1a7f37 }
  .c3 { fill: #9a6700 } .c4 { fill: #bf3989 } .c5 { fill: #0e7490 } .c6 { fill: #bc4c00 } .c7 { fill: #4d5bce }
  .free, .other { fill: #6e7781 } .bad, .wrong { fill: #cf222e } .heap { fill: #9a6700 } .temp { fill: #bc4c00 }
  .pale { opacity: .3 } .tip { fill-opacity: 0 }
  .ground { fill: #eaeef2 }
  .line { stroke: #59636e; fill: none } .point { fill: #59636e }
  .grid { stroke: #d1d9e0; fill: none }
  .hatch { fill: url(#hatch) } .hatching { stroke: #59636e }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .paper { fill: #0d1117 } .small { fill: #9198a1 } .in { fill: #0d1117 }
    .region, .c0 { fill: #58a6ff } .frame, .c1 { fill: #bc8cff } .scratch, .c2 { fill: #56d364 }
    .c3 { fill: #d29922 } .c4 { fill: #f778ba } .c5 { fill: #39c5cf } .c6 { fill: #f0883e } .c7 { fill: #a5b4fc }
    .free, .other { fill: #8b949e } .bad, .wrong { fill: #ff7b72 } .heap { fill: #d29922 } .temp { fill: #f0883e }
    .ground { fill: #21262d }
    .line { stroke: #9198a1 } .point { fill: #9198a1 }
    .grid { stroke: #3d444d }
    .hatching { stroke: #9198a1 }
  }
</style>
<defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatching" d="M0 0V4"/></pattern></defs>
`

// colours is the number of colours without a meaning.
const colours = 8

func colour(i int) string { return "c" + strconv.Itoa(i%colours) }

func classOf(kind string) string {
	of := map[string]string{"frame": "frame", "scratch": "scratch", cHeap: "heap", quota: "heap"}
	return cmp.Or(of[kind], "region")
}

func escaped(text string) string { return html.EscapeString(jsonfile.Printable(text)) }

// clip returns at most that many letters of a text, on one line.
func clip(text string, most int) string {
	text = jsonfile.Printable(text)
	if letters(text) <= most {
		return text
	}
	left := most - 1
	for i, r := range text {
		if left -= letterWidth(r); left < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// wrapped returns a text as at most that many lines of that width.
func wrapped(text string, wide, most int) (lines []string) {
	for _, word := range strings.Fields(jsonfile.Printable(text)) {
		last := len(lines) - 1
		switch {
		case last >= 0 && letters(lines[last])+1+letters(word) <= wide:
			lines[last] += " " + word
		case len(lines) == most:
			lines[last] = clip(lines[last], wide-1) + "…"
			return lines
		default:
			lines = append(lines, clip(word, wide))
		}
	}
	return lines
}

// letters returns the width of a text in letters.
func letters(text string) (count int) {
	for _, r := range text {
		count += letterWidth(r)
	}
	return count
}

// letterWidth returns 2 for scripts with signs about as wide as high, else 1.
func letterWidth(r rune) int {
	if r >= 0x1100 && (r < 0x2000 || r > 0x2bff) {
		return 2
	}
	return 1
}

// long returns the approximate width of a text.
func long(text string) px { return letter * px(letters(jsonfile.Printable(text))) }

// fitting returns as much of a text as fits into a width, or "" if two letters don't fit.
func fitting(text string, wide px) string {
	if most := int(wide / letter); most >= 2 || most >= letters(text) {
		return clip(text, most)
	}
	return ""
}

// exact returns a size to the byte: "4,587,520".
func exact(size uint64) string {
	text := strconv.FormatUint(size, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func sizeText(size uint64) string { return budget.SizeText(size) }

func many[N int | uint64](count N, thing string) string {
	if count != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", count, thing)
}
