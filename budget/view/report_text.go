package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// textWidth is the width of a text in letters.
const textWidth = 80

// ReportText writes the contents of [Report] as lines of at most 80 columns. In a bar, each #
// stands for bytes used now, and each + for further bytes up to the peak. Below the bar of slots,
// buffers or scratch arenas is a row with a sign for each arena, or for the fullest of several.
func ReportText(w io.Writer, r budget.Report) error {
	lines := reportLines(r)
	t := table{columns: cellWidths(lines), first: firstCell(lines), name: 8}
	for _, l := range lines {
		if l.barred() {
			t.name = max(t.name, min(letters(l.shown())+1, 23))
		}
	}
	if t.bars() < 0 { // such sizes only a forged report has
		t.first = cellNow
	}
	t.name = min(t.name, t.name+t.bars())
	head := fmt.Sprintf("budget %s: %s, %s resident", clip(r.Name, nameLetters), sizeText(r.Size), sizeText(r.Resident))
	for _, line := range wrapped(head, textWidth, 2) {
		fmt.Fprintln(&t.out, line)
	}
	var heads cells
	for i, name := range cellNames {
		heads[i].text = name
	}
	t.row("", "", heads)
	for _, l := range lines {
		t.line(l)
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// table is a text with lines of a name, a bar and three sizes. Its columns fit their widest text.
type table struct {
	out     bytes.Buffer
	name    int
	columns [len(cellNames)]int
	first   int // the first column shown
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
func (t *table) row(name, bar string, cells cells) {
	if letters(name) > t.name {
		fmt.Fprintf(&t.out, "  %s\n", name)
		name = ""
	}
	line := fmt.Sprintf("  %s%s%-*s", name, strings.Repeat(" ", t.name-letters(name)), t.bars(), bar)
	for i, c := range cells[t.first:] {
		line += strings.Repeat(" ", 1+t.columns[t.first+i]-letters(c.text)) + c.text
	}
	fmt.Fprintln(&t.out, strings.TrimRight(line, " "))
}

// bars returns the width that name and amounts leave for a bar.
func (t *table) bars() int {
	wide := textWidth - 2 - t.name
	for _, column := range t.columns[t.first:] {
		wide -= 1 + column
	}
	return wide
}

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
