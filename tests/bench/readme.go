package main

import (
	"fmt"
	"go/version"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Marks in README.md enclose its tables: a table with a line for each row, and a table for each
// work with columns. A version of Go with a mark of its own has another table of the rows.
const readmeBegin, readmeEnd = "<!-- make bench -->\n", "<!-- end -->\n"

func marks(name string) string { return "<!-- make bench: " + name + " -->\n" }

// careful is the column of careful Go without a library: an arena written by hand, or one slice.
const careful = "careful Go"

// readmeWho are the columns of the README's table, besides the best other library.
var readmeWho = []string{floor, careful, library, crossing, goHeap, syncPool}

// readmeRows are the rows of the README's table; build/bench.md has all.
var readmeRows = []string{"A objects", "B mixed sizes", "C pool 64 LIFO", "C pool 64 random",
	"D 8 objects, 2 clean-ups", "E collection, 5 million live", "E peak RSS", "F push", "I rewind 1 GiB",
	"I rewind 1 M finalizers", "J tick p50", "J tick p99.9", "J collections",
	"O cascade of eight nodes", "O instance", "S snapshot", "S restore", "S snapshot and hash",
	"S delta, 3000 writes in 1.7 MB", "S 64 MiB, 5 % written", "V verify nodes", "V verify numbers"}

var libraries = []string{modernc, goArena, glibc, jemalloc, mimalloc, tlsf}

func (t *table) intoReadme(name string) error {
	for _, s := range t.sections {
		page := name
		if s.work.page != "" {
			page = filepath.Join(filepath.Dir(name), s.work.page)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		begin, table := readmeBegin, ""
		other := marks(version.Lang(runtime.Version()))
		switch has := strings.Contains(string(text), other); {
		case has && s.work.columns != nil:
			return fmt.Errorf("%s: the table of work %s is for another Go: leave it out of -works", page, s.work.letter)
		case has:
			begin, table = other, t.readme()
		case s.work.columns != nil:
			begin, table = marks(s.work.letter), machine(s.work.peers...)+"\n\n"+t.beside(s)
		default:
			table = t.readme()
		}
		renewed, err := between(string(text), begin, table)
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if err := os.WriteFile(page, []byte(renewed), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func between(page, begin, table string) (string, error) {
	head, rest, ok := strings.Cut(page, begin)
	_, tail, ok2 := strings.Cut(rest, readmeEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("no table between %q and %q", strings.TrimSpace(begin),
			strings.TrimSpace(readmeEnd))
	}
	return head + begin + table + readmeEnd + tail, nil
}

// readme returns a line for each work, with times, and in brackets their ratio to C's time.
func (t *table) readme() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| work | unit | %s | best other |\n|---|---|%s--:|\n",
		machine(), strings.Join(readmeWho, " | "), strings.Repeat("--:|", len(readmeWho)))
	for _, s := range t.sections {
		for _, x := range s.list {
			if x.who != library || !slices.Contains(readmeRows, x.work) {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s |", x.work, measure(x.unit))
			for _, who := range readmeWho {
				fmt.Fprintf(&b, " %s |", t.cell(x.work, who))
			}
			fmt.Fprintf(&b, " %s |\n", t.bestOther(x.work))
		}
	}
	return b.String()
}

func (t *table) cell(work, who string) string {
	least, ofC := t.least.of(work, who), t.least.of(work, floor)
	if who == careful {
		least = t.least.best(work, byHand, oneSlice)
	}
	if math.IsNaN(least) || math.IsNaN(ofC) || who == floor {
		return number(least)
	}
	return fmt.Sprintf("%s (%.2f)", number(least), least/ofC)
}

func (t *table) bestOther(work string) string {
	best := t.least.best(work, libraries...)
	for _, who := range libraries {
		if t.least.of(work, who) == best {
			return t.cell(work, who) + " " + who
		}
	}
	return ""
}
