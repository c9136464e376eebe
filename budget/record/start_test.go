package record_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// TestStartIsRefused: if a recording can't start, the error says why, and no byte is written.
func TestStartIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(t testing.TB, b *budget.Budget)
		want string
	}{
		{"after Seal", func(t testing.TB, b *budget.Budget) { require.NoError(t, b.Seal()) },
			`budget "game": BUG: record.Start after Seal: call it at set-up`},
		{"after Close", func(t testing.TB, b *budget.Budget) { require.NoError(t, b.Close()) },
			`budget "game": record.Start: upfront: closed`},
		{"twice", func(t testing.TB, b *budget.Budget) {
			_, err := record.Start(b, &bytes.Buffer{})
			require.NoError(t, err)
		},
			`budget "game": BUG: record.Start: region init is recorded already, or has open temporaries`},
		{"with temporaries", func(_ testing.TB, b *budget.Budget) { b.Scratch(0, 0).Open("work").Temp(1) },
			`budget "game": BUG: record.Start: scratch 0.0 is recorded already, or has open temporaries`},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := open(t, game())
			test.do(t, b)
			var to bytes.Buffer
			r, err := record.Start(b, &to)
			require.EqualError(t, err, test.want)
			assert.Nil(t, r)
			before := to.Len()
			_, _ = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) {
				octets.New(s)
				return nil, nil
			})
			_ = b.Close()
			assert.Equal(t, before, to.Len())
			r.Mark("nothing")
			require.NoError(t, r.Close())
		})
	}
}

// TestStartLeavesTheDeadAlone: a closed budget stays closed, and its handles stale.
func TestStartLeavesTheDeadAlone(t *testing.T) {
	b := open(t, game())
	s := b.Scratch(0, 0).Open("work")
	_ = b.Close()
	_, err := record.Start(b, &bytes.Buffer{})
	require.ErrorIs(t, err, budget.ErrClosed)
	require.ErrorIs(t, s.Close(), budget.ErrClosed)
}

// TestTwoBudgets: a budget inside another or in a block can be recorded, also two at once.
func TestTwoBudgets(t *testing.T) {
	var first, second bytes.Buffer
	outer := open(t, game())
	r, err := record.Start(outer, &first)
	require.NoError(t, err)
	plan := game()
	plan.Name, plan.Regions = "inner", []budget.RegionPlan{{Name: "init", Size: 1000}}
	size, err := plan.Need()
	require.NoError(t, err)
	inner, err := budget.OpenIn(make([]byte, size), plan)
	require.NoError(t, err)
	other, err := record.Start(inner, &second)
	require.NoError(t, err)
	load(t, inner.Region("init"), func(s scope.Scope) {
		octets.Slice(s, 100)
		s.Temp(100)
		load(t, outer.Region("init"), func(s scope.Scope) { octets.Slice(s, 300) })
	})
	require.NoError(t, inner.Close())
	require.NoError(t, outer.Close())
	require.NoError(t, r.Close())
	require.NoError(t, other.Close())
	same(t, first.Bytes(), outer.Report())
	same(t, second.Bytes(), inner.Report())
}
