//go:build !race

// Package untold orders two goroutines without the race detector's knowledge, so that the detector
// reports their race in any schedule.
package untold

// Do calls do. This build has no race detector.
func Do(do func()) { do() }
