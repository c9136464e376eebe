package scope_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

// The model test of scopes.
//
// Random is the program (model_program_test.go), a function of its seed alone: a tree of nested scopes (opened by hand, by
// Do, and some left open), accounts, constructors (which nest and fail), plain data, objects, slices, pools, closers,
// deferred functions, held values, C finalizers, temporaries, cancels and early closes. A body ends by return, error,
// panic or Goexit. Random is also what each finalizer does (model_fail_test.go): succeed, fail, panic, end the goroutine,
// use its own scope in every way that is refused, use another pad, cancel or close what others hold.
//
// The model (model_state_test.go) is a list of levels, each with plain lists of what is registered there, and counts. It
// says which finalizer is the next one, whether one may run now at all, and which step is refused, by the byte and by the
// table.
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
	if (instrumented || testing.Short()) && os.Getenv("UPFRONT_SOAK") == "" {
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
