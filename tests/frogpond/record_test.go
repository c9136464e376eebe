package main

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestRecording replays a recording of maps and gets the same peaks, to the byte. A plan made from
// it has room for all maps; with one percent less for the level, the error of the replay names the
// first map that doesn't fit.
func TestRecording(t *testing.T) {
	t.Run(doom.Builtin, func(t *testing.T) { checkRecording(t, "-wad", doom.Builtin) })
	t.Run("freedoom", func(t *testing.T) {
		step.Needs(t, step.Check)
		needsFreedoom(t)
		checkRecording(t)
	})
}

func checkRecording(t *testing.T, args ...string) {
	t.Chdir(t.TempDir())
	args = append(args, "-ticks", "35", "-workers", crews()[0], "-record", "maps.trace")
	played, _ := play(t, 0, append(args, "-report", "report.json")...)
	was := readReport(t, "report.json")
	report, steps, err := replayed(t, was.Plan)
	require.NoError(t, err)
	assert.True(t, steps.Whole)
	assert.Equal(t, len(played.Levels), steps.Marks)
	again := report.Arenas
	for i, a := range was.Arenas {
		assert.Equal(t, a.Peak, again[i].Peak, a.Name)
		assert.Equal(t, a.MostOpen, again[i].MostOpen, a.Name)
	}

	measured, err := record.Measure("maps.trace")
	require.NoError(t, err)
	plan := measured.Plan
	_, _, err = replayed(t, plan)
	require.NoError(t, err)
	level := &plan.Regions[2]
	level.Size = again[2].Peak - again[2].Peak/100
	_, _, err = replayed(t, plan)
	var failed *record.Error
	require.ErrorAs(t, err, &failed)
	assert.ErrorIs(t, err, budget.ErrFull)
	assert.Equal(t, build == "checked", len(failed.Made) > 0, "only a checked build says who asked")
	tooLarge := func(l LevelResult) bool { return *l.Peak > level.Size }
	assert.Equal(t, played.Levels[slices.IndexFunc(played.Levels, tooLarge)].Name, failed.Mark)
}

func replayed(t *testing.T, plan budget.Plan) (budget.Report, record.Played, error) {
	t.Helper()
	file, err := os.Open("maps.trace")
	require.NoError(t, err)
	defer file.Close()
	return record.Replay(plan, file)
}
