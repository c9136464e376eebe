//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestMallocCallsNoSystem: between two lines of the program no system call names the heap of C's
// malloc. As a control, the goroutine that trims discards pages.
func TestMallocCallsNoSystem(t *testing.T) {
	step.Needs(t, step.Check)
	program := buildLike(t, "malloc")
	for _, trims := range []bool{false, true} {
		args := []string{"-size", "16MiB", "idle", "100000"}
		if trims {
			args = append(append([]string{"-trim", "10ms"}, args...), "1")
		}
		_, calls := strace(t, program, args...)
		_, inside, _ := between(t, calls, "steady begins", "steady ends")
		at := slices.IndexFunc(calls, func(line string) bool { return strings.Contains(line, "steady begins") })
		var s span
		_, text, _ := strings.Cut(calls[at], "steady begins ")
		_, err := fmt.Sscanf(text, "%v %v", &s.base, &s.size)
		require.NoError(t, err, text)
		require.Equal(t, uint64(16<<20), s.size)
		for i, line := range inside { // unused arguments of a futex operation are leftovers
			if before, rest, ok := strings.Cut(line, "futex("); ok {
				address, _, _ := strings.Cut(rest, ",")
				inside[i] = before + "futex(" + address + ")"
			}
		}
		names, found := s.findings(inside)
		if trims {
			assert.Contains(t, names, "madvise", "the control")
			continue
		}
		assert.Empty(t, found)
	}
}
