package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/platform"
)

// Result is the output of -json. A metric that was not measured is nil, which is null in JSON.
type Result struct {
	Arch        string        `json:"arch"`
	Go          string        `json:"go"`
	Build       string        `json:"build"`
	WAD         string        `json:"wad"`
	Workers     int           `json:"workers"`
	BudgetBase  string        `json:"budget_base"` // the address of the first byte, in hexadecimal
	BudgetBytes uint64        `json:"budget_bytes"`
	Seconds     float64       `json:"seconds"`
	Report      budget.Report `json:"report"` // with the last map loaded; its plan is as opened
	Levels      []LevelResult `json:"levels"`
	Leaks       int           `json:"leaks"`
	GoHeapPeak  uint64        `json:"go_heap_peak"` // MemStats.HeapSys: the largest it has been
	ResidentMax *uint64       `json:"rss_peak"`
	IdentityOK  bool          `json:"identity_ok"` // each walk accounted for every byte
	walk        error         // the first error of a walk

	Unsupported map[int]int `json:"specials_unsupported"` // lines by type
	FlowWrong   *int        `json:"flow_wrong"`           // lines and sectors, of a sweep
	Wrong       []string    `json:"wrong,omitempty"`      // the effect of each of these

	options *options
	start   time.Time
	close   error // errors of finalizers, leaks, Close and of files that couldn't be written

	timeline *timeline.Timeline // nil without -timeline and -pictures
	pictures *pictures          // nil without -pictures

	recording *record.Recording // nil without -record
	recorded  *os.File
}

// LevelResult is the result of a map. A map that was not run has only a name and an error.
type LevelResult struct {
	Name          string    `json:"name"`
	Error         string    `json:"error,omitempty"`
	Ticks         *int      `json:"ticks"`
	Hash          *string   `json:"hash"`
	LoadMicros    *int64    `json:"load_us"`
	Used          *uint64   `json:"used"`
	Peak          *uint64   `json:"peak"`
	StateBytes    *uint64   `json:"state_bytes"` // of the state that a tick leaves for the next
	StateHash     *string   `json:"state_hash"`  // of a snapshot of that state after the last tick
	FinalizersRun *uint64   `json:"finalizers_run"`
	PoolCapacity  *int      `json:"pool_capacity"`
	PoolPeak      *int      `json:"pool_peak"`
	TickTime      TickTimes `json:"tick_ns"`
	GoAllocs      *uint64   `json:"go_allocs"`
	Collections   *uint32   `json:"collections"` // of the Go heap, from the second tick on
	BudgetFaults  *int      `json:"budget_faults"`

	SnapshotBytes   *int   `json:"snapshot_bytes"`
	Rollbacks       *int   `json:"rollbacks"`         // with -rollback
	Resimulated     *int   `json:"resimulated_ticks"` // with -rollback
	Desyncs         *int   `json:"desyncs"`           // ticks, or games, that ended differently
	FirstDifference string `json:"first_difference,omitempty"`

	Specials       *int    `json:"specials"`        // lines with a special
	SpecialSectors *int    `json:"special_sectors"` // sectors with a special
	Acted          *int    `json:"specials_acted"`  // of a known type; in a sweep: that passed
	Idle           *int    `json:"specials_idle"`   // lines that passed without an effect
	SectorsActed   *int    `json:"sectors_acted"`
	FlowErrors     *uint32 `json:"flow_errors"` // events of its graph that didn't end well
	// events with no effect: no sector has the line's tag
	FlowNowhere *uint32 `json:"flow_nowhere"`
	FlowRefused *uint32 `json:"flow_refused"` // events with no effect: no mover was free

	err   error           // the reason why the map was not run
	first save.Difference // FirstDifference, before it is put into words
	when  string
	tick  int
}

// bad reports whether the map couldn't be loaded for another reason than its size.
func (l LevelResult) bad() bool { return l.err != nil && !errors.Is(l.err, budget.ErrFull) }

// TickTimes are percentiles in nanoseconds.
type TickTimes struct {
	P50 *uint32 `json:"p50"`
	P99 *uint32 `json:"p99"`
	Max *uint32 `json:"max"`
}

func measured[T any](v T) *T { return &v }

func newResult(o *options) *Result {
	r := &Result{Arch: runtime.GOARCH, Go: runtime.Version(), Build: build,
		WAD: strings.Join(o.WADs, ","), Workers: o.Workers, Levels: []LevelResult{}, IdentityOK: true,
		start: time.Now(), options: o, Unsupported: map[int]int{}}
	if o.sweep {
		r.FlowWrong = measured(0)
	}
	return r
}

func (r *Result) check(b *budget.Budget) {
	if _, err := b.Walk(); err != nil {
		r.IdentityOK, r.walk = false, err
	}
}

// sample starts the timeline, the pictures and the recording, each if its flag is set.
func (r *Result) sample(b *budget.Budget) (err error) {
	if r.options.timeline != "" || r.options.pictures != "" {
		r.timeline = timeline.Start(b, 0)
	}
	if r.options.pictures != "" {
		r.pictures = &pictures{}
	}
	if r.options.record == "" {
		return nil
	}
	if r.recorded, err = os.Create(r.options.record); err == nil {
		r.recording, err = record.Start(b, r.recorded)
	}
	if err != nil {
		return fmt.Errorf("-record: %w", err)
	}
	return nil
}

// finish closes the budget, takes the last metrics, and writes the files.
func (r *Result) finish(b *budget.Budget) {
	if r.Report.Arenas == nil {
		r.Report = b.Report()
	}
	r.BudgetBase = fmt.Sprintf("%p", b.Base().Bytes())
	r.close = errors.Join(r.close, r.pictures.look(b), b.Close())
	if r.recorded != nil {
		if err := errors.Join(r.recording.Close(), r.recorded.Close()); err != nil {
			r.close = errors.Join(r.close, fmt.Errorf("-record: %w", err))
		}
	}
	last := b.Report()
	if name := r.options.report; name != "" {
		r.close = errors.Join(r.close, writeJSON("-report", name, last))
	}
	if name := r.options.timeline; name != "" {
		r.close = errors.Join(r.close, writeJSON("-timeline", name, r.timeline.Read()))
	}
	if r.pictures != nil {
		r.close = errors.Join(r.close, r.pictures.write(r.options.pictures, r.timeline.Read()))
	}
	l := last.Leaks
	r.Leaks = l.Scopes + l.Owned + l.Finalizers + l.Slots + l.Scratch + l.Blocks
	r.BudgetBytes = r.Report.Size
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	r.GoHeapPeak = stats.HeapSys
	if peak, ok := platform.ResidentPeak(); ok {
		r.ResidentMax = &peak
	}
	r.Seconds = time.Since(r.start).Seconds()
}

// writeJSON writes the file of a flag.
func writeJSON(flag, name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		err = os.WriteFile(name, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// tickTimes returns percentiles of d. It sorts d in place.
func tickTimes(d []uint32) (t TickTimes) {
	if len(d) == 0 {
		return t
	}
	slices.Sort(d)
	at := func(thousandths int) *uint32 { return measured(d[(len(d)*thousandths+999)/1000-1]) }
	t.P50, t.P99, t.Max = at(500), at(990), at(1000)
	return t
}

func (r *Result) code() int {
	desynced := func(l LevelResult) bool { return l.Desyncs != nil && *l.Desyncs > 0 }
	switch {
	case r.close != nil || r.Leaks > 0 || !r.IdentityOK || len(r.Wrong) > 0 ||
		slices.ContainsFunc(r.Levels, desynced) || slices.ContainsFunc(r.Levels, LevelResult.bad):
		return 1
	case slices.ContainsFunc(r.Levels, func(l LevelResult) bool { return l.Error != "" }):
		return 3
	}
	return 0
}

// print prints the result, as text or JSON, and returns the exit code.
func (r *Result) print(stdout, stderr io.Writer, asJSON, verbose bool) int {
	if r.close != nil {
		fmt.Fprintln(stderr, "frogpond:", r.close)
	}
	for _, l := range r.Levels {
		if l.FirstDifference != "" {
			fmt.Fprintf(stderr, "frogpond: %s: played again, %s; the first %s\n", l.Name,
				differ(*l.Desyncs), l.FirstDifference)
		}
	}
	for _, wrong := range r.Wrong {
		fmt.Fprintln(stderr, "frogpond: -sweep:", wrong)
	}
	var text bytes.Buffer
	var err error
	if asJSON {
		e := json.NewEncoder(&text)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		r.tell(&text, verbose)
	}
	if err == nil {
		_, err = stdout.Write(text.Bytes())
	}
	if err != nil {
		fmt.Fprintln(stderr, "frogpond:", err)
		return 1
	}
	return r.code()
}
