// Command upfront-vet finds misuse of upfront that can be read in the source: memory that outlives its scope, scopes that are
// left open, types that an arena refuses.
//
//	go vet -vettool=$(which upfront-vet) ./...
//	upfront-vet ./...
//
// It doesn't see through interfaces and function values, and what it doesn't report may be wrong all the same: -h says what it
// can't see. Misuse that it can't read, a checked build catches.
//
// Install it from a checkout: cd budget/cmd && go install ./upfront-vet
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

// help is what x/tools would say of any tool, said of this one.
func help(w io.Writer) {
	var checks strings.Builder
	for _, a := range lifetime.Analyzers {
		title, _, _ := strings.Cut(a.Doc, "\n")
		fmt.Fprintf(&checks, "  %-11s %s\n", a.Name, title)
	}
	fmt.Fprintf(w, about, checks.String())
}

const about = `upfront-vet finds misuse of upfront that can be read in the source: memory that outlives its
scope, scopes that are left open, types that an arena refuses.

  go vet -vettool=$(which upfront-vet) ./...   these checks; go vet's own are another run
  upfront-vet ./...                            the same without go vet, which remembers results

Checks:
%s
-NAME runs one alone, -NAME=false all but one; upfront-vet help NAME says more of it.

  x.kept = frogs.New(t) //upfront:keeps it is forgotten at the end of the tick

silences a line: there, or on the line above. In the comment of a declaration it silences all of
that, before the package clause the file. What comes behind it says why.

What it can't see. It follows memory through variables, fields, closures and functions, those of
other packages too. It doesn't follow calls of interfaces and of function values, nor conditions:
who closes and uses under the same condition twice is told of a way that is none. It knows nothing
of loads, frames and pools that end what somebody keeps, of locks, and of tests' scopes that nobody
closes. A library that doesn't import upfront passes nothing on, but for what strings, bytes and
slices cut. Misuse that it doesn't see, a build with -tags checked or -asan catches.

Exit code: 0 nothing, 3 misuse, else trouble; of go vet 1.
`
