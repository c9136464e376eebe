package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const readmeBegin, readmeEnd = "<!-- make bench -->\n", "<!-- end -->\n"

// careful is the column of who takes care in Go without a library: by an arena of his own, or by one slice.
const careful = "careful Go"

// readmeWho are the columns of the README's table; the best of the libraries is one.
var readmeWho = []string{floor, careful, library, crossing, goHeap, syncPool}

// readmeRows are the works that the README's table shows; build/bench.md has all.
var readmeRows = []string{"A objects", "B mixed sizes", "C pool 64 LIFO", "C pool 64 random", "D 8 objects, 2 clean-ups",
	"E collection, 5 million live", "E peak RSS", "F push", "G two workers", "I rewind 1 GiB", "I rewind 1 M finalizers", "J tick p50",
	"J tick p99.9", "J collections", "K walk", "L wasted of what is held, level full", "M in the order declared"}

var libraries = []string{modernc, goArena, glibc}

// intoReadme replaces what stands between the marks of README.md.
func (t *table) intoReadme(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), readmeBegin)
	_, tail, ok2 := strings.Cut(rest, readmeEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no table between %q and %q", name, strings.TrimSpace(readmeBegin), strings.TrimSpace(readmeEnd))
	}
	return os.WriteFile(name, []byte(head+readmeBegin+t.readme()+readmeEnd+tail), 0o644)
}

// readme is a line for each work: who takes how long, and in brackets what that is of C's time.
func (t *table) readme() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| work | unit | %s | best other |\n|---|---|%s--:|\n", machine(), strings.Join(readmeWho, " | "),
		strings.Repeat("--:|", len(readmeWho)))
	for _, r := range t.rows() {
		if r.who != library || !slices.Contains(readmeRows, r.work) {
			continue
		}
		unit := "ns a " + r.unit
		if !r.timed() {
			unit = r.unit
		}
		fmt.Fprintf(&b, "| %s | %s |", r.work, unit)
		for _, who := range readmeWho {
			fmt.Fprintf(&b, " %s |", t.cell(r.work, who))
		}
		fmt.Fprintf(&b, " %s |\n", t.bestOther(r.work))
	}
	return b.String()
}

func (t *table) cell(work, who string) string {
	r, ok := t.find(work, who)
	if who == careful {
		if r, ok = t.find(work, byHand); !ok {
			r, ok = t.find(work, oneSlice)
		}
	}
	if !ok {
		return ""
	}
	if _, compared := t.find(work, floor); !compared || who == floor {
		return number(r.least)
	}
	return fmt.Sprintf("%s (%.2f)", number(r.least), r.floor)
}

func (t *table) bestOther(work string) string {
	best := ""
	least := 0.0
	for _, who := range libraries {
		if r, ok := t.find(work, who); ok && (best == "" || r.least < least) {
			best, least = who, r.least
		}
	}
	if best == "" {
		return ""
	}
	return t.cell(work, best) + " " + best
}
