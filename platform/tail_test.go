//go:build linux || darwin || windows || race

package platform_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/platform"
)

func TestTail(t *testing.T) {
	r, err := platform.ReserveTail(2*edge, edge, edge, 4*edge)
	require.NoError(t, err)
	assert.EqualValues(t, []uint64{2 * edge, 4 * edge}, []uint64{r.Size(), r.Tail()})
	require.NoError(t, r.Commit())
	tail := func(offset uint64) *byte { return (*byte)(unsafe.Add(r.Base(), r.Size()+offset)) }
	readable := func(offset uint64) bool { return !faults(func() { sink = *tail(offset - r.Size()) }) }

	assert.Equal(t, platform.GoBacked, readable(2*edge), "Commit leaves the tail alone")
	require.NoError(t, r.Unprotect(3*edge, edge))
	assert.Equal(t, platform.GoBacked, readable(2*edge), "below")
	assert.Equal(t, platform.GoBacked, readable(4*edge), "above")
	*tail(edge) = 42
	if pages, ok := r.Missing(); ok && !platform.GoBacked {
		assert.EqualValues(t, 2*edge/uint64(platform.PageSize()), pages, "of the range alone")
	}
	require.NoError(t, r.Protect(3*edge, edge))
	assert.Equal(t, platform.GoBacked, readable(3*edge))
	granted, err := r.Prefault()
	require.NoError(t, err, "a protected part of the tail doesn't stand in its way")
	_ = granted
	require.NoError(t, r.Unprotect(3*edge, edge))
	assert.EqualValues(t, 42, *tail(edge), "Protect keeps contents")
	require.NoError(t, r.Discard(3*edge, edge))
	assert.Zero(t, *tail(edge), "Discard doesn't")
	assert.ErrorContains(t, r.Unprotect(5*edge, 2*edge), "BUG: unprotect 131072 bytes at offset 327680: beyond the range of 393216 bytes")
	assert.ErrorContains(t, r.Discard(6*edge, edge), "BUG: discard")

	*tail(edge) = 42
	require.NoError(t, r.Release())
	assert.False(t, !platform.GoBacked && readable(3*edge), "the tail goes with the range")
	assert.True(t, platform.Keeps(6*edge, edge, edge), "and is kept with it")

	_, err = platform.ReserveTail(edge, edge, 0, 1)
	assert.ErrorContains(t, err, "BUG: reserve 65536 bytes: tail 1 is not a multiple of the page")
}
