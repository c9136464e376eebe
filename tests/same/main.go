// Command same compares frogpond's JSON reports of the same maps from different builds, worker counts and machines:
//
//	same -quiet release.json workers4.json race.json arm64.json
//
// Each must be whole: no leak, a walk that covers the budget, no fault on a budget page where that was measured, no map
// that didn't run. The one named by -quiet, of a release build with one worker, must also have no Go allocation during
// play. A map's state hash must be the same in every report that has it, and no two maps may share one. It prints what
// differs and exits 1, or one line when nothing does.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

type report struct {
	Arch, Go, Build string
	Levels          []level
	Leaks           int
	IdentityOK      bool `json:"identity_ok"`
}

type level struct {
	Name, Hash, Error string
	Ticks             int
	GoAllocs          *uint64 `json:"go_allocs"`
	BudgetFaults      *uint64 `json:"budget_faults"`
}

func main() {
	quiet := flag.String("quiet", "", "report that must have no Go allocation")
	flag.Parse()
	names := flag.Args()
	if *quiet != "" {
		names = append(names, *quiet)
	}
	faults := 0
	fault := func(format string, args ...any) {
		faults++
		fmt.Fprintf(os.Stderr, "same: "+format+"\n", args...)
	}
	hashes, owners := map[string]string{}, map[string]string{}
	for _, name := range names {
		r, err := read(name)
		if err != nil {
			fault("%v", err)
			continue
		}
		r.whole(name, name == *quiet, fault)
		for _, l := range r.Levels {
			if first, known := hashes[l.Name]; known && first != l.Hash {
				fault("%s: %s has hash %s, before it was %s", name, l.Name, l.Hash, first)
			}
			if other, taken := owners[l.Hash]; taken && other != l.Name {
				fault("%s: %s and %s have the same hash %s", name, l.Name, other, l.Hash)
			}
			hashes[l.Name], owners[l.Hash] = l.Hash, l.Name
		}
	}
	if faults > 0 {
		os.Exit(1)
	}
	fmt.Printf("same: %d reports agree on %d maps\n", len(names), len(hashes))
}

func read(name string) (r report, err error) {
	data, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return r, err
}

// whole checks what must be true of one report.
func (r report) whole(name string, quiet bool, fault func(string, ...any)) {
	if r.Leaks != 0 || !r.IdentityOK || len(r.Levels) == 0 {
		fault("%s: leaks %d, identity_ok %v, %d maps", name, r.Leaks, r.IdentityOK, len(r.Levels))
	}
	for _, l := range r.Levels {
		if l.Error != "" {
			fault("%s: %s did not run: %s", name, l.Name, l.Error)
		}
		if l.BudgetFaults != nil && *l.BudgetFaults != 0 {
			fault("%s: %s: %d faults on pages of the budget", name, l.Name, *l.BudgetFaults)
		}
		if quiet && (l.GoAllocs == nil || *l.GoAllocs != 0) {
			fault("%s: %s: Go allocations during play", name, l.Name)
		}
	}
}
