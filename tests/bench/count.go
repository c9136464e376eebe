package main

// #if defined(__has_include)
// #if __has_include(<valgrind/callgrind.h>)
// #include <valgrind/callgrind.h>
// static int known(void) { return 1; }
// static void zero(void) { CALLGRIND_ZERO_STATS; }
// static void dump(const char *label) { CALLGRIND_DUMP_STATS_AT(label); }
// #define BENCH_KNOWN
// #endif
// #endif
// #ifndef BENCH_KNOWN
// static int known(void) { return 0; }
// static void zero(void) {}
// static void dump(const char *label) { (void)label; }
// #endif
import "C"

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Instructions are counted of two lengths of a loop: the difference has nothing else in it. A loop that is done once is long enough.
const (
	shortCount = 200
	longCount  = 3 * shortCount
)

// tries are how often callgrind is started: now and then it gives up on a Go program, with "please report this bug".
const tries = 5

// countInstructions runs this program under callgrind and gives instructions of a unit for the rows that they decide.
func countInstructions(rows []target) (counts figures, err error) {
	if C.known() == 0 {
		return nil, errors.New("this was compiled without valgrind/callgrind.h; where it was installed since, go build -a finds it")
	}
	if _, err := exec.LookPath("valgrind"); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(rows, func(t target) bool { return t.counted }) {
		return nil, nil
	}
	var works []string
	for _, t := range rows {
		if t.counted && !slices.Contains(works, t.work) {
			works = append(works, t.work)
		}
	}
	for range tries {
		if counts, err = count(works); err == nil {
			break
		}
	}
	return counts, err
}

// count is one try, with files of its own: one that ended early may have left some.
func count(works []string) (figures, error) {
	folder, err := os.MkdirTemp("", "callgrind")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	_, err = child("count", strings.Join(works, "|"), "valgrind", "--tool=callgrind",
		"--callgrind-out-file="+filepath.Join(folder, "out"))
	if err != nil {
		return nil, err
	}
	return readCounts(folder)
}

// childCount does the works' loops in two lengths, and has callgrind write a file for each.
func childCount(works string) map[string]float64 {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(1) // who looks for work has instructions, too
	runtime.LockOSThread()
	for work := range strings.SplitSeq(works, "|") {
		l, _ := findLoop(work)
		h := &harness{only: []string{}}
		for _, t := range targets {
			if t.work == work && t.counted {
				h.only = append(append(h.only, t.who...), t.of)
			}
		}
		list, end := h.enter(l)
		for _, c := range list {
			units := c.unitsOf(l)
			if l.once {
				c.before()
				c.count(l, 1, units)
				continue
			}
			c.run(1)
			c.count(l, shortCount, -units*(longCount-shortCount))
			c.count(l, longCount, units*(longCount-shortCount))
		}
		end()
	}
	return map[string]float64{}
}

// count does the work n times. What is dumped adds to the figure of a unit when it is divided by parts.
func (c contestant) count(l loop, n int, parts float64) {
	label := C.CString(fmt.Sprintf("%s|%s|%.0f", l.name, c.who, parts))
	C.zero()
	c.run(n)
	C.dump(label)
}

var (
	dumpLabel = regexp.MustCompile(`(?m)^desc: Trigger: Client Request: (.+)\|(.+)\|(-?\d+)$`)
	dumpTotal = regexp.MustCompile(`(?m)^(?:totals|summary): (\d+)`)
)

func readCounts(folder string) (figures, error) {
	files, err := filepath.Glob(filepath.Join(folder, "out.*"))
	if err != nil {
		return nil, err
	}
	counts := figures{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		label, total := dumpLabel.FindStringSubmatch(string(text)), dumpTotal.FindStringSubmatch(string(text))
		if label == nil || total == nil {
			continue // of the whole program
		}
		sum, _ := strconv.ParseFloat(total[1], 64)
		parts, _ := strconv.ParseFloat(label[3], 64)
		counts[[2]string{label[1], label[2]}] += sum / parts
	}
	if len(counts) == 0 {
		return nil, errors.New("callgrind wrote no figures")
	}
	return counts, nil
}
