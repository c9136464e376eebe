package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/metrics"
)

// NewCollector returns a collector of a budget's metrics, with the budget's name as the label
// "budget". A registry refuses a second budget of the same name, unless
// prometheus.WrapRegistererWith adds another label.
//
// A scrape reads the last published report ([budget.Budget.Published]), on any goroutine, even
// after the budget's Close. A scrape doesn't wait for the end of a load or frame. It costs O(arenas
// and names) and Go allocations, on the goroutine of the scrape.
func NewCollector(b *budget.Budget) prometheus.Collector {
	return newCollector(b.Published().Name, b.Published)
}

func newCollector(name string, published func() budget.Report) collector {
	c := collector{published: published}
	for _, m := range metrics.Table() {
		kind := prometheus.GaugeValue
		if m.Kind == metrics.Total {
			kind = prometheus.CounterValue
		}
		c.metrics = append(c.metrics, metric{kind: kind, labels: len(m.Labels),
			desc: prometheus.NewDesc(nameOf(m), m.Help, m.Labels, prometheus.Labels{"budget": name})})
	}
	return c
}

// nameOf returns a metric's name: upfront_region_arena_peak_bytes, upfront_region_fulls_total.
func nameOf(m metrics.Metric) string {
	name := "upfront_" + m.Name
	if m.Unit == "By" {
		name += "_bytes"
	}
	if m.Kind == metrics.Total {
		name += "_total"
	}
	return name
}

type collector struct {
	published func() budget.Report
	metrics   []metric // in the order of the table
}

type metric struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	labels int
}

// Describe sends the descriptions of all metrics. Registries call it.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		descs <- m.desc
	}
}

// Collect sends the current values. Registries call it.
func (c collector) Collect(values chan<- prometheus.Metric) {
	r := c.published()
	metrics.Each(&r, func(i int, value uint64, region, name string) {
		m, labels := c.metrics[i], [...]string{region, name}
		values <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(value), labels[:m.labels]...)
	})
}
