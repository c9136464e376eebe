package otel

import (
	"context"
	"math"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/metrics"
)

// scopeName is the name of the meter.
const scopeName = "github.com/upfront-mem/upfront/budget/with/otel"

// Register makes an instrument of the provider for each metric of a budget, and one callback for
// all of them. Unregister of the result ends the callback. Without it, the metrics stay as of the
// budget's Close. The error is one of the provider's. Budgets of one provider need different names:
// of the same name, the SDK adds up sums and keeps one value of a gauge.
//
// A collection reads the last published report ([budget.Budget.Published]) once, on any goroutine,
// even after the budget's Close. A collection doesn't wait for the end of a load or frame. It costs
// O(arenas and names). It makes the Go allocations of a report, and some more for each name that
// the collection before didn't have.
func Register(b *budget.Budget, provider metric.MeterProvider) (metric.Registration, error) {
	return register(b.Published().Name, b.Published, provider)
}

func register(name string, published func() budget.Report, provider metric.MeterProvider) (metric.Registration, error) {
	meter := provider.Meter(scopeName)
	e, all, err := newExporter(name, published, meter)
	if err != nil {
		return nil, err
	}
	return meter.RegisterCallback(e.observe, all...)
}

// newExporter returns the exporter of a budget, and its instruments.
func newExporter(name string, published func() budget.Report, meter metric.Meter) (
	e *exporter, all []metric.Observable, err error) {
	e = &exporter{published: published, series: newSeries(name)}
	for _, m := range metrics.Table() {
		instrument, err := instrumentOf(meter, m)
		if err != nil {
			return nil, nil, err
		}
		e.instruments, all = append(e.instruments, instrument), append(all, instrument)
		e.seconds = append(e.seconds, secondOf(m))
	}
	return e, all, nil
}

// exporter observes the values of a budget.
type exporter struct {
	published   func() budget.Report
	instruments []metric.Int64Observable // in the order of the table
	seconds     []attribute.Key          // of each instrument
	series      *series
}

func (e *exporter) observe(_ context.Context, o metric.Observer) error {
	r := e.published()
	e.series.begin()
	defer e.series.end()
	metrics.Each(&r, func(i int, value uint64, region, name string) {
		o.ObserveInt64(e.instruments[i], int64(min(value, math.MaxInt64)), e.series.of(region, e.seconds[i], name)...)
	})
	return nil
}

// conventional are the names of the semantic conventions.
var conventional = map[string]string{"go_heap_limit": "go.memory.limit", "go_heap_used": "go.memory.used"}

// nameOf returns a metric's name: upfront.region.arena_peak. The first word of a metric with labels
// is a namespace.
func nameOf(m metrics.Metric) string {
	if name := conventional[m.Name]; name != "" {
		return name
	}
	name := m.Name
	if len(m.Labels) != 0 {
		name = strings.Replace(name, "_", ".", 1)
	}
	return "upfront." + name
}

func instrumentOf(meter metric.Meter, m metrics.Metric) (metric.Int64Observable, error) {
	name, unit, help := nameOf(m), metric.WithUnit(m.Unit), metric.WithDescription(m.Help)
	switch m.Kind {
	case metrics.Total:
		return meter.Int64ObservableCounter(name, unit, help)
	case metrics.Most:
		return meter.Int64ObservableGauge(name, unit, help)
	}
	return meter.Int64ObservableUpDownCounter(name, unit, help)
}
