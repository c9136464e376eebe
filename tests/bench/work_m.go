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
	letter: "M", title: "a process whose 16 goroutines each open an SQLite file below cgo, run three grouping queries and close it, six times",
	absent: "The bytes are resident, at the end with no connection open, and at most: medians of three processes. CPU time is the least. " +
		"glibc's variables are MALLOC_ARENA_MAX=2 and MALLOC_TRIM_THRESHOLD_=131072; \"no decay\" is " +
		noDecay + ", and \"no delay\" " + noDelay + ". The programs are below resident.",
	columns: []string{endM, peakM, cpuM},
	page:    "resident/README.md",
	parts:   []part{{name: "M", measure: measureM}},
	peers:   []string{"libc6", "libjemalloc2", "libmimalloc-dev"},
}

const (
	endM  = "MB at the end"
	peakM = "MB at most"
	cpuM  = "ms of CPU"

	processesM = 3
	limitM     = 16 // MB at the end

	// noDecay lets jemalloc give free memory back at once, in a thread of its own. noDelay is
	// mimalloc's option of that kind.
	noDecay = "MALLOC_CONF=background_thread:true,dirty_decay_ms:0,muzzy_decay_ms:0"
	noDelay = "MIMALLOC_DECOMMIT_DELAY=0"
)

var twoVariables = []string{"MALLOC_ARENA_MAX=2", "MALLOC_TRIM_THRESHOLD_=131072"}

var figuresM = []struct {
	name, key string
	by        float64
}{{endM, "resident", 1e6}, {peakM, "peak", 1e6}, {cpuM, "CPU", 1}}

// wayM is a way to run the work.
type wayM struct {
	name      string
	program   string // a folder below resident
	how       string // its last argument
	preloaded string // a contestant
	env       []string
}

var (
	plainM      = wayM{name: "M glibc", program: "plain"}
	moduleOnceM = wayM{name: "M SQLite's module, one Trim", program: "module", how: "end"}
	mallocM     = wayM{name: "M c_heap, trim 1s", program: "malloc", how: "1s"}
	mallocOnceM = wayM{name: "M c_heap, one Trim", program: "malloc", how: "end"}

	mallocRoundM = wayM{name: "M c_heap, Trim each round", program: "malloc", how: "round"}

	waysM = []wayM{
		plainM,
		{name: "M glibc, two variables", program: "plain", env: twoVariables},
		{name: "M jemalloc", program: "plain", preloaded: jemalloc},
		{name: "M jemalloc, no decay", program: "plain", preloaded: jemalloc, env: []string{noDecay}},
		{name: "M mimalloc", program: "plain", preloaded: mimalloc},
		{name: "M mimalloc, no delay", program: "plain", preloaded: mimalloc, env: []string{noDelay}},
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
	var ways []wayM
	var lacks error
	for _, w := range waysM {
		env, err := h.preload(w.preloaded)
		if why := missing(""); errors.As(err, &why) {
			lacks = errors.Join(lacks, err)
			continue
		} else if err != nil {
			return nil, err
		}
		w.env = append(env, w.env...)
		ways = append(ways, w)
	}
	runs := make([][]map[string]float64, len(ways))
	for range min(h.rounds, processesM) {
		for i, w := range ways {
			f, err := h.run(w, file)
			if err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], f)
			if f["sum"] != runs[0][0]["sum"] {
				return nil, fmt.Errorf("%s and %s have different results: their work differs", w.name, ways[0].name)
			}
		}
	}
	for i, w := range ways {
		for _, f := range figuresM {
			x := newSeries(w.name, "a process", f.name)
			for _, run := range runs[i] {
				x.values = append(x.values, run[f.key]/f.by)
			}
			if f.name != cpuM {
				x.values = []float64{median(x.values)}
			}
			list = append(list, x)
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

func (h *harness) run(w wayM, file string) (map[string]float64, error) {
	program, err := h.resident(w.program)
	if err != nil {
		return nil, err
	}
	c := exec.Command(program, file, w.how)
	c.Env = slices.Concat(os.Environ(), w.env)
	return figuresOf(c)
}
