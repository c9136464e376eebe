//go:build !race && !asan

package conformance

// instrumented reports that this build is several times slower, so the suite runs fewer rounds.
// Only control words are compared byte by byte: race builds overwrite dead bytes, and asan forbids
// reading them.
const instrumented = false
