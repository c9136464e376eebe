package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// attempts are how often a row that misses is measured.
const attempts = 5

var errMissed = errors.New("a row is missed")

// gate measures who is in a row, and nobody else, and says of each row whether it is held.
func gate(h *harness, rows []target, to io.Writer, required bool) error {
	gated := slices.DeleteFunc(slices.Clone(rows), func(t target) bool { return t.shown })
	counts, err := countInstructions(gated)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: instructions aren't counted:", err)
	}
	var verdicts []verdict
	for len(gated) > 0 { // those of one measurement
		measured := measurementOf(gated[0].work)
		own := func(t target) bool { return measurementOf(t.work) == measured }
		list, err := attempt(h, slices.DeleteFunc(slices.Clone(gated), func(t target) bool { return !own(t) }), counts)
		if err != nil {
			return err
		}
		verdicts, gated = append(verdicts, list...), slices.DeleteFunc(gated, own)
	}
	printVerdicts(to, verdicts)
	return conclude(to, verdicts, required)
}

// conclude prints what was late, and the last line.
func conclude(to io.Writer, verdicts []verdict, required bool) error {
	held, judged := 0, len(verdicts)
	for _, v := range verdicts {
		if v.late() {
			v.explain(to)
		}
		switch {
		case !v.judged() && !required:
			judged--
		case v.judged() && v.held():
			held++
		}
	}
	if judged < len(verdicts) {
		fmt.Fprintf(to, "%d rows were not judged: valgrind and its headers count instructions, "+
			"make deps installs what rows are of\n", len(verdicts)-judged)
	}
	fmt.Fprintf(to, "%d of %d rows held\n", held, judged)
	if held < judged {
		return errMissed
	}
	return nil
}

// attempt measures the rows of one measurement, again while one misses. What held once, holds.
func attempt(h *harness, rows []target, counts figures) (verdicts []verdict, err error) {
	for n := 1; n <= attempts; n++ {
		list, err := h.rowsOf(rows)
		if why := missing(""); errors.As(err, &why) {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", rows[0].work, why)
			for _, t := range rows {
				verdicts = append(verdicts, verdict{t, math.NaN(), math.NaN(), nil})
			}
			return verdicts, nil
		} else if err != nil {
			return nil, err
		}
		all, again := figures{}, false
		all.add(list)
		for i, t := range rows {
			v := verdict{t, t.ratio(all), t.ratio(counts), list}
			if math.IsNaN(v.time) {
				return nil, fmt.Errorf("%s of %v wasn't measured", t.work, t.who)
			}
			switch {
			case n == 1:
				verdicts = append(verdicts, v)
			case v.time < verdicts[i].time:
				verdicts[i] = v
			}
			again = again || !verdicts[i].held()
		}
		if !again {
			break
		}
	}
	return verdicts, nil
}

// explain prints what a time above its target comes from.
func (v verdict) explain(to io.Writer) {
	for _, s := range v.measured {
		if s.work == v.work {
			unit := "ns"
			if measure(s.unit) == s.unit {
				unit = s.unit
			}
			fmt.Fprintf(to, "%s takes long: %s, least %s %s, median %s\n", s.work, s.who,
				number(slices.Min(s.values)), unit, number(median(s.values)))
		}
	}
}

// rowsOf measures those who are in the rows, all of one measurement.
func (h *harness) rowsOf(rows []target) ([]series, error) {
	only := *h
	only.variants, only.only = false, []string{}
	for _, t := range rows {
		only.only = append(append(only.only, t.who...), t.of)
	}
	if l, ok := findLoop(rows[0].work); ok {
		return only.loop(l)
	}
	p, ok := findPart(rows[0].work)
	if !ok {
		return nil, fmt.Errorf("nobody measures %s", rows[0].work)
	}
	return p.measure(&only)
}

// measurementOf is what figures are measured together with: a loop's name, or a part's.
func measurementOf(work string) string {
	if l, ok := findLoop(work); ok {
		return l.name
	}
	p, _ := findPart(work)
	return p.name
}
