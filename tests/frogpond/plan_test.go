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

// The default plan is the recorded peaks and a tenth more, rounded up. Nothing in it is set by
// hand.
func TestPlanIsRecordedPeaks(t *testing.T) {
	freedoom, long := readReport(t, "testdata/recorded/freedoom.json"),
		readReport(t, "testdata/recorded/long.json")
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
	level := freedoom.Arenas[2].Peak
	assert.Less(t, level+level/10, plan.Regions[2].Size+1)
	assert.Less(t, plan.Regions[2].Size, level+level/10+1025)
}
