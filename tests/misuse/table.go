package main

import (
	"fmt"
	"slices"
	"strings"
)

// every is the builds that any user has.
const every = "every build"

// line is a misuse, as the table shows it: programs that commit it, and which build catches them all. What no answer is for
// goes on.
type line struct {
	misuse   string
	programs []program
	answers  []answer
	goesOn   string // to what end it goes on, where no build catches it
}

// answer is what some builds say to each program of a line.
type answer struct {
	builds string // every, or names with ", " between them
	by     string // what catches it
	says   string // what the program's output has: parts in this order, "…" between them; or what is behind " / "
	status int    // of the process
}

// program commits one misuse, in the step that it does only when it is told to do wrong.
type program struct {
	name   string
	run    func(wrong bool)
	says   string // what builds with an answer say to this one, beside what they say to all of the line
	status int    // and its own status, where it has one
	goesOn string // what it says in builds without an answer
	right  string // what it says when it does nothing wrong
	only   string // the one build that it is run in, where others say something else
}

// The statuses of processes.
const (
	goneOn  = 0
	told    = 1  // the library's answer is an error or nil, and the program ends with it
	asanEnd = 1  // AddressSanitizer's, and its leak check's
	panics  = 2  // and the runtime's fatal errors
	raced   = 66 // the race detector's
)

// What AddressSanitizer says, with the line in Go.
const poison = "use-after-poison … .go:"

// What the checked build says of an address that rests.
const (
	ofRewound = "read or write of memory that was rewound … ended"
	toDead    = "write to memory that was closed … ended at / write after put … put at"
)

func lines() []line {
	return slices.Concat(staleMemory, reusedMemory, bounds, pools, heaps, scopes, loads, names, closedBudgets, goPointers, goroutines,
		finalizers, scripts, states, callers)
}

// table is the lines in Markdown, with a row for each answer.
func table() string {
	var b strings.Builder
	b.WriteString("| misuse | build | caught by | what it says |\n|---|---|---|---|\n")
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
