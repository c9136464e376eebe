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

// Who does a work.
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

// work is a line of the issue: one or more loops, or measurements of its own kind. absent says who
// doesn't do it, and why. columns, if there are some, stand beside one another in one table.
type work struct {
	letter, title, absent string
	loops                 []loop
	parts                 []part
	columns               []string
}

// part is measured at once: all rows that begin with its name. It may be missing.
type part struct {
	name    string
	measure func(*harness) ([]series, error)
	heaps   []string // the arguments of the C program that does it, for callgrind
}

// missing is why a part can't be measured here: what isn't installed.
type missing string

func (m missing) Error() string { return string(m) + " is not installed (make deps)" }

// loop is a piece of work that is done over and over. units is how many `unit`s one time is.
type loop struct {
	name, unit string
	units      int
	enter      func() []contestant
	once       bool // each measurement is of one time
	few        bool // rounds: what comes before one takes long
	counted    int  // times in the shorter count of instructions; 0: those of countedUnits
}

// contestant does the work its way: who makes one is noinline, because what is called in a function within a function that was itself
// inlined isn't inlined any more. run does it n times and gives a checksum of what it left behind, the same for all who do it. before,
// of a loop that is done once, is what it needs first and isn't measured.
type contestant struct {
	who    string
	run    func(n int) uint64
	before func()
	end    func()
	units  int  // of one time, if not the loop's
	other  bool // it does something else, and leaves something else behind
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

// series is what was measured of one contestant, one value a round.
type series struct {
	work, unit, who string
	values          []float64
	allocs          float64 // Go allocations for a unit
}

// newSeries has no allocations: they weren't counted.
func newSeries(work, unit, who string) series {
	return series{work: work, unit: unit, who: who, allocs: math.NaN()}
}

type harness struct {
	rounds   int
	time     time.Duration
	variants bool     // those of this program take part, too
	only     []string // who takes part; nil: everybody

	serveTime  time.Duration // that work P has a server serve
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
			fmt.Fprintf(os.Stderr, "bench: %s: its rows are missing: %v\n", p.name, why)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// enter gives those who are to take part, and what ends them.
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
	if h.variants && !l.once { // what takes 1 GiB, they needn't
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

// agree is an error when they don't do the same. What one time left behind must not show in the next.
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
				return fmt.Errorf("%s left %x, %s left %x: they don't do the same", c.who, s.sum, list[first].who, sum)
			}
		}
	}
	return nil
}

// calibrate is how many times take about as long as a measurement is to take.
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

var before, after runtime.MemStats // here, since one on the stack would be moved to the heap

// sample does the work n times and measures that. What others left on the Go heap goes before.
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
