package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

func newPlanCommand(t *tool) *cobra.Command {
	return group("plan", "plans of budgets: checked, drawn, merged, suggested, deployed",
		"Plans of budgets, as JSON that budget.ReadPlan reads.",
		planCheckCommand(t), planDrawCommand(t), planDiffCommand(t), t.mergeCommand(planVersions),
		planSuggestCommand(t), planFleetCommand(t))
}

func planCheckCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "reports every error in plans, and their cost",
		Long: `Reports every error in plans by its line and key, and the cost of plans without
an error: addresses, resident memory at most, and the Go heap's share. A warning
is no error.`,
		Example: "  upfront plan check plan.json serve.json",
		Args:    takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, names []string) error {
			var result checkedPlans
			var errs []error
			for _, name := range names {
				p, err := checkPlan(name)
				if err != nil {
					p = checkedPlan{File: name, Error: err.Error()}
				}
				result.Plans, errs = append(result.Plans, p), append(errs, err)
			}
			errs = append(errs, result.err(), t.print(result, func(w io.Writer) error { return t.checked(w, result) }))
			return errors.Join(errs...)
		},
	}
}

// checkedPlans is the output of plan check.
type checkedPlans struct {
	Plans []checkedPlan `json:"plans"`
}

type checkedPlan struct {
	File     string      `json:"file"`
	Fine     bool        `json:"fine"`
	Error    string      `json:"error,omitempty"` // if the file can't be read
	Cost     budget.Cost `json:"cost,omitzero"`
	Faults   []planFault `json:"faults,omitempty"`
	Warnings []planFault `json:"warnings,omitempty"`
}

type planFault struct {
	Line int    `json:"line,omitempty"`
	Key  string `json:"key,omitempty"`
	Text string `json:"text"`
}

// err returns found if a plan has an error, which has been printed. It ignores files that can't be
// read: they have an error of their own.
func (c checkedPlans) err() error {
	for _, p := range c.Plans {
		if !p.Fine && p.Error == "" {
			return found{}
		}
	}
	return nil
}

// checkPlan checks a file. The error means that it can't be read.
func checkPlan(name string) (c checkedPlan, err error) {
	c.File = name
	plan, err := readPlan(name)
	if errors.As(err, new(found)) {
		c.Faults = faults(name, err)
		return c, nil
	} else if err != nil {
		return c, err
	}
	c.Fine = true
	if c.Cost, err = plan.Cost(); err != nil {
		return c, err
	}
	c.Warnings, err = warnings(name, plan)
	return c, err
}

// readPlan reads a plan. If the plan has errors, the error is a found.
func readPlan(name string) (budget.Plan, error) {
	plan, err := budget.ReadPlan(name)
	if err == nil || !isFault(name, err) {
		return plan, err
	}
	data, unread := jsonfile.ReadFile(name, reportMax, errTooLarge.Error())
	if unread == nil && kindOf(data) == reportKind { // as a plan, each metric is an error
		err = fmt.Errorf("%s:1: this is a report, not a plan: report draw shows it, plan suggest makes a plan of it",
			name)
	}
	if unread == nil && kindOf(data) == timelineKind {
		err = fmt.Errorf("%s:1: this is a timeline, not a plan: check compares it with a plan", name)
	}
	return plan, found{err}
}

// isFault reports whether an error is about a line of the file rather than the file itself.
func isFault(name string, err error) bool {
	return faultLine.MatchString(strings.TrimPrefix(err.Error(), name))
}

var (
	faultLine = regexp.MustCompile(`^:(\d+): `)
	faultKey  = regexp.MustCompile(`^([a-z_]+(?:\[\d+\])?(?:\.[a-z_]+)*): `)
)

// faults returns the lines of ReadPlan's error.
func faults(name string, err error) (list []planFault) {
	for text := range strings.Lines(err.Error()) {
		f := planFault{Text: strings.TrimPrefix(strings.TrimSuffix(text, "\n"), name)}
		if line := faultLine.FindStringSubmatch(f.Text); line != nil {
			f.Line, _ = strconv.Atoi(line[1]) // digits
			f.Text = f.Text[len(line[0]):]
		}
		if key := faultKey.FindStringSubmatch(f.Text); key != nil {
			f.Key, f.Text = key[1], f.Text[len(key[0]):]
		}
		list = append(list, f)
	}
	return list
}

// warnings returns the warnings about a plan without an error, with their lines in the file.
func warnings(name string, plan budget.Plan) ([]planFault, error) {
	err := plan.Check()
	if err == nil {
		return nil, nil
	}
	data, unread := jsonfile.ReadFile(name, reportMax, errTooLarge.Error())
	if unread != nil {
		return nil, unread
	}
	file, root := jsonfile.Parse(name+":", data)
	for m := range file.Members(root, nil) {
		if m.Name == "regions" || m.Name == "expected" {
			for item := range file.Items(m) {
				for range file.Members(item, nil) {
					continue // reading a member records its place
				}
			}
		}
	}
	before := "plan " + jsonfile.Quote(plan.Name) + ": "
	for text := range strings.Lines(err.Error()) {
		key, rest, _ := strings.Cut(strings.TrimPrefix(text, before), ": ")
		file.Fault(file.Given(key).At, key, "%s", strings.TrimSuffix(rest, "\n"))
	}
	return faults(name, file.Err()), nil
}

// checked writes the text of plan check, each line with a file and line number that editors
// understand.
func (t *tool) checked(w io.Writer, result checkedPlans) error {
	var b strings.Builder
	for _, p := range result.Plans {
		for _, f := range p.Faults {
			b.WriteString(f.at(printable(p.File)) + t.paint(red, f.text()) + "\n")
		}
		for _, f := range p.Warnings {
			b.WriteString(f.at(printable(p.File)) + f.text() + "\n")
		}
		if p.Fine {
			cost := strings.ReplaceAll(p.Cost.String(), ", ", ",\n  ")
			fmt.Fprintf(&b, "%s: %s; it takes\n  %s\n", printable(p.File), t.paint(green, "fine"), cost)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f planFault) at(name string) string {
	if f.Line == 0 {
		return name + ": "
	}
	return fmt.Sprintf("%s:%d: ", name, f.Line)
}

func (f planFault) text() string {
	if f.Key == "" {
		return f.Text
	}
	return f.Key + ": " + f.Text
}

func planDrawCommand(t *tool) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "draw FILE",
		Short:   "draws a plan as a memory map: as text, or with -o as SVG",
		Long:    `Draws a plan as a memory map: as text, or with -o as SVG, to scale.`,
		Example: "  upfront plan draw plan.json\n  upfront plan draw plan.json -o plan.svg",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, names []string) error {
			plan, err := readPlan(names[0])
			if err != nil {
				return err
			}
			return t.draw(out, plan.String(), func(w io.Writer) error { return view.Plan(w, plan) })
		},
	}
	outFlag(c, &out, "file of the picture, SVG")
	return c
}

func planDiffCommand(t *tool) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "lists the changes between two plans, and their cost",
		Long: `Lists the changes between two plans by name and key: + added, - gone, > moved, ~
changed. It ignores the order of keys and the form of sizes. The cost follows:
bytes of addresses, of resident memory at most and of each part, and the memory
that plan fleet requests without flags of its own. With -o it draws both maps,
as SVG.`,
		Example: "  upfront plan diff old.json plan.json\n  upfront plan diff old.json plan.json -o plans.svg",
		Args:    takes(2, 2),
		RunE: func(_ *cobra.Command, names []string) error {
			d, err := planVersions.diff(names)
			if err != nil {
				return err
			}
			var plans [2]budget.Plan
			for i, name := range names {
				if plans[i], err = readPlan(name); err != nil {
					return err
				}
			}
			if d.Cost, err = costsOf(plans); err != nil {
				return err
			}
			return t.diffResult(d, out, func(w io.Writer) error { return view.PlanDiff(w, plans[0], plans[1]) })
		},
	}
	outFlag(c, &out, "file of the picture, SVG")
	return c
}

func planSuggestCommand(t *tool) *cobra.Command {
	var out string
	var headroom, tolerance int
	var timelines []string
	c := &cobra.Command{
		Use:   "suggest REPORT...|TRACE...",
		Short: "makes a plan from reports or recordings of programs",
		Long: `Makes a plan for the largest needs of programs. The sources are reports, in
files or at URLs of live pages, or recordings (see upfront replay), which are
replayed in the plan as a proof. The plan has no spare room; --headroom adds
some. The note of a region names the source of its size. A part that was never
used, or not published yet by a running program, keeps its planned size. A part
that was full may need more. stderr lists both.

--expected adds the highest use of each part at boot, in loads and in play to
the plan, from timelines of the same runs, with a tolerance. Then check compares
later runs with it.`,
		Example: `  upfront plan suggest monday.json tuesday.json --headroom 10 -o plan.json
  upfront plan suggest monday.trace tuesday.trace -o plan.json
  upfront plan suggest monday.json --expected timeline.json -o plan.json
  upfront plan suggest http://127.0.0.1:8080/`,
		Args: takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, sources []string) error {
			if headroom < 0 || headroom > 1000 {
				return fmt.Errorf("--headroom %d: must be 0 to 1000", headroom)
			}
			if tolerance < 0 || tolerance > 99 {
				return fmt.Errorf("--tolerance %d: must be 0 to 99", tolerance)
			}
			expected, err := t.expected(timelines, budget.Percent(tolerance))
			if err != nil {
				return err
			}
			plan, err := t.suggested(sources)
			if err != nil {
				return err
			}
			if expected != nil {
				plan.Expected = expected
			}
			if err := plan.Check(); err != nil && !errors.Is(err, budget.ErrWarning) {
				return trouble(err) // the timelines may be of another plan
			}
			return t.suggest(out, plan, headroom)
		},
	}
	outFlag(c, &out, "file of the plan (default standard output)")
	c.Flags().IntVar(&headroom, "headroom", 0, "percent to add to each size and limit")
	c.Flags().StringArrayVar(&timelines, "expected", nil, "a timeline of the expected use; may be repeated")
	c.Flags().IntVar(&tolerance, "tolerance", 10, "percent by which the use may differ from --expected")
	return c
}

func (t *tool) suggested(sources []string) (plan budget.Plan, err error) {
	recordings := 0
	for _, source := range sources {
		if isRecording(source) {
			recordings++
		}
	}
	var reports []budget.Report
	switch recordings {
	case 0:
		if reports, err = t.readReports(sources); err == nil {
			plan, err = budget.Suggest(reports...)
		}
	case len(sources):
		t.progress.say("replaying")
		var report budget.Report
		report, err = record.Measure(sources...)
		plan, reports, sources = report.Plan, []budget.Report{report}, []string{"the recordings"}
	default:
		err = errors.New("reports and recordings together: give one kind; a recording shows more")
	}
	if err == nil {
		t.warn(unmeasured(sources, reports))
	}
	return plan, err
}

// unmeasured returns warnings about the parts whose need the reports don't show.
func unmeasured(sources []string, reports []budget.Report) (lines []string) {
	var parts []string
	used := map[string]bool{}
	for n, r := range reports {
		for _, p := range r.Parts() {
			if _, known := used[p.Name]; !known {
				parts = append(parts, p.Name)
			}
			fulls := p.Value("fulls")
			used[p.Name] = used[p.Name] || p.Value("arena_peak") > 0 || fulls > 0
			if fulls > 0 {
				lines = append(lines, fmt.Sprintf("%s: %s was full %s, so its need is unknown; %s",
					named(sources[n]), jsonfile.Echo(p.Name), times(fulls), echoWords(lastFull(p))))
			}
		}
	}
	for _, name := range parts {
		if !used[name] {
			lines = append(lines, fmt.Sprintf("%s: never used, or not published yet; it stays as planned",
				jsonfile.Echo(name)))
		}
	}
	return lines
}

// lastFull returns the message of the last arena of a part that was full.
func lastFull(p budget.Part) (says string) {
	for _, a := range p.Arenas {
		if a.Fulls > 0 {
			says = a.LastFull
		}
	}
	return says
}

func times(n uint64) string {
	if n == 1 {
		return "1 time"
	}
	return fmt.Sprintf("%d times", n)
}

func (t *tool) suggest(out string, plan budget.Plan, headroom int) error {
	if headroom != 0 {
		plan = plan.Headroom(headroom)
	}
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if out != "" {
		return t.write(out, text)
	}
	_, err = t.out().Write(text) // the plan is one JSON object, with or without --json
	return err
}
