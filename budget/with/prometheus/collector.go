package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upfront-mem/upfront/budget"
)

// NewCollector returns a collector of a budget's metrics, with the budget's name as the label
// "budget". A registry refuses a second budget of the same name, unless
// prometheus.WrapRegistererWith adds another label.
//
// A scrape reads the last published report ([budget.Budget.Published]), on any goroutine, even
// after the budget's Close. A scrape doesn't wait for the end of a load or frame. It costs O(arenas
// and names) and Go allocations, on the goroutine of the scrape.
func NewCollector(b *budget.Budget) prometheus.Collector {
	c := collector{b: b, metrics: map[string]metric{}}
	for _, f := range families {
		desc := prometheus.NewDesc("upfront_"+f.name, f.help, f.labels, prometheus.Labels{"budget": b.Published().Name})
		c.metrics[f.name] = metric{desc, f.kind}
	}
	return c
}

type collector struct {
	b       *budget.Budget
	metrics map[string]metric
}

type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// Describe sends the descriptions of all metrics. Registries call it.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range families {
		descs <- c.metrics[f.name].desc
	}
}

// Collect sends the current values. Registries call it.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	c.collect(c.b.Published(), func(name string, value float64, labels ...string) {
		m := c.metrics[name]
		metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
	})
}

// give receives a value of a metric.
type give func(name string, value float64, labels ...string)

func (c collector) collect(r budget.Report, give give) {
	give("size_bytes", float64(r.Size))
	give("committed_bytes", float64(r.Committed))
	give("not_granted", float64(len(r.NotGranted)))
	give("finalizer_errors_total", float64(r.ErrorCount))
	give("go_heap_limit_bytes", float64(r.GoHeap.Limit))
	give("go_heap_used_bytes", float64(r.GoHeap.Used))
	for _, p := range r.Parts() {
		givePart(p, limitsOf(r.Plan, p), give)
	}
}
