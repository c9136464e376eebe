package record_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope/stack"
)

// TestBackIntoANode: a release build records a constructor's allocations and releases as one sum.
// So a step back may end anywhere in the node of temporaries, and then also ends the temporaries.
func TestBackIntoANode(t *testing.T) {
	for size := uint64(1); size <= 60; size++ {
		b, err := record.Dry(tiny())
		require.NoError(t, err)
		st := record.Stacks(b)[0]
		for _, e := range []stack.Event{{Kind: stack.EventOpen, Name: "level"}, {Kind: stack.EventGrow, Size: 100},
			{Kind: stack.EventTemp, Size: 10}, {Kind: stack.EventBack, Size: size},
			{Kind: stack.EventGrow, Size: 200}} {
			require.NoError(t, st.Play(e))
		}
		assert.Error(t, st.Play(stack.Event{Kind: stack.EventTempEnd}), "after %d bytes", size)
		require.NoError(t, st.Play(stack.Event{Kind: stack.EventClose}))
		assert.Zero(t, st.Stats().Used)
	}
}
