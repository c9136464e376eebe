package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

var workM = work{
	letter: "M", title: "a process whose 16 goroutines each open an SQLite file below cgo, run three grouping " +
		"queries and close it, six times",
	absent: "The bytes are resident, at the end with no connection open, and at most: medians of three processes. " +
		"Outside are those at the end that are neither a plan's, a c_heap's, Go's nor a file's. " +
		"CPU time is the least. glibc's variables are MALLOC_ARENA_MAX=2 and MALLOC_TRIM_THRESHOLD_=131072; \"no " +
		"decay\" is " +
		noDecay + ", and \"no delay\" " + noDelay + ". The programs are below resident.",
	columns: []string{endM, outsideM, peakM, cpuM},
	page:    "resident/README.md",
	parts:   []part{{name: "M", measure: measureM}},
	peers:   []string{"libc6", "libjemalloc2", "libmimalloc-dev"},
}

const (
	endM     = "MB at the end"
	outsideM = "MB outside"
	peakM    = "MB at most"
	cpuM     = "ms of CPU"

	processesM = 3
	limitM     = 16 // MB at the end

	// noDecay lets jemalloc give free memory back at once, in a thread of its own. noDelay is
	// mimalloc's option of that kind.
	noDecay = "MALLOC_CONF=background_thread:true,dirty_decay_ms:0,muzzy_decay_ms:0"
	noDelay = "MIMALLOC_DECOMMIT_DELAY=0"
)

var twoVariables = []string{"MALLOC_ARENA_MAX=2", "MALLOC_TRIM_THRESHOLD_=131072"}

var figuresM = []figureOf{{endM, "a process", "resident", 1e6, true},
	{outsideM, "a process", "outside", 1e6, true}, {peakM, "a process", "peak", 1e6, true},
	{cpuM, "a process", "CPU", 1, false}}

// way is a way to run work M, or a library of work L.
type way struct {
	name      string
	program   string // of M: a folder below resident
	how       string // of M the program's last argument, of L a build tag
	preloaded string // a contestant
	env       []string
}

// present returns the ways whose libraries are on this machine, with the variables that preload
// them.
func (h *harness) present(all []way) (ways []way, lacks, err error) {
	for _, w := range all {
		env, err := h.preload(w.preloaded)
		if why := missing(""); errors.As(err, &why) {
			lacks = errors.Join(lacks, err)
			continue
		} else if err != nil {
			return nil, nil, err
		}
		w.env = append(env, w.env...)
		ways = append(ways, w)
	}
	return ways, lacks, nil
}

// inTurn runs a program in all ways in turn, some rounds long, because the machine may be busy. It
// returns the figures of each way's processes. The sums of all are the same, or their work differs.
func (h *harness) inTurn(ways []way, run func(w way) (map[string]float64, error)) (runs [][]map[string]float64,
	err error) {
	runs = make([][]map[string]float64, len(ways))
	for range min(h.rounds, processesM) {
		for i, w := range ways {
			f, err := run(w)
			if err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], f)
			if f["sum"] != runs[0][0]["sum"] {
				return nil, fmt.Errorf("%s and %s have different results: their work differs", w.name, ways[0].name)
			}
		}
	}
	return runs, nil
}

// figureOf is a figure of processes, divided by `by`. A series has its median, or all values.
type figureOf struct {
	name, unit, key string
	by              float64
	isMedian        bool
}

// of sets the values of x from the figures of a way's processes.
func (f figureOf) of(x series, runs []map[string]float64) series {
	for _, run := range runs {
		x.values = append(x.values, run[f.key]/f.by)
	}
	if f.isMedian {
		x.values = []float64{median(x.values)}
	}
	return x
}

var (
	plainM      = way{name: "M glibc", program: "plain"}
	moduleOnceM = way{name: "M SQLite's module, one Trim", program: "module", how: "end"}
	mallocM     = way{name: "M c_heap, trim 1s", program: "malloc", how: "1s"}
	mallocOnceM = way{name: "M c_heap, one Trim", program: "malloc", how: "end"}

	mallocRoundM = way{name: "M c_heap, Trim each round", program: "malloc", how: "round"}

	waysM = []way{
		plainM,
		{name: "M glibc, two variables", env: twoVariables, program: "plain"},
		{name: "M jemalloc", preloaded: jemalloc, program: "plain"},
		{name: "M jemalloc, no decay", preloaded: jemalloc, env: []string{noDecay}, program: "plain"},
		{name: "M mimalloc", preloaded: mimalloc, program: "plain"},
		{name: "M mimalloc, no delay", preloaded: mimalloc, env: []string{noDelay}, program: "plain"},
		moduleOnceM,
		{name: "M c_heap", program: "malloc"},
		mallocM,
		mallocOnceM,
		mallocRoundM,
	}
)

func measureM(h *harness) (list []series, err error) {
	folder, err := os.MkdirTemp("", "resident")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file, err := h.visits(folder)
	if err != nil {
		return nil, err
	}
	ways, lacks, err := h.present(waysM)
	if err != nil {
		return nil, err
	}
	runs, err := h.inTurn(ways, func(w way) (map[string]float64, error) { return h.run(w, file) })
	if err != nil {
		return nil, err
	}
	for i, w := range ways {
		for _, f := range figuresM {
			list = append(list, f.of(newSeries(w.name, f.unit, f.name), runs[i]))
		}
	}
	return list, lacks
}

// visits makes the file for all ways.
func (h *harness) visits(folder string) (file string, err error) {
	program, err := h.resident("plain")
	if err != nil {
		return "", err
	}
	file = filepath.Join(folder, "visits")
	_, err = output(exec.Command(program, file, "make"))
	return file, err
}

func (h *harness) resident(name string) (program string, err error) {
	return h.programs.build(name, []string{"go", "build"}, "./resident/"+name)
}

func (h *harness) run(w way, file string) (map[string]float64, error) {
	program, err := h.resident(w.program)
	if err != nil {
		return nil, err
	}
	c := exec.Command(program, file, w.how)
	c.Env = slices.Concat(os.Environ(), w.env)
	return figuresOf(c)
}
