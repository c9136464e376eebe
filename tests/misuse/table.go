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
	by     string // the check that catches it; inShort reads it
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

// The report of the checked build for a block that is freed twice.
const freedTwice = "arena: BUG: Heap.Free: freed already"

// The report of the checked build for an address that isn't in use.
const (
	ofRewound = "read or write of memory that was rewound … ended"
	toDead    = "write to memory that was closed … ended at / write after put … put at"
)

func lines() []line {
	return slices.Concat(staleMemory, reusedMemory, bounds, pools, caches, heaps, scopes, loads, names, closedBudgets,
		goPointers, goroutines, finalizers, scripts, states, callers)
}

// kind is a row of the short table: lines that each build answers in the same way.
type kind struct {
	misuse string
	lines  []string
}

var kinds = []kind{
	{"read memory of a rewound region, or of an older frame",
		[]string{"read after a region's rewind, or after NextFrame"}},
	{"read memory of a closed scope, a chunk that was put, a freed block", []string{
		"read after Close, Put or free, or temporaries after their load"}},
	{"write to a rewound region, or to an older frame",
		[]string{"write after a region's next load, or after NextFrame"}},
	{"write to a closed scope, a chunk that was put, a freed block", []string{
		"write after Close or Put, also when the place is taken again",
		"write after free, to a block of a heap or a buddy"}},
	{"write past an object, a slice, a chunk or a block", []string{
		"write past an object, slice, chunk or a region's last; before its first",
		"write a byte past a block of a heap or a buddy"}},
	{"read fresh memory that isn't zeroed",
		[]string{"read memory of AllocUnzeroed or BytesUnzeroed before writing it"}},
	{"put or free twice", []string{"Put twice, of a foreign, interior or misaligned pointer, of a stale handle",
		"free, realloc or SizeOf of a heap's freed, foreign or interior block",
		"free, realloc or SizeOf of a buddy's freed, foreign or interior block"}},
	{"put twice, when the chunk is taken again", []string{"Put twice, when the chunk is taken again"}},
	{"free twice, when the block is taken again", []string{"free twice, when the block is taken again"}},
	{"use a stale Ref, handle, Loaded, list or Text",
		[]string{"ask a stale Ref, Handle, Owned, Loaded, pool, list or Text",
			"add to a stale list, deque, map, Builder, Text; RefTo a stale scope; CloseNow twice"}},
	{"allocate in a closed, covered or frozen scope; close out of order; use a zero value", []string{
		"allocate in a covered, closed or frozen scope, by an undeclared Maker, with a bad align",
		"close scopes out of order, twice, or from their own finalizers",
		"use a zero value: a Scope, a Scratch, a pool, a Region, a HeapMaker"}},
	{"leave a scope, scratch or a slot open", []string{"leave a scope open; never release scratch or a slot"}},
	{"use a closed budget", []string{"use a budget, its scopes, scratch or pools after its Close",
		"ask a closed budget's Ref, Loaded, Owned, pool or reader"}},
	{"read a closed budget's memory", []string{"read a closed budget's memory"}},
	{"declare a type with a Go pointer", []string{"a type with Go pointers in an arena"}},
	{"two goroutines in one arena, pool or object", []string{"two use one arena or pool, or fill one Builder",
		"two write one object, each with a scratch arena of its own",
		"a goroutine reads memory that another rewinds or NextFrame ends"}},
	{"two goroutines in one heap or buddy", []string{"two use one Heap or Buddy without a lock"}},
	{"leak memory of C's malloc", []string{"a C finalizer leaks memory of malloc"}},
}

// vetted has the programs in which upfront-vet reports the misuse, and parts of its reports.
var vetted = map[string]string{
	"Plain of a type with a string":                     "holds a Go pointer",
	"Object of a type with a string":                    "holds a Go pointer",
	"HeapOf a type with a string":                       "holds a Go pointer",
	"NewPool of a type with a string":                   "holds a Go pointer",
	"read after Close of an inner scope":                "it is used after that",
	"write after Close of an inner scope":               "it is used after that",
	"write after Close and New":                         "it is used after that",
	"leave a scratch's scope open in a load that fails": "is still open when the function returns",
}

// shortTable returns the kinds in Markdown. It panics if a build answers the lines of a kind
// differently.
func shortTable() string {
	var b strings.Builder
	b.WriteString("| misuse | release | `-race` | `-asan` | `-tags checked` | go vet |\n|---|---|---|---|---|---|\n")
	for _, k := range kinds {
		var programs, seen int
		row := make(map[string]string)
		for _, misuse := range k.lines {
			i := slices.IndexFunc(lines(), func(l line) bool { return l.misuse == misuse })
			l := lines()[i]
			for _, build := range []string{"release", "race", "asan", "checked"} {
				says := l.inShort(build)
				if before, found := row[build]; found && before != says {
					panic(fmt.Sprintf("%s: %s says %q and %q", k.misuse, build, before, says))
				}
				row[build] = says
			}
			for _, p := range l.programs {
				programs++
				if vetted[p.name] != "" {
					seen++
				}
			}
		}
		vet := "–"
		if seen == programs {
			vet = "yes"
		} else if seen != 0 {
			vet = "in part"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", k.misuse, row["release"], row["race"], row["asan"],
			row["checked"], vet)
	}
	return b.String()
}

// inShort returns a build's answer in a word.
func (l line) inShort(build string) string {
	switch a, caught := l.answer(build); {
	case !caught:
		return "–"
	case a.by == "fill":
		return a.by
	case slices.Contains([]string{"quarantine", "redzone", "redzone, when it is freed"}, a.by) && a.says != freedTwice:
		return "later"
	default:
		return "yes"
	}
}

// covers reports whether the answer is one of the build.
func (a answer) covers(build string) bool {
	if a.builds == every {
		return build != "cgocheck2"
	}
	return slices.Contains(strings.Split(a.builds, ", "), build)
}

// answer returns the answer of the build, and false if the program goes on.
func (l line) answer(build string) (answer, bool) {
	for _, a := range l.answers {
		if a.covers(build) {
			return a, true
		}
	}
	return answer{}, false
}

// table returns the lines in Markdown, with a row for each answer.
func table() string {
	var b strings.Builder
	b.WriteString("| misuse | build | output |\n|---|---|---|\n")
	for _, l := range lines() {
		if len(l.answers) == 0 {
			fmt.Fprintf(&b, "| %s | none | %s |\n", l.misuse, l.goesOn)
		}
		misuse := l.misuse
		for _, a := range l.answers {
			fmt.Fprintf(&b, "| %s | %s | `%s` |\n", misuse, a.builds, a.says)
			misuse = ""
		}
	}
	return b.String()
}
