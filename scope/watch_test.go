package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
