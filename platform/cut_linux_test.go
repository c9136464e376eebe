//go:build !race

package platform

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatCannotBeCutOffIsKept fails the cut below and the cut above: the next owner gets what is left.
func TestWhatCannotBeCutOffIsKept(t *testing.T) {
	const size, align, page = 4 << 20, 16 << 20, 1 << 16
	defer ForgetSpares()
	for n, text := range []string{"below", "above"} {
		ForgetSpares()
		restore := InjectFault("unmap", n+1)
		_, err := Reserve(size, align, Head{})
		if !restore() {
			require.NoError(t, err)
			t.Skip("the system happened to give an aligned address")
		}
		assert.ErrorContains(t, err, "platform: reserve 4194304 bytes aligned to 16777216: give back ")
		assert.ErrorContains(t, err, " bytes "+text+": injected fault: ")
		require.Len(t, spare.blocks, 1)
		left := spare.blocks[0]
		assert.Greater(t, left.size, uint64(size))
		if n == 0 {
			assert.Equal(t, uint64(size+align)-uint64(PageSize()), left.size, "all of it")
		} else {
			assert.Zero(t, uintptr(left.base)%align)
		}
		r, err := Reserve(left.size&^(page-1), uint64(PageSize()), Head{})
		require.NoError(t, err)
		assert.Equal(t, left.base, r.Base())
		require.NoError(t, r.Commit())
		*(*byte)(r.Base()) = 1
		require.NoError(t, r.Release())
	}
}
