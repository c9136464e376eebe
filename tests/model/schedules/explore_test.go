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

// difference is a schedule whose last step differs from the model.
type difference struct {
	full  bool
	path  []move
	lost  bool // the goroutine isn't at the place that the model has
	found seen
	errs  [goroutines]error
	stuck error // all steps agreed, and then the budget couldn't be emptied
}

// program is the operations of each goroutine in their order, as a number. The goroutines have no
// order.
type program [goroutines]uint32

// counts counts the schedules that ran.
type counts struct {
	schedules, steps int
	named            int // schedules of named goroutines, where idle ones differ
	programs         map[program]bool
	came             [operations][results]int
}

// explorer runs every schedule of a number of operations, or a part of them.
type explorer struct {
	full     bool
	limit    int8
	fault    fault // the zero fault changes nothing
	part, of int   // of the prefixes
	prefixes int
	every    bool // continue after a difference, in search of a shorter one

	w     *world
	path  []move
	found *difference
	counts
}

const (
	prefixSteps = 3
	toTheEnd    = 1 << 30
)

// run runs in a bubble of synctest.
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

// from runs all schedules that begin with the path so far. It returns the number of the step that
// differs from the model: all schedules that begin with it differ.
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

// schedule runs one schedule.
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

// play returns nil if every step agrees with the model, and the budget can be emptied when all
// operations have ended.
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

// shortest returns the difference with the fewest steps, or nil if there is none.
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
