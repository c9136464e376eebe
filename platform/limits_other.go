//go:build !linux && !darwin && !windows

package platform

func limits() []Limit { return nil }

func lockLimit() (bytes uint64, unlimited bool) { return 0, false }
