package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// rangeKind is what ranges are, and how they look.
type rangeKind struct {
	name, class string // without a class it has that of its part
	sign        rune   // in a text
}

var rangeKinds = [...]rangeKind{
	{"tables", "other", 'T'}, {"used", "", '#'}, {"free", "", '.'}, {"temp", "temp", 't'}, {"slack: edge", "ground", '-'},
	{"slack: guard", "hatch", '|'}, {"slack: unplanned", "other pale", '_'}, {"anything else", "bad", '?'}}

// kindOf is the index of a range's kind.
func kindOf(what string) int {
	i := slices.IndexFunc(rangeKinds[:], func(k rangeKind) bool { return k.name == what })
	if i < 0 {
		return len(rangeKinds) - 1
	}
	return i
}

// Those that an arena consists of, but for its slack.
const usedKind, freeKind, tempKind = 1, 2, 3

// kindSums are bytes by kind.
type kindSums [len(rangeKinds)]uint64

func (s *kindSums) add(r budget.Range) { s[kindOf(r.What)] += r.Size }

func (s kindSums) whole() (all uint64) {
	for _, size := range s {
		all += size
	}
	return all
}

// walk is a budget by its ranges.
type walk struct {
	name   string
	total  uint64
	sums   kindSums
	counts [len(rangeKinds)]int
	ranges []budget.Range
	rows   []walkRow
}

// walkRow is an arena, or several.
type walkRow struct {
	name, class string
	kindSums           // of the first of those that are like it, or of all that it stands for
	like        int    // siblings with the same ranges
	part        string // that siblings share
}

// walkOf checks that ranges cover all from the first byte on, and sums them up.
func walkOf(name string, ranges []budget.Range) (*walk, error) {
	w := &walk{name: clip(name, nameLetters), ranges: ranges}
	for i, r := range ranges {
		if r.Offset != w.total || r.Offset+r.Size < r.Offset {
			return nil, fmt.Errorf("view: ranges[%d], %s %s, has %d bytes from %d on; those before end at %d", i, r.Arena, r.What, r.Size,
				r.Offset, w.total)
		}
		w.total += r.Size
		w.sums.add(r)
		w.counts[kindOf(r.What)]++
	}
	if w.total == 0 {
		return nil, errors.New("view: a walk without a byte")
	}
	w.rows = shortened(rowsOf(ranges))
	return w, nil
}

// classOf is the colour of an arena: that of its part.
func classOf(arena string) string {
	switch part, _, sibling := strings.Cut(arena, " "); {
	case arena == "":
		return "other"
	case sibling && (part == "frame" || part == "scratch"):
		return part
	}
	return "region"
}

// rowsOf has a row for each arena, or for those siblings of which the same is to be said.
func rowsOf(ranges []budget.Range) (rows []walkRow) {
	var arenas []walkRow
	for i, r := range ranges {
		if i == 0 || r.Arena != ranges[i-1].Arena {
			arenas = append(arenas, walkRow{name: cmp.Or(r.Arena, strings.TrimPrefix(r.What, "slack: ")), class: classOf(r.Arena), part: budget.RegionOf(r.Arena)})
		}
		arenas[len(arenas)-1].add(r)
	}
	type same struct {
		part string
		sums kindSums
	}
	at := map[same]int{}
	for _, a := range arenas {
		i, known := at[same{a.part, a.kindSums}]
		if known && a.part != "" {
			rows[i].like++
			continue
		}
		at[same{a.part, a.kindSums}] = len(rows)
		rows = append(rows, a)
	}
	return rows
}

// rowsShown is how many siblings that differ have a row of their own: those that hold most.
const rowsShown = 12

// shortened has one row for the siblings that have none.
func shortened(rows []walkRow) (short []walkRow) {
	for len(rows) > 0 {
		count := slices.IndexFunc(rows, func(r walkRow) bool { return r.part != rows[0].part })
		if count < 0 {
			count = len(rows)
		}
		short = append(short, fullest(rows[:count])...)
		rows = rows[count:]
	}
	return short
}

func fullest(siblings []walkRow) []walkRow {
	if len(siblings) <= rowsShown {
		return siblings
	}
	order := slices.Clone(siblings)
	slices.SortStableFunc(order, func(a, b walkRow) int { return cmp.Compare(b.held(), a.held()) })
	least := order[rowsShown-1].held()
	rest := walkRow{class: siblings[0].class, part: siblings[0].part}
	var rows []walkRow
	count := 0
	for _, r := range siblings {
		if r.held() >= least && len(rows) < rowsShown {
			rows = append(rows, r)
			continue
		}
		count += 1 + r.like
		for kind, size := range r.kindSums {
			rest.kindSums[kind] += size * uint64(1+r.like)
		}
	}
	rest.name = fmt.Sprintf("%d more together", count)
	return append(rows, rest)
}

// held is what an arena holds.
func (r walkRow) held() uint64 { return r.kindSums[usedKind] + r.kindSums[tempKind] }

// title is the row's name, and how many are like it.
func (r walkRow) title() string {
	return clip(r.name, nameLetters) + alike(r.like)
}

// alike says how many more a name stands for. "room 1 and 2 like it" would read like rooms 1 and 2.
func alike(more int) string {
	if more == 0 {
		return ""
	}
	return fmt.Sprintf(" (+%d alike)", more)
}

// largestShown is how many ranges have a line.
const largestShown = 8

// largeRange is one of the largest ranges, or several of siblings that are alike.
type largeRange struct {
	budget.Range
	like int
}

func (r largeRange) title() string { return rangeTitle(r.Range) + alike(r.like) }

// largest are the largest ranges, and how many others there are, with what they have.
func (w *walk) largest() (list []largeRange, others int, rest uint64) {
	sorted := slices.Clone(w.ranges)
	slices.SortStableFunc(sorted, func(a, b budget.Range) int { return cmp.Compare(b.Size, a.Size) })
	rest = w.total
	for i, r := range sorted {
		last := len(list) - 1
		switch {
		case last >= 0 && list[last].Size == r.Size && list[last].What == r.What && budget.RegionOf(list[last].Arena) == budget.RegionOf(r.Arena):
			list[last].like++
		case len(list) < largestShown:
			list = append(list, largeRange{Range: r})
		default:
			return list, len(sorted) - i, rest
		}
		rest -= r.Size
	}
	return list, 0, 0
}

func rangeTitle(r budget.Range) string {
	return strings.TrimSpace(clip(r.Arena, nameLetters) + " " + clip(r.What, nameLetters))
}

// share is a part of the whole: "12.3 %", rounded down.
func share(size, whole uint64) string {
	tenths := scale{0, 1000, whole}.x(size)
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}
