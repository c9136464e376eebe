package record_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// traces returns the names of files with recordings.
func traces(t testing.TB, list ...[]byte) (names []string) {
	t.Helper()
	for i, trace := range list {
		names = append(names, filepath.Join(t.TempDir(), fmt.Sprint(i)))
		require.NoError(t, os.WriteFile(names[i], trace, 0o600))
	}
	return names
}

func replayAll(names []string, plan budget.Plan) error {
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		_, _, err = record.Replay(plan, file)
		file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// sizes returns the sizes of a plan.
func sizes(p *budget.Plan) (list []*uint64) {
	for i := range p.Regions {
		list = append(list, &p.Regions[i].Size)
	}
	return append(list, &p.Frame.Size, &p.Scratch.Size)
}

// TestMeasure: the plan of several recordings has enough for each, and no byte more.
func TestMeasure(t *testing.T) {
	plain, _ := recorded(t, game(), everything(t))
	plan := game()
	plan.Regions[2].Slots, plan.Scratch.Workers, plan.Frame.Buffers = 5, 3, 2
	temps, _ := recorded(t, plan, func(b *budget.Budget, _ *record.Recording) {
		load(t, b.Region("init"), func(s scope.Scope) { octets.Slice(s, 333) })
		load(t, b.Region("level"), func(s scope.Scope) { octets.Slice(s, 2500); s.Temp(2000) })
		for range 5 {
			room, err := b.Slots("room").Acquire()
			require.NoError(t, err)
			load(t, room, func(s scope.Scope) { octets.Slice(s, 77) })
		}
		_ = b.Scratch(2, 0).Do("work", func(s scope.Scope) error { octets.Slice(s, 3); return nil })
	})
	names := traces(t, plain, temps)
	report, err := record.Measure(names...)
	require.NoError(t, err)
	require.NoError(t, replayAll(names, report.Plan))
	assert.Equal(t, 5, report.Plan.Regions[2].Slots)
	assert.Equal(t, budget.FramePlan{Buffers: 3, Size: 700}, report.Plan.Frame)
	assert.Equal(t, budget.ScratchPlan{Workers: 3, Each: 2, Size: 900}, report.Plan.Scratch)
	assert.Equal(t, game().Limits, report.Plan.Limits, "as planned")
	assert.EqualValues(t, 333, report.Plan.Regions[0].Size)
	assert.EqualValues(t, 500, report.Plan.Regions[2].Size)
	for i, size := range sizes(&report.Plan) {
		smaller, less := report.Plan, uint64(1)
		smaller.Regions = slices.Clone(smaller.Regions)
		if i == 1 { // temporaries start at a line
			less = 64
		}
		*sizes(&smaller)[i] -= less
		require.ErrorIs(t, replayAll(names, smaller), budget.ErrFull, "%d: %d - %d", i, *size, less)
	}
	again, err := record.Measure(names[1], names[0])
	require.NoError(t, err)
	assert.Equal(t, report.Plan, again.Plan)
	report.Plan.Limits = budget.Limits{Scopes: 5, Pools: 3, Owned: 3, Labels: 3}
	require.NoError(t, replayAll(names, report.Plan))
	for i, l := range []*int{&report.Plan.Limits.Scopes, &report.Plan.Limits.Pools, &report.Plan.Limits.Owned,
		&report.Plan.Limits.Labels} {
		*l--
		require.ErrorIs(t, replayAll(names, report.Plan), budget.ErrFull, "limit %d", i)
		*l++
	}
}

// TestMeasureOfParts: the plan has each part that any recording has. Unused parts stay as planned.
func TestMeasureOfParts(t *testing.T) {
	var list [][]byte
	for _, drop := range []func(p *budget.Plan){
		func(p *budget.Plan) { p.Frame, p.Scratch = budget.FramePlan{}, budget.ScratchPlan{} },
		func(p *budget.Plan) { p.Frame = budget.FramePlan{} },
		func(p *budget.Plan) { p.Scratch = budget.ScratchPlan{} },
	} {
		plan := game()
		drop(&plan)
		trace, _ := recorded(t, plan, func(*budget.Budget, *record.Recording) {})
		list = append(list, trace)
	}
	report, err := record.Measure(traces(t, list...)...)
	require.NoError(t, err)
	assert.Equal(t, game().Frame, report.Plan.Frame)
	assert.Equal(t, budget.ScratchPlan{Workers: 2, Each: 2, Size: game().Scratch.Size}, report.Plan.Scratch)
	assert.Equal(t, game().Regions[1].Size, report.Plan.Regions[1].Size)
	assert.Equal(t, "never used: as planned", report.Plan.Regions[1].Note)
}

// TestMeasureIsRefused: recordings of different regions, and files that are none.
func TestMeasureIsRefused(t *testing.T) {
	whole, _ := recorded(t, game(), everything(t))
	plan := game()
	plan.Regions[1].Name = "map"
	named, _ := recorded(t, plan, func(*budget.Budget, *record.Recording) {})
	plan = game()
	plan.Regions[1].Slots = 1
	slotted, _ := recorded(t, plan, func(*budget.Budget, *record.Recording) {})
	plan.Regions = plan.Regions[:2]
	fewer, _ := recorded(t, plan, func(*budget.Budget, *record.Recording) {})
	files := traces(t, whole, named, slotted, fewer, []byte("not a recording"), nil)
	folder := t.TempDir()
	refusal := func(name string) string {
		_, err := os.ReadFile(name)
		return err.(*os.PathError).Err.Error()
	}
	for _, test := range []struct {
		names []string
		want  string
	}{
		{nil, "record: Measure: no recordings"},
		{[]string{files[0], files[1]}, files[1] + `: regions[1].name is "map", but "level" in the first`},
		{[]string{files[0], files[2]}, files[2] + ": regions[1].slots is 1, but 0 in the first"},
		{[]string{files[0], files[3]}, files[3] + ": the number of regions is 2, but 3 in the first"},
		{[]string{files[0], files[4]}, files[4] + ": no recording: its first line"},
		{[]string{files[5]}, files[5] + ": no recording: its first line: EOF"},
		{[]string{files[0], "absent"}, "open absent: " + refusal("absent")},
		{[]string{folder}, refusal(folder)},
	} {
		_, err := record.Measure(test.names...)
		require.ErrorContains(t, err, test.want)
	}
}
