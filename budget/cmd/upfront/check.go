package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// gate is the allowed growth: the larger of a share of the old bytes and a number of bytes.
type gate struct {
	share percent
	bytes uint64
}

// aCacheLine is a growth that alignment alone can cause, in bytes.
const aCacheLine = 64

func newCheckCommand(t *tool) *cobra.Command {
	g, against := gate{share: 3 * onePercent}, ""
	c := &cobra.Command{
		Use:   "check REPORT... --against BASE",
		Short: "compares reports with a base or a plan, and fails on growth",
		Long: `Compares each REPORT with a BASE, a kept report of the same plan and run. It
lists the changes by region, label and scope, and fails if a metric grew by more
than allowed.

Sizes and peaks (with the plan's go_heap.limit) may grow by --max-growth of
their old value, or by --min-growth bytes if that is more. A new label or scope
may take --max-growth of its region's peak, and a region that the base didn't
use, --max-growth of its size. Fulls, leaks and errors may not grow at all.
Metrics that shrank are shown and pass; so do labels and scopes that are gone.
The memory outside (Report.Outside) differs between runs: it may also grow by
1 MiB, or by its error, and is listed only if it grew by more. No other metric
is judged: neither current use, nor counts of open scopes, nor metrics that
depend on the machine. report diff shows more.

A report with other regions than the base has another plan: the exit code is 2.
In that case, or if the growth is intended, keep the new report as the base.

With --json, a is the metric of the base, b that of the report.

If BASE is a plan with expected sizes, each REPORT may also be a timeline, as
frogpond -timeline writes it. The highest use at boot, in loads and in play is
compared with the expected size, and fails if it is above the tolerance. A
report has only peaks, and a timeline has no labels.`,
		Example: "  upfront check now.json --against base.json --max-growth 3%\n" +
			"  upfront check http://127.0.0.1:8035/ --against base.json --min-growth 4096\n" +
			"  upfront check timeline.json --against plan.json",
		Args: takes(1, math.MaxInt),
		RunE: func(c *cobra.Command, sources []string) error {
			if against == "" {
				return errors.New("--against is missing: give the base, a report in a file or at a URL")
			}
			if isPlan(against) {
				for _, flag := range []string{"max-growth", "min-growth"} {
					if c.Flags().Changed(flag) {
						return fmt.Errorf("--%s is for a report as the base; the tolerance is in the plan", flag)
					}
				}
				result, err := t.checkExpected(sources, against)
				if err == nil {
					err = t.print(result, func(w io.Writer) error { return t.compared(w, result) })
				}
				t.warn(result.warnings)
				if err != nil || result.Fine {
					return err
				}
				return found{}
			}
			if g.share == 0 && !c.Flags().Changed("min-growth") {
				g.bytes = 0 // with --max-growth 0% alone no byte is allowed
			}
			result, err := t.check(sources, against, g)
			if err != nil {
				return err
			}
			err = t.print(result, func(w io.Writer) error { return t.gated(w, result) })
			t.warn(result.warnings)
			if err != nil || result.Fine {
				return err
			}
			return found{}
		},
	}
	c.Flags().StringVar(&against, "against", "", "the base: a kept report, a file or URL; or a plan")
	c.Flags().Var(&g.share, "max-growth", "how much sizes and peaks may grow")
	c.Flags().Uint64Var(&g.bytes, "min-growth", aCacheLine,
		"growth in bytes that is always allowed; 0 with --max-growth 0%")
	return c
}

// gateResult is the output of check.
type gateResult struct {
	Against   string       `json:"against"`
	MaxGrowth string       `json:"max_growth"`
	MinGrowth uint64       `json:"min_growth"`
	Fine      bool         `json:"fine"`
	TooMuch   int          `json:"too_much"` // the number of metrics
	Reports   []gateReport `json:"reports"`
	warnings  []string
}

// gateReport is a report compared with the base: the budget's size, and the changed metrics.
type gateReport struct {
	Report  string   `json:"report"`
	Figures []growth `json:"figures"`
}

// growth is a metric of the base and of a report; it may have shrunk.
type growth struct {
	difference
	Allowed uint64 `json:"allowed"`
	TooMuch bool   `json:"too_much"`
}

func (t *tool) check(sources []string, against string, g gate) (result gateResult, err error) {
	reports, err := t.readReports(append([]string{against}, sources...))
	if err != nil {
		return result, err
	}
	result = gateResult{Against: named(against), MaxGrowth: g.share.String(), MinGrowth: g.bytes}
	base := figuresOf(reports[0])
	var errs []error
	for i, r := range reports[1:] {
		name := named(sources[i])
		if others := otherRegions(base, figuresOf(r)); others != "" {
			errs = append(errs, fmt.Errorf("%s: its regions differ from those of %s (%s), so it has another plan; "+
				"if that is intended, keep it as the base",
				name, result.Against, others))
		}
		if idle := unused(base, figuresOf(r)); len(idle) != 0 {
			result.warnings = append(result.warnings,
				fmt.Sprintf("%s: unused regions that %s used: %s; is it the same run?",
					name, result.Against, strings.Join(idle, ", ")))
		}
		result.Reports = append(result.Reports, gateReport{name, g.growths(base, reports[0], r)})
	}
	for _, r := range result.Reports {
		for _, x := range r.Figures {
			if x.TooMuch {
				result.TooMuch++
			}
		}
	}
	result.Fine = result.TooMuch == 0
	return result, errors.Join(errs...)
}

// growths returns the differences that a gate judges, in the order of report diff, with the
// budget's size first, even if it is unchanged.
func (g gate) growths(base figures, from, to budget.Report) (list []growth) {
	all := differences(from, to)
	if len(all) == 0 || all[0].whose != (whose{}) || all[0].Figure != "size" {
		all = append([]difference{{Figure: "size", A: from.Size, B: to.Size}}, all...)
	}
	for _, d := range all {
		switch judged(known[d.Figure]) {
		case inBytes:
			allowed := max(g.share.of(base.before(d)), g.bytes)
			list = append(list, growth{d, allowed, d.B > d.A && d.B-d.A > allowed})
		case atAll:
			list = append(list, growth{d, 0, d.B > d.A})
		}
	}
	if d, allowed := g.outside(from.Outside, to.Outside); d.B > d.A && d.B-d.A > allowed {
		list = append(list, growth{d, allowed, true})
	}
	return list
}

// outside returns the difference of the memory outside, and its allowed growth. The difference is 0
// if a report doesn't know that memory.
func (g gate) outside(from, to budget.Outside) (d difference, allowed uint64) {
	d = difference{Figure: "outside", A: from.Bytes, B: to.Bytes}
	if from.Process == 0 || to.Process == 0 { // not known
		d.B = d.A
	}
	return d, max(g.share.of(d.A), g.bytes, budget.MiB, from.Error, to.Error)
}

// judgement is a gate's rule for a metric.
type judgement int

const (
	notJudged judgement = iota
	inBytes             // the metric may grow by a share
	atAll               // one more is too much
)

func judged(f budget.Figure) judgement {
	switch {
	case f.Kind == "fault":
		return atAll
	case f.Bytes && (f.Kind == "planned" || f.Kind == "peak"):
		return inBytes
	}
	return notJudged
}

// before returns the base of a metric's relative growth: its old value. If that is 0, the base is
// the region's peak (for a label or scope) or else its size.
func (f figures) before(d difference) uint64 {
	was, region := d.A, whose{Region: d.Region}
	if was == 0 && d.Kind != "" {
		was = f.values[figure{region, "arena_peak"}]
	}
	if was == 0 && d.Region != "" {
		was = f.values[figure{region, "arena_size"}]
	}
	return was
}

// regions returns the names of the regions for which fn is true, for a message.
func (f figures) regions(fn func(region whose) bool) (names []string) {
	const most = 5
	more := 0
	for _, key := range f.order {
		switch {
		case key.name != "arenas" || key.Region == "" || !fn(key.whose):
		case len(names) == most:
			more++
		default:
			names = append(names, jsonfile.Echo(key.Region))
		}
	}
	if more != 0 {
		names = append(names, fmt.Sprint(more, " more"))
	}
	return names
}

// otherRegions lists the regions that only one of two reports has, for a message.
func otherRegions(base, now figures) string {
	var says []string
	lacks := func(what string, names []string) {
		if len(names) != 0 {
			says = append(says, what+" "+strings.Join(names, ", "))
		}
	}
	lacks("new:", now.regions(func(w whose) bool { return !base.has(w) }))
	lacks("gone:", base.regions(func(w whose) bool { return !now.has(w) }))
	return strings.Join(says, "; ")
}

func (f figures) has(region whose) bool {
	_, has := f.values[figure{region, "arenas"}]
	return has
}

// unused returns the regions that only the base used. They show a run that ended early, and so
// needed less.
func unused(base, now figures) []string {
	return base.regions(func(w whose) bool {
		peak := figure{w, "arena_peak"}
		return base.values[peak] != 0 && now.values[peak] == 0
	})
}

// gated writes the text of check.
func (t *tool) gated(w io.Writer, result gateResult) error {
	for _, r := range result.Reports {
		rows := [][]cell{{left(""), left(""), right("base"), right("now"), right("change"), right(""),
			right("allowed")}}
		if len(result.Reports) > 1 {
			fmt.Fprintf(w, "%s:\n", printable(r.Report))
		}
		var names naming
		for _, x := range r.Figures {
			rows = append(rows, x.row(names.of(x.whose)))
		}
		if err := t.table(w, rows); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	allows := fmt.Sprintf("%s (--max-growth), or %d bytes (--min-growth) if that is more",
		result.MaxGrowth, result.MinGrowth)
	if result.Fine {
		return t.says(w, green, "fine", ": no metric grew by more than "+allows)
	}
	if err := t.says(w, red, metricsGrew(result.TooMuch), " by more than allowed: "+allows+"."); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "If that is intended, record %s again.\n", result.Against)
	return err
}

// says writes a sentence as lines, with its first words in a colour.
func (t *tool) says(w io.Writer, c colour, first, rest string) error {
	text := strings.TrimPrefix(wrap(first+rest, ""), first)
	_, err := fmt.Fprintln(w, t.paint(c, first)+text)
	return err
}

func metricsGrew(n int) string {
	if n == 1 {
		return "1 metric grew"
	}
	return fmt.Sprint(n, " metrics grew")
}

// row adds the allowed growth and the verdict to the row of a difference.
func (x growth) row(name string) []cell {
	row := x.difference.row(name)
	switch {
	case x.A == x.B:
		return row[:4]
	case x.B < x.A:
		return row
	case !x.TooMuch:
		row[4].colour, row[5].colour = "", ""
	}
	row = append(row, right("+"+strconv.FormatUint(x.Allowed, 10)))
	if x.TooMuch {
		row = append(row, cell{text: "too much", colour: red})
	}
	return row
}

// percent is a flag for a share, in millionths.
type percent uint64

const (
	onePercent  percent = 10_000
	percentMost int     = 1000 // the most percents of a flag
)

func (p percent) String() string {
	return strconv.FormatFloat(float64(p)/float64(onePercent), 'f', -1, 64) + "%"
}
func (p *percent) Type() string { return "percent" }

// Set reads "3%", "3" or "0.5%".
func (p *percent) Set(text string) error {
	value, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	if err != nil || !(value >= 0 && value <= float64(percentMost)) { // NaN is neither
		return fmt.Errorf("must be 0%% to %d%%, such as 3%%", percentMost)
	}
	*p = percent(math.Round(value * float64(onePercent)))
	return nil
}

// of returns the share of a number, rounded down, and at most the largest number.
func (p percent) of(n uint64) uint64 {
	const whole = uint64(100 * onePercent)
	high, low := bits.Mul64(n, uint64(p))
	if high >= whole {
		return math.MaxUint64
	}
	share, _ := bits.Div64(high, low, whole)
	return share
}
