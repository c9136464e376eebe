package otel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/budget/with/otel"
	"github.com/upfront-mem/upfront/scope"
)

// TestInstruments compares an instrument of each kind with its data, as the SDK checks them.
func TestInstruments(t *testing.T) {
	b := open(t, budget.Plan{Name: "pond", Regions: []budget.RegionPlan{
		{Name: "level", Size: 64 * budget.KiB}, {Name: "match", Size: 128 * budget.KiB, Slots: 2}}})
	_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		s.Bytes(budget.MiB)
		return nil, nil
	})
	require.ErrorIs(t, err, budget.ErrFull)
	pointsOf := func(level, match int64) (list []metricdata.DataPoint[int64]) {
		for region, value := range map[string]int64{"level": level, "match": match} {
			list = append(list, metricdata.DataPoint[int64]{Value: value, Attributes: attribute.NewSet(
				attribute.String("upfront.budget.name", "pond"), attribute.String("upfront.region.name", region))})
		}
		return list
	}
	got := collect(t, reader(t, b))
	for name, want := range map[string]metricdata.Aggregation{
		"upfront.region.arena_size": metricdata.Gauge[int64]{DataPoints: pointsOf(64<<10, 128<<10)},
		"upfront.region.size": metricdata.Sum[int64]{DataPoints: pointsOf(64<<10, 256<<10),
			Temporality: metricdata.CumulativeTemporality},
		"upfront.region.fulls": metricdata.Sum[int64]{DataPoints: pointsOf(1, 0), IsMonotonic: true,
			Temporality: metricdata.CumulativeTemporality},
	} {
		metricdatatest.AssertAggregationsEqual(t, want, got[name].Data, metricdatatest.IgnoreTimestamp())
	}
}

// TestUnknown: a value that isn't known has no series.
func TestUnknown(t *testing.T) {
	p := plan("game")
	b := open(t, p)
	got := collect(t, reader(t, b))
	assert.NotContains(t, got, "go.memory.limit", "the plan has no go_heap")
	assert.Contains(t, values(got["upfront.region.fulls"]), "level", "a 0 that is known")
	assert.NotContains(t, values(got["upfront.region.allocated"]), "scratch", "scratch has no names of scopes")
	for _, name := range []string{"upfront.region.objects", "upfront.region.padding"} {
		assert.Equal(t, b.Published().Arena("level").Counted, len(points(got[name])) != 0, name)
	}
	p.Name, p.GoHeap = "limited", 64*budget.MiB
	limited := open(t, p)
	got = collect(t, reader(t, limited))
	assert.EqualValues(t, limited.Published().GoHeap.Limit, values(got["go.memory.limit"])[""])
}

// TestSeveral: a provider has budgets of different names, with one instrument for both.
func TestSeveral(t *testing.T) {
	got := collect(t, reader(t, open(t, plan("game")), open(t, plan("tool"))))
	assert.Len(t, points(got["upfront.size"]), 2)
	assert.Len(t, points(got["upfront.region.used"]), 2*3)

	// Of the same name, sums are added up, and one value of a gauge stays.
	game, again := open(t, plan("game")), open(t, plan("game"))
	got = collect(t, reader(t, game, again))
	assert.EqualValues(t, game.Size()+again.Size(), values(got["upfront.size"])[""])
	assert.EqualValues(t, 256*budget.KiB, values(got["upfront.region.arena_size"])["level"])
}

// TestView: a view drops the metrics that another instrumentation exports too.
func TestView(t *testing.T) {
	reader := sdk.NewManualReader()
	scope := instrumentation.Scope{Name: "github.com/upfront-mem/upfront/budget/with/otel"}
	provider := sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithView(sdk.NewView(
		sdk.Instrument{Name: "go.memory.*", Scope: scope}, sdk.Stream{Aggregation: sdk.AggregationDrop{}})))
	_, err := with.Register(open(t, plan("game")), provider)
	require.NoError(t, err)
	got := collect(t, reader)
	assert.NotContains(t, got, "go.memory.used")
	assert.Contains(t, got, "upfront.size")
}

// TestUnregister: the metrics outlive the budget, and end with the registration.
func TestUnregister(t *testing.T) {
	b := open(t, plan("game"))
	reader := sdk.NewManualReader()
	registration, err := with.Register(b, sdk.NewMeterProvider(sdk.WithReader(reader)))
	require.NoError(t, err)
	fill(t, b.Region("level"), func(s scope.Scope) { s.Bytes(1000) })
	require.NoError(t, b.Close())
	assert.GreaterOrEqual(t, values(collect(t, reader)["upfront.region.arena_peak"])["level"], int64(1000))
	require.NoError(t, registration.Unregister())
	assert.Empty(t, collect(t, reader))
}

// broken is a provider whose meters make no gauge.
type broken struct{ noop.MeterProvider }

type brokenMeter struct{ noop.Meter }

var errBroken = errors.New("broken")

func (broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

func (brokenMeter) Int64ObservableGauge(string, ...metric.Int64ObservableGaugeOption) (
	metric.Int64ObservableGauge, error) {
	return nil, errBroken
}

// TestProvider: the error of a provider is the caller's; a provider without an SDK has none.
func TestProvider(t *testing.T) {
	b := open(t, plan("game"))
	_, err := with.Register(b, broken{})
	require.ErrorIs(t, err, errBroken)
	registration, err := with.Register(b, noop.NewMeterProvider())
	require.NoError(t, err)
	require.NoError(t, registration.Unregister())
}

// TestAnyGoroutine collects by two readers while the program plays and closes, for the race
// detector.
func TestAnyGoroutine(t *testing.T) {
	b := open(t, plan("game"))
	readers := []sdk.Reader{sdk.NewManualReader(), sdk.NewManualReader()}
	provider := sdk.NewMeterProvider(sdk.WithReader(readers[0]), sdk.WithReader(readers[1]))
	_, err := with.Register(b, provider)
	require.NoError(t, err)
	stop := make(chan struct{})
	var collectors sync.WaitGroup
	for i := range 4 {
		collectors.Go(func() {
			var data metricdata.ResourceMetrics
			for {
				select {
				case <-stop:
					return
				default:
					if err := readers[i%2].Collect(context.Background(), &data); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for i := range 200 {
		name := fmt.Sprint("sound ", i)
		fill(t, b.Region("level"), func(s scope.Scope) { label(t, s, name, 100); b.Frame().Bytes(8) })
		require.NoError(t, b.NextFrame())
	}
	require.NoError(t, b.Close())
	close(stop)
	collectors.Wait()
	for _, r := range readers {
		assert.NotZero(t, values(collect(t, r)["upfront.region.arena_peak"])["level"])
	}
}

// TestBare: a budget without a region, frame or scratch has metrics of its own.
func TestBare(t *testing.T) {
	got := collect(t, reader(t, open(t, budget.Plan{Name: "bare"})))
	assert.Contains(t, got, "upfront.size")
	assert.NotContains(t, got, "upfront.region.size")
}
