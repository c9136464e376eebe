package budget_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/inside"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

// barePlans have no region, frame or scratch.
var barePlans = map[string]budget.Plan{
	"a name":  {Name: "bare"},
	"c_heap":  {Name: "bare", CHeap: budget.CHeapPlan{Size: 64 * budget.MiB, Warn: 80}},
	"go_heap": {Name: "bare", GoHeap: 512 * budget.MiB},
	"rest":    {Name: "bare", GoHeap: budget.Rest},
	"both":    {Name: "bare", GoHeap: 512 * budget.MiB, CHeap: budget.CHeapPlan{Size: 64 * budget.MiB}},
	"size":    {Name: "bare", Size: 1000},
	"base":    {Name: "bare", Base: 0x7_0000_0000},
	"guards":  {Name: "bare", Pages: budget.Pages{Huge: budget.Wished, Guards: budget.Wished}},
	"locked":  {Name: "bare", Pages: budget.Pages{Prefault: budget.Required, Lock: budget.Wished}},
	"off":     {Name: "bare", Pages: budget.Pages{Prefault: budget.Off}},
	"limits":  {Name: "bare", Limits: budget.Limits{Scopes: 65535, Pools: 65535, Owned: 65535, Labels: 65535}},
	"expected": {Name: "bare", CHeap: budget.CHeapPlan{Size: budget.MiB},
		Expected: []budget.Expected{{Part: "c_heap", Play: budget.MiB}}},
}

// TestBarePlan: a plan without parts is a plan. A budget of it opens, has its tables, and closes.
func TestBarePlan(t *testing.T) {
	for name, plan := range barePlans {
		t.Run(name, func(t *testing.T) {
			setProcessHeap(t, &processHeap{counts: arena_c.ProcessCounts{Size: plan.CHeap.Size}})
			require.NoError(t, plan.Check())
			cost, err := plan.Cost()
			require.NoError(t, err)
			assert.GreaterOrEqual(t, cost.Addresses, uint64(64*budget.KiB))
			assert.Equal(t, plan.CHeap.Size, cost.CHeap)
			assert.Contains(t, plan.String(), "\n  tables")

			data, err := json.Marshal(plan)
			require.NoError(t, err)
			read, err := budget.ParsePlan(data)
			require.NoError(t, err)
			assert.Equal(t, plan, read)
			require.NoError(t, read.Headroom(10).Check())

			b := open(t, plan)
			assert.Equal(t, cost.Addresses, b.Size())
			assertBare(t, b)
			if !platform.GoBacked {
				assert.NotContains(t, fmt.Sprint(b.Report().NotGranted), "pages.guards")
			}
			require.NoError(t, b.Close())
			assert.ErrorIs(t, b.Close(), budget.ErrClosed)
			assert.Equal(t, "bare", b.Report().Name)
		})
	}
}

func assertBare(t *testing.T, b *budget.Budget) {
	t.Helper()
	tl := timeline.Start(b, 8)
	ranges, err := b.Walk()
	require.NoError(t, err)
	assert.Equal(t, "tables", ranges[0].What)
	last := ranges[len(ranges)-1]
	assert.Equal(t, b.Size(), last.Offset+last.Size)

	assert.NoError(t, b.NextFrame())
	assert.NoError(t, b.Reconfigure(t.Context(), b.Plan()))
	if b.Plan().Pages.Prefault != budget.Required {
		_, err = b.Trim(t.Context())
		assert.NoError(t, err)
	}
	for range 20 {
		tl.Sample()
	}
	assert.Equal(t, b.Published().Plan.Name, b.Plan().Name)
	r := b.Report()
	assert.Empty(t, r.Arenas)
	assert.Zero(t, r.Leaks)
	assert.Contains(t, r.String(), "budget bare: ")
	assert.LessOrEqual(t, r.Resident, r.Size)
	for _, f := range budget.Figures() {
		for _, p := range r.Parts() {
			p.Value(f.Name)
		}
	}
	_, err = inside.Of(b, "level")
	assert.ErrorContains(t, err, "there is no such arena")
	for what, draw := range map[string]func(io.Writer) error{
		"plan":     func(w io.Writer) error { return view.Plan(w, b.Plan()) },
		"diff":     func(w io.Writer) error { return view.PlanDiff(w, b.Plan(), small()) },
		"back":     func(w io.Writer) error { return view.PlanDiff(w, small(), b.Plan()) },
		"report":   func(w io.Writer) error { return view.Report(w, r) },
		"html":     func(w io.Writer) error { return view.ReportHTML(w, r) },
		"text":     func(w io.Writer) error { return view.ReportText(w, r) },
		"timeline": func(w io.Writer) error { return view.Timeline(w, tl.Read()) },
	} {
		var out bytes.Buffer
		assert.NoError(t, draw(&out), what)
		assert.NotZero(t, out.Len(), what)
		assert.NotContains(t, out.String(), "NaN", what)
	}
	data, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Contains(t, string(data), `"arenas":[]`)
	data, err = json.Marshal(tl.Read())
	require.NoError(t, err)
	assert.NotContains(t, string(data), `"arenas":null`)
	data, err = json.Marshal(r)
	require.NoError(t, err)
	var read budget.Report
	require.NoError(t, json.Unmarshal(data, &read))
	suggested, err := budget.Suggest(read, r)
	require.NoError(t, err)
	assert.Equal(t, b.Plan().CHeap, suggested.CHeap)
	assert.NoError(t, b.Seal())
}

func TestBarePlanInABlock(t *testing.T) {
	plan := budget.Plan{Name: "bare"}
	need, err := plan.Need()
	require.NoError(t, err)
	block := make([]byte, 4*need)
	_, err = budget.OpenIn(block[:need-64*budget.KiB-1], plan)
	assert.ErrorContains(t, err, "the plan needs")
	for _, p := range []budget.Plan{plan, small(), plan, plan} {
		p.Name = "bare"
		b, err := budget.OpenIn(block, p)
		if p.Regions != nil {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		assertBare(t, b)
		require.NoError(t, b.Close())
	}
}

// TestBareOverParts: scopes and pools of a closed budget stay dead after a budget without parts in
// the same memory, and after the next one with parts.
func TestBareOverParts(t *testing.T) {
	parts := budget.Plan{Name: "bare", Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}},
		Limits: budget.Limits{Scopes: 1, Pools: 1}}
	need, err := parts.Need()
	require.NoError(t, err)
	block := make([]byte, need)
	var dead []scope.Scope
	for i := range 12 {
		plan := parts
		if i%2 == 1 {
			plan = budget.Plan{Name: "bare"}
		}
		b, err := budget.OpenIn(block, plan)
		require.NoError(t, err)
		if i%2 == 0 {
			_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*frog, error) {
				dead = append(dead, s)
				return frogs.New(s), nil
			})
			require.NoError(t, err)
		}
		require.NoError(t, b.Close())
		for _, s := range dead {
			assert.PanicsWithError(t, "scope: BUG: use of a scope whose budget is closed", func() { s.Bytes(1) })
		}
	}
}

// TestBareMeasured: Measure and Replay take a plan without parts.
func TestBareMeasured(t *testing.T) {
	plan := budget.Plan{Name: "bare", GoHeap: 512 * budget.MiB}
	runs := 0
	r, err := budget.Measure(plan, func(b *budget.Budget) error { runs++; return b.NextFrame() })
	require.NoError(t, err)
	assert.Equal(t, 2, runs)
	assert.EqualValues(t, 512*budget.MiB, r.Plan.GoHeap)
	require.NoError(t, r.Plan.Check())
	_, err = budget.Measure(plan, func(*budget.Budget) error { return errLoader })
	assert.ErrorIs(t, err, errLoader)

	b := open(t, plan)
	var file bytes.Buffer
	recording, err := record.Start(b, &file)
	require.NoError(t, err)
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.Close())
	require.NoError(t, recording.Close())
	read, err := record.Plan(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	assert.Equal(t, "bare", read.Name)
	replayed, _, err := record.Replay(read, bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	assert.Equal(t, "bare", replayed.Name)
}

// TestManyBare: budgets without parts open next to each other.
func TestManyBare(t *testing.T) {
	var budgets []*budget.Budget
	for i := range 20 {
		budgets = append(budgets, open(t, budget.Plan{Name: fmt.Sprint("bare", i)}))
	}
	for _, b := range budgets {
		require.NoError(t, b.Close())
	}
}
