package otel

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/upfront-mem/upfront/budget/internal/metrics"
)

// Attributes of a series. Each series has the budget's.
const (
	budgetName = attribute.Key("upfront.budget.name")
	regionName = attribute.Key("upfront.region.name")
)

// seconds are the attributes of metrics' second labels.
var seconds = map[string]attribute.Key{"label": "upfront.label.name", "scope": "upfront.scope.name",
	"kind": "upfront.limit.kind"}

// secondOf returns the attribute of a metric's second label, or "".
func secondOf(m metrics.Metric) attribute.Key {
	if len(m.Labels) < 2 {
		return ""
	}
	return seconds[m.Labels[1]]
}

// series keeps the attributes of the series of the last two collections, so that a collection makes
// only those of new series. The mutex is for providers with several readers: each one calls the
// callback.
type series struct {
	mu        sync.Mutex
	budget    attribute.KeyValue
	now, last map[labels][]metric.ObserveOption
}

// labels are the values of a metric's labels, and the attribute of the second.
type labels struct {
	region, name string
	second       attribute.Key
}

func newSeries(budget string) *series {
	return &series{budget: budgetName.String(budget), now: map[labels][]metric.ObserveOption{},
		last: map[labels][]metric.ObserveOption{}}
}

// begin begins a collection, which has the series for itself until end.
func (s *series) begin() {
	s.mu.Lock()
	s.now, s.last = s.last, s.now
	clear(s.now)
}

func (s *series) end() { s.mu.Unlock() }

// of returns the attributes of a series.
func (s *series) of(region string, second attribute.Key, name string) []metric.ObserveOption {
	key := labels{region, name, second}
	if options, ok := s.now[key]; ok {
		return options
	}
	options, ok := s.last[key]
	if !ok {
		options = s.make(key)
	}
	s.now[key] = options
	return options
}

func (s *series) make(key labels) []metric.ObserveOption {
	attributes := []attribute.KeyValue{s.budget}
	if key.region != "" {
		attributes = append(attributes, regionName.String(key.region))
	}
	if key.second != "" {
		attributes = append(attributes, key.second.String(key.name))
	}
	return []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
}
