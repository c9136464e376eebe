package step

import (
	"flag"
	"fmt"
	"io"
	"os"
)

// stdout is a variable for tests: make collects the messages that a test binary prints.
var stdout io.Writer = os.Stdout

// Main runs a package's tests and returns the exit code. A TestMain calls it for examples that need
// a part of the machine, because an example can't skip itself. Where the machine lacks the part,
// the examples whose names match the pattern don't run. If REQUIRE_ALL is set, the tests fail
// there.
func Main(m interface{ Run() int }, examples string, needs ...Need) int {
	lack := lacking(needs)
	if lack == "" {
		return m.Run()
	}
	text := examples + " needs " + lack
	if os.Getenv("REQUIRE_ALL") != "" {
		fmt.Fprintln(stdout, "REQUIRE_ALL is set, and "+text)
		m.Run()
		return 1
	}
	fmt.Fprintln(stdout, Unproven+text)
	flag.Parse()
	if skip := flag.Lookup("test.skip"); skip.Value.String() != "" {
		examples = skip.Value.String() + "|" + examples
	}
	if err := flag.Set("test.skip", examples); err != nil {
		panic(err)
	}
	return m.Run()
}
