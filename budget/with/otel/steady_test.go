package otel

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/metrics"
	"github.com/upfront-mem/upfront/scope"
)

// counter counts observations.
type counter struct {
	embedded.Observer
	count int
}

func (c *counter) ObserveInt64(metric.Int64Observable, int64, ...metric.ObserveOption) { c.count++ }
func (c *counter) ObserveFloat64(metric.Float64Observable, float64, ...metric.ObserveOption) {
	c.count++
}

// ponds returns a budget with slots in which labels have bytes.
func ponds(t testing.TB) *budget.Budget {
	t.Helper()
	b, err := budget.Open(budget.Plan{Name: "ponds", Limits: budget.Limits{Labels: 8},
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB},
			{Name: "match", Size: 64 * budget.KiB, Slots: 16}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 64 * budget.KiB}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	for i := range 16 {
		slot, err := b.Slots("match").Acquire()
		require.NoError(t, err)
		frogs(t, slot, fmt.Sprint("frogs ", i%8), 100)
		t.Cleanup(func() { _ = slot.Release(context.Background()) })
	}
	return b
}

func frogs(t testing.TB, r budget.Region, name string, bytes int) {
	t.Helper()
	_, err := budget.Load(context.Background(), r, func(s scope.Scope) (*struct{}, error) {
		return nil, scope.Label(s, name, func() error { s.Bytes(bytes); return nil })
	})
	require.NoError(t, err)
}

// exporterOf returns the exporter that Register gives a provider.
func exporterOf(t testing.TB, b *budget.Budget) *exporter {
	t.Helper()
	e, _, err := newExporter("ponds", b.Published, sdk.NewMeterProvider().Meter(scopeName))
	require.NoError(t, err)
	return e
}

// TestSteady: after the first two collections, a collection makes the Go allocations of a report,
// and none of its own.
func TestSteady(t *testing.T) {
	b := ponds(t)
	e, o := exporterOf(t, b), &counter{}
	for range 2 {
		require.NoError(t, e.observe(context.Background(), o))
	}
	count := o.count / 2
	assert.Greater(t, count, 100)
	report := func() {
		r := b.Published()
		metrics.Each(&r, func(int, uint64, string, string) {})
	}
	// A report's allocations change when its numbers become longer, so each collection is compared
	// with the report before it.
	var own []float64
	for range 100 {
		want := testing.AllocsPerRun(1, report)
		own = append(own, testing.AllocsPerRun(1, func() { _ = e.observe(context.Background(), o) })-want)
	}
	slices.Sort(own)
	assert.Zero(t, own[len(own)/2])
}

// TestNamesThatGo: a name leaves the metrics when enough others have higher peaks, and the exporter
// forgets the name's series.
func TestNamesThatGo(t *testing.T) {
	b := ponds(t)
	e, o := exporterOf(t, b), &counter{}
	for i := range 20 {
		frogs(t, b.Region("level"), fmt.Sprint("frogs of level ", i), 100+i)
		require.NoError(t, e.observe(context.Background(), o))
	}
	fresh := exporterOf(t, b)
	require.NoError(t, fresh.observe(context.Background(), o))
	assert.Len(t, e.series.now, len(fresh.series.now))
	assert.Len(t, e.series.last, len(fresh.series.now))
	for key := range e.series.now {
		assert.NotEqual(t, "frogs of level 0", key.name)
	}
}

// BenchmarkCollection: a report, the callback, and a whole collection of the SDK.
func BenchmarkCollection(b *testing.B) {
	p := ponds(b)
	e, o := exporterOf(b, p), &counter{}
	ctx := context.Background()
	b.Run("report", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := p.Published()
			metrics.Each(&r, func(int, uint64, string, string) {})
		}
	})
	b.Run("callback", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = e.observe(ctx, o)
		}
	})
	b.Run("sdk", func(b *testing.B) {
		reader := sdk.NewManualReader()
		_, err := Register(p, sdk.NewMeterProvider(sdk.WithReader(reader)))
		require.NoError(b, err)
		var data metricdata.ResourceMetrics
		b.ReportAllocs()
		for b.Loop() {
			_ = reader.Collect(ctx, &data)
		}
		values := 0
		for _, m := range data.ScopeMetrics[0].Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				values += len(sum.DataPoints)
			} else {
				values += len(m.Data.(metricdata.Gauge[int64]).DataPoints)
			}
		}
		b.ReportMetric(float64(values), "values")
	})
}
