package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// sparks are eighths of a line's height.
var sparks = []rune(" ▁▂▃▄▅▆▇█")

// TimelineText writes the contents of [Timeline] as lines of 80 columns: a curve in eighths of the
// planned size, the peak and the planned size. Where a part was full, the line below has an x, and
// where it only warned, a w.
func TimelineText(w io.Writer, data budget.TimelineData) error {
	names, sizes := 0, 10
	for _, b := range timelineOf(data, 1).bands {
		names = max(names, min(letters(b.title()), 20))
		sizes = max(sizes, len(sizeText(max(b.size, b.peak)))+1)
	}
	wide := textWidth - 3 - names - 2*sizes
	t := timelineOf(data, wide)
	title := t.title()
	if t.samples != 0 {
		title += ", a column is " + many(t.step, "tick")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n%*s%*s\n", clip(title, textWidth), textWidth-sizes, "peak", sizes, "of")
	for _, b := range t.bands {
		curve := b.curve() + strings.Repeat(" ", wide-t.samples)
		fmt.Fprintf(&out, "  %s %s%*s%*s\n", padded(b.title(), names), curve, sizes, sizeText(b.peak), sizes, sizeText(b.size))
		if b.ever&(budget.MarkFull|budget.MarkWarn) != 0 {
			fmt.Fprintf(&out, "  %*s %s\n", names, "", b.signs())
		}
	}
	if more := t.more(); more != "" {
		fmt.Fprintf(&out, "  %s\n", more)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (b *band) curve() string {
	curve := make([]rune, len(b.most))
	for i, most := range b.most {
		curve[i] = sparks[scale{0, px(len(sparks) - 1), max(b.size, b.peak)}.reach(most, 1)]
	}
	return string(curve)
}

// signs returns an x for each full sample and a w for each that only warned.
func (b *band) signs() string {
	signs := []byte(strings.Repeat(" ", len(b.marks)))
	for i, m := range b.marks {
		switch {
		case m&budget.MarkFull != 0:
			signs[i] = 'x'
		case m&budget.MarkWarn != 0:
			signs[i] = 'w'
		}
	}
	return strings.TrimRight(string(signs), " ")
}
