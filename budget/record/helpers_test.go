package record_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

type frog struct{ X, Y, Age int32 }

var (
	ctx = context.Background()

	frogs   = scope.Plain[frog]()
	objects = scope.Object[frog](func(*frog) error { return nil })
	octets  = scope.Plain[byte]()

	errLoader = errors.New("loader failed")
)

// game is a plan with a part of every kind.
func game() budget.Plan {
	return budget.Plan{Name: "game",
		Regions: []budget.RegionPlan{{Name: "init", Size: 1 << 12}, {Name: "level", Size: 1 << 13},
			{Name: "room", Size: 1 << 12, Slots: 3}},
		Frame:   budget.FramePlan{Buffers: 3, Size: 1 << 12},
		Scratch: budget.ScratchPlan{Workers: 2, Each: 2, Size: 1 << 12},
		Limits:  budget.Limits{Scopes: 8, Pools: 8, Owned: 8, Labels: 8},
		Pages:   budget.Pages{Prefault: budget.Off}}
}

func open(t testing.TB, plan budget.Plan) *budget.Budget {
	t.Helper()
	b, err := budget.Open(plan)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func load(t testing.TB, r budget.Region, fn func(s scope.Scope)) {
	t.Helper()
	_, err := budget.Load(ctx, r, func(s scope.Scope) (*int, error) { fn(s); return nil, nil })
	require.NoError(t, err)
}

// recorded returns the recording of a program, and its report.
func recorded(t testing.TB, plan budget.Plan, program func(b *budget.Budget, r *record.Recording)) ([]byte,
	budget.Report) {
	t.Helper()
	var to bytes.Buffer
	b := open(t, plan)
	r, err := record.Start(b, &to)
	require.NoError(t, err)
	program(b, r)
	_ = b.Close() // the program may leak
	require.NoError(t, r.Close())
	return to.Bytes(), b.Report()
}

// same requires the replay of a recording to have the program's peaks and most-open counts. The
// plan may ask for more than the machine grants; the report still has it.
func same(t testing.TB, trace []byte, was budget.Report) {
	t.Helper()
	plan, all := was.Plan, budget.Required
	plan.Base, plan.GoHeap, plan.Pages = 1<<40, 1<<45, budget.Pages{Prefault: all, Lock: all, Huge: all,
		Guards: all, Base: all}
	again, played, err := record.Replay(plan, bytes.NewReader(trace))
	require.NoError(t, err)
	assert.True(t, played.Whole)
	assert.Equal(t, plan, again.Plan)
	assert.Zero(t, again.GoHeap, "of the process that replays")
	arenas := again.Arenas
	for i, a := range was.Arenas {
		assert.Equal(t, a.Peak, arenas[i].Peak, "the peak of %s", a.Name)
		assert.Equal(t, a.MostOpen, arenas[i].MostOpen, "the most open of %s", a.Name)
		assert.Zero(t, arenas[i].Used, a.Name)
	}
}

// holds records a program, and requires the replay to match it.
func holds(t testing.TB, program func(b *budget.Budget, r *record.Recording)) ([]byte, budget.Report) {
	t.Helper()
	trace, was := recorded(t, game(), program)
	same(t, trace, was)
	return trace, was
}

// failed returns the error of a replay that must stop.
func failed(t testing.TB, plan budget.Plan, trace io.Reader) *record.Error {
	t.Helper()
	_, played, err := record.Replay(plan, trace)
	var e *record.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, played, e.Played)
	return e
}

// The arenas of a report outside of regions: the frame's buffers and scratch arenas.
func beside(r budget.Report) (list []budget.ArenaReport) {
	for _, a := range r.Arenas {
		if a.Kind == "frame" || a.Kind == "scratch" {
			list = append(list, a)
		}
	}
	return list
}
