package platform

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTouchMakesPagesPresent covers the way of systems that cannot be asked for pages.
func TestTouchMakesPagesPresent(t *testing.T) {
	const size = 2 << 20
	ForgetSpares()
	r, err := Reserve(size, 1<<16, Head{})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	pages, ok := r.Missing()
	if !ok {
		t.Skip("not measured here")
	}
	if !GoBacked {
		assert.Equal(t, size/PageSize(), pages, "control")
	}
	touch(r.Base(), size)
	pages, _ = r.Missing()
	assert.Zero(t, pages)
	require.NoError(t, r.Release())
}
