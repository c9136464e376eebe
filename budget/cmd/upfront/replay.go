package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

func newReplayCommand(t *tool) *cobra.Command {
	planName, out := "", ""
	c := &cobra.Command{
		Use:   "replay TRACE... --plan FILE",
		Short: "replays recordings in a plan, up to a request that doesn't fit",
		Long: `Replays recordings of programs in a plan, and reports the peaks of each
recording that fits, or the first request that doesn't fit, with its place. A
TRACE is a file of package budget/record, as frogpond -record writes it. Without
--plan, the plan is the program's own.

A recording of a checked build has the line of code of each request. A release
build records only scopes, with the most bytes that each had in use.`,
		Example: "  upfront replay monday.trace tuesday.trace --plan smaller.json\n" +
			"  upfront replay monday.trace -o report.json && upfront report draw report.json",
		Args: takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, traces []string) error {
			if out != "" && len(traces) != 1 {
				return fmt.Errorf("-o writes the report of one recording, not of %d", len(traces))
			}
			var result replayed
			var reports []budget.Report
			for _, trace := range traces {
				one, report, err := t.replay(trace, planName)
				if err != nil {
					return err
				}
				result.Traces, reports = append(result.Traces, one), append(reports, report)
			}
			if out != "" && result.Traces[0].Fits {
				text, err := json.MarshalIndent(reports[0], "", "  ")
				if err != nil {
					return err
				}
				return t.write(out, append(text, '\n'))
			}
			err := t.print(result, func(w io.Writer) error { return t.replays(w, result, reports) })
			fails := func(r replay) bool { return !r.Fits }
			if err == nil && slices.ContainsFunc(result.Traces, fails) {
				return found{}
			}
			return err
		},
	}
	c.Flags().StringVar(&planName, "plan", "", "the plan to try (default the program's own)")
	outFlag(c, &out, "file of the report, if the replay fits: for report draw, check and plan suggest")
	return c
}

// replayed is the output of replay.
type replayed struct {
	Traces []replay `json:"traces"`
}

type replay struct {
	Trace string `json:"trace"`
	Plan  string `json:"plan,omitempty"`
	Fits  bool   `json:"fits"`
	record.Played
	Error  string   `json:"error,omitempty"` // the request that doesn't fit
	Key    string   `json:"key,omitempty"`   // of the plan, to raise
	Need   uint64   `json:"need,omitempty"`  // the least value of the key
	Scopes []string `json:"scopes,omitempty"`
	Made   []string `json:"made,omitempty"`
}

// replay plays a recording in a plan. A recording that doesn't fit is no error, but a result.
func (t *tool) replay(trace, planName string) (r replay, report budget.Report, err error) {
	t.progress.say("replaying " + trace)
	r = replay{Trace: trace, Plan: planName}
	file, err := os.Open(trace)
	if err != nil {
		return r, report, err
	}
	defer file.Close()
	plan, err := record.Plan(file)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return r, report, fmt.Errorf("%s: %w", trace, err)
	}
	if planName != "" {
		if plan, err = readPlan(planName); err != nil {
			return r, report, trouble(err)
		}
	}
	report, r.Played, err = record.Replay(plan, file)
	if failed, ok := errors.AsType[*record.Error](err); ok {
		r.Error, r.Scopes, r.Made = failed.Error(), failed.Scopes, failed.Made
		if full, ok := errors.AsType[*scope.FullError](err); ok {
			r.Key, r.Need = full.Key, full.Need
		}
		return r, report, nil
	}
	if err != nil {
		return r, report, fmt.Errorf("%s: %w", trace, err)
	}
	r.Fits = true
	return r, report, nil
}

// trouble returns an error of the same text that isn't a found, so that the exit code is 2.
func trouble(err error) error { return errors.New(err.Error()) }

// replays writes the text of replay: the peaks of a recording that fits, or the error.
func (t *tool) replays(w io.Writer, result replayed, reports []budget.Report) error {
	for i, r := range result.Traces {
		in := "its own plan"
		if r.Plan != "" {
			in = printable(r.Plan)
		}
		if !r.Fits {
			fmt.Fprintf(w, "%s: %s in %s: %s\n", printable(r.Trace), t.paint(red, "doesn't fit"), in,
				printable(r.Error))
			continue
		}
		fmt.Fprintf(w, "%s: %s in %s; %s, %s\n", printable(r.Trace), t.paint(green, "fits"), in,
			counted(r.Events, "event"), counted(uint64(r.Marks), "mark"))
		if !r.Whole {
			fmt.Fprintf(w, "the recording ends early: its program didn't close it\n")
		}
		if err := t.table(w, peakRows(reports[i])); err != nil {
			return err
		}
	}
	return nil
}

// peakRows returns a table of the plan's parts with their peak, size and free share.
func peakRows(report budget.Report) [][]cell {
	rows := [][]cell{{left(""), right("peak"), right("size"), right("free")}}
	for _, p := range report.Parts() {
		peak, size := p.Value("arena_peak"), p.Value("arena_size")
		free := fmt.Sprintf("%.1f %%", 100-100*float64(peak)/float64(size))
		rows = append(rows, []cell{echoed(p.Name), right(fmt.Sprint(peak)), right(fmt.Sprint(size)), right(free)})
	}
	return rows
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// isRecording reports whether a file begins as a recording does.
func isRecording(name string) bool {
	if isURL(name) {
		return false
	}
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	first := make([]byte, len(record.FirstLine))
	_, err = io.ReadFull(file, first)
	return err == nil && bytes.Equal(first, []byte(record.FirstLine))
}
