package view

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// px is a length in tenths of a pixel. Whole numbers have the same digits on every target; floating point, which some
// targets fuse, doesn't.
type px int64

func (p px) String() string {
	sign, size := "", p
	if p < 0 {
		sign, size = "-", -p
	}
	text := sign + strconv.FormatInt(int64(size/10), 10)
	if size%10 != 0 {
		text += "." + strconv.FormatInt(int64(size%10), 10)
	}
	return text
}

// All pictures are as wide as the column of a README.
const (
	width      px = 8800
	margin     px = 200
	letter     px = 72 // how wide one of 13 pixels is, about
	small      px = 66 // one of 12
	lineHeight px = 240
)

// scale says where in a picture bytes lie.
type scale struct {
	left, right px
	total       uint64
}

// x is where an offset lies; what is beyond the total lies at its end.
func (s scale) x(offset uint64) px {
	if s.total == 0 {
		return s.left
	}
	high, low := bits.Mul64(uint64(s.right-s.left), min(offset, s.total))
	x, _ := bits.Div64(high, low, s.total)
	return s.left + px(x)
}

// reach is how far a bar is filled: as much as can be seen at least, if at all.
func (s scale) reach(size uint64, least px) px {
	if size == 0 {
		return 0
	}
	return min(max(s.x(size)-s.left, least), s.right-s.left)
}

// picture is an SVG. What is drawn later lies above.
type picture struct{ body bytes.Buffer }

// writeTo writes the picture at once: what it is, also for who can't see it, then what was drawn. Its paper is part of it,
// so that texts are legible on a page of any colour.
func (p *picture) writeTo(w io.Writer, title, description string, height px) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&out, "<title>%s</title>\n<desc>%s</desc>\n", escaped(title), escaped(description))
	out.WriteString(style)
	fmt.Fprintf(&out, `<rect class="paper" width="%s" height="%s" rx="6"/>`+"\n", width, height)
	out.Write(p.body.Bytes())
	out.WriteString("</svg>\n")
	_, err := w.Write(out.Bytes())
	return err
}

// rect draws a rectangle; one that has no area isn't drawn.
func (p *picture) rect(class string, x, y, w, h px) { p.told(class, x, y, w, h, "") }

// told is rect, with a text that browsers show for it.
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

// text writes a line whose baseline is y; x is its begin, middle or end, as the class says.
func (p *picture) text(class string, x, y px, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(&p.body, `<text%s x="%s" y="%s">%s</text>`+"\n", class, x, y, escaped(text))
}

// path draws a line or a shape: d is as SVG has it, with a px where a number belongs.
func (p *picture) path(class, d string, at ...any) {
	fmt.Fprintf(&p.body, `<path class="%s" d="%s"/>`+"\n", class, fmt.Sprintf(d, at...))
}

// swatch is the small square before a line of a legend.
func (p *picture) swatch(class string, x, baseline px) { p.rect(class, x, baseline-110, 120, 120) }

// style has a colour for each class in both modes; a text of class "in" stands on any of these colours. "c0" to "c7" are
// colours without a meaning, "other" is that of what is left. A class "pale" makes a colour faint, "hatch" draws lines; a "tip" isn't
// seen, and has a text for who points at it.
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

// colours are those without a meaning.
const colours = 8

func colour(i int) string { return "c" + strconv.Itoa(i%colours) }

// classOf is the colour of an arena of a kind.
func classOf(kind string) string {
	if kind == "frame" || kind == "scratch" {
		return kind
	}
	return "region"
}

// escaped is a text that people wrote as XML may hold it.
func escaped(text string) string { return html.EscapeString(jsonfile.Printable(text)) }

// clip is at most so many letters of a text, on one line.
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

// wrapped is a text in so many lines at most, of so many letters.
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

// letters is how wide a text is, in letters.
func letters(text string) (count int) {
	for _, r := range text {
		count += letterWidth(r)
	}
	return count
}

// letterWidth is 2 from where the scripts begin whose signs are about as wide as high.
func letterWidth(r rune) int {
	if r >= 0x1100 && (r < 0x2000 || r > 0x2bff) {
		return 2
	}
	return 1
}

// long is how wide a text is at most, about.
func long(text string) px { return letter * px(letters(jsonfile.Printable(text))) }

// fitting is what of a text fits into a width; nothing where a letter and a sign for the rest don't.
func fitting(text string, wide px) string {
	if most := int(wide / letter); most >= 2 || most >= letters(text) {
		return clip(text, most)
	}
	return ""
}

// exact is a size to the byte: "4,587,520".
func exact(size uint64) string {
	text := strconv.FormatUint(size, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// sizeText is a size for people, as the report writes it.
func sizeText(size uint64) string { return budget.SizeText(size) }

func many[N int | uint64](count N, thing string) string {
	if count != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", count, thing)
}
