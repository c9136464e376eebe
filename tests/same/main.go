// Command same compares what frogpond reports of the same maps from different builds, worker counts and targets. An
// argument is the file of a JSON report, or a name and the command that prints one:
//
//	same -quiet 'release=build/frogpond -json' 'race=build/frogpond-race -json -workers 2' handheld.json
//
// Each report must be whole: no leak, a walk that covers the budget, no fault on a budget page
// where that was measured, no map that didn't run. The one that -quiet names, of a release build
// with one worker, must also have no Go allocation during play: a map that has some is played
// again, as the program allocates each time and Go's runtime doesn't. A map's state hash and what
// it took must be the same in all reports that have the map, and no two maps may share a hash.
// Reports of the same plan that played the same maps must agree on each region and buffer of the
// frame; and if they did it with as many workers, on each scratch arena: who decides for which frog depends
// on how many decide, and with it what lies on whose scratch. All else is the same everywhere.
//
// It prints what differs and exits 1, or one line when nothing does. When two commands differ on a map it has both play it
// again for fewer ticks, and names the first tick after which they differ.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program: 0 nothing differs, 1 something does, 2 bad flags.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("same", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quiet := flags.String("quiet", "", "a `report` to compare too, which must have no Go allocation")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	names := flags.Args()
	if *quiet != "" {
		names = append([]string{*quiet}, names...)
	}
	c := comparison{owners: map[string]string{}, stderr: stderr}
	for i, name := range names {
		c.add(newSource(name), i == 0 && *quiet != "")
	}
	if c.faults > 0 {
		return 1
	}
	fmt.Fprintf(stdout, "same: %d reports agree on %d maps\n", len(c.sources), len(c.owners))
	return 0
}

// comparison is of the sources that were read so far.
type comparison struct {
	sources []*source
	owners  map[string]string // of each hash: the name of the map
	faults  int
	stderr  io.Writer
}

func (c *comparison) fault(format string, args ...any) {
	c.faults++
	fmt.Fprintf(c.stderr, "same: "+format+"\n", args...)
}

// find is the first source for which say holds, or nil.
func (c *comparison) find(say func(*source) bool) *source {
	for _, s := range c.sources {
		if say(s) {
			return s
		}
	}
	return nil
}

// add reads a source and compares it with those before it.
func (c *comparison) add(s *source, quiet bool) {
	r, err := s.read()
	if err != nil {
		c.fault("%s: %v", s.name, err)
		return
	}
	s.report = r
	c.whole(s, quiet)
	for _, l := range r.Levels {
		if owner, taken := c.owners[l.Hash]; taken && owner != l.Name {
			c.fault("%s: %s and %s have the same hash %s", s.name, l.Name, owner, l.Hash)
		}
		c.owners[l.Hash] = l.Name
		c.level(s, l)
	}
	c.regions(s)
	c.sources = append(c.sources, s)
}

// whole checks what must be true of one report.
func (c *comparison) whole(s *source, quiet bool) {
	r := &s.report
	if r.Leaks != 0 || !r.IdentityOK || len(r.Levels) == 0 {
		c.fault("%s: leaks %d, identity_ok %v, %d maps", s.name, r.Leaks, r.IdentityOK, len(r.Levels))
	}
	for i, l := range r.Levels {
		if l.Error != "" {
			c.fault("%s: %s did not run: %s", s.name, l.Name, l.Error)
		}
		if first := r.level(l.Name); first != &r.Levels[i] {
			c.fault("%s: it has two maps %s", s.name, l.Name)
		}
		if l.BudgetFaults != nil && *l.BudgetFaults != 0 {
			c.fault("%s: %s: %d faults on pages of the budget", s.name, l.Name, *l.BudgetFaults)
		}
		if quiet && !l.quiet() && !s.quietAgain(l) {
			c.fault("%s: %s: Go allocations during play", s.name, l.Name)
		}
	}
}

// level compares a map with the first source that has it too.
func (c *comparison) level(s *source, l level) {
	first := c.find(func(f *source) bool { return f.report.level(l.Name) != nil })
	if first == nil {
		return
	}
	before := first.report.level(l.Name)
	what := before.differs(l)
	switch {
	case what == "":
	case before.Ticks != l.Ticks || first.command == "" || s.command == "":
		c.fault("%s: %s differs from %s: %s", l.Name, s.name, first.name, what)
	default:
		c.fault("%s: %s differs from %s %s", l.Name, s.name, first.name, firstTick(first, s, l.Name, l.Ticks))
	}
}

// regions compares what the arenas took with the first source that played the same.
func (c *comparison) regions(s *source) {
	first := c.find(func(f *source) bool { return f.report.played() == s.report.played() })
	paired := c.find(func(f *source) bool {
		return f.report.played() == s.report.played() && f.report.Workers == s.report.Workers
	})
	for _, g := range s.report.Regions {
		other := first
		if g.isScratch() {
			other = paired
		}
		if other == nil {
			continue
		}
		if before := other.report.region(g.Name); before != g {
			c.fault("%s: %s differs from %s: size, used and peak are %d, %d, %d; there %d, %d, %d", g.Name, s.name, other.name,
				g.Size, g.Used, g.Peak, before.Size, before.Used, before.Peak)
		}
	}
}
