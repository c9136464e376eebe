//go:build checked && !race && linux

package budget_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
)

var read byte

// A misuse is committed in a process of its own, after ready; in the text the calls are these functions.
var misuses = map[string]func(*budget.Budget){
	"nothing":         func(b *budget.Budget) { readsByte(b, 0) },
	"after Close":     func(b *budget.Budget) { frogs := b.Region("level").Base().Bytes(); closes(b); read += frogs[0] },
	"guard of tables": func(b *budget.Budget) { readsByte(b, arena_c.Edge) },
	"guard of level":  func(b *budget.Budget) { readsByte(b, guardOf(b, "level")) },
	"recovers":        func(b *budget.Budget) { recovers(func() { readsByte(b, arena_c.Edge) }) },
}

func closes(b *budget.Budget)            { _ = b.Close() }
func readsByte(b *budget.Budget, at int) { read += b.Base().Bytes()[at] }

// guardOf is the offset of the first page behind a region.
func guardOf(b *budget.Budget, region string) int {
	bytes := b.Region(region).Base().Bytes()
	end := int(addressOf(&bytes[0])-addressOf(&b.Base().Bytes()[0])) + len(bytes)
	return (end + arena_c.Edge - 1) / arena_c.Edge * arena_c.Edge
}

func recovers(fn func()) {
	debug.SetPanicOnFault(true)
	defer func() { fmt.Fprintf(os.Stderr, "recovered: %t\n", recover() != nil) }()
	fn()
}

const misuseKey = "UPFRONT_MISUSE"

// TestMisuse is the child of the test below.
func TestMisuse(*testing.T) {
	if name := os.Getenv(misuseKey); name != "" {
		plan := small()
		plan.Pages.Guards = budget.Required
		b, err := budget.Open(plan)
		if err == nil {
			misuses[name](b)
			err = b.CheckAll()
		}
		fmt.Fprintln(os.Stderr, "alive:", err)
		os.Exit(0)
	}
}

var (
	hexNumber = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	siteCall  = regexp.MustCompile(`^\t\t(?:\S*/budget_test\.(\w+))?\S* \S+:\d+$`)
)

// tidy takes addresses out, and of the calls all but those of this file's functions by name.
func tidy(said string) string {
	var lines []string
	last := ""
	for line := range strings.SplitSeq(hexNumber.ReplaceAllString(said, "0x…"), "\n") {
		if call := siteCall.FindStringSubmatch(line); call != nil {
			if line = "\t\t" + call[1]; line == last || slices.Contains([]string{"", "init", "TestMisuse"}, call[1]) {
				continue
			}
		}
		last = line
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// misuse gives what the process said, tidied, and its exit status.
func misuse(t *testing.T, name string) (text string, status int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMisuse$")
	cmd.Env = append(os.Environ(), misuseKey+"="+name)
	var said strings.Builder
	cmd.Stderr = &said
	_ = cmd.Run()
	assert.False(t, strings.Contains(said.String(), "\tslices."), "the first call that is told is the caller's")
	return tidy(said.String()), cmd.ProcessState.ExitCode()
}

const goFault = "unexpected fault address 0x…\nfatal error: fault\n[signal SIGSEGV"

// What each says, to the letter; what comes then is Go's.
var misuseTold = []struct {
	name, begins string
	status       int
}{
	{"nothing", "alive: <nil>\n", 0},
	{"after Close", `upfront: BUG: read or write of 0x… in budget "small", which is closed
	closed at:
		closes
` + goFault, 2},
	{"guard of tables", `upfront: BUG: read or write of 0x… in budget "small": the slack or the guard behind the control tables
` + goFault, 2},
	{"guard of level", `upfront: BUG: read or write of 0x… in budget "small": the slack or the guard behind region "level"
` + goFault, 2},
	{"recovers", `upfront: BUG: read or write of 0x… in budget "small": the slack or the guard behind the control tables
recovered: true
alive: <nil>
`, 0},
}

func TestMisuseIsTold(t *testing.T) {
	for _, c := range misuseTold {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, status := misuse(t, c.name)
			assert.Equal(t, c.begins, text[:min(len(c.begins), len(text))])
			assert.Equal(t, c.status, status)
		})
	}
}
