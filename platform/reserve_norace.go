//go:build !race

package platform

// GoBacked tells whether ranges are parts of the Go heap, as they are in race builds: they then count towards the
// runtime's memory limit, and Protect does nothing.
const GoBacked = false
