package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// table has the measurements, work by work. Its ratios are between least figures. A ratio is empty
// if a figure is missing.
type table struct {
	sections []section
	least    figures
}

type section struct {
	work work
	list []series
}

func (t *table) add(w work, list []series) {
	if t.least == nil {
		t.least = figures{}
	}
	t.least.add(list)
	t.sections = append(t.sections, section{w, list})
}

// measure returns the unit of a figure: nanoseconds a unit, or the unit itself if it has a space or
// %.
func measure(unit string) string {
	if strings.ContainsAny(unit, "% ") {
		return unit
	}
	return "ns a " + unit
}

func median(values []float64) float64 {
	list := slices.Sorted(slices.Values(values))
	if n := len(list); n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[len(list)/2]
}

// number returns a number with three significant digits, or more if they are before the point.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case v == 0 || math.IsInf(v, 0):
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v))))) //upfront:keeps a table for people
	return strconv.FormatFloat(v, 'f', min(digits, 4), 64)
}

func (t *table) print(to io.Writer) {
	fmt.Fprintf(to, "%s\n\n", machine())
	for _, s := range t.sections {
		fmt.Fprintf(to, "### %s: %s\n\n%s\n", s.work.letter, s.work.title, s.work.absent)
		if s.work.columns != nil {
			fmt.Fprintf(to, "\n%s\n", t.beside(s))
			continue
		}
		last := ""
		for _, x := range s.list {
			if x.work != last {
				fmt.Fprintf(to, "\n| %s | %s | median | of C | of hand-written | of the Go heap | Go allocations |\n",
					x.work, measure(x.unit))
				fmt.Fprintln(to, "|---|--:|--:|--:|--:|--:|--:|")
				last = x.work
			}
			least := t.least.of(x.work, x.who)
			fmt.Fprintf(to, "| %s | %s | %s |", x.who, number(least), number(median(x.values)))
			for _, other := range []string{floor, byHand, goHeap} {
				fmt.Fprintf(to, " %s |", number(least/t.least.of(x.work, other)))
			}
			fmt.Fprintf(to, " %s |\n", number(x.allocs))
		}
		fmt.Fprintln(to)
	}
}

func (t *table) beside(s section) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | unit | %s |\n|---|---|%s\n", s.work.letter,
		strings.Join(s.work.columns, " | "), strings.Repeat("--:|", len(s.work.columns)))
	last := ""
	for _, x := range s.list {
		if x.work == last {
			continue
		}
		last = x.work
		fmt.Fprintf(&b, "| %s | %s |", strings.TrimPrefix(x.work, s.work.letter+" "), measure(x.unit))
		for _, who := range s.work.columns {
			fmt.Fprintf(&b, " %s |", number(t.least.of(x.work, who)))
		}
		b.WriteString("\n")
	}
	return b.String()
}
