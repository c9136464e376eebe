package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

func TestWatchedEndsWatch(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	st := scope.StackOf(s)
	st.Watch()
	points.Pool(s, 3)
	pools, _, _ := st.Watched()
	assert.Len(t, pools, 1)
	points.Pool(s, 3)
	points.New(s)
	pools, tenants, made := st.Watched()
	assert.Empty(t, pools)
	assert.Empty(t, tenants)
	assert.Empty(t, made)
	require.NoError(t, s.Close())
}

// TestWatchClears: when a watch begins, bytes that earlier scopes and temporaries left in the free
// range become zeros, at both ends.
func TestWatchClears(t *testing.T) {
	if arena_c.Checked || arena_c.Asan {
		t.Skip("this build fills new bytes, or has other addresses: go test ./scope runs it")
	}
	s := open(t).Scratch(0, 0).Open("s")
	dirty := func(s scope.Scope, n int) {
		for i, bytes := 0, s.BytesUnzeroed(n, 8); i < n; i++ {
			bytes[i] = 1
		}
	}
	dirty(s, 100)
	inner := s.Open("inner")
	dirty(inner, 3000)
	temp := inner.Temp(600)
	dirty(temp, 500)
	require.NoError(t, temp.Close())
	require.NoError(t, inner.Close())
	st := scope.StackOf(s)
	st.ResetPeak(false) // a report's reader may do so at any time
	st.Watch()
	assert.NotContains(t, s.BytesUnzeroed(int(s.Free()), 1), byte(1))
	require.NoError(t, s.Close())
}
