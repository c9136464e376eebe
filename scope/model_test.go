package scope_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// The model test of scopes.
//
// Random is the program (model_steps_test.go), a function of its seed alone: a tree of nested scopes (opened by hand, by
// Do, and some left open), accounts, constructors (which nest and fail), plain data, objects, slices, pools, closers,
// deferred functions, held values, C finalizers, temporaries, cancels and early closes. A body ends by return, error,
// panic or Goexit. Random is also what each finalizer does (model_fail_test.go): succeed, fail, panic, end the goroutine,
// use its own scope in every way that is refused, use another pad, cancel or close what others hold.
//
// The model is a list of levels, each with plain lists of what is registered there, and counts. It says which finalizer
// is the next one, whether one may run now at all, and which step is refused, by the byte and by the table.
//
// Compared, at each finalizer: that it is the next one, and runs for the first time. At each end of a scope, an account
// or a constructor: that nothing is left to run, how it ended (returned, panicked, exited), every error that was to come
// back, cursor, bytes, objects, held values, pools, and the numbers of finalizers and failures. At each allocation: the
// cursor. At the end: the walk, and that the same program, run again in the same budget, leaves the same trace: the order
// of all finalizers and all addresses, counted from the first.
//
// Each program runs on a pad, or as the load of a region, in a plan with room for all; then once for each allocation, in
// which the scope has one byte too few just then; once for each size of the arena that is one byte too small for the
// first time; and once for each value of limits.scopes, .pools, .held and .accounts from one too few down to 1. Each of
// these ends in a full that names the key of the plan, or, after a Try..., remembers it.
//
// Not compared: where temporaries lie in an arena that is too small for all (they take pieces of what is free), and the
// errors of what a constructor made when a panic unwinds it, which are only counted.
func TestModel(t *testing.T) {
	for _, seed := range modelSeeds() {
		p := newModelProgram(seed)
		wide := p.inBudget(t, "wide", modelPlan(modelWide, modelLimits), -1)
		require.False(t, wide.stopped, "seed %d: a program has room in the wide plan", seed)
		for ask := range wide.needs {
			m := p.inBudget(t, fmt.Sprintf("ask %d refused", ask), modelPlan(modelWide, modelLimits), ask)
			m.follows(wide)
			require.Equal(t, wide.trace, m.again, "%s: the next run isn't as if there had been none", m.name)
		}
		p.inSizes(t, wide)
		p.inLimits(t, wide)
	}
}

// modelSeeds are the first, and some that found what these don't.
func modelSeeds() (seeds []uint64) {
	most := uint64(28)
	if instrumented && os.Getenv("UPFRONT_SOAK") == "" {
		most = 4
	}
	for seed := range most {
		seeds = append(seeds, seed)
	}
	return append(seeds, 38, 68, 881, 2729)
}

const modelWide = 64 * budget.KiB

var modelLimits = budget.Limits{Scopes: 64, Pools: 64, Held: 256, Accounts: 32}

// modelPlan has an arena of a size twice: as a region and as a pad.
func modelPlan(size uint64, limits budget.Limits) budget.Plan {
	return budget.Plan{Name: "model", Regions: []budget.Region{{Name: "level", Size: size}}, Pads: budget.Pads{Workers: 1, Size: size},
		Frame: budget.Frame{Buffers: 2, Size: 64 * budget.KiB}, Limits: limits}
}

// inSizes runs the program once in each arena that is a byte too small for one more allocation than the smaller ones.
// Temporaries take pieces of what is free, so with them the model doesn't know what fits: then any end is fine that is in
// order.
func (p *modelProgram) inSizes(t *testing.T, wide *modelMachine) {
	peak := uint64(0)
	for ask, need := range wide.needs {
		if need <= max(peak, 1) {
			continue
		}
		peak = need
		m := p.inBudget(t, fmt.Sprintf("%d bytes, too few for ask %d", need-1, ask), modelPlan(need-1, modelLimits), -1)
		if !p.temps {
			require.True(t, m.stopped)
			require.Equal(t, ask, m.asks, "seed %d: which allocation is the first to fail", p.seed)
			m.follows(wide)
		}
	}
	if m := p.inBudget(t, fmt.Sprintf("%d bytes, just enough", peak), modelPlan(max(peak, 1), modelLimits), -1); !p.temps {
		require.False(t, m.stopped)
		require.Equal(t, wide.trace, m.trace)
	}
}

// inLimits runs the program with one entry too few in a table, and so on down to one.
func (p *modelProgram) inLimits(t *testing.T, wide *modelMachine) {
	for _, table := range []struct {
		key  string
		most int
		set  func(*budget.Limits, int)
	}{
		{"limits.scopes", wide.most.Scopes, func(l *budget.Limits, n int) { l.Scopes = n }},
		{"limits.pools", wide.most.Pools, func(l *budget.Limits, n int) { l.Pools = n }},
		{"limits.held", wide.most.Held, func(l *budget.Limits, n int) { l.Held = n }},
		{"limits.accounts", wide.most.Accounts, func(l *budget.Limits, n int) { l.Accounts = n }},
	} {
		for n := table.most - 1; n > 0; n-- {
			limits := modelLimits
			table.set(&limits, n)
			m := p.inBudget(t, fmt.Sprintf("%s %d", table.key, n), modelPlan(modelWide, limits), -1)
			require.True(t, m.stopped)
			require.Equal(t, table.key, m.key)
			m.follows(wide)
		}
	}
}

// inBudget runs the program twice in a budget of its own, with ask refused for want of a byte the first time if it is
// not negative, and gives the machine of the first run.
func (p *modelProgram) inBudget(t *testing.T, what string, plan budget.Plan, ask int) *modelMachine {
	b, err := budget.Open(plan)
	require.NoError(t, err)
	arena := modelPad(b)
	if p.region {
		arena = modelRegion(t, b)
	}
	var runs [2]*modelMachine
	for i := range runs {
		m := &modelMachine{t: t, name: fmt.Sprintf("seed %d, %s, run %d", p.seed, what, i), p: p, arena: arena, other: b.Pad(0, 1),
			plan: b.Plan(), refuse: -1, triedAt: -1, ran: make([]bool, len(p.fins))}
		if i == 0 {
			m.refuse = ask
		}
		m.size = plan.Pads.Size
		m.unsure = p.temps && m.size != modelWide
		m.run(b)
		_, err := b.Walk()
		require.NoError(t, err, m.name)
		require.Zero(t, m.wrong, m.name)
		runs[i] = m
	}
	runs[0].again = runs[1].trace
	if ask < 0 {
		require.Equal(t, runs[0].trace, runs[1].trace, runs[0].name)
	} else {
		require.True(t, runs[0].stopped, runs[0].name)
	}
	require.NoError(t, b.Close(), runs[0].name)
	return runs[0]
}

// follows says that a run did what the wide one did, until it was refused.
func (m *modelMachine) follows(wide *modelMachine) {
	require.True(m.t, slices.Equal(wide.trace[:m.stoppedAt], m.trace[:m.stoppedAt]), "%s: another order, or other addresses", m.name)
}

// run runs the program and what is to follow it in the arena.
func (m *modelMachine) run(b *budget.Budget) {
	modelFinalize = m.finalize
	m.exact = m.sameAddresses()
	modelBroken = func(x thing) { m.check(false, "%v is broken", x) }
	m.book = books.New(b.Frame())
	m.atStart, _, m.failedAtStart = m.arena.stats()
	_ = m.do(&m.p.root, m.arena.begin)
	if m.arena.clear != nil && len(m.levels) > 0 {
		m.rewind()
	}
	s, held, _ := m.arena.stats()
	m.check(s.Used == 0 && s.Objects == 0 && held <= 0 && s.Pools == 0 && m.live == 0 && m.pools == 0, "something is left: %+v", s)
}

// sameAddresses says whether addresses go with the cursor, as in a release build: where more lies between allocations,
// or what was rewound isn't used again at once, the cursor must do.
func (m *modelMachine) sameAddresses() bool {
	at := func() (first, second uintptr) {
		s := m.other.Open("twice")
		first, second = uintptr(s.Alloc(1, 1)), uintptr(s.TryAlloc(1, 1))
		_ = s.Close()
		return first, second
	}
	first, second := at()
	again, _ := at()
	return again == first && (second == first+1 || m.size == 1)
}

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
