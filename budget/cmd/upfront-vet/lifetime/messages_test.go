package lifetime

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/messages.txt again")

// faulty has one error for each check. It is a file of tests/pond, because go vet needs the folder.
const faulty = `package main

import (
	_ "github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

type Frog struct{ X, Y, Age int32 }

type Named struct{ Name string }

var (
	frogs = scope.Plain[Frog]()
	named = scope.Plain[Named]()
)

func all(scratch scope.Scratch) []Frog {
	query := scratch.Open("query")
	defer query.Close()
	list := frogs.Slice(query, 10)
	return list
}

func age(scratch scope.Scratch) int32 {
	query := scratch.Open("query")
	frog := frogs.New(query)
	query.Close()
	return frog.Age
}

func count(scratch scope.Scratch) int {
	query := scratch.Open("query")
	return len(frogs.Slice(query, 10))
}

func note(scratch scope.Scratch, seen map[string]int) {
	query := scratch.Open("query")
	defer query.Close()
	seen[scope.Sprintf(query, "frog %d", 1)]++
}

func grow(s scope.Scope) []Frog {
	list := frogs.Slice(s, 10)
	return append(list, Frog{})
}

func slowed(speed float64) float64 { return speed*0.98 + 0.1 }
`

// TestMessages compares a report of each check with testdata/messages.txt, from which
// budget/guide/messages.md has them.
func TestMessages(t *testing.T) {
	g := newGarden(t, root)
	g.edit(edit{file: "tests/pond/frogs.go", new: faulty})
	list := g.vet()
	slices.SortFunc(list, func(a, b found) int { return a.line - b.line })
	var all strings.Builder
	for _, f := range list {
		fmt.Fprintf(&all, "%s\tfrogs.go:%d: %s\n", f.check, f.line, f.message)
	}
	for _, a := range Analyzers {
		if !strings.Contains("\n"+all.String(), "\n"+a.Name+"\t") {
			t.Errorf("no report of %s", a.Name)
		}
	}
	if *update {
		if err := os.WriteFile("testdata/messages.txt", []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != string(want) {
		t.Errorf("UPFRONT_STEP=check go test ./upfront-vet/lifetime -run Messages -update, if this is meant:\n%s", &all)
	}
}
