package main

import (
	_ "embed"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

// widePlan has room in plenty: what is needed of it is recorded (make plan).
//
//go:embed testdata/wide.json
var widePlan []byte

// largestMap is the map of Freedoom that needs most.
const largestMap = "MAP12"

func readReport(t *testing.T, name string) (r budget.Report) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// The default plan is what was recorded and a tenth more, rounded up: no guess, and nothing by hand.
func TestPlanIsRecordedPeaks(t *testing.T) {
	freedoom, long := readReport(t, "testdata/recorded/freedoom.json"), readReport(t, "testdata/recorded/long.json")
	freedoom.Name, long.Name = "freedoom", "long"
	plan, err := budget.Suggest(freedoom, long)
	require.NoError(t, err)
	plan = plan.Headroom(10)
	text, err := json.MarshalIndent(plan, "", "  ")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("plan.json", append(text, '\n'), 0o644))
		return
	}
	assert.Equal(t, string(text)+"\n", string(defaultPlan), "make plan writes it anew")
	wide, err := budget.ParsePlan(widePlan)
	require.NoError(t, err)
	for i, r := range freedoom.Plan.Regions {
		assert.Equal(t, wide.Regions[i].Size, r.Size, "recorded with testdata/wide.json")
	}
	level := freedoom.Regions[2].Peak
	assert.Less(t, level+level/10, plan.Regions[2].Size+1)
	assert.Less(t, plan.Regions[2].Size, level+level/10+1025)
}

// What the largest map needs today is what was recorded; and it fits the default plan.
func TestLargestMapIsAsRecorded(t *testing.T) {
	if !freedoom(t) {
		t.Skip(noFreedoom)
	}
	recorded := readReport(t, "testdata/recorded/freedoom.json")
	name := t.TempDir() + "/report.json"
	args := []string{"-maps", largestMap, "-ticks", "70", "-workers", "4", "-report", name, "-wad", builtin}
	for _, wad := range installedWADs() {
		args = append(args, "-wad", wad)
	}
	r, _ := play(t, 0, append(args, "-plan", "testdata/wide.json")...)
	got := readReport(t, name)
	assert.Equal(t, recorded.Regions[2].Peak, got.Regions[2].Peak, "make plan records anew")
	for i := range got.Regions {
		assert.LessOrEqual(t, got.Regions[i].Peak, recorded.Regions[i].Peak)
		assert.LessOrEqual(t, got.Regions[i].MostOpen.Pools, recorded.Regions[i].MostOpen.Pools)
	}
	for i := range got.Beside {
		assert.LessOrEqual(t, got.Beside[i].Peak, recorded.Beside[i].Peak)
	}
	tight, _ := play(t, 0, args...)
	require.NotEmpty(t, tight.Levels)
	for i := range r.Levels {
		assert.Equal(t, r.Levels[i].Hash, tight.Levels[i].Hash, "the plan changes nothing but what fits")
	}
}

func TestReportThatCannotBeWritten(t *testing.T) {
	_, stderr := play(t, 1, "-wad", builtin, "-maps", "MAP01", "-ticks", "1", "-report", "/nowhere/report.json")
	assert.Equal(t, "frogpond: -report: open /nowhere/report.json: no such file or directory\n", stderr)
}
