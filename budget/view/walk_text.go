package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// WalkText writes what [Walk] draws, in lines of at most 80 columns. A sign of the map is of the kind that has most of its
// bytes; the list of kinds says which.
func WalkText(w io.Writer, name string, ranges []budget.Range) error {
	all, err := walkOf(name, ranges)
	if err != nil {
		return err
	}
	t := all.table()
	t.heading(fmt.Sprintf("walk of %s: %s, %s bytes in %s", all.name, sizeText(all.total), exact(all.total), many(len(ranges), "range")))
	for _, line := range all.signs() {
		fmt.Fprintf(&t.out, "  %s\n", line)
	}
	all.writeKinds(&t.out)
	all.writeLargest(&t.out)
	fmt.Fprintln(&t.out, "by arena")
	t.row("", "", [3]string{"used, temp", "free", "with slack"})
	for _, r := range all.rows {
		t.row(r.title(), r.signs(t.bars()-2), [3]string{sizeText(r.held()), sizeText(r.kindSums[freeKind]), sizeText(r.whole())})
	}
	_, err = w.Write(t.out.Bytes())
	return err
}

// signs are the map: four lines of signs, each of which stands for as many bytes.
func (w *walk) signs() (lines []string) {
	const wide, cells = textWidth - 4, 4 * (textWidth - 4)
	var most [cells]kindSums
	at := scale{0, px(w.total), cells}
	begin := func(cell uint64) uint64 { return uint64(at.x(cell)) }
	cell := uint64(0)
	for _, r := range w.ranges {
		for cell < cells && begin(cell) < r.Offset+r.Size {
			from, to := max(begin(cell), r.Offset), min(begin(cell+1), r.Offset+r.Size)
			most[cell][kindOf(r.What)] += to - from
			if to < begin(cell+1) {
				break // the next range goes on in it
			}
			cell++
		}
	}
	for i := 0; i < cells; i += wide {
		line := ""
		for _, sums := range most[i : i+wide] {
			line += string(sums.sign())
		}
		lines = append(lines, line)
	}
	return lines
}

// sign is that of the kind that has most.
func (s kindSums) sign() rune {
	sign, most := ' ', uint64(0)
	for kind, size := range s {
		if size > most {
			sign, most = rangeKinds[kind].sign, size
		}
	}
	return sign
}

func (w *walk) writeKinds(out *bytes.Buffer) {
	fmt.Fprintf(out, "by kind\n")
	for kind, size := range w.sums {
		if w.counts[kind] != 0 {
			fmt.Fprintf(out, "  %c %-20s%27s%9s\n", rangeKinds[kind].sign, rangeKinds[kind].name, exact(size), share(size, w.total))
		}
	}
	fmt.Fprintf(out, "    %-20s%27s\n", "all", exact(w.total))
}

func (w *walk) writeLargest(out *bytes.Buffer) {
	list, others, rest := w.largest()
	fmt.Fprintf(out, "largest ranges, bytes each\n")
	line := func(name, bytes string, size uint64) {
		number := fmt.Sprintf("%27s%9s", bytes, share(size, w.total))
		if letters(name) > 42 {
			fmt.Fprintf(out, "  %s\n", clip(name, textWidth-2))
			name = ""
		}
		fmt.Fprintf(out, "  %s%s%s\n", name, strings.Repeat(" ", 42-letters(name)), strings.TrimRight(number, " "))
	}
	for _, r := range list {
		line(r.title(), exact(r.Size), r.Size)
	}
	if others != 0 {
		line(fmt.Sprintf("and %d more", others), exact(rest)+" in all", rest)
	}
}

// table is as wide as the arenas need it.
func (w *walk) table() *table {
	t := &table{column: len("with slack") + 1, name: 8}
	for _, r := range w.rows {
		t.name = max(t.name, min(letters(r.title())+1, 27))
		t.column = max(t.column, len(sizeText(r.whole()))+1)
	}
	t.name = min(t.name, textWidth-2-3*t.column)
	return t
}

// signs are the row as a bar.
func (r walkRow) signs(cells int) string {
	if cells < 4 {
		return ""
	}
	at, offset, bar := scale{0, px(cells), r.whole()}, uint64(0), ""
	for kind, size := range r.kindSums {
		from := at.x(offset)
		offset += size
		bar += strings.Repeat(string(rangeKinds[kind].sign), int(at.x(offset)-from))
	}
	return "[" + bar + "]"
}
