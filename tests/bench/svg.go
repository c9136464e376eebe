package main

import (
	"fmt"
	"html"
	"io"
	"math"
)

const (
	svgBar    = 14 // height of a row
	svgLeft   = 330
	svgWidth  = 900
	svgPerTen = 110 // a factor of ten
)

// svg draws the times: a bar for each row, in powers of ten of nanoseconds from 0.1 on, C's in grey and this library's in green.
func (t *table) svg(to io.Writer) {
	height := 30
	for _, r := range t.rows() {
		if r.timed() {
			height += svgBar
		}
	}
	height += 20 * len(t.works())
	fmt.Fprintf(to, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n",
		svgWidth, height)
	fmt.Fprintln(to, `<rect width="100%" height="100%" fill="white"/>`)
	fmt.Fprintf(to, `<text x="8" y="16">%s Nanoseconds; from line to line ten times as many, from 0.1.</text>`+"\n",
		html.EscapeString(machine()))
	for ten := range 6 {
		x := svgLeft + ten*svgPerTen
		fmt.Fprintf(to, `<line x1="%d" y1="24" x2="%d" y2="%d" stroke="#ddd"/>`+"\n", x, x, height)
	}
	y, last := 22, ""
	for _, r := range t.rows() {
		if !r.timed() {
			continue
		}
		if r.work != last {
			y += 20
			fmt.Fprintf(to, `<text x="8" y="%d" font-weight="bold">%s, ns a %s</text>`+"\n", y, html.EscapeString(r.work), r.unit)
			last = r.work
		}
		y += svgBar
		width := max(2, svgPerTen*(math.Log10(r.least)+1))
		fmt.Fprintf(to, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.0f" height="%d" fill="%s"/>`,
			svgLeft-6, y, html.EscapeString(r.who), svgLeft, y-svgBar+4, min(width, svgWidth-svgLeft-60), svgBar-3, color(r.who))
		fmt.Fprintf(to, `<text x="%.0f" y="%d">%s</text>`+"\n", svgLeft+min(width, svgWidth-svgLeft-60)+4, y, number(r.least))
	}
	fmt.Fprintln(to, "</svg>")
}

func (t *table) works() map[string]bool {
	names := map[string]bool{}
	for _, r := range t.rows() {
		if r.timed() {
			names[r.work] = true
		}
	}
	return names
}

func color(who string) string {
	switch who {
	case library:
		return "#2a9d4a"
	case floor, byHand, ownCore:
		return "#888888"
	}
	return "#6b8fc9"
}
