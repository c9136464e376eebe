package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/tests/clients/paired"
	"github.com/upfront-mem/upfront/tests/step"
)

type result struct {
	Passed    bool   `json:"passed"`
	Tests     int    `json:"tests"` // subtests included
	Skipped   int    `json:"skipped"`
	LiveAtEnd uint64 `json:"live_at_end"` // bytes
	// time of the headline, relative to its own default
	Ratio        float64         `json:"ratio"`
	GarbageRatio float64         `json:"garbage_ratio"` // the same of the garbage
	Figures      []paired.Figure `json:"figures"`

	saidLive bool
}

// event is a line of go test -json.
type event struct{ Action, Package, ImportPath, Test, Output string }

// prove runs a client's tests and prints a line, after the output of failed tests.
func prove(name string, o options) (*result, error) {
	cmd := exec.Command("go", arguments(name, o)...)
	cmd.Dir, cmd.Stderr = name, os.Stderr
	if o.readme { // a figure for a page is of the long form
		cmd.Env = append(os.Environ(), step.Variable+"="+step.Soak.String())
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err = cmd.Start(); err != nil {
		return nil, err
	}
	r := &result{}
	err = r.read(out, os.Stdout)
	if _, rest := io.Copy(io.Discard, out); rest != nil && err == nil {
		err = rest
	}
	if ended := cmd.Wait(); err == nil {
		err = ended
	}
	if err == nil {
		err = r.lacks()
	}
	r.Passed = err == nil
	fmt.Printf("%-22s %s, %.1f s\n", name, r, time.Since(start).Seconds())
	return r, err
}

func arguments(name string, o options) []string {
	args := []string{"test", "-json", "-count=1"}
	if !o.full() {
		args = append(args, "-tags="+shortTags[name])
	}
	if o.readme {
		args = append(args, "-run=^TestFigures$")
	}
	return append(args, "-timeout=2h", "-vet=off", "./...") // make check and make lint vet them
}

// read reads the events of a run, and shows the output of tests that failed or found no tool.
func (r *result) read(events io.Reader, show io.Writer) error {
	said := map[string]*strings.Builder{} // by test
	decoder := json.NewDecoder(events)
	for {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		key := e.Package + e.ImportPath + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			if said[key] == nil {
				said[key] = &strings.Builder{}
			}
			said[key].WriteString(e.Output)
			if err := r.note(e.Output); err != nil {
				return err
			}
		case "skip":
			if said[key] != nil && strings.Contains(said[key].String(), step.Unproven) {
				fmt.Fprint(show, said[key])
			}
		case "fail", "build-fail":
			if said[key] != nil {
				fmt.Fprint(show, said[key])
			}
		}
		r.count(e)
	}
}

// count counts tests, but not packages, by their end.
func (r *result) count(e event) {
	if e.Test == "" {
		return
	}
	switch e.Action {
	case "pass", "fail":
		r.Tests++
	case "skip":
		r.Skipped++
	}
}

// note reads a line of package paired.
func (r *result) note(line string) error {
	if _, text, found := strings.Cut(line, ": "+paired.FigureMark); found {
		var f paired.Figure
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return err
		}
		if r.Figures = append(r.Figures, f); len(r.Figures) == 1 {
			r.Ratio, r.GarbageRatio = f.Ratio, f.GarbageRatio
		}
	}
	if _, text, found := strings.Cut(line, ": "+paired.LiveMark); found {
		bytes, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		r.LiveAtEnd, r.saidLive = r.LiveAtEnd+bytes, true
		return err
	}
	return nil
}

// lacks returns an error if a client that passed logged no figure or no live bytes.
func (r *result) lacks() error {
	switch {
	case len(r.Figures) == 0:
		return errors.New("no test logged a figure (paired.Compare)")
	case !r.saidLive:
		return errors.New("no test logged the bytes that are live at the end (paired.Live)")
	}
	return nil
}

func (r *result) String() string {
	ended := "ok"
	if !r.Passed {
		ended = "FAIL"
	}
	return fmt.Sprintf("%-4s %d tests, %d skipped, %d bytes live at the end, %.2f of the time, %.4f of the garbage",
		ended, r.Tests, r.Skipped, r.LiveAtEnd, r.Ratio, r.GarbageRatio)
}
