package view

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget/inside"
)

// insideLine is the objects of one kind, type, scope, label and source line.
type insideLine struct {
	what          string
	scope, made   string
	class         string // "" without a colour
	first         int    // the first such object, or -1 for padding and the rest
	count         uint64
	bytes, number uint64
}

type lineKey struct{ kind, typed, scope, label, ends, made string }

// insideLines is the list of an arena. Its lines sum up to the used bytes.
type insideLines struct {
	in    *inside.Contents
	lines []insideLine
	of    []int // the line of each object, or -1 for the rest
}

// linesMost is the maximum number of lines of a list. If all fit, they are in the arena's order.
const linesMost = 24

func listInside(in *inside.Contents) insideLines {
	l := insideLines{in: in, of: make([]int, len(in.Spans))}
	index, padding := map[lineKey]int{}, uint64(0)
	for i := range in.Spans {
		t := &in.Spans[i]
		padding += t.Padding
		key := keyOf(t, i)
		at, ok := index[key]
		if !ok {
			at = len(l.lines)
			index[key] = at
			l.lines = append(l.lines, insideLine{class: spanClass(in, t), first: i, scope: scopeOf(t), made: madeOf(t)})
		}
		l.of[i] = at
		l.lines[at].count++
		l.lines[at].bytes += t.Size
	}
	for i := range l.lines {
		l.lines[i].what = l.text(&l.lines[i])
	}
	l.order()
	if padding != 0 {
		l.lines = append(l.lines, insideLine{what: "padding", class: "hatch", first: -1, bytes: padding})
	}
	return l
}

// keyOf returns the line of an object. An object with contents has its own line.
func keyOf(t *inside.Span, i int) lineKey {
	key := lineKey{t.Kind, t.Type, t.Scope, t.Label, t.Ends, madeOf(t)}
	if t.Pool != nil || t.Parts != nil {
		key.kind = fmt.Sprint(i)
	}
	return key
}

// order sorts the lines by offset, or largest first if they are many, and numbers them.
func (l *insideLines) order() {
	by := make([]int, 0, len(l.lines))
	for i := range l.lines {
		if l.lines[i].bytes != 0 {
			by = append(by, i)
		}
	}
	if len(by) > linesMost {
		slices.SortStableFunc(by, func(a, b int) int { return cmp.Compare(l.lines[b].bytes, l.lines[a].bytes) })
	}
	place, lines := make([]int, len(l.lines)), make([]insideLine, 0, linesMost+1)
	for i := range place {
		place[i] = -1
	}
	rest := insideLine{first: -1}
	for n, i := range by {
		if n >= linesMost {
			rest.count++
			rest.bytes += l.lines[i].bytes
			continue
		}
		place[i] = n
		l.lines[i].number = uint64(n) + 1
		lines = append(lines, l.lines[i])
	}
	if rest.count != 0 {
		rest.what = "and " + exact(rest.count) + " more, all smaller"
		lines = append(lines, rest)
	}
	for i := range l.of {
		l.of[i] = place[l.of[i]]
	}
	l.lines = lines
}

// text returns the text of a line.
func (l *insideLines) text(line *insideLine) string {
	t := &l.in.Spans[line.first]
	what := spanText(t)
	switch {
	case t.Kind == "bytes":
		return "objects (listed in checked builds)"
	case line.count > 1:
		what = exact(line.count) + " × " + what
		if line.bytes == line.count*t.Size {
			what += ", " + exact(t.Size) + " B each"
		}
	}
	return what
}

// spanText returns the text of one object.
func spanText(t *inside.Span) string {
	typed := t.Type
	if typed == "uint8" {
		typed = "bytes"
	}
	switch t.Kind {
	case "plain":
		return cmp.Or(typed, "plain")
	case "object":
		return cmp.Or(typed, "object") + ", finalizer"
	case "objects":
		return cmp.Or(typed, "objects") + ", finalizers"
	case "owned":
		return cmp.Or(t.Ends, "a Go value that has ended")
	case "node":
		return "node: " + cmp.Or(t.Ends, "not in the chain")
	case "reserve":
		return "temporaries: reserved"
	}
	what := t.Kind
	if t.Pool != nil {
		of := cmp.Or(typed, strings.TrimPrefix(t.Ends, "finalizer of "))
		what += strings.TrimSuffix(" of "+of, " of ") + ": " + fmt.Sprintf("%s of %s", exact(t.Pool.Live),
			exact(t.Pool.Count))
	}
	return what
}

// spanClass returns the colour of an object. All temporaries have the same.
func spanClass(in *inside.Contents, t *inside.Span) string {
	if t.Kind == "reserve" {
		return "c3 pale"
	}
	if t.Offset >= in.Limit {
		return "c3"
	}
	return cmp.Or(spanClasses[t.Kind], "c0")
}

var spanClasses = map[string]string{"object": "c1", "objects": "c1", "owned": "c4", "pool": "c2", "heap": "c5",
	"buddy": "c5", "ring": "c5", "node": "other"}

func scopeOf(t *inside.Span) string {
	if t.Label != "" {
		return t.Scope + " / " + t.Label
	}
	return t.Scope
}

// madeOf returns the source line of an object: "load.go:31".
func madeOf(t *inside.Span) string {
	if len(t.Made) == 0 {
		return ""
	}
	_, file, _ := strings.Cut(t.Made[0], " ")
	return path.Base(file)
}
