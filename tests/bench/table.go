package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// row is a contestant's line of the table: the least of its rounds, and their median. A ratio is of the least figures; NaN where there
// is nobody to compare with.
type row struct {
	work, unit, who   string
	least, median     float64
	floor, hand, heap float64
	allocs            float64
}

type section struct {
	work work
	rows []row
}

type table struct {
	sections []section
	verdicts []verdict
}

// timed says whether the figure is in nanoseconds; the others say in their unit what they are.
func (r row) timed() bool { return !strings.ContainsAny(r.unit, "%") && !strings.Contains(r.unit, " ") }

func (t *table) add(w work, list []series) {
	s := section{work: w}
	for _, x := range list {
		r := row{work: x.work, unit: x.unit, who: x.who, least: slices.Min(x.values), median: median(slices.Clone(x.values)),
			floor: math.NaN(), hand: math.NaN(), heap: math.NaN(), allocs: x.allocs}
		for _, other := range list {
			if other.work != x.work {
				continue
			}
			switch ratio := r.least / slices.Min(other.values); other.who {
			case floor:
				r.floor = ratio
			case byHand:
				r.hand = ratio
			case goHeap:
				r.heap = ratio
			}
		}
		s.rows = append(s.rows, r)
	}
	t.sections = append(t.sections, s)
}

func median(list []float64) float64 {
	slices.Sort(list)
	if n := len(list); n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[len(list)/2]
}

func (t *table) rows() (all []row) {
	for _, s := range t.sections {
		all = append(all, s.rows...)
	}
	return all
}

func (t *table) find(work, who string) (row, bool) {
	rows := t.rows()
	i := slices.IndexFunc(rows, func(r row) bool { return r.work == work && r.who == who })
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}

// number has three digits that count, and all before the point.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case v == 0 || math.IsInf(v, 0):
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', min(digits, 4), 64)
}

func (t *table) print(to io.Writer) {
	fmt.Fprintf(to, "%s\n\n", machine())
	for _, s := range t.sections {
		fmt.Fprintf(to, "### %s: %s\n\n%s\n", s.work.letter, s.work.title, s.work.absent)
		last := ""
		for _, r := range s.rows {
			if r.work != last {
				of := "ns a " + r.unit
				if !r.timed() {
					of = r.unit
				}
				fmt.Fprintf(to, "\n| %s | %s | median | of C | of hand-written | of the Go heap | Go allocations |\n", r.work, of)
				fmt.Fprintln(to, "|---|--:|--:|--:|--:|--:|--:|")
				last = r.work
			}
			fmt.Fprintf(to, "| %s | %s | %s | %s | %s | %s | %s |\n", r.who, number(r.least), number(r.median),
				number(r.floor), number(r.hand), number(r.heap), number(r.allocs))
		}
		fmt.Fprintln(to)
	}
	printVerdicts(to, t.verdicts)
}
