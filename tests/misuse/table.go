package main

import (
	"fmt"
	"slices"
	"strings"
)

// every stands for all builds.
const every = "every build"

// line is a misuse, as a line of the table: the programs that commit it, and the builds that catch
// all of them. In a build without an answer, the program goes on.
type line struct {
	misuse   string
	programs []program
	answers  []answer
	goesOn   string // the program's end in builds without an answer
}

// answer is the answer of some builds to each program of a line.
type answer struct {
	builds string // every, or names with ", " between them
	by     string // the check that catches it
	says   string // parts of the output in this order, "…" between them; " / " divides alternatives
	status int    // of the process
}

// program commits one misuse, in a step that it does only when wrong is set.
type program struct {
	name   string
	run    func(wrong bool)
	says   string // additional output in builds with an answer
	status int    // its own exit status, if it has one
	goesOn string // its output in builds without an answer
	right  string // its output when it does nothing wrong
	only   string // the one build that it is run in, if others have other output
}

// The exit statuses of processes.
const (
	goneOn  = 0
	told    = 1  // the library's answer is an error or nil, and the program ends with it
	asanEnd = 1  // of AddressSanitizer and its leak check
	panics  = 2  // also of the runtime's fatal errors
	raced   = 66 // the race detector's
)

// The report of AddressSanitizer, with the line in Go.
const poison = "use-after-poison … .go:"

// The report of the checked build for an address that isn't in use.
const (
	ofRewound = "read or write of memory that was rewound … ended"
	toDead    = "write to memory that was closed … ended at / write after put … put at"
)

func lines() []line {
	return slices.Concat(staleMemory, reusedMemory, bounds, pools, caches, heaps, scopes, loads, names, closedBudgets, goPointers, goroutines,
		finalizers, scripts, states, callers)
}

// table returns the lines in Markdown, with a row for each answer.
func table() string {
	var b strings.Builder
	b.WriteString("| misuse | build | caught by | output |\n|---|---|---|---|\n")
	for _, l := range lines() {
		if len(l.answers) == 0 {
			fmt.Fprintf(&b, "| %s | none | not caught | %s |\n", l.misuse, l.goesOn)
		}
		misuse := l.misuse
		for _, a := range l.answers {
			fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", misuse, a.builds, a.by, a.says)
			misuse = ""
		}
	}
	return b.String()
}
