package work

import (
	"runtime"
	"slices"
	"time"
)

// mostTicks is how many ticks a meter has room for.
const mostTicks = 12_288

// Half is one of a program's two halves: the program on the Go heap, or with upfront. It returns
// the program's sum.
type Half func(m *Meter) (uint64, error)

// Meter measures a half, which tells it when its set-up is over and when a tick starts and stops.
type Meter struct {
	ticks []time.Duration
	start time.Time
	setUp uint64 // bytes that were allocated on the Go heap before Ready
}

// Run runs a half and returns its sum and what the meter saw.
func Run(h Half) (sum uint64, m *Meter, err error) {
	m = &Meter{ticks: make([]time.Duration, 0, mostTicks)}
	m.Ready()
	sum, err = h(m)
	return sum, m, err
}

// Ready says that the half is set up: what it allocates on the Go heap from now on is garbage. A
// half calls it once, before its first tick, after it made what it plans ahead.
func (m *Meter) Ready() { m.setUp = allocated() }

// Start says that a tick starts.
func (m *Meter) Start() { m.start = time.Now() }

// Stop says that the tick is over.
func (m *Meter) Stop() { m.ticks = append(m.ticks, time.Since(m.start)) }

// Garbage returns the bytes that were allocated on the Go heap since Ready.
func (m *Meter) Garbage() uint64 { return allocated() - m.setUp }

// Ticks returns the number of ticks so far.
func (m *Meter) Ticks() int { return len(m.ticks) }

// Slowest returns the duration that all ticks but one of a thousand stay below.
func (m *Meter) Slowest() time.Duration {
	if len(m.ticks) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(m.ticks))
	return sorted[len(sorted)*999/1000]
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats) // to the byte, which runtime/metrics isn't
	return stats.TotalAlloc
}
