package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var workL = work{
	letter: "L", title: "a process whose eight goroutines each use a library below cgo and free its memory, four times",
	absent: "The bytes are anonymous and resident, 3 s after the last round: medians of three processes. CPU time is the least. " +
		"Instructions are those of one round, counted by cachegrind. The variables, and \"no decay\", are work M's. " +
		"The programs are below resident; libvips and RocksDB need Debian's packages libvips-dev and librocksdb-dev.",
	columns: []string{"glibc", "two variables", "jemalloc, no decay", "c_heap, trim 1s"},
	page:    "resident/README.md",
	parts:   []part{{name: "L", measure: measureL}},
	peers:   []string{"libc6", "libjemalloc2", "libvips42", "librocksdb7.8"},
}

const roundsL = "4"

// figuresL are rows of each library. Bytes are medians, and CPU time is the least.
var figuresL = []struct {
	name, unit, key string
	by              float64
}{
	{"at the end", "MB a process", "anonymous", 1e6},
	{"CPU", "ms a process", "CPU", 1},
}

// libraryL is a program below resident. Its folder is its build tag, and the name that pkg-config
// has for a package of Debian.
type libraryL struct{ name, folder, debian string }

var librariesL = []libraryL{
	{name: "tree-sitter", folder: "trees"},
	{name: "libvips", folder: "vips", debian: "libvips-dev"},
	{name: "RocksDB", folder: "rocksdb", debian: "librocksdb-dev"},
}

// wayL is a malloc below a library.
type wayL struct {
	name      string
	tag       string
	preloaded string // a contestant
	env       []string
}

var (
	glibcL = wayL{name: "glibc"}
	heapL  = wayL{name: "c_heap, trim 1s", tag: "c_heap"}
)

var waysL = []wayL{
	glibcL,
	{name: "two variables", env: twoVariables},
	{name: "jemalloc, no decay", preloaded: jemalloc, env: []string{noDecay}},
	heapL,
}

func measureL(h *harness) (list []series, lacks error) {
	var ways []wayL
	for _, w := range waysL {
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
	for _, l := range librariesL {
		got, err := h.library(l, ways)
		if why := missing(""); errors.As(err, &why) {
			lacks = errors.Join(lacks, err)
		} else if err != nil {
			return nil, err
		}
		list = append(list, got...)
	}
	return list, lacks
}

// library runs a program in all ways in turn, because the machine may be busy.
func (h *harness) library(l libraryL, ways []wayL) (list []series, lacks error) {
	runs := make([][]map[string]float64, len(ways))
	for range min(h.rounds, processesM) {
		for i, w := range ways {
			program, err := h.buildL(l, w)
			if err != nil {
				return nil, err
			}
			c := exec.Command(program, roundsL)
			c.Env = slices.Concat(os.Environ(), w.env)
			f, err := figuresOf(c)
			if err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], f)
			if f["sum"] != runs[0][0]["sum"] {
				return nil, fmt.Errorf("%s: %s and %s have different results", l.name, w.name, ways[0].name)
			}
		}
	}
	for _, f := range figuresL {
		for i, w := range ways {
			x := newSeries("L "+l.name+", "+f.name, f.unit, w.name)
			for _, run := range runs[i] {
				x.values = append(x.values, run[f.key]/f.by)
			}
			if f.by != 1 {
				x.values = []float64{median(x.values)}
			}
			list = append(list, x)
		}
	}
	for _, w := range ways {
		program, err := h.buildL(l, w)
		if err != nil {
			return nil, err
		}
		n, err := countL(program, w)
		if why := missing(""); errors.As(err, &why) {
			return list, err
		} else if err != nil {
			return nil, err
		}
		x := newSeries("L "+l.name+", of a round", "billion instructions", w.name)
		x.values = []float64{n / 1e9}
		list = append(list, x)
	}
	return list, nil
}

func (h *harness) buildL(l libraryL, w wayL) (program string, err error) {
	if l.debian != "" && exec.Command("pkg-config", "--exists", l.folder).Run() != nil {
		return "", missing(l.debian)
	}
	return h.programs.build(l.folder+w.tag, []string{"go", "build", "-tags=" + l.folder + "," + w.tag}, "./resident/"+l.folder)
}

var referencesL = regexp.MustCompile(`I +refs: +([0-9,]+)`)

// countL returns the instructions of the program with one round. callgrind, which works A to S are
// counted with, fails on programs with this many threads; cachegrind doesn't.
func countL(program string, w wayL) (float64, error) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return 0, missing("valgrind")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", program, "1")
	c.Env = slices.Concat(os.Environ(), pinned, w.env)
	out, err := c.CombinedOutput()
	found := referencesL.FindSubmatch(out)
	if err != nil || found == nil {
		return 0, fmt.Errorf("cachegrind of %s: %w: %s", program, err, out)
	}
	return strconv.ParseFloat(strings.ReplaceAll(string(found[1]), ",", ""), 64)
}
