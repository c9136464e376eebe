package main

import (
	"fmt"
	"slices"
	"strings"
)

// exception is a package whose tests don't run under an emulator, or one of its tests. If 32 bits
// are the reason, it is left out only for linux-arm.
type exception struct {
	pack, test, why string
	only32          bool
}

// exceptions is the table of cross/README.md. Every other package of the root module runs.
var exceptions = []exception{
	{"budget", "TestAddressesInEveryRun", "the emulator's own choice of addresses is the same in each run", false},
	{"budget", "TestOpenNearTheLimitOfAGroup", "the group's limit counts the emulator's memory", false},
	{"budget", "TestOpenUnderALimitOfAddresses", "the emulator needs addresses, and ends or hangs under the limit",
		false},
	{"budget", "TestReportSaysWhatThePagesCost", "the emulator's mincore fails for a range with a guard", false},
	{"budget/guide", "TestGoldenMessages", "its programs set limits that the emulator doesn't keep", false},
	{"platform", "TestReadOfProtectedPage", "the emulator of armv7 leaves out the address of a fault", true},
	{"scope/cache", "TestBytesFaults", "the emulator leaves out the address of some faults", false},
	{"scope/cache", "TestBytesFaultAndLoad", "the same", false},
	{"tests/frogpond", "TestServe", "its bound of the process's memory leaves out the emulator's", false},
	{"tests/frogpond", "TestServeAgones", "the same", false},
	{"tests/frogpond", "TestServeAtEachAddress", "the same", false},
	{"tests/frogpond/internal/udp", "TestDropped", "the emulator doesn't pass on the count of dropped packets", false},
	{"tests/frogpond/internal/serve", "", "they play in real time, which the emulator doesn't keep", false},
	{"tests/frogpond/internal/game", "TestForgedFields", "its sizes are of 64 bits", true},
	{"tests/malloc", "", "there C's malloc doesn't know the requests of Go's runtime", true},
	{"tests/model", "TestModel", "its digest is of 64 bits", true},
	{"tests/strangers/work", "", "their inputs are of 64 bits", true},
	{"tests/tiles", "", "its page's sizes are of 64 bits", true},
	{"tests/step", "", "they set limits that the emulator doesn't keep", false},
	{"tests", "", "they check pages and sources, with tools of the build machine", false},
	{"tests/run", "", "the same", false},
}

// inFull are the packages whose tests run under an emulator in full, except that their programs
// can't start themselves. In full, others start the compiler, and then programs that the system
// can't start.
var inFull = []string{"arena", "arena/blob", "scope", "scope/container", "scope/flow", "scope/flow/source", "budget",
	"budget/budgettest", "budget/record", "budget/view", "platform", "tests/frogpond", "tests/frogpond/internal/doom",
	"tests/frogpond/internal/game", "tests/frogpond/internal/wire", "tests/frogpond/internal/client",
	"tests/frogpond/internal/disk", "tests/conformance"}

// leftOut reports whether none of a package's tests run under the target's emulator.
func (t target) leftOut(pack string) bool {
	return slices.ContainsFunc(exceptions, func(e exception) bool { return e.pack == pack && e.test == "" && e.of(t) })
}

// of reports whether the target leaves out the exception.
func (e exception) of(t target) bool { return !e.only32 || t.Machine == "arm" }

// exceptionsTable returns the table of cross/README.md.
func exceptionsTable() string {
	var b strings.Builder
	b.WriteString("| package | left out | why |\n|---|---|---|\n")
	for _, e := range exceptions {
		test := "all tests"
		if e.test != "" {
			test = "`" + e.test + "`"
		}
		if e.only32 {
			test += ", on armv7"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.pack, test, e.why)
	}
	return b.String()
}
