package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The contestants.
const (
	floor    = "C"
	byHand   = "hand-written Go"
	library  = "upfront"
	crossing = "upfront, a cgo call each"
	goHeap   = "Go heap"
	syncPool = "sync.Pool"
	modernc  = "modernc memory"
	goArena  = "arena experiment"
	glibc    = "glibc malloc"
	jemalloc = "jemalloc"
	mimalloc = "mimalloc"
	tlsf     = "TLSF"
)

// work is a section of the report: loops, or parts with measurements of their own. absent explains
// missing contestants. columns, if any, are the columns of the work's table in the README, or in a
// page of its own.
type work struct {
	letter, title, absent string
	loops                 []loop
	parts                 []part
	columns               []string
	page                  string   // "": the README; else a path from its folder
	peers                 []string // Debian's packages whose versions the page has
}

// part is a measurement of all rows that begin with its name. It may be impossible here: see
// missing.
type part struct {
	name    string
	measure func(*harness) ([]series, error)
	heaps   []string // arguments of the C program, for callgrind
	program func(*harness) (string, error)
}

// missing is the name of a tool or library that isn't installed.
type missing string

func (m missing) Error() string {
	return string(m) + " is not installed (make deps, or apt-get install)"
}

// loop is repeated work. One time is units units, whose name is unit.
type loop struct {
	name, unit string
	units      int
	enter      func() []contestant
	once       bool // a measurement is one time
	few        bool // few rounds, because each has a long preparation
	counted    int  // times in the shorter count of instructions; 0: enough for countedUnits
}

// contestant is one way to do the work. A function that returns contestants is noinline, because
// calls in a literal of an inlined function aren't inlined. run does the work n times and returns a
// checksum of the result, the same for all contestants. before is the preparation of a loop with
// once, which isn't measured.
type contestant struct {
	who    string
	run    func(n int) uint64
	before func()
	end    func()
	units  int  // of one time, if not the loop's
	other  bool // other work, with another checksum
}

func (c contestant) unitsOf(l loop) float64 {
	if c.units != 0 {
		return float64(c.units)
	}
	return float64(l.units)
}

func (c contestant) ending(end func()) contestant {
	c.end = end
	return c
}

// series has the values of one contestant, one a round.
type series struct {
	work, unit, who string
	values          []float64
	allocs          float64 // Go allocations for a unit
}

// newSeries returns a series without a count of allocations.
func newSeries(work, unit, who string) series {
	return series{work: work, unit: unit, who: who, allocs: math.NaN()}
}

type harness struct {
	rounds   int
	time     time.Duration
	variants bool     // variants of this program take part
	only     []string // the contestants; nil: all

	short      bool          // a small part of work K
	serveTime  time.Duration // of a server in work P
	serveRooms int
	programs   *programs
}

func (h *harness) wants(who string) bool { return h.only == nil || slices.Contains(h.only, who) }

func (h *harness) measure(w work) (all []series, err error) {
	for _, l := range w.loops {
		list, err := h.loop(l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		all = append(all, list...)
	}
	for _, p := range w.parts {
		list, err := p.measure(h)
		if why := missing(""); errors.As(err, &why) {
			fmt.Fprintf(os.Stderr, "bench: %s: rows are missing: %v\n", p.name, err)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// enter returns the chosen contestants, and a function that ends them.
func (h *harness) enter(l loop) (list []contestant, end func()) {
	var all []contestant
	for _, c := range l.enter() {
		all = append(all, c)
		if h.wants(c.who) {
			list = append(list, c)
		}
	}
	return list, func() {
		for _, c := range all {
			if c.end != nil {
				c.end()
			}
		}
	}
}

// loop measures each contestant once a round, in another order each time.
func (h *harness) loop(l loop) ([]series, error) {
	contestants, end := h.enter(l)
	defer end()
	times, list := make([]int, len(contestants)), make([]series, len(contestants))
	if err := agree(l, contestants); err != nil {
		return nil, err
	}
	for i, c := range contestants {
		times[i], list[i] = h.calibrate(l, c), newSeries(l.name, l.unit, c.who)
	}
	rounds := h.rounds
	if l.few {
		rounds = min(rounds, 9)
	}
	for range rounds {
		for _, i := range rand.Perm(len(contestants)) {
			s := contestants[i].sample(l, times[i])
			units := float64(times[i]) * contestants[i].unitsOf(l)
			list[i].values = append(list[i].values, s.ns/units)
			list[i].allocs = s.allocs / units
		}
	}
	if h.variants && !l.once { // not for loops with much memory
		more, err := inVariants(l)
		return append(list, more...), err
	}
	return list, nil
}

func findLoop(name string) (loop, bool) {
	for _, w := range works {
		for _, l := range w.loops {
			if l.name == name {
				return l, true
			}
		}
	}
	return loop{}, false
}

func findPart(row string) (found part, ok bool) {
	for _, w := range works {
		for _, p := range w.parts {
			if strings.HasPrefix(row, p.name) {
				return p, true
			}
		}
	}
	return part{}, false
}

// agree checks that contestants do the same work, and that one time doesn't affect the next.
func agree(l loop, list []contestant) error {
	first := -1
	var sum uint64
	for i, c := range list {
		for range 3 {
			s := c.sample(l, 1)
			if first < 0 && !c.other {
				first, sum = i, s.sum
			}
			if s.sum != sum && !c.other {
				return fmt.Errorf("%s has checksum %x, %s has %x: their work differs",
					c.who, s.sum, list[first].who, sum)
			}
		}
	}
	return nil
}

// calibrate returns the number of times that fill one measurement.
func (h *harness) calibrate(l loop, c contestant) int {
	if l.once {
		return 1
	}
	n := 1
	for {
		if s := c.sample(l, n); s.ns >= float64(h.time.Nanoseconds())/2 {
			return max(1, int(float64(n)*float64(h.time.Nanoseconds())/s.ns))
		}
		n *= 2
	}
}

type sample struct {
	ns, allocs float64
	sum        uint64
}

var before, after runtime.MemStats // local variables would be on the heap

// sample does the work n times and measures it, after a collection of older garbage.
func (c contestant) sample(l loop, n int) sample {
	runtime.GC()
	if c.before != nil {
		c.before()
	} else {
		c.run(1)
	}
	runtime.ReadMemStats(&before)
	start := time.Now()
	sum := c.run(n)
	ns := time.Since(start)
	runtime.ReadMemStats(&after)
	return sample{float64(ns.Nanoseconds()), float64(after.Mallocs - before.Mallocs), sum}
}
