package otel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/budget/with/otel"
	"github.com/upfront-mem/upfront/scope"
)

func plan(name string) budget.Plan {
	return budget.Plan{
		Name:    name,
		Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 64 * budget.KiB},
		Limits:  budget.Limits{Labels: 5},
	}
}

func open(t testing.TB, p budget.Plan) *budget.Budget {
	t.Helper()
	b, err := budget.Open(p)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func fill(t testing.TB, r budget.Region, fn func(scope.Scope)) {
	t.Helper()
	_, err := budget.Load(context.Background(), r, func(s scope.Scope) (*struct{}, error) { fn(s); return nil, nil })
	require.NoError(t, err)
}

func label(t testing.TB, s scope.Scope, name string, bytes int) {
	t.Helper()
	require.NoError(t, scope.Label(s, name, func() error { s.Bytes(bytes); return nil }))
}

// reader returns a reader of a provider to which the budgets are registered.
func reader(t testing.TB, budgets ...*budget.Budget) sdk.Reader {
	t.Helper()
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	for _, b := range budgets {
		_, err := with.Register(b, provider)
		require.NoError(t, err)
	}
	return reader
}

// collect returns the metrics of a collection by name.
func collect(t testing.TB, reader sdk.Reader) map[string]metricdata.Metrics {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	all := map[string]metricdata.Metrics{}
	for _, of := range data.ScopeMetrics {
		for _, m := range of.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

func points(m metricdata.Metrics) []metricdata.DataPoint[int64] {
	switch values := m.Data.(type) {
	case metricdata.Gauge[int64]:
		return values.DataPoints
	case metricdata.Sum[int64]:
		return values.DataPoints
	}
	return nil
}

// values returns the values of a metric by their attributes, without the budget's.
func values(m metricdata.Metrics) map[string]int64 {
	all := map[string]int64{}
	for _, p := range points(m) {
		var list []string
		for _, a := range p.Attributes.ToSlice() {
			if a.Key != "upfront.budget.name" {
				list = append(list, a.Value.AsString())
			}
		}
		all[strings.Join(list, " / ")] = p.Value
	}
	return all
}

// only is an encoder that prints some metrics as lines.
type only []string

func (o only) Encode(data any) error {
	var lines []string
	for _, of := range data.(*metricdata.ResourceMetrics).ScopeMetrics {
		for _, m := range of.Metrics {
			for _, p := range points(m) {
				if slices.Contains(o, m.Name) {
					lines = append(lines, fmt.Sprintf("%s{%s} %d %s", m.Name,
						p.Attributes.Encoded(attribute.DefaultEncoder()), p.Value, m.Unit))
				}
			}
		}
	}
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
	return nil
}
