package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// sparks are eighths of a line's height.
var sparks = []rune(" ▁▂▃▄▅▆▇█")

// TimelineText writes the contents of [Timeline], without loads, rewinds and notes, as lines of at
// most 80 columns. The line of a part has a curve in eighths of the planned size (or of the peak,
// if that is larger), the peak and the planned size. The next line has an x where the part was
// full, and a w where the part only warned. The expectation of a part ([budget.Expected]) is a
// further curve, with the largest expected size and the tolerance. Below this curve, a ^ is where
// the use was above the tolerance.
func TimelineText(w io.Writer, data budget.TimelineData) error {
	names, sizes := 0, 10
	for _, b := range timelineOf(data, 1).bands {
		names = max(names, min(letters(b.title()), 20))
		if b.expected != nil {
			names = max(names, letters("expected"))
			sizes = max(sizes, (letters(b.expectation())+2)/2)
		}
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
		curve := b.sparks(b.most) + strings.Repeat(" ", wide-t.samples)
		fmt.Fprintf(&out, "  %s %s%*s%*s\n", padded(b.title(), names), curve, sizes, sizeText(b.peak), sizes, sizeText(b.size))
		if b.ever&(budget.MarkFull|budget.MarkWarn) != 0 {
			fmt.Fprintf(&out, "  %*s %s\n", names, "", b.signs())
		}
		if b.expected != nil {
			curve := b.sparks(b.curve) + strings.Repeat(" ", wide-t.samples)
			fmt.Fprintf(&out, "  %s %s%*s\n", padded("expected", names), curve, 2*sizes, b.expectation())
		}
		if slices.Contains(b.outside, true) {
			fmt.Fprintf(&out, "  %*s %s\n", names, "", b.above())
		}
	}
	if more := t.more(); more != "" {
		fmt.Fprintf(&out, "  %s\n", more)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (b *band) sparks(sizes []uint64) string {
	curve := make([]rune, len(sizes))
	for i, most := range sizes {
		curve[i] = sparks[scale{0, px(len(sparks) - 1), max(b.size, b.peak)}.reach(most, 1)]
	}
	return string(curve)
}

// above returns a ^ for each sample above the tolerance.
func (b *band) above() string {
	signs := []byte(strings.Repeat(" ", len(b.outside)))
	for i, outside := range b.outside {
		if outside {
			signs[i] = '^'
		}
	}
	return strings.TrimRight(string(signs), " ")
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
