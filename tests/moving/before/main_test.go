package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/upfront-mem/upfront/tests/moving/fleet"
)

// TestDay compares the output with that of the other program.
func TestDay(t *testing.T) {
	want, err := os.ReadFile("../testdata/day.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if day(NewHistory(), 100, &out); out.String() != string(want) {
		t.Error(out.String())
	}
}

// kept keeps the history alive until the profile is written.
var kept *History

// BenchmarkBefore counts the cost of a day for the Go heap.
func BenchmarkBefore(b *testing.B) {
	for b.Loop() {
		cost := fleet.Cost(func() {
			kept = NewHistory()
			day(kept, 100, io.Discard)
		})
		for unit, n := range cost {
			b.ReportMetric(n, unit)
		}
	}
	b.ReportMetric(0, "ns/op") // not shown
}
