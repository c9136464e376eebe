package main

import (
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
	absent: "The bytes are anonymous and resident, 3 s after the last round: medians of three processes. CPU time " +
		"is the least. Instructions are those of one round, counted by cachegrind. The variables, and \"no decay\", " +
		"are work M's. The programs are below resident; libvips and RocksDB need Debian's packages libvips-dev and " +
		"librocksdb-dev.",
	columns: []string{"glibc", "two variables", "jemalloc, no decay", "c_heap, trim 1s"},
	page:    "resident/README.md",
	parts:   []part{{name: "L", measure: measureL}},
	peers:   []string{"libc6", "libjemalloc2", "libvips-dev", "librocksdb-dev"},
}

const roundsL = "4"

// figuresL are rows of each library. Bytes are medians, and CPU time is the least.
var figuresL = []figureOf{{"at the end", "MB a process", "anonymous", 1e6, true},
	{"outside", "MB a process", "outside", 1e6, true},
	{"CPU", "ms a process", "CPU", 1, false}}

// libraryL is a program below resident. Its folder is its build tag, and the name that pkg-config
// has for a package of Debian.
type libraryL struct{ name, folder, debian string }

var librariesL = []libraryL{
	{name: "tree-sitter", folder: "trees"},
	{name: "libvips", folder: "vips", debian: "libvips-dev"},
	{name: "RocksDB", folder: "rocksdb", debian: "librocksdb-dev"},
}

var (
	glibcL = way{name: "glibc"}
	heapL  = way{name: "c_heap, trim 1s", how: "c_heap"}
)

var waysL = []way{
	glibcL,
	{name: "two variables", env: twoVariables},
	{name: "jemalloc, no decay", preloaded: jemalloc, env: []string{noDecay}},
	heapL,
}

func measureL(h *harness) (list []series, lacks error) {
	ways, lacks, err := h.present(waysL)
	if err != nil {
		return nil, err
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

// library measures a library in all ways.
func (h *harness) library(l libraryL, ways []way) (list []series, lacks error) {
	runs, err := h.inTurn(ways, func(w way) (map[string]float64, error) {
		program, err := h.buildL(l, w)
		if err != nil {
			return nil, err
		}
		c := exec.Command(program, roundsL)
		c.Env = slices.Concat(os.Environ(), w.env)
		return figuresOf(c)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	for _, f := range figuresL {
		for i, w := range ways {
			list = append(list, f.of(newSeries("L "+l.name+", "+f.name, f.unit, w.name), runs[i]))
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

func (h *harness) buildL(l libraryL, w way) (program string, err error) {
	if l.debian != "" && exec.Command("pkg-config", "--exists", l.folder).Run() != nil {
		return "", missing(l.debian)
	}
	return h.programs.build(l.folder+w.how, []string{"go", "build", "-tags=" + l.folder + "," + w.how},
		"./resident/"+l.folder)
}

var referencesL = regexp.MustCompile(`I +refs: +([0-9,]+)`)

// countL returns the instructions of the program with one round. callgrind, which works A to S are
// counted with, fails on programs with this many threads; cachegrind doesn't.
func countL(program string, w way) (float64, error) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return 0, missing("valgrind")
	}
	var failed error
	for range tries {
		out, err := valgrind(w.env, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
			program, "1")
		if found := referencesL.FindSubmatch(out); err == nil && found != nil {
			return strconv.ParseFloat(strings.ReplaceAll(string(found[1]), ",", ""), 64)
		}
		failed = errors.Join(failed, err)
	}
	return 0, fmt.Errorf("no count of %s: %w", program, failed)
}
