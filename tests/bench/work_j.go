package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var workJ = work{
	letter: "J", title: "frogpond's tick, 20,000 of them on MAP03 of the built-in levels, the least of five equal plays of each; " +
		"and on the plain Go heap",
	absent: "The game on the Go heap is frogpond's own source with its makers, pools and offsets replaced (testdata/goheap); both end in " +
		"the same state.",
	other: measureJ,
}

const (
	ticksJ   = 20_000
	replaysJ = 5
)

// report is what is read of frogpond's JSON.
type report struct {
	Levels []struct {
		Hash         string
		Allocs       float64 `json:"go_allocs"`
		BudgetFaults float64 `json:"budget_faults"`
		Collections  float64 `json:"collections"`
	}
}

func measureJ(h *harness) ([]series, error) {
	folder, err := os.MkdirTemp("", "frogpond")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	ponds := []*pond{{who: library}, {who: goHeap}}
	for _, p := range ponds {
		if !h.wants(p.who) {
			continue
		}
		if p.program, err = buildPond(folder, p.who); err != nil {
			return nil, err
		}
	}
	for range replaysJ {
		for _, p := range ponds {
			if p.program == "" {
				continue
			}
			if err := p.play(filepath.Join(folder, "durations")); err != nil {
				return nil, err
			}
			if p.hash != ponds[0].hash {
				return nil, fmt.Errorf("the game of %s ended in %s, that of %s in %s", p.who, p.hash, library, ponds[0].hash)
			}
		}
	}
	var list []series
	for i, f := range figuresJ {
		for _, p := range ponds {
			if p.program == "" {
				continue
			}
			x := newSeries("J "+f.name, f.unit, p.who)
			if x.values = []float64{p.tick(f.rank)}; f.rank == 0 {
				x.values = p.figures[i]
			}
			list = append(list, x)
		}
	}
	return list, nil
}

// figuresJ are ranks of the ticks, in thousandths, and what a report says of one play.
var figuresJ = []struct {
	name, unit string
	rank       int
	of         func(report) float64
}{
	{name: "tick p50", unit: "tick", rank: 500},
	{name: "tick p99.9", unit: "tick", rank: 999},
	{name: "collections", unit: "in all", of: func(r report) float64 { return r.Levels[0].Collections }},
	{name: "Go allocations", unit: "in all", of: func(r report) float64 { return r.Levels[0].Allocs }},
	{name: "budget faults", unit: "in all", of: func(r report) float64 { return r.Levels[0].BudgetFaults }},
}

// pond is a program that plays the same game each time: the least that a tick ever took is what it
// takes when nobody disturbs.
type pond struct {
	who, program, hash string
	least              []uint32
	figures            [5][]float64 // of figuresJ, one value a play
}

func (p *pond) play(durations string) error {
	out, err := exec.Command(p.program, "-json", "-wad", "builtin", "-maps", "MAP03", "-ticks", fmt.Sprint(ticksJ),
		"-durations", durations).Output()
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		return err
	}
	text, err := os.ReadFile(durations)
	if err != nil {
		return err
	}
	ticks := strings.Fields(string(text))
	if len(r.Levels) != 1 || len(ticks) != ticksJ {
		return fmt.Errorf("frogpond played %d maps, and %d ticks", len(r.Levels), len(ticks))
	}
	if p.least == nil {
		p.least = slices.Repeat([]uint32{math.MaxUint32}, ticksJ)
	}
	for i, tick := range ticks {
		took, err := strconv.ParseUint(tick, 10, 32)
		if err != nil {
			return err
		}
		p.least[i] = min(p.least[i], uint32(took))
	}
	for i, f := range figuresJ {
		if f.of != nil {
			p.figures[i] = append(p.figures[i], f.of(r))
		}
	}
	p.hash = r.Levels[0].Hash
	return nil
}

// tick is what of a thousand ticks so many took at most.
func (p *pond) tick(rank int) float64 {
	sorted := slices.Sorted(slices.Values(p.least))
	return float64(sorted[max(1, (len(sorted)*rank+999)/1000)-1])
}

// onGoHeap is what frogpond's source says of memory, and what it says on the plain Go heap.
var onGoHeap = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`scope\.(Plain|Pool|Maker)\[`), "heap$1["},
	{regexp.MustCompile(`arena\.(Ptr|Slice)\[`), "heap$1["},
	{regexp.MustCompile(`arena\.(PtrTo|SliceOf)\(`), "heap$1("},
}

// buildPond compiles frogpond as it is, or, in a module of its own, with its memory replaced.
func buildPond(folder, who string) (program string, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	if who == library {
		program = filepath.Join(folder, "frogpond")
		return program, goCommand(root, "build", "-o", program, "./tests/frogpond")
	}
	dir := filepath.Join(folder, strings.ReplaceAll(who, " ", ""))
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "tests", "frogpond"))); err != nil {
		return "", err
	}
	if err := moveToGoHeap(dir); err != nil {
		return "", err
	}
	const module = "github.com/upfront-mem/upfront"
	for _, line := range [][]string{
		{"mod", "init", "example.com/server"},
		{"mod", "edit", "-require=" + module + "@v0.0.0", "-replace=" + module + "=" + root, "-go=1.26"},
		{"mod", "tidy"},
		{"build", "-o", "server", "."},
	} {
		if err := goCommand(dir, line...); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "server"), nil
}

func goCommand(dir string, line ...string) error {
	c := exec.Command("go", line...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(line, " "), err, out)
	}
	return nil
}

func moveToGoHeap(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, r := range onGoHeap {
			text = r.what.ReplaceAll(text, []byte(r.with))
		}
		for _, used := range []string{"arena.Base", "scope.Scope"} { // an import that nothing names any more is an error
			if name, _, _ := strings.Cut(used, "."); strings.Contains(string(text), "/upfront/"+name+`"`) {
				text = append(text, "\nvar _ "+used+"\n"...)
			}
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return err
		}
	}
	return os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "goheap")))
}
