package record_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// tiny is a plan that is full soon.
func tiny() budget.Plan {
	return budget.Plan{Name: "tiny", Regions: []budget.RegionPlan{{Name: "level", Size: 1000},
		{Name: "room", Size: 500, Slots: 1}},
		Frame: budget.FramePlan{Buffers: 2, Size: 1000}, Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: 1000},
		Limits: budget.Limits{Scopes: 3, Pools: 2, Owned: 2, Labels: 2}}
}

// head returns the start of each recording of tiny: the plan and the arenas.
func head(t testing.TB) []byte {
	t.Helper()
	b := open(t, tiny())
	var to bytes.Buffer
	_, err := record.Start(b, &to)
	require.NoError(t, err)
	return to.Bytes()
}

// FuzzReplay: for any file a replay ends, leaves its arenas empty, and takes no more memory than
// the tables and the file. Bytes that don't start like a recording become a recording's events.
func FuzzReplay(f *testing.F) {
	start := head(f)
	alike := bytes.Replace(start, []byte("\x0dregion room 0"), []byte("\x0cregion level"), 1)
	require.Less(f, len(alike), len(start))
	for _, fn := range []func(s scope.Scope){
		func(s scope.Scope) {
			octets.Slice(s, 100)
			s.Temp(10).Temp(3)
			octets.Slice(s, 20)
			_ = s.Open("x").Close()
		},
		func(s scope.Scope) {
			_, _ = frogs.Make(s, func(*frog) error { s.Temp(200); octets.Slice(s, 300); return errLoader })
			octets.Slice(s, 310)
			frogs.Pool(s, 2)
			s.Defer(func() {})
			_ = scope.Label(s, "y", func() error { return nil })
		},
	} {
		trace, _ := recorded(f, tiny(), func(b *budget.Budget, r *record.Recording) {
			r.Mark("m")
			_, _ = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) { fn(s); return nil, nil })
			_ = b.Scratch(0, 0).Do("w", func(s scope.Scope) error { fn(s); return nil })
		})
		f.Add(trace)
		f.Add(trace[len(start):])
	}
	// 5 is the first text after the arenas' names.
	const x = 5
	// more than any arena
	f.Add([]byte{1, x, 1, 'x', 14, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, x})
	f.Add([]byte{5, 100, 1, x, 1, 'x', 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{9, 3, 10, 3, 11, 3, 12, 3, 13, 3})
	// back into the middle of an allocation
	f.Add([]byte{1, x, 1, 'x', 3, 66, 4, 22, 3, 40, 2})
	// and of a node that ends temporaries
	f.Add([]byte{1, x, 1, 'x', 3, 10, 6, 100, 3, 50, 4, 70, 6, 20, 8, 2})
	// in two arenas, which may have the same name
	f.Add([]byte{1, x, 1, 'x', 6, 10, 24, 18})
	plan := tiny()
	plan.Regions, plan.Frame = []budget.RegionPlan{{Name: "level", Size: 64}}, budget.FramePlan{}
	same, smaller := dry(f, tiny()), dry(f, plan)
	f.Fuzz(func(t *testing.T, trace []byte) {
		plan, err := record.Plan(bytes.NewReader(trace))
		if err != nil {
			replayed(t, same, append(bytes.Clone(alike), trace...))
			trace = append(bytes.Clone(start), trace...)
			// a larger one takes too long
		} else if size, err := plan.Need(); err == nil && size < 4*budget.MiB {
			replayed(t, dry(t, plan), trace)
		}
		replayed(t, same, trace)
		replayed(t, smaller, trace)
	})
}

func dry(t testing.TB, plan budget.Plan) *budget.Budget {
	t.Helper()
	b, err := record.Dry(plan)
	require.NoError(t, err)
	return b
}

// replayed replays any bytes twice in the same arenas, and checks the arenas.
func replayed(t *testing.T, b *budget.Budget, trace []byte) {
	first, err := record.Play(b, bytes.NewReader(trace))
	if err != nil {
		require.NotEmpty(t, err.Error())
	}
	again, twice := record.Play(b, bytes.NewReader(trace))
	require.Equal(t, err == nil, twice == nil, "%v, and then %v", err, twice)
	require.Equal(t, first, again)
	for _, st := range record.Stacks(b) {
		require.Zero(t, st.Depth(), st.Arena)
		require.Zero(t, st.Stats().Used, st.Arena)
	}
}
