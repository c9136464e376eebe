//go:build !race && !checked

package prometheus_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOff: a collector that nobody asks starts nothing, and a frame makes no Go allocation.
func TestOff(t *testing.T) {
	b := open(t, plan("game"))
	play(t, b)
	before := runtime.NumGoroutine()
	r := registry(t, b)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		b.Frame().Bytes(64)
		require.NoError(t, b.NextFrame())
	}))
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
	runtime.KeepAlive(r)
}
