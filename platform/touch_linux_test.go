package platform

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTouchMakesPagesPresent covers systems that can't make pages present on request.
func TestTouchMakesPagesPresent(t *testing.T) {
	const size = 2 << 20
	ForgetSpares()
	r, err := Reserve(0, size, Head{})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	pages, ok := r.Missing()
	if !ok {
		t.Skip("mincore fails, as in an emulator: on a machine of this target, go test ./platform runs it")
	}
	if !GoBacked {
		assert.Equal(t, size/os.Getpagesize(), pages, "control")
	}
	touch(r.Base(), size)
	pages, _ = r.Missing()
	assert.Zero(t, pages)
	require.NoError(t, r.Release())
}
