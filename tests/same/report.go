package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// report is what is compared of frogpond's.
type report struct {
	WAD        string
	Workers    int
	Plan       json.RawMessage
	Levels     []level
	Regions    []region
	Leaks      int
	IdentityOK bool `json:"identity_ok"`
}

type level struct {
	Name, Hash, Error string
	Ticks             int
	Used              uint64
	Peak              uint64
	FinalizersRun     uint64  `json:"finalizers_run"`
	PoolCapacity      int     `json:"pool_capacity"`
	PoolPeak          int     `json:"pool_peak"`
	GoAllocs          *uint64 `json:"go_allocs"`
	BudgetFaults      *uint64 `json:"budget_faults"`
}

type region struct {
	Name             string
	Size, Used, Peak uint64
}

func (g region) isScratch() bool { return strings.HasPrefix(g.Name, "scratch ") }

// level is the first map of a name, or nil.
func (r *report) level(name string) *level {
	i := slices.IndexFunc(r.Levels, func(l level) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Levels[i]
}

// region is the one of a name, or one without any size.
func (r *report) region(name string) region {
	i := slices.IndexFunc(r.Regions, func(g region) bool { return g.Name == name })
	if i < 0 {
		return region{}
	}
	return r.Regions[i]
}

// plan is the plan's text, however it was laid out.
func (r *report) plan() string {
	var text bytes.Buffer
	if json.Compact(&text, r.Plan) != nil {
		return ""
	}
	return text.String()
}

// played is all that the regions' figures may depend on.
func (r *report) played() string {
	text := r.WAD + r.plan()
	for _, l := range r.Levels {
		text += fmt.Sprintf(" %s for %d", l.Name, l.Ticks)
	}
	return text
}

// quiet says whether the Go heap was left alone during play.
func (l level) quiet() bool { return l.GoAllocs != nil && *l.GoAllocs == 0 }

// differs says in which figures two maps differ; empty: in none.
func (l level) differs(other level) string {
	var out []string
	compare := func(what string, a, b any) {
		if a != b {
			out = append(out, fmt.Sprintf("%s %v, %v", what, a, b))
		}
	}
	compare("ticks", l.Ticks, other.Ticks)
	compare("hash", l.Hash, other.Hash)
	compare("used", l.Used, other.Used)
	compare("peak", l.Peak, other.Peak)
	compare("finalizers_run", l.FinalizersRun, other.FinalizersRun)
	compare("pool_capacity", l.PoolCapacity, other.PoolCapacity)
	compare("pool_peak", l.PoolPeak, other.PoolPeak)
	return strings.Join(out, "; ")
}

// source is where a report comes from.
type source struct {
	name    string
	command string // of the shell; empty: name is a file
	report  report
}

func newSource(arg string) *source {
	name, command, _ := strings.Cut(arg, "=")
	return &source{name: name, command: command}
}

// read reads the file, or runs the command, with more arguments behind its own: of two of a kind the last counts.
func (s *source) read(more ...string) (r report, err error) {
	var data []byte
	if s.command == "" {
		data, err = os.ReadFile(s.name)
	} else {
		data, err = exec.Command("sh", append([]string{"-c", s.command + ` "$@"`, s.name}, more...)...).Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

// quietAgain plays a map again, until the Go heap is left alone: the runtime allocates for itself now and then.
func (s *source) quietAgain(l level) bool {
	if s.command == "" {
		return false
	}
	for range 3 {
		r, err := s.read("-maps", l.Name, "-ticks", strconv.Itoa(l.Ticks))
		if again := r.level(l.Name); err == nil && again != nil && again.quiet() {
			return true
		}
	}
	return false
}

// firstTick says after which tick a map that two programs play first differs. It has them play it for fewer ticks, halving
// what is left: a state that has come apart stays so, since each tick's is made of the last one's and the hash covers it
// all. Were two states to meet again, this would find another tick at which they part.
func firstTick(a, b *source, name string, ticks int) string {
	same, differ := -1, ticks // ticks after which they are and do
	found, err := after(a, b, name, ticks)
	if err == nil && found == "" {
		return fmt.Sprintf("when it is not the only one played, of %d ticks", ticks)
	}
	for err == nil && same+1 < differ {
		var what string
		middle := (same + differ) / 2
		switch what, err = after(a, b, name, middle); what {
		case "":
			same = middle
		default:
			differ, found = middle, what
		}
	}
	switch {
	case err != nil:
		return fmt.Sprintf("by tick %d; playing it again: %v", differ, err)
	case differ == 0:
		return "before the first tick: " + found
	}
	return fmt.Sprintf("first at tick %d of %d: %s", differ, ticks, found)
}

// after says in what two programs differ that play a map for so many ticks.
func after(a, b *source, name string, ticks int) (string, error) {
	more := []string{"-maps", name, "-ticks", strconv.Itoa(ticks)}
	x, err := a.read(more...)
	y, err2 := b.read(more...)
	if err := errors.Join(err, err2); err != nil {
		return "", err
	}
	p, q := x.level(name), y.level(name)
	if p == nil || q == nil {
		return "", fmt.Errorf("no map %s", name)
	}
	return p.differs(*q), nil
}
