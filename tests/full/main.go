//go:build linux && cgo

// Full runs libraries in C, which know no allocator, until C's malloc is full:
//
//	full [-size 48MiB] [-reserve 0] [-warn 0] PROGRAM [ARGUMENT]
//
//	daemon [leak]  sessions with SQLite; the process lives
//	trees [go]     trees of tree-sitter, which ends the process
//
// Each program ends after a number of operations. A process that isn't ended by a full malloc
// prints a last line that starts with "alive".
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// programs have a budget open, and the arguments after their name.
var programs = map[string]func(args []string, out io.Writer) error{
	"daemon": daemon,
	"trees":  trees,
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "full:", err)
		os.Exit(1)
	}
}

// mib is a size in MiB, such as 48MiB.
type mib uint64

func (m *mib) String() string { return strconv.FormatUint(uint64(*m)/budget.MiB, 10) + "MiB" }

func (m *mib) Set(text string) error {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "MiB"), 10, 32)
	*m = mib(n * budget.MiB)
	return err
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("full", flag.ContinueOnError)
	size, reserve := mib(48*budget.MiB), mib(0)
	flags.Var(&size, "size", "of the plan's c_heap")
	flags.Var(&reserve, "reserve", "of the size")
	warn := flags.Int("warn", 0, "the plan's warn, in percent; OnWarn prints a line")
	if err := flags.Parse(args); err != nil {
		return err
	}
	program, ok := programs[flags.Arg(0)]
	if !ok {
		return fmt.Errorf("no program %q", flags.Arg(0))
	}
	b, err := budget.Open(budget.Plan{
		Name:    "full",
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Pages:   budget.Pages{Prefault: budget.Off},
		CHeap:   budget.CHeapPlan{Size: uint64(size), Reserve: uint64(reserve), Warn: budget.Percent(*warn)},
		OnWarn:  func(w budget.Warning) { fmt.Fprintln(os.Stderr, "warning:", w) },
	})
	if err != nil {
		return err
	}
	return errors.Join(program(flags.Args()[1:], out), b.Close())
}
