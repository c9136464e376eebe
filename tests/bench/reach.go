package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// reach is what a figure of this library should come to.
type reach struct {
	work, what string
	most       float64 // or, if least is set, the least
	least      bool
	of         func(t *table) float64 // NaN: not measured
}

type verdict struct {
	reach
	got float64
}

func floorRatio(work string) func(*table) float64 {
	return func(t *table) float64 {
		if r, ok := t.find(work, library); ok {
			return r.floor
		}
		return math.NaN()
	}
}

func medianOf(work, who string) func(*table) float64 {
	return func(t *table) float64 {
		if r, ok := t.find(work, who); ok {
			return r.median
		}
		return math.NaN()
	}
}

func quotient(a, b func(*table) float64) func(*table) float64 {
	return func(t *table) float64 { return a(t) / b(t) }
}

var reaches = []reach{
	{work: "A", what: "times C", most: 1.2, of: floorRatio("A objects")},
	{work: "B", what: "times C", most: 1.25, of: floorRatio("B mixed sizes")},
	{work: "C", what: "64 LIFO, times C with the same checks", most: 1.6, of: floorRatio("C pool 64 LIFO")},
	{work: "C", what: "64 random, times C with the same checks", most: 1.4, of: floorRatio("C pool 64 random")},
	{work: "C", what: "256 LIFO, times C with the same checks", most: 1.6, of: floorRatio("C pool 256 LIFO")},
	{work: "C", what: "256 random, times C with the same checks", most: 1.4, of: floorRatio("C pool 256 random")},
	{work: "D", what: "times C", most: 1.2, of: floorRatio("D scopes")},
	{work: "D", what: "times one cgo call", most: 1, of: quotient(medianOf("D scopes", library), medianOf("D scopes", oneCall))},
	{work: "E", what: "collection, 50 thousand live, µs", most: 200, of: micros(medianOf("E collection, 50 thousand live", library))},
	{work: "E", what: "collection, 5 million live, µs", most: 200, of: micros(medianOf("E collection, 5 million live", library))},
	{work: "E", what: "collection, 5 million live, times one with none live", most: 1.25,
		of: quotient(medianOf("E collection, 5 million live", library), medianOf("E collection, none live", library))},
	{work: "E", what: "peak RSS, times the data (1.05, and the Go share of 32 MiB)", most: 1.05 + float64(goShareE)/dataE,
		of: medianOf("E peak RSS", library)},
	{work: "F", what: "times C", most: 1.5, of: floorRatio("F append")},
	{work: "G", what: "times one goroutine's throughput, on two cores", most: 1.9, least: true,
		of: quotient(medianOf("G all cores", oneGoroutine), medianOf("G all cores", library))},
	{work: "I", what: "1 GiB, a scope's Close, ns", most: 1000, of: medianOf("I rewind 1 GiB", library)},
	{work: "I", what: "1 GiB, a region's Rewind, ns", most: 1000, of: medianOf("I rewind 1 GiB", ofRegion)},
	{work: "I", what: "1 GiB, a scope, 1000 times, ns", most: 1000, of: medianOf("I rewind 1 GiB, 1000 times", library)},
	{work: "I", what: "1 GiB, a region's Load and Rewind, 1000 times, ns", most: 1000,
		of: medianOf("I rewind 1 GiB, 1000 times", ofRegion)},
	{work: "I", what: "ns a finalizer", most: 3, of: medianOf("I rewind 1 M finalizers", library)},
	{work: "J", what: "collections during play", most: 0, of: medianOf("J collections", library)},
	{work: "J", what: "Go allocations during play", most: 0, of: medianOf("J Go allocations", library)},
	{work: "J", what: "faults on pages of the budget during play", most: 0, of: medianOf("J budget faults", library)},
	{work: "J", what: "p99.9 of a tick, times p50", most: 2,
		of: quotient(medianOf("J tick p99.9", library), medianOf("J tick p50", library))},
}

func micros(ns func(*table) float64) func(*table) float64 {
	return func(t *table) float64 { return ns(t) / 1000 }
}

// judge compares what was measured with what it should come to.
func (t *table) judge() {
	for _, r := range reaches {
		if got := r.of(t); !math.IsNaN(got) {
			t.verdicts = append(t.verdicts, verdict{r, got})
		}
	}
}

// stands is what stands in the way of a reach that is missed, with what was tried. Instructions were counted with callgrind.
var stands = map[string]string{
	"B": "Alloc is inlined, at 80 of the inliner's budget of 80. Tried: a call of it (1.63 to 1.90 of C), both checks before the bump " +
		"(a cost of 91), the checks beside the comparison (83). What is left over C are the instructions that make a bad align " +
		"part of the size.",
	"D": "C has 408 instructions for such a scope, and takes longer than a cgo call itself. Tried: 1034 instructions, 970 with less " +
		"noted when it closes, 893 with one test for the usual Close and one loop for all finalizers. Without the deferred function " +
		"that lets the other finalizers run when one panics they were 854, and 825 without names too: promises that are kept. 384 are " +
		"the 10 objects.",
	"C": "Random Gets and Puts are at the edge: 1.39 and 1.44 in two runs of the whole. Get is inlined, Put is a call.",
	"E": "A collection with nothing live takes as long on this machine, with a budget and without: see the first table.",
	"F": "A call costs 57 of the inliner's budget of 80, so Append, which must be able to move the list, is one. Tried: the elements " +
		"on the stack (87 instructions an int), in registers (63), by value (as many), and written out by hand in the loop: three words " +
		"of the list change each time where C has a pointer.",
	"I": "After 1 GiB went through them the caches hold none of the tables: C takes as long. A region's Load and Rewind take the " +
		"budget's lock, look at its context and at what else loads; with the stack trace, Go's own way to tell goroutines apart, they " +
		"took 30 µs each. C itself takes over 3 ns a finalizer.",
	"G": "The two cores are shared, too: 1.91 and 1.64 in two runs; C has the same ratio to itself.",
	"J": "Two cores that others use, too; and ticks differ in what the game does.",
}

func (v verdict) met() bool {
	if v.least {
		return v.got >= v.most
	}
	return v.got <= v.most
}

func (t *table) printVerdicts(to io.Writer) {
	fmt.Fprint(to, "### What it should come to\n\n| work | what | reach | here | |\n|---|---|--:|--:|---|\n")
	for _, v := range t.verdicts {
		sign, word := "≤", "met"
		if v.least {
			sign = "≥"
		}
		if !v.met() {
			word = "missed"
		}
		fmt.Fprintf(to, "| %s | %s | %s %s | %s | %s |\n", v.work, v.what, sign, number(v.most), number(v.got), word)
	}
	fmt.Fprintln(to)
	for i, v := range t.verdicts {
		again := slices.ContainsFunc(t.verdicts[:i], func(o verdict) bool { return o.work == v.work && !o.met() })
		if !v.met() && !again {
			fmt.Fprintf(to, "- %s: %s\n", v.work, stands[v.work])
		}
	}
}
