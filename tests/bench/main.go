// Command bench measures the cost of this library, with and without a cgo call for each operation.
// For comparison it does the same work on the Go heap, with sync.Pool, with other libraries, and
// without checks in C and in hand-written Go (packages cfloor and bump). All contestants take turns
// in one run, in changing order, so that disturbances of the machine affect all of them alike.
// `make bench` builds and runs the command. The command is a module of its own, so that the other
// libraries don't enter this library's go.mod.
//
//	bench [-works A,C] [-rounds 25] [-time 10ms] [-serve 1m] [-out build] [-readme README.md]
//	bench -works K -short
//	bench -gate [-works A,C]
//	bench -base [-works A,C]
//	bench -twin FOLDER
//
// Each work is a file, such as work_a.go, with all contestants. targets.go has the targets. A row
// above its target is marked. -gate doesn't judge times. It compares instructions with
// testdata/base.json, and other numbers that don't depend on the machine with the targets. The last
// line of its output has the number of rows that passed. -base records the instructions.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var works = []work{workA, workB, workC, workD, workE, workF, workG, workH, workI, workJ, workK, workL, workM, workN,
	workO, workP, workQ, workR, workS, workT, workV}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "-child" {
		inside(os.Args[2:])
		return
	}
	if err := run(os.Args[1:]); err == errMissed {
		os.Exit(1) // reported in its last line
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	h := &harness{programs: &programs{}}
	defer h.programs.end()
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	names := flags.String("works", "all", "the works, `letters` with commas")
	flags.IntVar(&h.rounds, "rounds", 25, "`times` to measure each contestant")
	flags.DurationVar(&h.time, "time", 10*time.Millisecond, "about the length of one measurement")
	flags.DurationVar(&h.serveTime, "serve", time.Minute, "time of each of three turns of work P on each server")
	flags.IntVar(&h.serveRooms, "rooms", roomsP, "rooms of work P's servers")
	flags.BoolVar(&h.short, "short", false, "do a small part of work K")
	gated := flags.Bool("gate", false, "judge the numbers that don't depend on the machine")
	renewed := flags.Bool("base", false, "record the instructions that -gate compares with")
	out := flags.String("out", ".", "the `folder` to write bench.md to")
	twin := flags.String("twin", "", "only build frogpond on the Go heap, for work P, into a `folder`")
	readme := flags.String("readme", "", "a `file` to replace the tables of, between its marks")
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
	if h.short && *readme != "" {
		return errors.New("-readme: a page has the figures of whole works: leave out -short")
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
