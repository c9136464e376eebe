//go:build !memtrace

package budget_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

// TestOtherBuildsHaveNoSites: nor does a report of theirs say anything of them.
func TestOtherBuildsHaveNoSites(t *testing.T) {
	b := open(t, small())
	b.Pad(0, 0).Open("query").Bytes(100)
	assert.Zero(t, budget.SampleStacks(1))
	assert.Nil(t, b.Report().Sites)
	text, err := json.Marshal(b.Snapshot())
	require.NoError(t, err)
	assert.NotContains(t, string(text), "sites")
	assert.NotContains(t, b.Report().LogValue().String(), "sites")
	assert.NotContains(t, b.Close().Error(), "holds")
}
