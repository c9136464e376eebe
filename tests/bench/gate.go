package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

var errMissed = errors.New("a row is missed")

// A figure may differ from its record by the larger of a part of it and a number of instructions.
const toleratedPart, toleratedInstructions = 0.01, 1

// hold judges the rows by counts, and reports how many are held. A row that isn't judged is an
// error only if a tool is missing and required is set.
func (h *harness) hold(rows []target, recorded base, to io.Writer, required bool) error {
	g := &gatekeeper{to: to}
	counts, err := h.countInstructions(rows)
	g.instructions(contestants(rows), counts, recorded, err)
	g.twins(contestants(rows), counts)
	if err := g.numbers(h, rows); err != nil {
		return err
	}
	fmt.Fprintf(to, "%d of %d rows held, %d not judged\n", g.held, g.held+g.missed, g.unjudged)
	if why := missing(""); g.missed > 0 || required && errors.As(err, &why) {
		return errMissed
	}
	return nil
}

// gatekeeper judges rows and reports the misses.
type gatekeeper struct {
	to                     io.Writer
	held, missed, unjudged int
}

// instructions compares counts with the records. why is the reason for missing counts, or nil.
func (g *gatekeeper) instructions(list []counter, counts figures, recorded base, why error) {
	if why != nil {
		fmt.Fprintln(g.to, "not judged:", why)
	}
	var uncounted, unrecorded []string
	for _, c := range list {
		n, was := counts.of(c.Work, c.Who), recorded[c]
		tolerated := max(toleratedPart*was, toleratedInstructions)
		row := fmt.Sprintf("%s, %s", c.Work, c.Who)
		switch {
		case math.IsNaN(n):
			uncounted = append(uncounted, row)
		case was == 0:
			unrecorded = append(unrecorded, row)
		case n > was+tolerated:
			g.missed++
			fmt.Fprintf(g.to, "missed: %s: %.2f instructions, %.2f are recorded in tests/bench/%s: "+
				"make it cheaper, or record it with make bench-base and give a reason\n", row, n, was, baseFile)
		default:
			g.held++
			if n < was-tolerated {
				fmt.Fprintf(g.to, "fell: %s: %.2f instructions, %.2f are recorded: make bench-base records it\n",
					row, n, was)
			}
		}
	}
	g.unjudged += len(uncounted) + len(unrecorded)
	if len(uncounted) > 0 {
		fmt.Fprintf(g.to, "not judged: nothing was counted of %s\n", strings.Join(uncounted, "; "))
	}
	if len(unrecorded) > 0 {
		c := here()
		fmt.Fprintf(g.to, "not judged: nothing is recorded for %s, %s, C by %s: make bench-base records %s\n",
			c.Go, c.Arch, c.C, strings.Join(unrecorded, "; "))
	}
}

// twins compares counts with those of hand-written Go in the same run, with the same tolerance.
func (g *gatekeeper) twins(list []counter, counts figures) {
	for _, c := range list {
		most, row := twinMost, [2]string{c.Work, c.Who}
		if more, ok := dearer[row]; ok {
			most = more.most
		}
		n, twin := counts[row], counts.of(c.Work, twinOf(c.Work))
		limit := most * twin
		switch {
		case n == 0 || math.IsNaN(twin): // not counted, or no twin
		case n > limit+max(toleratedPart*limit, toleratedInstructions):
			g.missed++
			fmt.Fprintf(g.to, "missed: %s, %s: %.2f instructions, hand-written Go %.2f, at most %.2f times as many: "+
				"make it cheaper, or give a reason in tests/bench/targets.go\n", c.Work, c.Who, n, twin, most)
		default:
			g.held++
		}
	}
}

// numbers measures the rows with constant numbers, and compares them with their targets.
func (g *gatekeeper) numbers(h *harness, rows []target) error {
	all := figures{}
	for _, t := range rows {
		p, _ := findPart(t.work)
		if t.gate != count {
			continue
		}
		if math.IsNaN(t.ratio(all)) {
			only := &harness{rounds: 1, only: []string{library}, programs: h.programs}
			list, err := p.measure(only)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			all.add(list)
		}
		if n := t.ratio(all); n <= t.most {
			g.held++
		} else {
			g.missed++
			fmt.Fprintf(g.to, "missed: %s, %s: %s, at most %s (tests/bench/targets.go)\n", t.work, library, number(n),
				number(t.most))
		}
	}
	return nil
}
