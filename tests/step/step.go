// Package step tells a test which step of proof runs it: make test, make check, make gate or make
// soak. Each step runs what the steps before it run, and more.
//
// The step comes from the environment variable UPFRONT_STEP, which the make targets set. Without it
// a test runs as in make test: it starts no compiler and no emulator, and takes at most 5 s of CPU.
//
//	step.Needs(t, step.Check)           // skips t in make test
//	rounds := step.Pick(50, 400, 10000) // in make test, in check and gate, in soak
package step

import (
	"fmt"
	"os"
	"time"
)

// Step is one of the four steps.
type Step int

// The steps, the shortest first.
const (
	Test Step = iota
	Check
	Gate
	Soak
)

var names = [...]string{Test: "test", Check: "check", Gate: "gate", Soak: "soak"}

// String returns the step's make target.
func (s Step) String() string { return names[s] }

// Variable is the environment variable that names the step; TimeVariable is the one that [Time]
// reads.
const (
	Variable     = "UPFRONT_STEP"
	TimeVariable = "UPFRONT_TIME"
)

// Now returns the step that this process is part of. It panics if UPFRONT_STEP names none.
func Now() Step {
	name := os.Getenv(Variable)
	if name == "" {
		return Test
	}
	for s, known := range names {
		if name == known {
			return Step(s)
		}
	}
	panic(fmt.Sprintf("%s=%s: want test, check, gate or soak", Variable, name))
}

// Pick returns how much a test does: test in make test, check in make check and make gate, soak in
// make soak.
func Pick[T any](test, check, soak T) T {
	switch Now() {
	case Test:
		return test
	case Soak:
		return soak
	}
	return check
}

// Time returns the duration in UPFRONT_TIME, for which tests of random programs go on beyond their
// rounds. It is 0 without the variable, and panics if its value is no duration.
func Time() time.Duration {
	text := os.Getenv(TimeVariable)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("%s=%s: want a duration, such as 1m", TimeVariable, text))
	}
	return d
}

// T is the part of a test or benchmark that this package uses.
type T interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Needs skips t in the steps before s. The message names the make target that runs it.
func Needs(t T, s Step) {
	t.Helper()
	if Now() < s {
		t.Skip("make " + s.String() + " runs it")
	}
}

// Unproven begins the message of a test that is skipped because the machine lacks something. The
// make targets collect these messages and print them at their end.
const Unproven = "not proven here: "

// Lacks skips t because the machine lacks a tool that Debian's package brings: Lacks(t,
// "qemu-aarch64-static", "qemu-user-static"). It fails t if REQUIRE_ALL is set. A tool that no
// package brings has the package "".
func Lacks(t T, tool, debian string) {
	t.Helper()
	text := tool + " is missing"
	if debian != "" {
		text += "; Debian's package " + debian + " brings it"
	}
	if os.Getenv("REQUIRE_ALL") != "" {
		t.Fatal("REQUIRE_ALL is set, and " + text)
	}
	t.Skip(Unproven + text)
}
