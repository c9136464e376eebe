// Command run proves the repository in four steps, and builds it for other machines. Run it in the
// root of the repository; the Makefile calls it.
//
//	run test | check | gate | soak [PART...]  the steps; -list names their parts
//	run matrix                                the builds in which make check runs each package
//	run lint [MODULE...]                      format, vet and staticcheck of each module
//	run fuzz TIME [PATTERN]                   fuzz targets: run fuzz 10s 'Fuzz(Load|WAD)'
//	run cross [TARGET...]                     builds the targets of cross/targets.json
//	run cross-test [TARGET...]                their tests, under an emulator
//	run device NAME...                        frogpond as on a device
//	run dist                                  a tarball for each target
//	run release VERSION OUT                   a Git repository OUT with the tags of a version
//	run deps                                  lists the Debian packages to install
//	run fetch                                 downloads modules for the consumer's test
//
// A step prints a line for each part, with its seconds and the CPU seconds of its commands. After
// each 15 silent seconds it prints the running command. The output of commands is in
// build/run/PART.log. A step leaves out a part that lacks a tool. At its end, the step names the
// tool's package, and fails if REQUIRE_ALL is set.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/tests/step"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("name a step, or see go doc ./tests/run")
	}
	command, args := args[0], args[1:]
	if s := slices.Index(stepNames, command); s >= 0 {
		return prove(step.Step(s), args)
	}
	t, err := readTargets()
	if err != nil {
		return err
	}
	p := newProver(os.Stdout, step.Test)
	switch command {
	case "matrix":
		m, err := newMatrix()
		if err == nil {
			fmt.Print(m)
		}
		return err
	case "lint":
		return p.alone("lint", func() error { return p.lint(args, true) })
	case "fuzz":
		if len(args) == 0 {
			return errors.New("fuzz needs a time or a count, such as 10s or 1000x")
		}
		return p.alone("fuzz", func() error { return p.fuzz(args[0], strings.Join(args[1:], "|")) })
	case "cross":
		return p.cross(t, args)
	case "cross-test":
		return errors.Join(p.eachTarget(t.Targets, args, func(t target) error {
			return p.emulated(t, t.Tests, t.Paged)
		}), p.conclude())
	case "device":
		return p.eachDevice(t, args)
	case "dist":
		return errors.Join(p.eachTarget(t.forDevices(), args, p.dist), p.conclude())
	case "release":
		if len(args) != 2 {
			return errors.New("release needs a version and a folder to make: release v0.1.0 OUT")
		}
		return p.release(args[0], args[1])
	case "fetch":
		return p.fetch()
	case "deps":
		fmt.Println(strings.Join(t.packages(), " "))
		return nil
	}
	return fmt.Errorf("no command %q; see go doc ./tests/run", command)
}

var stepNames = []string{step.Test: "test", step.Check: "check", step.Gate: "gate", step.Soak: "soak"}

func prove(s step.Step, args []string) error {
	list, err := parts(s)
	if err != nil {
		return err
	}
	if slices.Equal(args, []string{"-list"}) {
		for _, part := range list {
			fmt.Printf("%-10s %s\n", part.name, part.what)
		}
		return nil
	}
	for _, name := range args {
		if !slices.ContainsFunc(list, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("make %s has no part %q; -list names its parts", s, name)
		}
	}
	if len(args) > 0 {
		list = slices.DeleteFunc(list, func(p part) bool { return !slices.Contains(args, p.name) })
	}
	if err = os.Setenv("GOFLAGS", compiling()); err != nil {
		return err
	}
	return newProver(os.Stdout, s).prove(list)
}
