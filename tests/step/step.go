// Package step reports the step in which a test runs: make test, make check, make gate or make
// soak. Each step includes the steps before it.
//
//	step.Needs(t, step.Check)           // skips t in make test
//	rounds := step.Pick(50, 400, 10000) // in make test, in check and gate, in soak
//	step.Machine(t, step.Files(256))    // skips t under a limit of 64 open files
//
// The make targets set the step in the environment variable UPFRONT_STEP. Without the variable, a
// test runs as in make test. In make test, a test should start no compiler and no emulator, and
// take at most 5 s of CPU time.
package step

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
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

// Now returns the step of this process. It panics if UPFRONT_STEP names no step.
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

// Pick returns test in make test, check in make check and make gate, and soak in make soak.
func Pick[T any](test, check, soak T) T {
	switch Now() {
	case Test:
		return test
	case Soak:
		return soak
	}
	return check
}

// Time returns the duration in UPFRONT_TIME: how long tests of random programs continue after their
// rounds. It returns 0 without the variable, and panics if the value is no duration.
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

// T is the part of *testing.T and *testing.B that this package uses.
type T interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Root returns the folder of the root module. A test of another module may run in a module cache,
// where the root module is another folder.
func Root(t T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/upfront-mem/upfront").Output()
	if err != nil {
		t.Fatal("go list -m: ", err)
	}
	return strings.TrimSpace(string(dir))
}

// Needs skips t in the steps before s. The message names the make target that runs t.
func Needs(t T, s Step) {
	t.Helper()
	if Now() < s {
		t.Skip("make " + s.String() + " runs it")
	}
}

// Unproven begins the message of a test that is skipped because the machine lacks a tool, or has a
// limit. The make targets collect these messages and print them at their end.
const Unproven = "not proven here: "

// Lacks skips t because the machine lacks a tool, and names the Debian package that brings it:
// Lacks(t, "qemu-aarch64-static", "qemu-user-static"). If REQUIRE_ALL is set, Lacks fails t
// instead. debian is "" if no package brings the tool; make deps installs all others.
func Lacks(t T, tool, debian string) {
	t.Helper()
	text := tool + " is missing"
	if debian == "" {
		unproven(t, text, "")
	} else {
		unproven(t, text+"; Debian's package "+debian+" brings it", ", and make deps installs it")
	}
}

// unproven skips t, or fails it if REQUIRE_ALL is set. help follows the text then.
func unproven(t T, text, help string) {
	t.Helper()
	if os.Getenv("REQUIRE_ALL") != "" {
		t.Fatal("REQUIRE_ALL is set, and " + text + help)
	}
	t.Skip(Unproven + text)
}
