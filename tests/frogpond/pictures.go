package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/inside"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view"
)

// pictures holds the data of -pictures: the budget after the map that filled the level most. It is
// nil without -pictures.
type pictures struct {
	report budget.Report
	inside inside.Contents
}

// look keeps the current state of the budget if the level is fuller than before.
func (p *pictures) look(b *budget.Budget) (err error) {
	level := b.Region("level")
	if p == nil || p.inside.Arena != "" && level.Report().Used <= p.inside.Used {
		return nil
	}
	p.report = b.Report()
	p.inside, err = inside.OfRegion(level)
	return err
}

// write draws all pictures as SVG, and the plan and the report also as text.
func (p *pictures) write(folder string, timeline timeline.Data) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("-pictures: %w", err)
	}
	plan := p.report.Plan
	for name, draw := range map[string]func(io.Writer) error{
		"plan.svg":     func(w io.Writer) error { return view.Plan(w, plan) },
		"plan.txt":     func(w io.Writer) error { _, err := io.WriteString(w, plan.String()); return err },
		"report.svg":   func(w io.Writer) error { return view.Report(w, p.report) },
		"report.txt":   func(w io.Writer) error { return view.ReportText(w, p.report) },
		"timeline.svg": func(w io.Writer) error { return view.Timeline(w, timeline) },
		"inside.svg":   func(w io.Writer) error { return view.Inside(w, p.inside) },
	} {
		if err := write("-pictures", filepath.Join(folder, name), draw); err != nil {
			return err
		}
	}
	return nil
}
