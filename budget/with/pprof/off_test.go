//go:build !race && !checked

package pprof_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	with "github.com/upfront-mem/upfront/budget/with/pprof"
)

// TestOff: a handler that nobody asks starts nothing, and a frame makes no Go allocation.
func TestOff(t *testing.T) {
	b := play(t)
	before := runtime.NumGoroutine()
	h := with.Handler(b)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		b.Frame().Bytes(64)
		require.NoError(t, b.NextFrame())
	}))
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
	runtime.KeepAlive(h)
}
