package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// target is what a figure should come to at most, as a part of another's in the same run.
type target struct {
	work    string
	who     []string // the best of them counts
	most    float64
	of      string  // who else does the work; "": the figure itself is meant
	ofWork  string  // the other figure is of this work, and of the same who
	counted bool    // a unit takes less than 2 ns, of which 30 % depend on where code lies: instructions are compared, too
	shown   bool    // not held by the gate: a figure of the machine, too
	reached float64 // what it comes to where the target isn't reached; the gate holds this then
}

// targetsOf are those of some works.
func targetsOf(chosen []work) []target {
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		return !slices.ContainsFunc(chosen, func(w work) bool { return w.letter == t.work[:1] })
	})
}

// margin is what a figure may be above its target, for what machines do meanwhile.
const margin = 1.10

// targets is all there is to reach. C and hand-written Go (packages cfloor and bump) check nothing.
var targets = []target{
	{work: "A objects", who: []string{library}, most: 1.1, of: floor, counted: true},
	{work: "B mixed sizes", who: []string{library}, most: 1.15, of: byHand, counted: true},
	{work: "B mixed sizes", who: []string{byNumber}, most: 1.35, of: byHand, counted: true},
	{work: "B mixed sizes, zeroed", who: []string{library}, most: 1.15, of: byHand},
	{work: "C pool 64 LIFO", who: []string{library}, most: 1.5, of: byHand},
	{work: "C pool 64 LIFO", who: []string{unzeroed}, most: 1.35, of: byHand},
	{work: "C pool 64 random", who: []string{library}, most: 0.85, of: byHand},
	{work: "C pool 256 LIFO", who: []string{unzeroed}, most: 1.35, of: byHand, reached: 1.4},
	{work: "C pool 256 random", who: []string{unzeroed}, most: 0.85, of: byHand},
	{work: "D empty scope", who: []string{library}, most: 0.42, of: floor},
	{work: "D 8 objects", who: []string{library}, most: 1.7, of: byHand, reached: 1.8},
	{work: "D 8 objects, 2 clean-ups", who: []string{library}, most: 1.45, of: floor, reached: 1.65},
	{work: "D 8 objects, 2 clean-ups", who: []string{withDefer}, most: 2, of: floor, reached: 2.2},
	{work: "F push", who: []string{library, built}, most: 1.1, of: byHand, counted: true},
	{work: "F push", who: []string{inList}, most: 1.5, of: byHand, counted: true},
	{work: "F push", who: []string{inDeque}, most: 1.8, of: byHand, counted: true},
	{work: "H 16-256 bytes, 1k live", who: []string{library}, most: 1.15, of: glibc},
	{work: "H 16-256 bytes, 1k live", who: []string{library}, most: 1.1, of: tlsf},
	{work: "H 16-256 bytes, 10k live", who: []string{library}, most: 1.1, of: tlsf},
	{work: "H 16-4096 bytes, 1k live", who: []string{library}, most: 1.15, of: glibc},
	{work: "H 16-4096 bytes, 1k live", who: []string{library}, most: 1.1, of: tlsf},
	{work: "H 16-4096 bytes, 10k live", who: []string{library}, most: 1.1, of: tlsf, reached: 1.2},
	{work: "H flush", who: []string{library}, most: 100},
	{work: "H memory", who: []string{library}, most: 1 / 0.92},
	{work: "H unflushed memory", who: []string{library}, most: 1 / 0.90},
	{work: "H SQLite", who: []string{library}, most: 1.03, of: glibc},
	{work: "H Lua binary-trees", who: []string{library}, most: 1.3, of: glibc, reached: 1.35},
	{work: "H Lua strings", who: []string{library}, most: 1, of: glibc, reached: 1.12},
	{work: "H Lua mixed", who: []string{library}, most: 1, of: glibc, reached: 1.12},
	{work: "I rewind 1 M finalizers", who: []string{library}, most: 1, of: byHand, counted: true, reached: 1.05},
	{work: "J tick p99.9", who: []string{library}, most: 3, ofWork: "J tick p50"},
	{work: sampledJ, who: []string{library}, most: 1.01, ofWork: "J tick p50"},
	{work: "N next frame", who: []string{library}, most: 2.7, of: floor},
	{work: "N sample", who: []string{library}, most: 50},
	{work: "O cascade of eight nodes", who: []string{library}, most: 1.2, of: floor, reached: 1.3},
	{work: "S snapshot", who: []string{library}, most: 1.11, of: byHand},
	{work: "S restore", who: []string{library}, most: 1.11, of: byHand},
	{work: "S snapshot and hash", who: []string{library}, most: 1.25, of: byHand, reached: 1.35},
	{work: "S delta, 3000 writes in 1.7 MB", who: []string{library}, most: 3, of: byHand, reached: 4.1},
	{work: "S 64 MiB, 5 % written", who: []string{library}, most: 0.2, of: byHand},
	{work: "T upfront: alloc", who: []string{longest}, most: 1500},
	{work: "T upfront: free", who: []string{longest}, most: 1500},
	{work: "V verify nodes", who: []string{library}, most: 4, of: byHand, counted: true},
	{work: "V verify numbers", who: []string{library}, most: 1.1, of: byHand},

	{work: "E collection, 5 million live", who: []string{library}, most: 200_000, shown: true},
	{work: "E peak RSS", who: []string{library}, most: 1.05 + float64(goShareE)/dataE, shown: true},
	{work: "I rewind 1 GiB", who: []string{library}, most: 1000, shown: true},
	{work: "I rewind 1 GiB", who: []string{ofRegion}, most: 1000, shown: true},
	{work: "O instance", who: []string{library}, most: 30, shown: true},
	{work: "J collections", who: []string{library}, most: 0, shown: true},
	{work: "J Go allocations", who: []string{library}, most: 0, shown: true},
	{work: "J budget faults", who: []string{library}, most: 0, shown: true},
	{work: "P Go allocations", who: []string{library}, most: 0, shown: true},
	{work: "P collections", who: []string{library}, most: 0, shown: true},
	{work: "T upfront: realloc", who: []string{longest}, most: 1500, shown: true},
	{work: "V verify nodes", who: []string{library}, most: 20, shown: true},
	{work: "V verify numbers", who: []string{library}, most: 1024, shown: true},
}

// figures are the least of what was measured, of a work and who did it.
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

// best is the least of what some took.
func (f figures) best(work string, who ...string) float64 {
	best := math.NaN()
	for _, name := range who {
		if v := f.of(work, name); math.IsNaN(best) || v < best {
			best = v
		}
	}
	return best
}

// ratio is what the target speaks of, NaN when it wasn't measured.
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

// verdict is what a target came to, by time and, if they were counted, by instructions.
type verdict struct {
	target
	time, instructions float64
	measured           []series // in the attempt whose time it is
}

// judged is false where nothing was measured, and where time alone doesn't tell, and nobody counted
// instructions.
func (v verdict) judged() bool {
	return !math.IsNaN(v.time) && (!v.counted || !math.IsNaN(v.instructions))
}

// held takes the better of both where instructions are counted. Each is wrong at times: time by where code lies, and instructions where a
// processor does several at once: of 64 zeroed bytes, hand-written Go has 1.6 times as many as C, and takes 0.9 of its time.
func (v verdict) held() bool {
	return !v.late() || v.counted && v.instructions <= v.limit()
}

func (v verdict) late() bool { return v.time > v.limit() }

func (v verdict) limit() float64 { return max(v.most, v.reached) * margin }

func (v verdict) String() string {
	of := v.of
	if v.ofWork != "" {
		of = v.ofWork
	}
	if of == "" {
		of = "-"
	}
	word := "missed"
	switch {
	case !v.judged():
		word = "not judged"
	case v.held() && v.reached != 0:
		word = fmt.Sprintf("held at %s", number(v.reached))
	case v.held():
		word = "held"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |",
		v.work, strings.Join(v.who, " or "), of, number(v.most), number(v.time), number(v.instructions), word)
}

// judge says what the targets of the works came to.
func (t *table) judge(chosen []work) {
	rows := targetsOf(chosen)
	counts, err := countInstructions(rows)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: instructions aren't counted:", err)
	}
	for _, x := range rows {
		t.verdicts = append(t.verdicts, verdict{x, x.ratio(t.least), x.ratio(counts), nil})
	}
}

func printVerdicts(to io.Writer, list []verdict) {
	if len(list) == 0 {
		return
	}
	w := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	rows := []string{"| work | who | of | at most | times | instructions | |", "|---|---|---|--:|--:|--:|---|"}
	for _, v := range list {
		rows = append(rows, v.String())
	}
	for _, r := range rows {
		fmt.Fprintln(w, strings.ReplaceAll(r, " | ", "\t| "))
	}
	w.Flush()
	fmt.Fprintf(to, "\nThe least of interleaved rounds, and what it is of the other's. Where a unit takes less than 2 ns,\n"+
		"instructions are counted, and the better of both decides. A row may be %.0f %% above. One that is held\n"+
		"at another figure doesn't reach its target.\n", 100*(margin-1))
}
