package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// InsideText is [Inside] for a terminal: lines of at most 80 columns, without addresses and the
// chain of finalizers.
func InsideText(w io.Writer, in budget.Inside) error {
	if err := in.Check(); err != nil {
		return err
	}
	list := listInside(&in)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n|%s|\n", clip(fmt.Sprintf("inside of %s: %s of %s bytes used", in.Arena, exact(in.Used), exact(in.Size)), textWidth),
		insideBar(&in))
	insideRow(&b, in.Known, "bytes", "contents", "scope / label", "made at")
	for _, line := range list.lines {
		insideRow(&b, in.Known, exact(line.bytes), line.what, line.scope, line.made)
	}
	fmt.Fprintf(&b, "%15s  used\n", exact(in.Used))
	key := "chunks of pools: # live, . free, - never used\n"
	for i := range in.Spans {
		t := &in.Spans[i]
		switch {
		case t.Pool != nil:
			b.WriteString(key)
			key = ""
			poolText(&b, t)
		case t.Parts != nil:
			partsText(&b, t)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// insideRow writes a line of the list. Without source lines the contents also take their space.
func insideRow(b *bytes.Buffer, known bool, size, what, scope, made string) {
	text := fmt.Sprintf("%15s  %s %s", size, padded(what, 31+14), padded(scope, 17))
	if known {
		text = fmt.Sprintf("%15s  %s %s%s", size, padded(what, 31), padded(scope, 17), left(made, 14))
	}
	fmt.Fprintln(b, strings.TrimRight(text, " "))
}

const barLetters = textWidth - 2

// insideBar returns a bar of the arena to scale: used bytes, free bytes, temporaries.
func insideBar(in *budget.Inside) string {
	s := scale{0, barLetters, in.Size}
	used, temp := int(s.x(in.Cursor)), int(s.x(in.Limit))
	if used == 0 && in.Cursor != 0 {
		used = 1
	}
	if temp == barLetters && in.Temp() != 0 {
		temp--
	}
	used = min(used, temp)
	return strings.Repeat("#", used) + strings.Repeat(".", temp-used) + strings.Repeat("T", barLetters-temp)
}

// padded returns a text of exactly most letters, filled at its end; left fills the start.
func padded(text string, most int) string {
	text = clip(text, most)
	return text + strings.Repeat(" ", most-letters(text))
}

func left(text string, most int) string {
	text = clip(text, most)
	return strings.Repeat(" ", most-letters(text)) + text
}

const poolLetters = textWidth - 4

// poolText writes a letter for each chunk: its state in the report.
func poolText(b *bytes.Buffer, t *budget.Span) {
	fmt.Fprintf(b, "%s\n", clip(fmt.Sprintf("%s live, %s at most", spanText(t), exact(t.Pool.Peak)), textWidth))
	states := jsonfile.Printable(t.Pool.States)
	for from := 0; from < len(states) && from < 16*poolLetters; from += poolLetters {
		fmt.Fprintf(b, "  %s\n", states[from:min(from+poolLetters, len(states))])
	}
	if n := len(states) - 16*poolLetters; n > 0 {
		fmt.Fprintf(b, "  and %s more\n", exact(uint64(n)))
	}
	if next := t.Pool.Next; len(next) != 0 {
		text := "  next:"
		for _, index := range next[:min(len(next), 9)] {
			text += fmt.Sprint(" ", index)
		}
		fmt.Fprintf(b, "%s\n", clip(text, textWidth))
	}
}

// partsText writes the sums of a heap, a buddy or a ring.
func partsText(b *bytes.Buffer, t *budget.Span) {
	sums, counts := map[string]uint64{}, map[string]uint64{}
	var kinds []string
	for _, p := range t.Parts {
		if counts[p.Kind]++; counts[p.Kind] == 1 {
			kinds = append(kinds, p.Kind)
		}
		sums[p.Kind] += p.Size
	}
	text := fmt.Sprintf("%s of %s bytes", t.Kind, exact(t.Size))
	for _, kind := range kinds {
		if letters(text) > textWidth {
			break // the rest is clipped, and a file may name many kinds
		}
		text += fmt.Sprintf(", %s %s in %s", kind, exact(sums[kind]), exact(counts[kind]))
	}
	fmt.Fprintf(b, "%s\n", clip(text, textWidth))
}
