package main

import (
	"fmt"
	"slices"
	"strings"
)

// exception is a package whose tests don't run under an emulator, or one of its tests.
type exception struct{ pack, test, why string }

// exceptions is the table of cross/README.md. Every other package of the root module runs.
var exceptions = []exception{
	{"budget", "TestAddressesInEveryRun", "the emulator's own choice of addresses is the same in each run"},
	{"budget", "TestOpenNearTheLimitOfAGroup", "the group's limit counts the emulator's memory"},
	{"budget", "TestOpenUnderALimitOfAddresses", "the emulator needs addresses, and ends or hangs under the limit"},
	{"budget", "TestReportSaysWhatThePagesCost", "the emulator's mincore fails for a range with a guard"},
	{"platform", "TestReadOfProtectedPage", "the emulator of armv7 leaves out the address of a fault"},
	{"tests/frogpond", "TestServe", "its bound of the process's memory leaves out the emulator's"},
	{"tests/frogpond", "TestServeAgones", "the same"},
	{"tests/frogpond", "TestServeAtEachAddress", "the same"},
	{"tests/frogpond/internal/udp", "TestDropped", "the emulator doesn't pass on the count of dropped packets"},
	{"tests/frogpond/internal/serve", "", "they play in real time, which the emulator doesn't keep"},
	{"tests/step", "", "they set limits that the emulator doesn't keep"},
	{"tests", "", "they check pages and sources, with tools of the build machine"},
	{"tests/run", "", "the same"},
}

// inFull are the packages whose tests run under an emulator in full, except that their programs
// can't start themselves. In full, others start the compiler, and then programs that the system
// can't start.
var inFull = []string{"arena", "arena/blob", "scope", "scope/container", "scope/flow", "scope/flow/source", "budget",
	"budget/budgettest", "budget/record", "budget/view", "platform", "tests/frogpond", "tests/frogpond/internal/doom",
	"tests/frogpond/internal/game", "tests/frogpond/internal/wire", "tests/frogpond/internal/client",
	"tests/frogpond/internal/disk", "tests/conformance"}

// leftOut reports whether none of a package's tests run under an emulator.
func leftOut(pack string) bool {
	return slices.ContainsFunc(exceptions, func(e exception) bool { return e.pack == pack && e.test == "" })
}

// exceptionsTable returns the table of cross/README.md.
func exceptionsTable() string {
	var b strings.Builder
	b.WriteString("| package | left out | why |\n|---|---|---|\n")
	for _, e := range exceptions {
		test := "all tests"
		if e.test != "" {
			test = "`" + e.test + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.pack, test, e.why)
	}
	return b.String()
}
