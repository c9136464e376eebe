// Package race builds and runs the programs of tests/race/programs, which have a data race inside
// an arena. Its own tests and the misuse table use it.
package race

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

//go:embed programs/*.go
var sources embed.FS

const programs = "github.com/upfront-mem/upfront/tests/race/programs"

// The race detector's exit status after a report.
const reported = 66

// Build builds the programs with the race detector, as the file at path. Cost: seconds, or minutes
// when the build cache doesn't have Go's packages for -race.
func Build(path string) error {
	out, err := exec.Command("go", "build", "-race", "-o", path, programs).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build -race: %w: %s", err, out)
	}
	return nil
}

// Names returns the names of the programs in a file that Build made, such as "use/new". The part
// before the slash is the kind: programs of use, end, life and between race; hidden and clean have
// no report.
func Names(path string) ([]string, error) {
	out, err := exec.Command(path).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}

// Run runs one program, plain or as the control with an order that the detector knows. It returns
// the reports, none if no race was seen. It fails if the program ends in another way.
func Run(path, name string, told bool) ([]Report, error) {
	cmd := exec.Command(path, name)
	if told {
		cmd.Args = append(cmd.Args, "told")
	}
	cmd.Env = append(os.Environ(), fmt.Sprintf("GORACE=atexit_sleep_ms=0 exitcode=%d", reported))
	out, err := cmd.CombinedOutput()
	list := reports(string(out))
	exit := (*exec.ExitError)(nil)
	if (err == nil && len(list) == 0) || (errors.As(err, &exit) && exit.ExitCode() == reported && len(list) > 0) {
		return list, nil
	}
	return nil, fmt.Errorf("%s: %w, and %d reports: %s", name, err, len(list), out)
}

// Report is a report of the race detector: the stacks of the two accesses, with the file and line
// of each frame, the innermost first.
type Report struct {
	Text          string
	First, Second []string
}

var access = regexp.MustCompile(`(?ms)^(?:Atomic )?(Previous )?(?:atomic )?(?:[Rr]ead|[Ww]rite) at 0x\w+ by .*?:\n(.*?)\n\n`)

var place = regexp.MustCompile(`(?m)^\s+(\S+\.go:\d+) `)

func reports(out string) (list []Report) {
	for _, text := range strings.Split(out, "==================\n") {
		if !strings.HasPrefix(text, "WARNING: DATA RACE") {
			continue
		}
		r := Report{Text: text}
		for _, part := range access.FindAllStringSubmatch(text, -1) {
			var lines []string
			for _, m := range place.FindAllStringSubmatch(part[2], -1) {
				lines = append(lines, m[1])
			}
			if part[1] != "" {
				r.First = lines
			} else {
				r.Second = lines
			}
		}
		list = append(list, r)
	}
	return list
}

// Lines returns the lines of a program's two accesses, such as "lives.go:17". A comment at the end
// of the line marks it in the source.
func Lines(name string) (first, second string) {
	files, err := sources.ReadDir("programs")
	if err != nil {
		panic(err) // the sources are embedded
	}
	kind, _, _ := strings.Cut(name, "/")
	for _, file := range files {
		text, err := sources.ReadFile("programs/" + file.Name())
		if err != nil {
			panic(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			_, mark, _ := strings.Cut(line, "// ")
			of, which, _ := strings.Cut(mark, " ")
			if of != name && of != kind+"/*" {
				continue
			}
			at := fmt.Sprintf("%s:%d", file.Name(), i+1)
			if which != "second" {
				first = at
			}
			if which != "first" {
				second = at
			}
		}
	}
	return first, second
}

// Shows reports whether the report has the two lines, each in the stack of its access.
func (r Report) Shows(first, second string) bool {
	ends := func(stack []string, place string) bool {
		return slices.ContainsFunc(stack, func(at string) bool { return strings.HasSuffix(at, "/"+place) })
	}
	return first != "" && second != "" && ends(r.First, first) && ends(r.Second, second)
}
