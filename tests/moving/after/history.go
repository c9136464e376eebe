package main

import (
	"fmt"
	"log"
	"time"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/moving/fleet"
)

const most = 240 // samples of a series: four hours

// Series has the last samples of a series, in columns.
type Series struct {
	Count int64 // of all samples; the next one goes to Count % most
	Unit  arena.Inline[[8]byte]
	At    [most]int64 // Unix seconds
	Value [most]float64
}

var seriesOf = scope.Plain[Series]()

// History has the last samples of each series, by name. The map is on the Go heap, each Series in
// the region.
type History struct {
	series  map[string]*Series
	pool    scope.Pool[Series]
	Refused int // samples of series that the pool had no room for
}

// NewHistory returns an empty History of at most n series.
func NewHistory(s scope.Scope, n int) *History {
	return &History{series: map[string]*Series{}, pool: seriesOf.Pool(s, n)}
}

// Add adds a sample to a series. A full series loses its oldest sample. A new series is refused if
// all series are in use.
func (h *History) Add(series string, x fleet.Sample) {
	s := h.series[series]
	if s == nil {
		if s = h.pool.Get(); s == nil {
			if h.Refused++; h.Refused == 1 {
				log.Printf("%s is refused: all %d series are in use; raise -series", series, h.pool.Cap())
			}
			return
		}
		s.Unit.Set(x.Unit) // a unit of more than 8 bytes stays empty
		h.series[series] = s
	}
	i := s.Count % most
	s.At[i], s.Value[i] = x.At.Unix(), x.Value
	s.Count++
}

// Drop deletes a series.
func (h *History) Drop(series string) {
	if s := h.series[series]; s != nil {
		delete(h.series, series)
		h.pool.Put(s)
	}
}

// Line describes a series.
func (h *History) Line(series string) string {
	s := h.series[series]
	if s == nil {
		return series + ": no samples"
	}
	n := min(s.Count, most)
	low, high, sum := s.Value[0], s.Value[0], 0.0
	for _, x := range s.Value[:n] {
		low, high, sum = min(low, x), max(high, x), sum+x
	}
	first := time.Unix(s.At[(s.Count-n)%most], 0).UTC()
	return fmt.Sprintf("%s: %d samples since %s, %.2f to %.2f %s, mean %.2f", series, n,
		first.Format(time.TimeOnly), low, high, s.Unit.String(), sum/float64(n))
}
