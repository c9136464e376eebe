package main

import (
	"fmt"
	"time"

	"github.com/upfront-mem/upfront/tests/moving/fleet"
)

const most = 240 // samples of a series: four hours

// History has the last samples of each series, by name.
type History struct{ series map[string][]fleet.Sample }

// NewHistory returns an empty History.
func NewHistory() *History { return &History{map[string][]fleet.Sample{}} }

// Add adds a sample to a series. A full series loses its oldest sample.
func (h *History) Add(series string, x fleet.Sample) {
	list := append(h.series[series], x)
	if len(list) > most {
		list = list[1:]
	}
	h.series[series] = list
}

// Drop deletes a series.
func (h *History) Drop(series string) { delete(h.series, series) }

// Line describes a series.
func (h *History) Line(series string) string {
	list := h.series[series]
	low, high, sum := list[0].Value, list[0].Value, 0.0
	for _, x := range list {
		low, high, sum = min(low, x.Value), max(high, x.Value), sum+x.Value
	}
	return fmt.Sprintf("%s: %d samples since %s, %.2f to %.2f %s, mean %.2f", series, len(list),
		list[0].At.Format(time.TimeOnly), low, high, list[0].Unit, sum/float64(len(list)))
}
