package schedules_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
)

// move is a step, and the model before and after it.
type move struct {
	step
	before, after model
	expect        seen
}

// difference is a schedule whose last step came out otherwise than the model has it.
type difference struct {
	full  bool
	path  []move
	lost  bool // the goroutine isn't where the model has it
	found seen
	errs  [goroutines]error
	stuck error // all came out well, and then the budget couldn't be emptied
}

// program is what each goroutine does, in its order, as a number; the goroutines are in no order.
type program [goroutines]uint32

// counts are of schedules that were run.
type counts struct {
	schedules, steps int
	named            int // schedules of goroutines with names: there idle ones are not all alike
	programs         map[program]bool
	came             [operations][results]int
}

// explorer runs every schedule of so many operations, or a part of them.
type explorer struct {
	full     bool
	limit    int8
	fault    fault // the zero one has none
	part, of int   // of the prefixes
	prefixes int
	every    bool // go on after a difference, in search of a shorter one

	w     *world
	path  []move
	found *difference
	counts
}

const (
	prefixSteps = 3
	toTheEnd    = 1 << 30
)

// run is for a bubble of synctest.
func (x *explorer) run() {
	x.programs = map[program]bool{}
	x.w = newWorld(x.fault.library())
	defer func() { x.w.end() }()
	m := start(x.full)
	x.from(&m, 1)
}

func start(full bool) model {
	if full {
		return newModelFull()
	}
	return newModel()
}

// from runs all schedules that go on from here. It gives the step at which one came out otherwise:
// all that begin so do.
func (x *explorer) from(m *model, named int) (differs int) {
	at := len(x.path)
	if at == prefixSteps {
		if x.prefixes++; x.prefixes%x.of != x.part {
			return toTheEnd
		}
	}
	list := m.choices(x.limit)
	if len(list) == 0 {
		if at < prefixSteps && x.part != 0 {
			return toTheEnd
		}
		return x.schedule(named)
	}
	for _, s := range list {
		next, n := *m, named
		if s.do < operations && !m.closed {
			n *= m.idle()
		}
		if x.fault.model != nil {
			x.fault.model(&next, s)
		}
		next.take(s)
		x.path = append(x.path[:at], move{s, *m, next, next.seen()})
		differs = x.from(&next, n)
		if x.path = x.path[:at]; differs < at || x.found != nil && !x.every {
			return differs
		}
	}
	return toTheEnd
}

// schedule runs one.
func (x *explorer) schedule(named int) (differs int) {
	x.w.begin(x.full)
	d := play(x.w, x.path)
	if d == nil {
		x.count(named)
		return toTheEnd
	}
	d.full = x.full
	if x.found == nil || len(d.path) < len(x.found.path) {
		d.path = slices.Clone(d.path)
		x.found = d
	}
	if !x.w.end() {
		panic("a goroutine is held by more than what it is told: " + d.String())
	}
	x.w = newWorld(x.fault.library())
	return len(d.path) - 1
}

// play is nil when all steps come out as the model has it, and the budget can be emptied when
// nobody is at work any more.
func play(w *world, path []move) *difference {
	for i := range path {
		m := &path[i]
		there := w.take(m.step, &m.before.routines[m.who])
		if found := w.seen(); !there || found != m.expect {
			d := &difference{path: path[:i+1], lost: !there, found: found}
			for j, h := range w.hands {
				d.errs[j] = h.err
			}
			return d
		}
	}
	if w.idle() {
		if err := w.clear(); err != nil {
			last := len(path) - 1
			return &difference{path: path, found: path[last].expect, stuck: err}
		}
	}
	return nil
}

func (x *explorer) count(named int) {
	x.schedules++
	x.named += named
	x.steps += len(x.path)
	var words program
	for i := range x.path {
		m := &x.path[i]
		if m.do < operations && !m.before.closed {
			words[m.who] = words[m.who]*uint32(operations+1) + uint32(m.do) + 1
		}
		for j, was := range m.before.routines {
			if now := m.after.routines[j]; now.at == idle && (was.at != idle || m.do < operations && int(m.who) == j) {
				x.came[now.does][now.came]++
			}
		}
	}
	slices.Sort(words[:])
	x.programs[words] = true
}

func (c *counts) add(d *counts) {
	c.schedules += d.schedules
	c.steps += d.steps
	c.named += d.named
	if c.programs == nil {
		c.programs = map[program]bool{}
	}
	maps.Copy(c.programs, d.programs)
	for do := range c.came {
		for came := range c.came[do] {
			c.came[do][came] += d.came[do][came]
		}
	}
}

// shortest is the difference of the fewest steps that so many operations have; nil: there is none.
func shortest(t *testing.T, full bool, limit int8, f fault) (found *difference) {
	for n := int8(1); n <= limit && (found == nil || int(n) < len(found.path)); n++ {
		synctest.Test(t, func(*testing.T) {
			x := &explorer{full: full, limit: n, fault: f, of: 1, every: true, found: found}
			x.run()
			found = x.found
		})
	}
	return found
}
