package scope_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// isFull is the full in err, or nil.
func isFull(err error) (full *scope.FullError) {
	errors.As(err, &full)
	return full
}

// modelMachine runs one program once, beside the model of what must be there.
type modelMachine struct {
	t     *testing.T
	name  string // of the run, for messages
	wrong int    // checks that failed
	p     *modelProgram
	arena modelArena
	other scope.Pad // for finalizers that use another pad
	plan  budget.Plan
	size  uint64 // of the arena

	levels        []*modelLevel
	direct        []int // finalizers that somebody calls just now, out of their place; the innermost is the last
	ran           []bool
	failed        []string // errors that the closing at work is to return
	live          int      // held values
	pools         int
	accounts      int
	most          budget.Limits // of each table, what was ever in it
	finalizers    int
	failures      int
	atStart       scope.Stats
	failedAtStart int
	book          *modelBook
	read          int32 // of the book
	stale         scope.Scope
	trace         []uint64
	again         []uint64 // trace of the next run in the same budget
	exact         bool     // addresses are compared, too
	base          uintptr  // the first address

	asks      int      // requests for bytes so far
	needs     []uint64 // for each, the least size of the arena that has room for it
	refuse    int      // the request that is to find a byte too few; -1: none
	unsure    bool     // whether there is room isn't known
	stopped   bool     // a request was refused
	stoppedAt int      // length of the trace then
	key       string   // of the plan, that the full names
	toldAt    int      // depth of the scope that remembers the full, or modelTold
	triedAt   int      // depth of the scope that a Try... met full, or -1
	lost      bool     // a finalizer ended the goroutine that was to return the full
	exiting   bool     // somebody ended the goroutine
}

const (
	modelTold = math.MaxInt // as toldAt: who unwinds returns the full, or returned it
	modelNone = math.MaxInt // as a floor: nothing may run
)

// modelLevel is an open scope.
type modelLevel struct {
	scope     scope.Scope
	used      uint64 // when it was opened
	objects   uint64
	cursor    uint64
	chain     []*modelEntry
	temps     []*modelEntry // when it is the one that asked for temporaries first
	owner     bool          // of the temporaries
	floor     int           // finalizers of the chain from here up may run: 0 when the scope closes
	tempFloor int
	names     map[string]bool // of its accounts
	lost      []string        // errors of parts whose constructor was unwound: who closes it is told
}

// modelEntry is what is registered.
type modelEntry struct {
	id    int
	scope scope.Scope
	held  scope.Held
	kind  modelEntryKind
	done  bool
	live  map[int]int // of a pool of objects: finalizers, by chunk
}

type modelEntryKind int

const (
	entryObject modelEntryKind = iota
	entryC
	entryHeld
	entryValue
	entryPool
)

// next is the number of the finalizer, and whether there is one.
func (e *modelEntry) next() (id int, runs bool) {
	switch {
	case e.done || e.kind == entryValue || e.kind == entryPool && len(e.live) == 0:
		return 0, false
	case e.kind == entryPool:
		return e.live[slices.Min(slices.Collect(maps.Keys(e.live)))], true
	}
	return e.id, true
}

func (m *modelMachine) check(ok bool, format string, args ...any) {
	if !ok {
		m.t.Helper()
		m.wrong++
		m.t.Errorf("%s: %s", m.name, fmt.Sprintf(format, args...))
	}
}

// pass takes an entry out of the model: it ran, or nothing runs for it.
func (m *modelMachine) pass(e *modelEntry) {
	if e.done {
		return
	}
	e.done = true
	switch e.kind {
	case entryHeld, entryValue:
		m.live--
	case entryPool:
		m.pools--
	}
}

// next takes the finalizer that must run now out of the model, and gives its entry; nil when none may run.
func (m *modelMachine) next() (id int, e *modelEntry) {
	newest := func(list []*modelEntry, floor int) bool {
		for i := len(list) - 1; i >= floor; i-- {
			e = list[i]
			var runs bool
			if id, runs = e.next(); !runs {
				m.pass(e)
				continue
			}
			if e.kind != entryPool {
				m.pass(e)
			}
			maps.DeleteFunc(e.live, func(_, of int) bool { return of == id })
			return true
		}
		return false
	}
	for i := len(m.levels) - 1; i >= 0; i-- {
		l := m.levels[i]
		if newest(l.temps, l.tempFloor) || newest(l.chain, l.floor) {
			return id, e
		}
		if l.floor != 0 {
			break
		}
	}
	for _, l := range m.levels { // a constructor of a temporary fails
		if newest(l.temps, l.tempFloor) {
			return id, e
		}
	}
	return 0, nil
}

// push is told of a scope that opened.
func (m *modelMachine) push(s scope.Scope) *modelLevel {
	stats, _, _ := m.arena.stats()
	l := &modelLevel{scope: s, used: stats.Used, objects: stats.Objects, floor: modelNone, tempFloor: modelNone,
		names: map[string]bool{}}
	if len(m.levels) == 0 {
		m.base = uintptr(s.Alloc(0, 1))
	}
	l.cursor = m.cursor(s)
	m.levels = append(m.levels, l)
	m.most.Scopes = max(m.most.Scopes, len(m.levels))
	return l
}

func (m *modelMachine) top() *modelLevel { return m.levels[len(m.levels)-1] }

// ending is told that the scopes from a depth up close now.
func (m *modelMachine) ending(depth int) {
	for _, l := range m.levels[depth:] {
		l.floor, l.tempFloor = 0, 0
		m.failed, l.lost = append(m.failed, l.lost...), nil
	}
}

// ended says that everything in the lists ran.
func (m *modelMachine) ended(lists ...[]*modelEntry) {
	for _, e := range slices.Concat(lists...) {
		id, runs := e.next()
		m.check(!runs, "finalizer %d never ran", id)
		m.pass(e)
	}
}

// closed compares what there is after the scopes from a depth up closed.
func (m *modelMachine) closed(depth int) {
	m.readBook()
	if l := m.drop(depth); l != nil {
		m.compare(l)
	}
}

// drop takes the levels from a depth up out of the model, and gives the lowest of them.
func (m *modelMachine) drop(depth int) (l *modelLevel) {
	for len(m.levels) > depth {
		l = m.top()
		m.ended(l.temps, l.chain)
		m.accounts -= len(l.names)
		m.levels = m.levels[:len(m.levels)-1]
		m.stale = l.scope
	}
	return l
}

// cursor is where an open scope would allocate.
func (m *modelMachine) cursor(s scope.Scope) uint64 {
	if m.exact {
		return uint64(uintptr(s.Alloc(0, 1)) - m.base)
	}
	if m.p.temps {
		return 0 // the figures have both ends in one
	}
	stats, _, _ := m.arena.stats()
	return stats.Used
}

// compare compares the figures with those of before a scope was opened.
func (m *modelMachine) compare(before *modelLevel) {
	s, held, failed := m.arena.stats()
	if !m.p.temps || len(m.levels) == 0 {
		m.check(s.Used == before.used && s.Objects == before.objects, "%d bytes are used, %d were", s.Used, before.used)
	}
	if len(m.levels) > 0 {
		m.check(m.cursor(m.top().scope) == before.cursor, "the cursor isn't where it was")
	}
	if held >= 0 {
		m.check(held == m.live && int(s.Pools) == m.pools, "%d are held, not %d; %d pools, not %d", held, m.live, s.Pools, m.pools)
		m.check(failed-m.failedAtStart == m.failures, "%d finalizers failed, not %d", failed-m.failedAtStart, m.failures)
	}
	ran := int(s.Finalizers - m.atStart.Finalizers)
	m.check(ran == m.finalizers, "%d finalizers ran, not %d", ran, m.finalizers)
}

// take gives the errors of finalizers that failed since the given number, and forgets them.
func (m *modelMachine) take(since int) []string {
	texts := slices.Clone(m.failed[since:])
	m.failed = m.failed[:since]
	return texts
}
