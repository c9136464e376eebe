package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/budget/view"
)

func newReportCommand(t *tool) *cobra.Command {
	return group("report", "reports of budgets: drawn and compared",
		`Reports show the memory that budgets used. A REPORT is a file with the JSON of a
budget.Report, as frogpond -report writes it, or the URL of a live page or of
its report.json.`,
		reportDrawCommand(t), reportDiffCommand(t))
}

func reportDrawCommand(t *tool) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "draw REPORT",
		Short: "draws the used memory of a budget: as text, or with -o as SVG",
		Long: `Draws the used memory of a budget and its users: as text, or with -o as SVG, to
scale.`,
		Example: "  upfront report draw report.json\n  upfront report draw http://127.0.0.1:8080/ -o report.svg",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, sources []string) error {
			r, err := t.readReport(sources[0])
			if err != nil {
				return err
			}
			var text strings.Builder
			if err := view.ReportText(&text, r); err != nil {
				return err
			}
			return t.draw(out, text.String(), func(w io.Writer) error { return view.Report(w, r) })
		},
	}
	outFlag(c, &out, "file of the picture, SVG")
	return c
}

func reportDiffCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "lists the changes between two reports by region, label and scope",
		Long: `Lists the changes between two reports by region, label and scope, the largest
first. Slots of a region count together: size and used are sums, and arena_peak
is the highest of one slot. budget.Figures explains the metrics of a part.
Addresses, resident pages and the use of the Go heap depend on the machine, and
are not compared.`,
		Example: "  upfront report diff main.json branch.json\n  upfront report diff main.json http://10.0.0.2:8080/",
		Args:    takes(2, 2),
		RunE: func(_ *cobra.Command, sources []string) error {
			reports, err := t.readReports(sources)
			if err != nil {
				return err
			}
			d := reportDiff{A: named(sources[0]), B: named(sources[1]),
				Differences: differences(reports[0], reports[1])}
			d.Equal = len(d.Differences) == 0
			if err := t.print(d, func(w io.Writer) error { return t.differ(w, d) }); err != nil || d.Equal {
				return err
			}
			return found{}
		},
	}
}
