package queries

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/others/row"
)

// TestQueriesWait: in a quota of one query, all are answered, one after the other.
func TestQueriesWait(t *testing.T) {
	m := &row.Meter{}
	require.NoError(t, serve(t.Context(), m, true, estimate))
	figures := map[string]float64{}
	for _, f := range m.Row.More {
		figures[f.Name] = f.Value
	}
	assert.EqualValues(t, 1, figures["at once at most"])
	assert.EqualValues(t, clients-1, figures["waited"])
	assert.ErrorIs(t, serve(t.Context(), m, true, estimate-1), budget.ErrFull)
}
