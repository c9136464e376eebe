// Command mutants restores fixed faults, one at a time, and checks that each makes a test fail.
// `go run ./tests/mutants` runs all mutants, in the root of the repository.
//
//	mutants [-run PATTERN] [-list] [-v]
//	mutants -random N [-seed N] [-files PATTERN] [-since COMMIT]
//
// With -random, the command prints N faults, which the seed chooses, as mutants without tests.
//
// A mutant is a section of a file in testdata: see parse. Its texts replace texts of the tree by
// `go test -overlay`. So the tree is never changed, and a mutant of code that moved still applies.
// The overlay also replaces C sources and headers, but only for the package in their folder. The
// overlay also applies to programs that a test builds. A mutant of the C core may name a test of
// tests/c instead. This test is built from a copy of arena_c.
//
// A killer is a test that fails with a mutant. Each killer first runs without any mutant, and has
// to pass. A mutant that doesn't compile is an error. If a killer reaches its time limit, the
// mutant counts as killed only if it is marked as hanging.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	pattern := flag.String("run", "", "run only mutants whose names match the `pattern`")
	list := flag.Bool("list", false, "print the mutants and their killers, and run none")
	verbose := flag.Bool("v", false, "print the output of each killer")
	count := flag.Int("random", 0, "print `n` faults that the seed chooses, and run none")
	seed := flag.Uint64("seed", 1, "of -random")
	files := flag.String("files", "", "with -random, only of files whose paths match the `pattern`")
	commit := flag.String("since", "", "with -random, only of lines that changed since the `commit`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "mutants: no arguments are expected")
		os.Exit(2)
	}
	if *count != 0 {
		if err := random(os.Stdout, ".", *files, *commit, *count, *seed); err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(2)
		}
		return
	}
	ok, err := mutants(os.Stdout, ".", *pattern, *list, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// mutants runs or lists the mutants of the tree at root. It reports whether all were killed.
func mutants(w io.Writer, root, pattern string, list, verbose bool) (bool, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return false, err
	}
	all, err := readAll(root)
	if err != nil {
		return false, err
	}
	var chosen []*mutant
	for _, m := range all {
		if match.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return false, fmt.Errorf("no mutant matches %q", pattern)
	}
	if list {
		for _, m := range chosen {
			fmt.Fprintf(w, "%-40s %s\n", m.name, m.killer)
		}
		return true, nil
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	r := &runner{w: w, root: root, dir: dir, verbose: verbose}
	return r.run(chosen)
}

// runner runs killers, a few at a time.
type runner struct {
	root, dir string
	verbose   bool

	mu sync.Mutex
	w  io.Writer
}

func (r *runner) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, format, args...)
}

// run runs the controls, then the mutants. It reports whether all mutants were killed.
func (r *runner) run(chosen []*mutant) (bool, error) {
	began := time.Now()
	controls := map[string]verdict{}
	var builds []string // as in testdata, so that mutants of one package follow each other
	killers := map[string][]killer{}
	for _, m := range chosen {
		k := m.killer
		k.hangs = 0
		if _, known := controls[k.String()]; known {
			continue
		}
		controls[k.String()] = verdict{}
		if killers[k.build()] == nil {
			builds = append(builds, k.build())
		}
		killers[k.build()] = append(killers[k.build()], k)
	}
	inParallel(len(builds), func(i int) {
		for k, v := range r.control(killers[builds[i]]) {
			r.mu.Lock()
			controls[k] = v
			r.mu.Unlock()
		}
	})
	for name, v := range controls {
		if v.kind != survived {
			r.printf("%s fails without a mutant\n%s", name, indent(v.output))
		}
	}
	r.printf("%d killers ran without a mutant, %.0f s\n", len(controls), time.Since(began).Seconds())

	killed := 0
	inParallel(len(chosen), func(i int) {
		m := chosen[i]
		began := time.Now()
		k := m.killer
		k.hangs = 0
		v := verdict{kind: failed, output: "its killer fails without a mutant\n"}
		if controls[k.String()].kind == survived {
			v = r.kill(m)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		seconds := time.Since(began).Seconds()
		switch v.kind {
		case dead:
			killed++
			fmt.Fprintf(r.w, "%-40s killed by %s, %.0f s\n", m.name, v.by, seconds)
		case survived:
			fmt.Fprintf(r.w, "%-40s SURVIVED %s, %.0f s\n", m.name, m.killer, seconds)
		case failed:
			fmt.Fprintf(r.w, "%-40s ERROR, %.0f s\n%s", m.name, seconds, indent(v.output))
		}
		if r.verbose && v.kind != failed {
			fmt.Fprint(r.w, indent(v.output))
		}
	})
	r.printf("%d of %d killed, %.0f s\n", killed, len(chosen), time.Since(began).Seconds())
	return killed == len(chosen), nil
}

// inParallel calls do for 0 to n-1, in this order, with a goroutine for each processor.
func inParallel(n int, do func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(n, runtime.NumCPU()) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// indent returns the last lines of an output, indented.
func indent(output string) string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if len(lines) > 40 {
		lines = append([]string{"..."}, lines[len(lines)-40:]...)
	}
	return "    " + strings.Join(lines, "\n    ") + "\n"
}
