package prometheus

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestAgree: metrics have the figures that every reader of one report has.
func TestAgree(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(step.Root(t), "budget/testdata/agree.json"))
	require.NoError(t, err)
	var r budget.Report
	require.NoError(t, json.Unmarshal(data, &r))
	got := map[string]float64{}
	collector{}.collect(r, func(name string, value float64, labels ...string) {
		got[strings.Join(append([]string{name}, labels...), " ")] = value
	})
	metrics := map[string]string{}
	for _, f := range budget.Figures() {
		metrics[f.Name] = metricOf(f)
	}
	table, err := os.ReadFile(filepath.Join(step.Root(t), "budget/testdata/agree.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		// only a checked build counts the last two
		if words[0] == "#" || words[1] == "objects" || words[1] == "padding" {
			continue
		}
		metric := metrics[words[1]] + " " + words[0]
		if names := strings.Split(words[1], ":"); len(names) == 3 {
			metric = map[string]string{"used": "label_used_bytes", "arena_used": "label_arena_used_bytes",
				"peak": "label_arena_peak_bytes"}[names[2]] + " " + words[0] + " " + names[1]
		}
		value, err := strconv.ParseFloat(words[2], 64)
		require.NoError(t, err)
		require.Contains(t, got, metric)
		assert.Equal(t, value, got[metric], line)
	}
}
