package main

import (
	_ "embed"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
)

// widePlan is a plan with plenty of room, in which `make plan` records the peaks.
//
//go:embed testdata/wide.json
var widePlan []byte

func readReport(t *testing.T, name string) (r budget.Report) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// The default plan is the recorded peaks and a tenth more, rounded up, and expects the use of the
// same runs. Nothing in it is set by hand.
func TestPlanIsRecordedPeaks(t *testing.T) {
	freedoom, long := readReport(t, "testdata/recorded/freedoom.json"),
		readReport(t, "testdata/recorded/long.json")
	freedoom.Name, long.Name = "all maps, 3500 ticks", "one map, 400000 ticks"
	plan, err := budget.Suggest(freedoom, long)
	require.NoError(t, err)
	plan = plan.Headroom(10)
	if *update {
		plan.Expected = timeline.Expect(10, timelineIn(t, "../../build/freedoom.json"),
			timelineIn(t, "../../build/long.json"))
	} else {
		shipped, err := budget.ParsePlan(defaultPlan)
		require.NoError(t, err)
		plan.Expected = shipped.Expected
	}
	text, err := json.MarshalIndent(plan, "", "  ")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("plan.json", append(text, '\n'), 0o644))
		return
	}
	assert.Equal(t, string(text)+"\n", string(defaultPlan), "make plan writes it anew")
	for _, e := range plan.Expected {
		most := uint64(0)
		for _, a := range append(freedoom.Arenas, long.Arenas...) {
			if a.Part == e.Part {
				most = max(most, a.Peak)
			}
		}
		assert.Equal(t, most, e.Most(), "%s: the timelines are of the reports' runs", e.Part)
	}
	assert.Len(t, plan.Expected, len(plan.Regions)+2, "the frame and scratch, too")
	wide, err := budget.ParsePlan(widePlan)
	require.NoError(t, err)
	for i, r := range freedoom.Plan.Regions {
		assert.Equal(t, wide.Regions[i].Size, r.Size, "recorded with testdata/wide.json")
	}
	level := freedoom.Arenas[2].Peak
	assert.Less(t, level+level/10, plan.Regions[2].Size+1)
	assert.Less(t, plan.Regions[2].Size, level+level/10+1025)
}
