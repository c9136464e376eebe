//go:build !race

// Package untold orders what two goroutines do without the race detector's knowledge, so that a
// race is reported whichever of them the scheduler prefers.
package untold

// Do calls do. No race detector is in this build.
func Do(do func()) { do() }
