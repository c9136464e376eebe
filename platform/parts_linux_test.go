package platform_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestPartsOfARange checks that only the named parts become present, are locked and are counted.
func TestPartsOfARange(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's: go test ./platform runs it")
	}
	platform.ForgetSpares()
	parts := []platform.PageRun{{Offset: 0, Size: edge}, {Offset: 3 * edge, Size: 2 * edge},
		{Offset: 7 * edge, Size: edge}}
	missing := func(r *platform.Reservation, parts ...platform.PageRun) int {
		pages, ok := r.Missing(parts...)
		if !ok {
			t.Skip("mincore fails, as in an emulator: on a machine of this target, go test ./platform runs it")
		}
		return pages
	}
	step.Machine(t, step.LockedMemory(uint64(8*edge)))
	for _, do := range []func(r *platform.Reservation) error{
		func(r *platform.Reservation) error { _, err := r.Prefault(parts...); return err },
		func(r *platform.Reservation) error { return r.Touch(parts...) },
		func(r *platform.Reservation) error { return r.Lock(parts...) },
	} {
		r := commit(t, 8*edge, 0)
		page := missing(r) / 8
		assert.Equal(t, 4*page, missing(r, parts...))
		before := statusBytes(t, "VmLck")
		require.NoError(t, do(r))
		assert.Zero(t, missing(r, parts...))
		assert.Equal(t, 4*page, missing(r), "the others are as they were")
		if locked := statusBytes(t, "VmLck") - before; locked != 0 {
			assert.Equal(t, 4*edge, locked)
			require.NoError(t, r.Protect(edge, edge))
			require.NoError(t, r.Lock(platform.PageRun{Offset: 5 * edge, Size: edge}), "beside protected ones")
			assert.Equal(t, 5*edge, statusBytes(t, "VmLck")-before)
		}
		require.NoError(t, r.Release())
		assert.Equal(t, before, statusBytes(t, "VmLck"))
		platform.ForgetSpares()
	}
	restore := platform.InjectFault("lock", 3)
	r := commit(t, 8*edge, 0)
	before := statusBytes(t, "VmLck")
	assert.ErrorContains(t, r.Lock(parts...), "platform: lock 262144 bytes: injected fault")
	assert.True(t, restore())
	assert.Equal(t, before, statusBytes(t, "VmLck"), "none stays locked")
	restore = platform.InjectFault("populate", 2)
	_, err := r.Prefault(parts...)
	assert.True(t, restore())
	assert.ErrorContains(t, err, "platform: prefault 262144 bytes: injected fault")
}

func TestPartsThatAreNone(t *testing.T) {
	r := commit(t, 8*edge, 0)
	for part, what := range map[platform.PageRun]string{
		{Offset: 1, Size: edge}:        "65536 bytes at offset 1: not multiples of the page",
		{Offset: edge, Size: 8}:        "8 bytes at offset 65536: not multiples of the page",
		{Offset: edge, Size: 8 * edge}: "524288 bytes at offset 65536: beyond the range of 524288 bytes",
		{Offset: 9 * edge, Size: edge}: "65536 bytes at offset 589824: beyond the range",
		{Offset: edge, Size: 1 << 63}:  "beyond the range",
	} {
		_, err := r.Prefault(platform.PageRun{}, part)
		assert.ErrorContains(t, err, "platform: BUG: prefault ")
		assert.ErrorContains(t, err, what)
		assert.ErrorContains(t, r.Lock(part), what)
		assert.ErrorContains(t, r.Touch(part), what)
		_, ok := r.Missing(part)
		assert.False(t, ok)
	}
	require.NoError(t, r.Release())
	assert.EqualError(t, r.Touch(), "platform: BUG: touch of a range already released")
}
