package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// bandsResult is the output of check against a plan.
type bandsResult struct {
	Against  string        `json:"against"`
	Fine     bool          `json:"fine"`
	Above    int           `json:"above"` // the number of uses above their tolerance
	Sources  []bandsSource `json:"sources"`
	warnings []string
}

type bandsSource struct {
	Source string `json:"source"`
	Uses   []use  `json:"uses"`
}

// use is the highest use of a part or a label at boot, in loads, or in play, next to the
// expectation. A report has no time: its uses are peaks, without a tick.
type use struct {
	Part      string  `json:"part"`
	Label     string  `json:"label,omitempty"`
	At        string  `json:"at"` // "boot", "load", "play" or "peak"
	Used      uint64  `json:"used"`
	Tick      *uint64 `json:"tick,omitempty"` // the first of the sample with that use
	Expected  uint64  `json:"expected"`
	Tolerance string  `json:"tolerance"`
	Least     uint64  `json:"least"`
	Most      uint64  `json:"most"`
	Above     *uint64 `json:"above_since,omitempty"` // the first tick above Most
	Verdict   string  `json:"verdict"`               // "fine", "above" or "below"
}

func newUse(e budget.Expected, at string, used, expected uint64) use {
	u := use{Part: e.Part, Label: e.Label, At: at, Used: used, Expected: expected,
		Tolerance: fmt.Sprintf("%d%%", e.Tolerance), Verdict: "fine"}
	u.Least, u.Most = e.Band(expected)
	if u.Used > u.Most {
		u.Verdict = "above"
	} else if u.Used < u.Least {
		u.Verdict = "below"
	}
	return u
}

// isPlan reports whether a source is a file with a plan.
func isPlan(name string) bool {
	if isURL(name) {
		return false
	}
	data, err := jsonfile.ReadFile(name, reportMax, errTooLarge.Error())
	return err == nil && kindOf(data) == planKind
}

// checkExpected compares timelines and reports with the expectations of a plan.
func (t *tool) checkExpected(sources []string, against string) (result bandsResult, err error) {
	plan, err := readPlan(against)
	if err != nil {
		return result, trouble(err)
	}
	if len(plan.Expected) == 0 {
		return result, fmt.Errorf("%s: the plan expects nothing; plan suggest --expected writes expectations", against)
	}
	result.Against = against
	var errs []error
	for _, source := range sources {
		name := named(source)
		t.progress.say("reading " + name)
		data, err := t.readSource(source)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		uses, labels, err := usesOf(name, data, plan.Expected)
		if len(labels) != 0 {
			result.warnings = append(result.warnings,
				fmt.Sprintf("%s: a timeline has no labels; compare a report too, for %s",
					name, strings.Join(labels, ", ")))
		}
		for _, u := range uses {
			if u.Verdict == "above" {
				result.Above++
			}
		}
		result.Sources, errs = append(result.Sources, bandsSource{name, uses}), append(errs, err)
	}
	result.Fine = result.Above == 0
	return result, errors.Join(errs...)
}

// usesOf returns the uses of expectations in a timeline or a report, and the labels that a timeline
// doesn't have.
func usesOf(name string, data []byte, list []budget.Expected) (uses []use, labels []string, err error) {
	var of func(e budget.Expected) (list []use, has bool)
	if kindOf(data) == timelineKind {
		var d timeline.Data
		d, err = parseTimeline(name, data)
		of = func(e budget.Expected) ([]use, bool) { return usesInTime(d, e) }
	} else {
		var r budget.Report
		r, err = parseReport(name, data)
		parts := r.Parts()
		of = func(e budget.Expected) ([]use, bool) { return usesInReport(parts, e) }
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range list {
		if e.Label != "" && kindOf(data) == timelineKind {
			labels = append(labels, subject(e.Part, e.Label))
			continue
		}
		found, has := of(e)
		if !has {
			return nil, nil, fmt.Errorf("%s: it has no part %s, so it is of another plan", name, jsonfile.Echo(e.Part))
		}
		uses = append(uses, found...)
	}
	return uses, labels, nil
}

func parseTimeline(source string, data []byte) (d timeline.Data, err error) {
	if kindOf(data) != timelineKind {
		return d, fmt.Errorf("%s: no timeline: give the JSON of a timeline.Data, as frogpond -timeline writes",
			source)
	}
	if err = decode(source, data, &d); err == nil && len(d.Arenas) > arenasMost {
		err = fmt.Errorf("%s: no timeline: it has %d arenas, and a budget has at most %d", source, len(d.Arenas),
			arenasMost)
	}
	return d, err
}

// expected returns the use in timelines as expectations of a plan.
func (t *tool) expected(sources []string, tolerance budget.Percent) ([]budget.Expected, error) {
	var list []timeline.Data
	var errs []error
	for _, source := range sources {
		t.progress.say("reading " + named(source))
		data, err := t.readSource(source)
		if err == nil {
			var d timeline.Data
			d, err = parseTimeline(named(source), data)
			list = append(list, d)
		}
		errs = append(errs, err)
	}
	return timeline.Expect(tolerance, list...), errors.Join(errs...)
}

func subject(part, label string) string {
	if label == "" {
		return jsonfile.Echo(part)
	}
	return jsonfile.Echo(part) + " label " + jsonfile.Echo(label)
}

func usesInTime(d timeline.Data, e budget.Expected) (list []use, has bool) {
	moments := d.Moments(e)
	for _, at := range []string{"boot", "load", "play"} {
		var first, above *uint64
		var used, expected uint64
		for i, m := range moments {
			if m.At != at || m.Expected == 0 {
				continue
			}
			tick := uint64(i) * d.Step
			if _, most := e.Band(m.Expected); above == nil && m.Used > most {
				above = &tick
			}
			if first == nil || m.Used > used {
				first, used, expected = &tick, m.Used, m.Expected
			}
		}
		if first != nil {
			u := newUse(e, at, used, expected)
			u.Tick, u.Above = first, above
			list = append(list, u)
		}
	}
	return list, slices.ContainsFunc(d.Arenas, func(line timeline.Arena) bool { return line.Part == e.Part })
}

// usesInReport returns the peak of a part or a label, for which the largest of the expected sizes
// counts.
func usesInReport(parts []budget.Part, e budget.Expected) (list []use, has bool) {
	for _, p := range parts {
		if p.Name != e.Part {
			continue
		}
		peak := p.Value("arena_peak")
		if e.Label != "" {
			peak = 0 // of a label that was never used
			for _, u := range p.Labels {
				if u.Name == e.Label {
					peak = u.Peak
				}
			}
		}
		return []use{newUse(e, "peak", peak, e.Most())}, true
	}
	return nil, false
}

// compared writes the text of check against a plan.
func (t *tool) compared(w io.Writer, result bandsResult) error {
	for _, s := range result.Sources {
		if len(result.Sources) > 1 {
			fmt.Fprintf(w, "%s:\n", printable(s.Source))
		}
		rows := [][]cell{{left(""), left(""), right("used"), right("tick"), right("expected"), right(""), left("")}}
		for _, u := range s.Uses {
			rows = append(rows, u.row())
		}
		if err := t.table(w, rows); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	says := t.paint(green, "fine") + ": no use was above its tolerance"
	if !result.Fine {
		says = t.paint(red, counted(uint64(result.Above), "use")+" above tolerance") +
			"; if that is intended, raise expected in " + printable(result.Against)
	}
	_, err := fmt.Fprintln(w, says)
	return err
}

func (u use) row() []cell {
	tick, verdict := "", cell{}
	if u.Tick != nil {
		tick = fmt.Sprint(*u.Tick)
	}
	switch {
	case u.Verdict == "below":
		verdict.text = "below"
	case u.Above != nil:
		verdict = cell{text: fmt.Sprintf("above since tick %d", *u.Above), colour: red}
	case u.Verdict == "above":
		verdict = cell{text: "above", colour: red}
	}
	return []cell{left(subject(u.Part, u.Label)), left(u.At), right(fmt.Sprint(u.Used)), right(tick),
		right(fmt.Sprint(u.Expected)), right("±" + u.Tolerance), verdict}
}
