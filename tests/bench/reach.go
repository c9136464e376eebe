package main

import (
	"fmt"
	"io"
	"math"
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
	{work: "I", what: "1 GiB, a region's Load and Rewind, 1000 times, ns", most: 1000, of: medianOf("I rewind 1 GiB, 1000 times", ofRegion)},
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
}
