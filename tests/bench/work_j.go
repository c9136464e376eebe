package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var workJ = work{
	letter: "J", title: "frogpond's tick, 20,000 of them on MAP03 of the built-in levels; and the same game on the plain Go heap",
	absent: "The game on the Go heap is frogpond's own source with its makers, pools and offsets replaced (testdata/goheap); both end in " +
		"the same state. Its resident memory still has the budget beside it, mostly unused.",
	other: measureJ,
}

const ticksJ = 20_000

// report is what is read of frogpond's JSON.
type report struct {
	Levels []struct {
		Hash         string
		Tick         map[string]float64 `json:"tick_ns"`
		Allocs       float64            `json:"go_allocs"`
		BudgetFaults float64            `json:"budget_faults"`
		Collections  float64            `json:"collections"`
	}
	Resident float64 `json:"rss_peak"`
}

func measureJ(h *harness) ([]series, error) {
	folder, err := os.MkdirTemp("", "frogpond")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	who := []string{library, goHeap}
	programs := map[string]string{}
	for _, w := range who {
		if programs[w], err = buildPond(folder, w); err != nil {
			return nil, err
		}
	}
	works := []figure{{"J tick p50", "tick"}, {"J tick p99", "tick"}, {"J tick p99.9", "tick"}, {"J tick max", "tick"},
		{"J collections", "in all"}, {"J Go allocations", "in all"}, {"J budget faults", "in all"}, {"J resident, MiB", "in all"}}
	var list []series
	for _, f := range works {
		list = append(list, newSeries(f.name, f.unit, who[0]), newSeries(f.name, f.unit, who[1]))
	}
	hash := ""
	for range max(1, min(5, h.rounds)) {
		for i, w := range who {
			r, err := playPond(programs[w])
			if err != nil {
				return nil, err
			}
			l := r.Levels[0]
			if hash == "" {
				hash = l.Hash
			}
			if l.Hash != hash {
				return nil, fmt.Errorf("the game of %s ended in %s, that of %s in %s", w, l.Hash, who[0], hash)
			}
			for k, v := range []float64{l.Tick["p50"], l.Tick["p99"], l.Tick["p999"], l.Tick["max"], l.Collections, l.Allocs,
				l.BudgetFaults, r.Resident / (1 << 20)} {
				s := &list[k*len(who)+i]
				s.values = append(s.values, v)
			}
		}
	}
	return list, nil
}

func playPond(program string) (r report, err error) {
	out, err := exec.Command(program, "-json", "-wad", "builtin", "-maps", "MAP03", "-ticks", fmt.Sprint(ticksJ)).Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err == nil && len(r.Levels) != 1 {
		err = fmt.Errorf("frogpond played %d maps", len(r.Levels))
	}
	return r, err
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

// buildPond compiles frogpond in a module of its own, as it is, or with its memory replaced.
func buildPond(folder, who string) (program string, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(folder, strings.ReplaceAll(who, " ", ""))
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "tests", "frogpond"))); err != nil {
		return "", err
	}
	if who == goHeap {
		if err := moveToGoHeap(dir); err != nil {
			return "", err
		}
	}
	const module = "github.com/upfront-mem/upfront"
	for _, line := range [][]string{
		{"mod", "init", "example.com/server"},
		{"mod", "edit", "-require=" + module + "@v0.0.0", "-replace=" + module + "=" + root, "-go=1.26"},
		{"mod", "tidy"},
		{"build", "-o", "server", "."},
	} {
		c := exec.Command("go", line...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w: %s", strings.Join(line, " "), err, out)
		}
	}
	return filepath.Join(dir, "server"), nil
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
