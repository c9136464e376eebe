package budget_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// requireRoundTrip says that a report comes back from JSON as it was, but for OnError, which isn't written.
func requireRoundTrip(t *testing.T, r budget.Report) {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var back budget.Report
	require.NoError(t, json.Unmarshal(text, &back), string(text))
	r.Plan.OnError = nil
	require.Equal(t, r, back)
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
}

func TestReportComesBackFromJSON(t *testing.T) {
	rest := small()
	rest.Size, rest.Regions[1].Size, rest.Regions[2].Note = 3*budget.MiB+1, budget.Rest, "so \"large\"\nbecause <of> the 3rd"
	rest.Pages = budget.Pages{Lock: budget.Wished, Guards: budget.Wished, Prefault: budget.Off}
	plain := budget.Plan{Name: "plain", Regions: []budget.RegionPlan{{Name: "only", Size: 1}}, GoHeap: 4*budget.GiB + 1}
	based := reportPlan()
	based.Base, based.Pages.Base, based.OnError = 0x250000000000, budget.Wished, func(error) {}
	for _, plan := range []budget.Plan{small(), rest, plain, based} {
		b := open(t, plan)
		requireRoundTrip(t, b.Report())
		requireRoundTrip(t, b.Snapshot())
		require.NoError(t, b.Close())
		requireRoundTrip(t, b.Report())
	}

	b := open(t, reportPlan())
	mustLoad(t, b, "systems", func(s scope.Scope) {
		newMark(s, 1, doFail)
		newMark(s, 2, doPanic)
		frogs.Pool(s, 10).Get()
		s.Keep(1)
		require.NoError(t, scope.Label(s, `"sound" <&> \u2028`, func() error { s.Bytes(8); return nil }))
		require.NoError(t, s.Do("mesh", func(s scope.Scope) error { s.Bytes(1); return nil }))
	})
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Temp(1) })
	b.Scratch(1, 0).Open("left")
	require.NoError(t, b.NextFrame())
	r := b.Report()
	assert.Equal(t, budget.Leaks{Scopes: 1, Finalizers: 2}, r.Leaks)
	assert.Len(t, r.Errors, 1)
	assert.Len(t, r.Regions[0].Scopes, 3)
	assert.Equal(t, budget.Limits{Scopes: 2, Pools: 1, Owned: 1, Labels: 1}, r.Regions[0].MostOpen)
	requireRoundTrip(t, r)
	requireRoundTrip(t, b.Snapshot())
	plan := b.Plan()
	plan.Regions[0].Size, plan.Regions[2].Size = 64*budget.KiB, 448*budget.KiB
	require.NoError(t, b.Region("systems").Rewind(background))
	require.NoError(t, b.Reconfigure(background, plan))
	requireRoundTrip(t, b.Report())
	_ = b.Close()
	requireRoundTrip(t, b.Report())
}

// TestReportOfAFaultyPlan: a report that was written by hand is read as strictly as a plan.
func TestReportOfAFaultyPlan(t *testing.T) {
	var r budget.Report
	err := json.Unmarshal([]byte(`{"name": "x", "plan": {"name": "x", "regions": [{"name": "a", "sise": "1KiB"}]}}`), &r)
	assert.ErrorContains(t, err, "sise")
	text := `{"regions": [{"name": "a", "used": 7, "peak": 9}], "go_heap": {"limit": 1, "used": 2}}`
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	for _, line := range []string{"a          [................................] used            7  peak            9  of            0",
		"go heap    [################################] used            2  collections     0  of            1"} {
		assert.Contains(t, r.String(), "\n  "+line+"\n", "whatever is drawn, nothing panics")
	}
}

// TestErrorsAreTextsAtOnce: whoever asks for them later doesn't run the error's own code.
func TestErrorsAreTextsAtOnce(t *testing.T) {
	b := open(t, small())
	text := "as it was"
	mustLoad(t, b, "level", func(s scope.Scope) { s.Own(failing{&text}) })
	mustLoad(t, b, "level", nil)
	text = "as it is"
	require.Len(t, b.Report().Errors, 1)
	assert.Contains(t, b.Report().Errors[0], "as it was")
	assert.Contains(t, b.Snapshot().Errors[0], "as it was")
}

// failing is a closer whose error changes its text.
type failing struct{ text *string }

func (f failing) Close() error  { return errors.Join(f) }
func (f failing) Error() string { return *f.text }
