package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// textWidth is the width of all texts in letters.
const textWidth = 80

// ReportText writes the contents of [Report] as lines of at most 80 columns. In a bar # is used now
// and + was used at most. Slots, buffers and scratch arenas have a row below, with a sign for each.
func ReportText(w io.Writer, r budget.Report) error {
	t := table{column: len("planned") + 1, name: 8}
	lines := reportLines(r)
	for _, l := range lines {
		if l.barred() {
			t.name = max(t.name, min(letters(l.shown())+1, 23))
			for _, c := range l.cells {
				t.column = max(t.column, letters(c.text)+1)
			}
		}
	}
	t.name = min(t.name, textWidth-2-3*t.column)
	t.heading(fmt.Sprintf("budget %s: %s, %s resident", clip(r.Name, nameLetters), sizeText(r.Size), sizeText(r.Resident)))
	t.row("", "", [3]amount{{text: "now"}, {text: "at most"}, {text: "planned"}})
	for _, l := range lines {
		t.line(l)
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// table is a text with lines of a name, a bar and three figures. Its columns fit their widest text.
type table struct {
	out          bytes.Buffer
	name, column int
}

func (t *table) heading(text string) {
	for _, line := range wrapped(text, textWidth, 2) {
		fmt.Fprintln(&t.out, line)
	}
}

func (t *table) line(l reportLine) {
	switch {
	case l.kind == headLine:
		fmt.Fprintf(&t.out, "%s\n", l.name)
	case !l.barred():
		for _, text := range wrapped(l.name, textWidth-4, 4) {
			fmt.Fprintf(&t.out, "    %s\n", text)
		}
	case l.kind == sumLine:
		t.row(l.shown(), "", l.cells)
	case l.kind == partLine:
		t.row(l.shown(), t.bar(l), l.cells)
		t.fence(l)
	default:
		t.row(" "+l.shown(), t.bar(l), l.cells)
	}
}

// row writes a line. A name that is too long for its column gets a line of its own.
func (t *table) row(name, bar string, cells [3]amount) {
	if letters(name) > t.name {
		fmt.Fprintf(&t.out, "  %s\n", name)
		name = ""
	}
	line := fmt.Sprintf("  %s%s%-*s", name, strings.Repeat(" ", t.name-letters(name)), t.bars(), bar)
	for _, c := range cells {
		line += strings.Repeat(" ", max(0, t.column-letters(c.text))) + c.text
	}
	fmt.Fprintln(&t.out, strings.TrimRight(line, " "))
}

func (t *table) bars() int { return textWidth - 2 - t.name - 3*t.column }

func (t *table) bar(l reportLine) string {
	cells := t.bars() - 2
	if cells < 4 || l.of == 0 {
		return ""
	}
	full := scale{0, px(cells), l.of}
	used, most := l.bar()
	now := int(full.reach(used, 1))
	peak := max(now, int(full.reach(most, 1)))
	return "[" + strings.Repeat("#", now) + strings.Repeat("+", peak-now) + strings.Repeat(".", cells-peak) + "]"
}

// fence writes a sign for each arena of a part, or for the fullest of several neighbours.
func (t *table) fence(l reportLine) {
	if len(l.arenas) < 2 {
		return
	}
	each := (len(l.arenas)-1)/(textWidth-4) + 1
	line := ""
	for arenas := range slices.Chunk(l.arenas, each) {
		var high px
		for _, a := range arenas {
			high = max(high, scale{0, 8, a.Size}.reach(a.Used, 1))
		}
		line += string([]rune(".▁▂▃▄▅▆▇█")[high])
	}
	fmt.Fprintf(&t.out, "    %s\n", line)
}
