package view

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// ReportHTML writes the contents of [Report] as the body of an HTML page: an article for each part,
// with tables of its sizes, labels and scopes, and notes below. For slots, buffers and scratch
// arenas, a table has the highest peaks. A report of a checked build has a table of the lines of
// code that made the live objects. Each size in a table is a data element of HTML, with the bytes
// as its value. Names are escaped. The page supplies the style, as the page of package live does.
func ReportHTML(w io.Writer, r budget.Report) error {
	var h htmlReport
	for lines := reportLines(r); len(lines) != 0; {
		n := 1
		for n < len(lines) && !lines[n].begins(n == 1 && lines[0].kind == headLine) {
			n++
		}
		h.article(lines[:n])
		lines = lines[n:]
	}
	_, err := w.Write(h.Bytes())
	return err
}

// begins reports whether a line starts an article. The line of a part may have a head before it.
func (l *reportLine) begins(headed bool) bool {
	return l.kind == headLine || l.kind == sumLine || l.kind == partLine && !headed
}

type htmlReport struct{ bytes.Buffer }

func (h *htmlReport) article(lines []reportLine) {
	first := &lines[0]
	if h.WriteString("<article"); first.kind == partLine {
		fmt.Fprintf(h, ` id="part-%s"`, escaped(first.name))
	}
	fmt.Fprintf(h, " class=\"%s\">\n<h3>%s</h3>\n", first.class, escaped(first.name))
	h.table("Memory held", slices.DeleteFunc(slices.Clone(lines), func(l reportLine) bool { return !l.barred() }))
	for _, l := range lines {
		if class, is := notes[l.kind]; is {
			fmt.Fprintf(h, "<p class=\"%s\">%s</p>\n", class, escaped(l.name))
		}
	}
	if len(first.arenas) > 1 {
		h.table("Highest peaks", highest(first.arenas))
	}
	h.table("Lines of code that made live objects", linesOf(first.arenas, first.of))
	h.WriteString("</article>\n")
}

// notes are the classes of lines without sizes.
var notes = map[lineKind]string{noteLine: "note", badLine: "bad"}

// table writes a row for each line, or nothing without lines.
func (h *htmlReport) table(caption string, lines []reportLine) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(h, "<table>\n<caption>%s</caption>\n<thead><tr><th scope=\"col\">Name</th>", caption)
	h.WriteString(`<th scope="col" class="wide"><span class="unseen">Share</span></th>`)
	first := firstCell(lines)
	for _, name := range cellNames[first:] {
		fmt.Fprintf(h, `<th scope="col" class="n">%s</th>`, strings.ToUpper(name[:1])+name[1:])
	}
	h.WriteString("</tr></thead>\n<tbody>\n")
	for _, l := range lines {
		fmt.Fprintf(h, `<tr><th scope="row">%s</th><td class="wide">`, escaped(l.name))
		if full := (scale{0, 1000, l.of}); l.of != 0 { // in per mille, which has ten px
			now, peak := l.bar()
			fmt.Fprintf(h, `<svg class="bar" role="img"><title>%s</title>`, escaped(l.detail))
			fmt.Fprintf(h, `<rect class="peak" width="%s%%" height="100%%"/>`, full.reach(max(now, peak), 2))
			fmt.Fprintf(h, `<rect class="used" width="%s%%" height="100%%"/></svg>`, full.reach(now, 2))
		}
		for _, c := range l.cells[first:] {
			h.WriteString(`</td><td class="n">`)
			h.number(l.kind, c)
		}
		h.WriteString("</td></tr>\n")
	}
	h.WriteString("</tbody>\n</table>\n")
}

func (h *htmlReport) number(kind lineKind, c amount) {
	times, text, several := strings.Cut(c.text, "×")
	if !several {
		times, text = "", times
	}
	switch {
	case text == "":
	case kind == chunkLine:
		fmt.Fprintf(h, `<data value="%d">%s</data>`, c.value, text)
	case several:
		h.WriteString(times + "×")
		fallthrough
	default:
		fmt.Fprintf(h, `<data value="%d" title="%s bytes">%s</data>`, c.value, exact(c.value), text)
	}
}

func highest(arenas []budget.ArenaReport) (lines []reportLine) {
	arenas = slices.SortedStableFunc(slices.Values(arenas), func(a, b budget.ArenaReport) int {
		return cmp.Compare(b.Peak, a.Peak)
	})
	for _, a := range arenas[:min(len(arenas), namesShown)] {
		if a.Used|a.Peak != 0 {
			lines = append(lines, arenaLine(a.Name, a.Used, a.Peak, a.Size))
		}
	}
	return lines
}

// linesOf returns the lines of code that made the most bytes, by label; only reports of checked
// builds contain them. If different calls led to a line, its detail says so.
func linesOf(arenas []budget.ArenaReport, of uint64) []reportLine {
	type key struct{ at, label string }
	index := map[key]int{}
	var list []holder
	for _, a := range arenas {
		for _, s := range a.Sites {
			k, calls := key{label: s.Label}, ""
			if len(s.Made) != 0 {
				k.at, calls = s.Made[0], ", made at "+strings.Join(s.Made, ", called at ")
			}
			i, known := index[k]
			if !known {
				i, index[k] = len(list), len(list)
				list = append(list, holder{name: cmp.Or(short(k.at), "not known"), calls: calls})
				if s.Label != "" {
					list[i].name += ", " + s.Label
				}
			}
			if list[i].calls != calls {
				list[i].calls = ", made at " + k.at + ", called from several places"
			}
			list[i].bytes += s.Bytes
			list[i].objects += s.Objects
		}
	}
	return holders(list, "line", "", of, len(arenas) == 1)
}

// short returns a line of code without folders: "level.load load.go:31" for
// "example.com/pond/level.load /src/level/load.go:31".
func short(made string) string {
	function, file, known := strings.Cut(made, " ")
	if !known {
		return made
	}
	return path.Base(function) + " " + path.Base(file)
}
