package otel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

// agreed returns a collection of the report that each reader knows.
func agreed(t *testing.T) []metricdata.Metrics {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(step.Root(t), "budget/testdata/agree.json"))
	require.NoError(t, err)
	var r budget.Report
	require.NoError(t, json.Unmarshal(data, &r))
	reader := sdk.NewManualReader()
	_, err = register(r.Name, func() budget.Report { return r }, sdk.NewMeterProvider(sdk.WithReader(reader)))
	require.NoError(t, err)
	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &collected))
	require.Len(t, collected.ScopeMetrics, 1)
	return collected.ScopeMetrics[0].Metrics
}

// TestAgree: the collection is the scrape of package prometheus, by OpenTelemetry's rules for
// Prometheus' names. That package records its scrape.
func TestAgree(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(step.Root(t), "budget/testdata/metrics.txt"))
	require.NoError(t, err)
	var lines []string
	for _, m := range agreed(t) {
		switch values := m.Data.(type) {
		case metricdata.Gauge[int64]:
			lines = append(lines, linesOf(m, "", values.DataPoints)...)
		case metricdata.Sum[int64]:
			suffix := ""
			if values.IsMonotonic {
				suffix = "_total"
			}
			lines = append(lines, linesOf(m, suffix, values.DataPoints)...)
		}
	}
	assert.ElementsMatch(t, slices.Collect(strings.Lines(string(want))), lines)
}

// linesOf returns a metric's lines for Prometheus.
func linesOf(m metricdata.Metrics, suffix string, points []metricdata.DataPoint[int64]) (lines []string) {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "By" {
		name += "_bytes"
	}
	name = strings.NewReplacer("go_memory_", "upfront_go_heap_").Replace(name) + suffix
	names := map[attribute.Key]string{"upfront.budget.name": "budget", "upfront.region.name": "region",
		"upfront.label.name": "label", "upfront.scope.name": "scope", "upfront.limit.kind": "kind"}
	for _, p := range points {
		var labels []string
		for key, label := range names {
			if value, ok := p.Attributes.Value(key); ok {
				labels = append(labels, fmt.Sprintf("%s=%q", label, value.AsString()))
			}
		}
		slices.Sort(labels)
		lines = append(lines, fmt.Sprintf("%s{%s} %s\n", name, strings.Join(labels, ","),
			strconv.FormatFloat(float64(p.Value), 'g', -1, 64)))
	}
	return lines
}

// TestNames: names and units are those of the semantic conventions' rules.
func TestNames(t *testing.T) {
	all := agreed(t)
	name, unit := regexp.MustCompile(`^(upfront|go)(\.[a-z]+(_[a-z]+)*)+$`), regexp.MustCompile(`^By$|^\{[a-z]+\}$`)
	assert.Greater(t, len(all), 30)
	for _, m := range all {
		assert.Regexp(t, name, m.Name)
		assert.Regexp(t, unit, m.Unit, m.Name)
		assert.True(t, strings.HasSuffix(m.Description, "."), m.Name)
		for _, other := range all {
			assert.False(t, strings.HasPrefix(other.Name, m.Name+"."), "%s is a namespace", m.Name)
		}
	}
}
