package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// target is the limit of a figure, as a ratio to another figure of the same run.
type target struct {
	work   string
	who    []string // the best of them counts
	most   float64
	of     string // the other contestant; "": most is of the figure itself
	ofWork string // the other figure is the same contestant's, of this work
	gate   gate
}

// gate is the way in which bench -gate judges a row, never by a time.
type gate int

const (
	none         gate = iota // a time, a copy, or a number that depends on the machine
	instructions             // the library's for a unit of work, compared with the record
	inC                      // the same with a part in C: the record names a C compiler, too
	count                    // a constant number, compared with the target
)

func targetsOf(chosen []work) []target {
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		return !slices.ContainsFunc(chosen, func(w work) bool { return w.letter == t.work[:1] })
	})
}

var targets = []target{
	{work: "A objects", who: []string{library}, most: 1.1, of: floor, gate: instructions},
	{work: "B mixed sizes", who: []string{library}, most: 1.15, of: byHand, gate: instructions},
	{work: "B mixed sizes", who: []string{byNumber}, most: 1.35, of: byHand, gate: instructions},
	{work: "B mixed sizes, zeroed", who: []string{library}, most: 1.15, of: byHand, gate: instructions},
	{work: "B bytes", who: []string{library}, most: 1.2, of: byHand, gate: instructions},
	{work: "C pool 64 LIFO", who: []string{library}, most: 1.5, of: byHand, gate: instructions},
	{work: "C pool 64 LIFO", who: []string{unzeroed}, most: 1.35, of: byHand, gate: instructions},
	{work: "C pool 64 random", who: []string{library}, most: 0.85, of: byHand, gate: instructions},
	{work: "C pool 256 LIFO", who: []string{unzeroed}, most: 1.35, of: byHand, gate: instructions},
	{work: "C pool 256 random", who: []string{unzeroed}, most: 0.85, of: byHand, gate: instructions},
	{work: "C all, none taken", who: []string{library, handles}, most: 10, gate: instructions},
	{work: "C all, none live", who: []string{library}, most: 200, gate: instructions},
	{work: "C all, none live", who: []string{handles}, most: 200, gate: instructions},
	{work: "C all, a tenth live", who: []string{library}, most: 1.3, of: byHand, gate: instructions},
	{work: "C all, a tenth live", who: []string{handles}, most: 1.3, of: byHand, gate: instructions},
	{work: "C all, all live", who: []string{library}, most: 1.2, of: byHand, gate: instructions},
	{work: "C all, all live", who: []string{handles}, most: 1.2, of: byHand, gate: instructions},
	{work: "D empty scope", who: []string{library}, most: 0.42, of: floor, gate: instructions},
	{work: "D 8 objects", who: []string{library}, most: 1.7, of: byHand, gate: instructions},
	{work: "D 8 objects, 2 clean-ups", who: []string{library}, most: 1.45, of: floor, gate: instructions},
	{work: "D 8 objects, 2 clean-ups", who: []string{withDefer}, most: 2, of: floor, gate: instructions},
	{work: "F push", who: []string{library, built}, most: 1.1, of: byHand, gate: instructions},
	{work: "F push", who: []string{library}, most: 1.5, of: byHand, gate: instructions},
	{work: "F push", who: []string{inList}, most: 1.5, of: byHand, gate: instructions},
	{work: "F push", who: []string{inDeque}, most: 1.8, of: byHand, gate: instructions},
	{work: "G get", who: []string{library}, most: 1.5, of: goHeap, gate: instructions},
	{work: "G add", who: []string{library}, most: 1, of: goHeap, gate: instructions},
	{work: "G load", who: []string{library}, most: 1, of: goHeap},
	{work: "H 16-256 bytes, 1k live", who: []string{library}, most: 1.15, of: glibc, gate: inC},
	{work: "H 16-256 bytes, 1k live", who: []string{library}, most: 1.1, of: tlsf, gate: inC},
	{work: "H 16-256 bytes, 10k live", who: []string{library}, most: 1.1, of: tlsf, gate: inC},
	{work: "H 16-4096 bytes, 1k live", who: []string{library}, most: 1.15, of: glibc, gate: inC},
	{work: "H 16-4096 bytes, 1k live", who: []string{library}, most: 1.1, of: tlsf, gate: inC},
	{work: "H 16-4096 bytes, 10k live", who: []string{library}, most: 1.1, of: tlsf, gate: inC},
	{work: "H 32 bytes, 1600 at once", who: []string{library}, most: 1.3, of: glibc, gate: inC},
	{work: "H numbers", who: []string{library}, most: 1.3, of: glibc, gate: inC},
	{work: "H flush", who: []string{library}, most: 100, gate: inC},
	{work: "H C's malloc, a front", who: []string{library}, most: 20, gate: inC},
	{work: "H C's malloc, profiled", who: []string{library}, most: 20, gate: inC},
	{work: "H C's malloc, 2 KiB", who: []string{library}, most: 40, gate: inC},
	{work: "H a Shared", who: []string{library}, most: 40, gate: inC},
	{work: "H memory", who: []string{library}, most: 1 / 0.92, gate: count},
	{work: "H unflushed memory", who: []string{library}, most: 1 / 0.90, gate: count},
	{work: "H SQLite", who: []string{library}, most: 1.03, of: glibc},
	{work: "H Lua binary-trees", who: []string{library}, most: 1.3, of: glibc},
	{work: "H Lua strings", who: []string{library}, most: 1, of: glibc},
	{work: "H Lua mixed", who: []string{library}, most: 1, of: glibc},
	{work: "I rewind 1 M finalizers", who: []string{library}, most: 1, of: byHand, gate: instructions},
	{work: "I load", who: []string{library}, most: 1.1, of: oneRegion, gate: instructions},
	{work: "J tick p99.9", who: []string{library}, most: 3, ofWork: "J tick p50"},
	{work: sampledJ, who: []string{library}, most: 1.01, ofWork: "J tick p50"},
	{work: moduleOnceM.name, who: []string{cpuM}, most: 1.15, ofWork: plainM.name},
	{work: mallocM.name, who: []string{cpuM}, most: 1.15, ofWork: plainM.name},
	{work: mallocOnceM.name, who: []string{cpuM}, most: 1.15, ofWork: plainM.name},
	{work: mallocRoundM.name, who: []string{cpuM}, most: 1.15, ofWork: plainM.name},
	{work: "N next frame", who: []string{library}, most: 2.7, of: floor, gate: instructions},
	{work: "N sample", who: []string{library}, most: 50, gate: instructions},
	{work: "O cascade of eight nodes", who: []string{library}, most: 1.2, of: floor, gate: instructions},
	{work: "R lease", who: []string{library}, most: 60, gate: instructions},
	{work: "R lease, 16 objects", who: []string{library}, most: 3, of: ownScratch, gate: instructions},
	{work: "R two lessees", who: []string{library}, most: 3, of: ownScratch},
	{work: "S snapshot", who: []string{library}, most: 1.11, of: byHand},
	{work: "S restore", who: []string{library}, most: 1.11, of: byHand},
	{work: "S snapshot and hash", who: []string{library}, most: 1.25, of: byHand, gate: instructions},
	{work: "S delta, 3000 writes in 1.7 MB", who: []string{library}, most: 3, of: byHand, gate: instructions},
	{work: "S 64 MiB, 5 % written", who: []string{library}, most: 0.2, of: byHand},
	{work: "S snapshot, 5 MB in a heap of 16 MiB", who: []string{library}, most: 2, of: floor},
	{work: "S snapshot, 5 MB in a heap of 64 MiB", who: []string{library}, most: 2, of: floor},
	{work: "S restore, 5 MB in a heap of 16 MiB", who: []string{library}, most: 2.5, of: floor},
	{work: "S restore, 5 MB in a heap of 64 MiB", who: []string{library}, most: 2.5, of: floor},
	{work: "S snapshot, blocks of 64 bytes", who: []string{library}, most: 2.5, of: floor, gate: instructions},
	{work: "S restore, blocks of 64 bytes", who: []string{library}, most: 2.5, of: floor, gate: instructions},
	{work: "S checkpoint, 20 KiB", who: []string{library}, most: 2500},
	{work: "S checkpoint, 163 pages of 64 MiB", who: []string{library}, most: 1.3, of: byHand},
	{work: "T upfront: alloc", who: []string{longest}, most: 1500},
	{work: "T upfront: free", who: []string{longest}, most: 1500},
	{work: "V verify nodes", who: []string{library}, most: 4, of: byHand, gate: instructions},
	{work: "V verify numbers", who: []string{library}, most: 1.1, of: byHand, gate: instructions},

	{work: "E collection, 5 million live", who: []string{library}, most: 200_000},
	{work: "E peak RSS", who: []string{library}, most: 1.05 + float64(goShareE)/dataE},
	{work: "I rewind 1 GiB", who: []string{library}, most: 1000},
	{work: "I rewind 1 GiB", who: []string{ofRegion}, most: 1000},
	{work: "I load", who: []string{oneRegion}, most: 1000, gate: instructions},
	{work: "O instance", who: []string{library}, most: 30, gate: instructions},
	{work: "J collections", who: []string{library}, most: 0, gate: count},
	{work: "J Go allocations", who: []string{library}, most: 0, gate: count},
	{work: "J budget faults", who: []string{library}, most: 0, gate: count},
	{work: residentK, who: []string{library}, most: 1.02},
	{work: lostK, who: []string{library}, most: 1.0 / 3},
	{work: hitsK, who: []string{library}, most: 1 / 0.97},
	{work: getK, who: []string{library}, most: 1.1},
	{work: setK, who: []string{library}, most: 1.1},
	{work: moduleOnceM.name, who: []string{endM}, most: limitM},
	{work: mallocM.name, who: []string{endM}, most: limitM},
	{work: mallocOnceM.name, who: []string{endM}, most: limitM},
	{work: "P Go allocations", who: []string{library}, most: 0},
	{work: "P collections", who: []string{library}, most: 0},
	{work: "T upfront: realloc", who: []string{longest}, most: 1500},
	{work: "V verify nodes", who: []string{library}, most: 20},
	{work: "V verify numbers", who: []string{library}, most: 1024},
}

// twinMost is the largest ratio of a row's instructions to those of its twin, in hand-written Go.
const twinMost = 1.15

// twinOf returns the contestant that is a row's twin, or "" if the row has none.
func twinOf(work string) string {
	switch letter := work[0]; {
	case strings.HasPrefix(work, "C pool"):
		return checkedByHand
	case letter == 'G':
		return goHeap
	case letter <= 'F':
		return byHand
	}
	return ""
}

// dearer has the rows that take more than twinMost, with a limit of their own, in both versions of
// Go. why is the work that the twin doesn't do.
var dearer = map[[2]string]struct {
	most float64
	why  string
}{
	{"B mixed sizes", byNumber}:             {1.5, "the alignment is checked"},
	{"C all, a tenth live", library}:        {1.35, "the body may close the pool"},
	{"C all, a tenth live", handles}:        {1.35, "the body may close the pool"},
	{"C all, all live", library}:            {1.25, "the body may close the pool"},
	{"C all, all live", handles}:            {1.25, "the body may close the pool"},
	{"D 8 objects", library}:                {1.75, "a scope has a name and a generation, and Close reports misuse"},
	{"D 8 objects, 2 clean-ups", library}:   {2.05, "and the other clean-ups run if one panics"},
	{"D 8 objects, 2 clean-ups", withDefer}: {2.7, "and a clean-up can be cancelled"},
	{"F push", library}:                     {3.9, "Append grows any list by one element; Build is for loops"},
	{"F push", inList}:                      {1.3, "the scope must be open"},
	{"F push", inDeque}:                     {1.8, "the scope must be open, and the deque wraps"},
	{"G get", library}:                      {1.65, "get pins the value, and Unpin locks again"},
	{"G add", library}:                      {1.75, "add pins the value; the twin's garbage isn't collected meanwhile"},
}

// figures has the least value of each work and contestant.
type figures map[[2]string]float64

func (f figures) add(list []series) {
	for _, s := range list {
		f[[2]string{s.work, s.who}] = slices.Min(s.values)
	}
}

func (f figures) of(work, who string) float64 {
	if v, ok := f[[2]string{work, who}]; ok {
		return v
	}
	return math.NaN()
}

func (f figures) best(work string, who ...string) float64 {
	best := math.NaN()
	for _, name := range who {
		if v := f.of(work, name); math.IsNaN(best) || v < best {
			best = v
		}
	}
	return best
}

// ratio returns the figure that the target bounds, NaN if it wasn't measured.
func (t target) ratio(f figures) float64 {
	v := f.best(t.work, t.who...)
	switch {
	case t.of != "":
		return v / f.of(t.work, t.of)
	case t.ofWork != "":
		return v / f.best(t.ofWork, t.who...)
	}
	return v
}

// judge prints the targets with the measured figures.
func (t *table) judge(to io.Writer, rows []target) {
	if len(rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| work\t| contestant\t| of\t| at most\t| measured\t|\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|--:\t|--:\t|---\t|")
	for _, x := range rows {
		v, word := x.ratio(t.least), ""
		if v > x.most {
			word = "above"
		}
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", x.work, strings.Join(x.who, " or "),
			x.of+x.ofWork, number(x.most), number(v), word)
	}
	w.Flush()
	fmt.Fprintln(to, "\nThe least of interleaved rounds, and its ratio to the other's. Nothing is judged here: other\n"+
		"machines have other times. bench -gate judges instructions and counts.")
}
