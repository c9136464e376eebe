//go:build (linux || darwin) && !race

package platform_test

import (
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestSparse reserves far more than the machine has, and uses two pages.
func TestSparse(t *testing.T) {
	size := min(uint64(1)<<40, uint64(^uintptr(0))>>3&^(mib-1))
	step.Machine(t, step.Addresses(size))
	s, err := platform.ReserveSparse(size)
	require.NoError(t, err)
	base := s.Base()
	assert.Zero(t, uintptr(base)%platform.Align)
	assert.Equal(t, size, s.Size())
	first, last := (*byte)(base), (*byte)(unsafe.Add(base, size-1))
	assert.Zero(t, *first|*last)
	*first, *last = 7, 8
	require.NoError(t, s.Release())

	other := commit(t, edge, 0)
	assert.NotEqual(t, base, other.Base(), "who asks for another kind")
	again, err := platform.ReserveSparse(size)
	require.NoError(t, err)
	assert.Equal(t, base, again.Base())
	assert.Zero(t, *first|*last, "the last owner's bytes are gone")
	require.NoError(t, again.Release())

	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	assert.Panics(t, func() { *first = 7 }, "nobody's")

	_, err = platform.ReserveSparse(uint64(^uintptr(0)) >> 1 &^ (mib - 1))
	assert.ErrorContains(t, err, "sparse bytes: ")
}
