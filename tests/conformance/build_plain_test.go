//go:build !race && !asan

package conformance

// instrumented says that this build is several times slower, so that the suite runs fewer rounds, and that only control
// words can be compared byte by byte: race builds overwrite what is dead, and asan forbids to look at it.
const instrumented = false
