package main

// #include "heaps/count.h"
// static int known(void) { return COUNT_KNOWN; }
// static void zero(void) { CALLGRIND_ZERO_STATS; }
// static void dump(const char *label) { CALLGRIND_DUMP_STATS_AT(label); }
// #if defined(__clang__)
// static const char *compiler(void) { return "clang"; }
// static int compilerMajor(void) { return __clang_major__; }
// #else
// static const char *compiler(void) { return "gcc"; }
// static int compilerMajor(void) { return __GNUC__; }
// #endif
import "C"

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// countedUnits is the number of units in the shorter of two counts. The other is three times as
	// long, and their difference is the work alone.
	countedUnits = 10_000

	// countedTimes is how often a length is counted. The least figure has the least of Go's
	// scheduler, which interrupts the thread every 10 ms.
	countedTimes = 3

	// tries is how often callgrind is started. Sometimes it fails on a Go program ("please report
	// this bug").
	tries = 5

	// patience is the longest time of a try on a busy machine.
	patience = 10 * time.Minute
)

// pinned is the environment of a process under callgrind, which can't handle asynchronous signals.
// Go and glibc copy and clear bytes by the features of the processor. Features that not every
// x86-64 processor has are off, so that the figures are the same on each machine.
var pinned = []string{
	"GODEBUG=asyncpreemptoff=1,cpu.adx=off,cpu.avx=off,cpu.avx2=off,cpu.bmi1=off," +
		"cpu.bmi2=off,cpu.erms=off,cpu.fma=off,cpu.fsrm=off",
	"GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM",
	"GOGC=off", "GOMEMLIMIT=off", "GOMAXPROCS=1",
}

// countInstructions returns the instructions of a unit for the rows' contestants, counted by
// callgrind. If figures are missing, err names the missing tool, or the failure of each try.
func (h *harness) countInstructions(rows []target) (counts figures, err error) {
	counts = figures{}
	if C.known() == 0 {
		return counts, missing("valgrind/callgrind.h, which go build -a finds if it came later,")
	}
	if _, err := exec.LookPath("valgrind"); err != nil {
		return counts, missing("valgrind")
	}
	self, err := os.Executable()
	if err != nil {
		return counts, err
	}
	for range tries {
		var loops []string
		err = nil
		for _, work := range uncounted(rows, counts) {
			if p, ok := findPart(work); ok {
				program, failed := p.program(h)
				if failed != nil {
					return counts, failed
				}
				line := slices.Concat([]string{program, "1"}, p.heaps, []string{library})
				err = errors.Join(err, callgrind(counts, work+"|", line...))
			} else {
				loops = append(loops, work)
			}
		}
		if len(loops) > 0 {
			err = errors.Join(err, callgrind(counts, "", self, "-child", "count", strings.Join(loops, "|")))
		}
	}
	return counts, err
}

// uncounted returns the works whose instructions are still to be counted.
func uncounted(rows []target, counts figures) (list []string) {
	for _, c := range contestants(rows) {
		if math.IsNaN(counts.of(c.Work, c.Who)) && !slices.Contains(list, c.Work) {
			list = append(list, c.Work)
		}
	}
	return list
}

// callgrind runs a program under callgrind and adds the counts, even those of a run that fails
// later. The name of a contestant is prefix and the name in the program's dump.
func callgrind(counts figures, prefix string, line ...string) error {
	folder, err := os.MkdirTemp("", "callgrind")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	_, failed := valgrind(nil, append([]string{"--tool=callgrind", "--separate-threads=yes", "--dump-line=no",
		"--callgrind-out-file=" + filepath.Join(folder, "out")}, line...)...)
	return errors.Join(failed, readCounts(counts, folder, prefix))
}

// valgrind runs a tool of valgrind with these variables, and returns the output.
func valgrind(env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "valgrind", args...)
	c.Env = slices.Concat(os.Environ(), pinned, env)
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("valgrind %s: %w: %s", args[0], err, out)
	}
	return out, err
}

// childCount runs the works' loops in two lengths, with a dump of callgrind for each.
func childCount(works string) map[string]float64 {
	runtime.LockOSThread() // callgrind counts threads separately
	for work := range strings.SplitSeq(works, "|") {
		l, _ := findLoop(work)
		h := &harness{only: []string{}}
		for _, c := range contestants(targets) {
			if c.Work == work {
				h.only = append(h.only, c.Who, twinOf(work))
			}
		}
		list, end := h.enter(l)
		for _, c := range list {
			if l.once {
				for range countedTimes {
					c.before()
					c.count(l, 1, countedTimes)
				}
				continue
			}
			short := l.counted
			if short == 0 {
				short = max(1, countedUnits/int(c.unitsOf(l)))
			}
			c.run(1)
			for range countedTimes {
				c.count(l, short, 2*countedTimes)
				c.count(l, 3*short, 2*countedTimes)
			}
		}
		end()
	}
	return map[string]float64{}
}

// count does the work n times with a dump of callgrind. files is the number of dumps that c makes.
func (c contestant) count(l loop, n, files int) {
	label := C.CString(fmt.Sprintf("%s|%s|%d|%d", l.name, c.who, n*int(c.unitsOf(l)), files))
	C.zero()
	c.run(n)
	C.dump(label)
}

func compiledBy() string { return fmt.Sprintf("%s %d", C.GoString(C.compiler()), C.compilerMajor()) }

// A dump names its contestant, its units, and the number of the contestant's dumps.
var (
	dumpLabel = regexp.MustCompile(`(?m)^desc: Trigger: Client Request: (.+)\|(\d+)\|(\d+)$`)
	dumpTotal = regexp.MustCompile(`(?m)^(?:totals|summary): (\d+)`)
)

// readCounts adds the figures of each contestant with a complete set of dumps.
func readCounts(counts figures, folder, prefix string) error {
	files, err := filepath.Glob(filepath.Join(folder, "out.*"))
	if err != nil {
		return err
	}
	type dumps struct {
		there, of int
		least     map[int]float64 // by units
	}
	all := map[string]*dumps{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		label, total := dumpLabel.FindStringSubmatch(string(text)), dumpTotal.FindStringSubmatch(string(text))
		if label == nil || total == nil {
			continue // a dump of the whole program
		}
		d := all[label[1]]
		if d == nil {
			d = &dumps{least: map[int]float64{}}
			all[label[1]] = d
		}
		units, _ := strconv.Atoi(label[2])
		d.of, _ = strconv.Atoi(label[3])
		d.there++
		sum, _ := strconv.ParseFloat(total[1], 64)
		if before, ok := d.least[units]; !ok || sum < before {
			d.least[units] = sum
		}
	}
	for name, d := range all {
		if d.there != d.of {
			continue // callgrind failed in between
		}
		work, who, _ := strings.Cut(prefix+name, "|")
		lengths := slices.Sorted(maps.Keys(d.least))
		short, long := 0, lengths[len(lengths)-1]
		sum := d.least[long]
		if len(lengths) > 1 {
			short = lengths[0]
			sum -= d.least[short]
		}
		counts[[2]string{work, who}] = sum / float64(long-short)
	}
	return nil
}
