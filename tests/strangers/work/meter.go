package work

import (
	"runtime"
	"slices"
	"time"
)

// mostTicks is the number of ticks for which a meter has room.
const mostTicks = 12_288

// Version is one version of a program, on the Go heap or with upfront. It returns the program's
// sum.
type Version func(m *Meter) (uint64, error)

// Meter measures a version, which reports the end of its set-up, and the start and stop of each
// tick.
type Meter struct {
	ticks  []time.Duration
	start  time.Time
	setUp  uint64 // bytes that were allocated on the Go heap before Ready
	misses int
}

// Run runs a version and returns its sum and its measurements.
func Run(v Version) (sum uint64, m *Meter, err error) {
	m = &Meter{ticks: make([]time.Duration, 0, mostTicks)}
	m.Ready()
	sum, err = v(m)
	return sum, m, err
}

// Ready ends the set-up of the version: later allocations on the Go heap count as garbage. A
// version calls it once, after it has allocated its planned memory and before its first tick.
func (m *Meter) Ready() { m.setUp = allocated() }

// Start marks the start of a tick.
func (m *Meter) Start() { m.start = time.Now() }

// Stop marks the end of the tick.
func (m *Meter) Stop() { m.ticks = append(m.ticks, time.Since(m.start)) }

// Miss counts a value that the version's cache didn't have.
func (m *Meter) Miss() { m.misses++ }

// Misses returns the number of calls of Miss.
func (m *Meter) Misses() int { return m.misses }

// Garbage returns the bytes that were allocated on the Go heap since Ready.
func (m *Meter) Garbage() uint64 { return allocated() - m.setUp }

// Ticks returns the number of ticks so far.
func (m *Meter) Ticks() int { return len(m.ticks) }

// Slowest returns the 99.9th percentile of the ticks.
func (m *Meter) Slowest() time.Duration {
	if len(m.ticks) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(m.ticks))
	return sorted[len(sorted)*999/1000]
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats) // exact to the byte, unlike runtime/metrics
	return stats.TotalAlloc
}
