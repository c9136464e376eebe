// Command upfront-vet finds misuse of upfront in source code: memory that outlives its scope,
// scopes that stay open, types that an arena refuses.
//
//	upfront-vet ./...
//	go vet -vettool=$(which upfront-vet) ./...
//
// The command can't follow calls through interfaces and function values; -h lists all limits. Run a
// checked build as well: it catches misuse at run time.
//
// Install it from a checkout: cd budget/cmd && go install ./upfront-vet. It reads source up to the
// language version of the Go that built it, so build it with the Go that runs go vet, or a later
// one.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/upfront-mem/upfront/budget/cmd/upfront-vet/lifetime"
)

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 0:
		help(os.Stderr)
		os.Exit(2)
	case len(args) == 1 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help"):
		help(os.Stdout)
	default:
		multichecker.Main(lifetime.Analyzers...)
	}
}

// help replaces the general help of x/tools.
func help(w io.Writer) {
	var checks strings.Builder
	for _, a := range lifetime.Analyzers {
		title, _, _ := strings.Cut(a.Doc, "\n")
		fmt.Fprintf(&checks, "  %-11s %s\n", a.Name, title)
	}
	fmt.Fprintf(w, about, checks.String())
}

const about = `upfront-vet finds misuse of upfront in source code: memory that outlives its scope, scopes
that stay open, types that an arena refuses.

  upfront-vet ./...                            the checks below
  go vet -vettool=$(which upfront-vet) ./...   the same, with go vet's cache of results; if the
                                               tool isn't on the PATH, go vet runs its own checks

-fix writes the conversions of the check fused and reports nothing. Run again to see the rest.

Checks:
%s
-NAME runs only that check, -NAME=false all others; upfront-vet help NAME explains it.

  x.kept = frogs.New(t) //upfront:keeps it is forgotten at the end of the tick

The comment silences its line, or the next line if it has a line of its own. In the comment of a
declaration it silences the declaration, before the package clause the file. The text after it is
the reason.

The checks follow memory through variables, fields, closures and functions, also of other
packages. They don't follow:

  - calls of interfaces and of function values;
  - conditions: code that closes and uses under the same condition twice may be reported for a path
    that can't happen;
  - the ends of loads, frames and pools, locks, and scopes that tests leave open;
  - memory through a library that doesn't import upfront, except some functions of the standard
    library that return a part of their argument.

A build with -tags checked or -asan catches misuse that these checks miss.

Exit code: 0 nothing found, 3 misuse, else trouble; of go vet 1.
`
