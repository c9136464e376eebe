// Command bench measures what this library costs, beside the same work as a loop in C that checks nothing and as hand-written Go that
// doesn't either (packages cfloor and bump, the floors), with a cgo call for each operation,
// on the Go heap, with sync.Pool, and with another library for it: in one run, one after the other in changing
// order, so that what a machine does meanwhile meets all of them. `make bench` builds and runs it. It is a module of its own so that what
// it compares with never enters the library's go.mod.
//
//	bench [-works A,C] [-rounds 25] [-time 10ms] [-serve 1m] [-out build] [-readme README.md]
//	bench -gate [-works A,C]
//	bench -base [-works A,C]
//	bench -twin FOLDER
//
// Each work is a file, work_a.go and so on, with the ways to do it beside one another. Their targets
// stand in targets.go; a row above its target is marked. -gate judges no time. It counts instructions
// and other numbers that are the same each time, compares them with testdata/base.json and the
// targets, and says in its last line how many rows are held. -base records the instructions.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var works = []work{workA, workB, workC, workD, workE, workF, workH, workI, workJ, workN, workO, workP, workR, workS, workT, workV}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "-child" {
		inside(os.Args[2:])
		return
	}
	if err := run(os.Args[1:]); err == errMissed {
		os.Exit(1) // it said so, in its last line
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	h := &harness{programs: &programs{}}
	defer h.programs.end()
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	names := flags.String("works", "all", "the works to do, `letters` with commas")
	flags.IntVar(&h.rounds, "rounds", 25, "`times` that each contestant is measured")
	flags.DurationVar(&h.time, "time", 10*time.Millisecond, "how long one measurement takes, about")
	flags.DurationVar(&h.serveTime, "serve", time.Minute, "how long work P plays on each server, three times")
	flags.IntVar(&h.serveRooms, "rooms", roomsP, "of work P's servers")
	gated := flags.Bool("gate", false, "count what doesn't depend on the machine, and say whether it is held")
	renewed := flags.Bool("base", false, "record the instructions that -gate compares with")
	out := flags.String("out", ".", "the `folder` to write bench.md to")
	twin := flags.String("twin", "", "build frogpond on the Go heap, as work P has it, into a `folder`, and measure nothing")
	readme := flags.String("readme", "", "the `file` whose table is to be replaced, between its marks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *twin != "" {
		program, err := buildPond(*twin, byHand)
		if err == nil {
			fmt.Println(program)
		}
		return err
	}
	chosen, err := choose(*names)
	if err != nil {
		return err
	}
	if *renewed {
		return h.renew(targetsOf(chosen))
	}
	if *gated {
		recorded, err := readBase()
		if err != nil {
			return err
		}
		return h.hold(targetsOf(chosen), recorded, os.Stdout, os.Getenv("REQUIRE_ALL") != "")
	}
	h.variants = true
	var t table
	for _, w := range chosen {
		start := time.Now()
		list, err := h.measure(w)
		if err != nil {
			return fmt.Errorf("work %s: %w", w.letter, err)
		}
		t.add(w, list)
		fmt.Fprintf(os.Stderr, "%s %s: %.1f s\n", w.letter, w.title, time.Since(start).Seconds())
	}
	var text strings.Builder
	t.print(&text)
	t.judge(&text, targetsOf(chosen))
	if err := os.WriteFile(filepath.Join(*out, "bench.md"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	fmt.Print(text.String())
	if *readme != "" {
		return t.intoReadme(*readme)
	}
	return nil
}

func choose(names string) ([]work, error) {
	if names == "all" {
		return works, nil
	}
	var chosen []work
	for letter := range strings.SplitSeq(strings.ToUpper(names), ",") {
		known := false
		for _, w := range works {
			if w.letter == letter {
				chosen, known = append(chosen, w), true
			}
		}
		if !known {
			return nil, fmt.Errorf("-works: no work %q", letter)
		}
	}
	return chosen, nil
}
