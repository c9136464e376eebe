package platform_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

func TestDiscardGivesPagesBackAsZeros(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's: go test ./platform runs it")
	}
	if ignoresAdvice(t) {
		t.Skip("the emulator ignores madvise: on a machine of this target, go test ./platform runs it")
	}
	page := os.Getpagesize()
	r := commit(t, uint64(64*page), 0)
	defer r.Release()
	for i := range contents(r) {
		contents(r)[i] = byte(i) | 1
	}
	before, ok := r.Missing()
	if !ok {
		t.Skip("the emulator's pages aren't its host's: on a machine of this target, go test ./platform runs it")
	}
	require.Zero(t, before)
	mappings, _, _ := platform.Mappings()

	run := platform.PageRun{Offset: uint64(8 * page), Size: uint64(24 * page)}
	require.NoError(t, r.Discard(run.Offset, run.Size))
	require.NoError(t, r.Discard(run.Offset, 0), "no bytes are no request")
	missing, _ := r.Missing()
	assert.Equal(t, 24, missing)
	missing, _ = r.Missing(run)
	assert.Equal(t, 24, missing)
	after, _, _ := platform.Mappings()
	assert.LessOrEqual(t, after, mappings+8, "the mapping isn't split; the runtime has mappings of its own")

	for i, b := range contents(r) {
		if i < 8*page || i >= 32*page {
			require.Equal(t, byte(i)|1, b, "the byte at %d, outside of the run", i)
		} else {
			require.Zero(t, b, "the byte at %d, in the run", i)
		}
	}
	contents(r)[9*page] = 7
	assert.Equal(t, byte(7), contents(r)[9*page], "the page is usable again")
	assert.Zero(t, testing.AllocsPerRun(10, func() { require.NoError(t, r.Discard(run.Offset, run.Size)) }))
}

func TestDiscardRefuses(t *testing.T) {
	page := uint64(os.Getpagesize())
	reserved, err := platform.Reserve(0, 4*page, platform.Head{})
	require.NoError(t, err)
	assert.ErrorContains(t, reserved.Discard(0, page), "BUG: discard before Commit")
	require.NoError(t, reserved.Release())
	assert.ErrorContains(t, reserved.Discard(0, page), "BUG: discard of a range already released")

	r := commit(t, 4*page, 0)
	defer r.Release()
	assert.ErrorContains(t, r.Discard(1, page), "not multiples of the page")
	assert.ErrorContains(t, r.Discard(0, page+1), "not multiples of the page")
	assert.ErrorContains(t, r.Discard(4*page, page), "beyond the range")
	if platform.GoBacked {
		assert.ErrorIs(t, r.Discard(0, page), errors.ErrUnsupported)
		return
	}
	contents(r)[0] = 5
	restore := platform.InjectFault("discard", 1)
	assert.ErrorIs(t, r.Discard(0, page), unix.ENOMEM)
	assert.True(t, restore())
	assert.Equal(t, byte(5), contents(r)[0], "nothing has changed")
	step.Machine(t, step.LockedMemory(r.Size()))
	require.NoError(t, r.Lock())
	assert.ErrorContains(t, r.Discard(0, page), "the range is locked")
	assert.Equal(t, byte(5), contents(r)[0], "nothing has changed")
}
