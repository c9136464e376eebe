package budget_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// logged is what a handler for JSON makes of a value.
func logged(t *testing.T, value any) map[string]any {
	t.Helper()
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", value)
	var record map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &record))
	v, _ := record["v"].(map[string]any)
	return v
}

func TestReportIsLogged(t *testing.T) {
	plan := reportPlan()
	plan.Pages.Lock = budget.Off
	b := open(t, plan)
	assert.NotContains(t, logged(t, b.Report()), "regions", "none was used")
	mustLoad(t, b, "systems", func(s scope.Scope) {
		newMark(s, 1, doFail)
		require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(8); return nil }))
	})
	mustLoad(t, b, "systems", nil)
	frogs.New(b.Frame())
	r := b.Report()
	v := logged(t, r)
	assert.Equal(t, map[string]any{"scopes": 0.0, "owned": 0.0, "finalizers": 1.0, "slots": 0.0, "scratch": 0.0}, v["leaks"])
	assert.Equal(t, 1.0, v["error_count"])
	assert.Len(t, v["errors"], 1)
	heap := map[string]any{"limit": 0.0, "used": float64(r.GoHeap.Used), "collections": float64(r.GoHeap.Collections)}
	assert.Equal(t, heap, v["go_heap"])
	assert.EqualValues(t, r.Size, v["size"])
	regions := v["regions"].(map[string]any)
	assert.Len(t, regions, 1, "those that were used")
	systems := regions["systems"].(map[string]any)
	assert.Equal(t, systems, logged(t, r.Regions[0]))

	// A log has every figure of the JSON, under the same key.
	text, err := json.Marshal(r.Regions[0])
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, json.Unmarshal(text, &want))
	for key, figure := range want {
		switch key {
		case "name":
			continue
		case "scopes", "labels":
			byName := map[string]any{}
			for _, line := range figure.([]any) {
				usage := line.(map[string]any)
				byName[usage["name"].(string)] = usage
				delete(usage, "name")
			}
			figure = byName
		}
		assert.Equal(t, figure, systems[key], key)
	}
	assert.Len(t, systems, len(want)-1)
	assert.Contains(t, v["beside"], "frame.0")
	assert.NotContains(t, v["beside"], "scratch.0.0")
}
