package budget_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

type frog struct{ X, Y, Age int64 }

var frogs = scope.Plain[frog]()

func small() budget.Plan {
	return budget.Plan{
		Name: "small",
		Regions: []budget.Region{{Name: "init", Size: 128 * budget.KiB}, {Name: "systems", Size: 256 * budget.KiB},
			{Name: "level", Size: 512*budget.KiB + 100}},
		Frame: budget.Frame{Buffers: 2, Size: 64 * budget.KiB},
		Pads:  budget.Pads{Workers: 2, Size: 64 * budget.KiB},
	}
}

func TestLoad(t *testing.T) {
	b := budgettest.Open(t, small())
	level := b.Region("level")
	l, err := budget.Load(context.Background(), level, func(s scope.Scope) (*frog, error) {
		f := frogs.New(s)
		f.X = 7
		raw := s.Temp().Bytes(100_000)
		raw[0] = 1
		pool := frogs.Pool(s, 100)
		a := pool.Get()
		pool.Put(a)
		assert.PanicsWithError(t, "scope: BUG: Put of a budget_test.frog: put twice", func() { pool.Put(a) })
		return f, nil
	})
	require.NoError(t, err)
	assert.EqualValues(t, 7, l.Get().X)
	_, err = b.Walk()
	require.NoError(t, err)
	require.NoError(t, level.Rewind(context.Background()))
	assert.Nil(t, l.Get())
	t.Log(b.Report())
}

func TestFull(t *testing.T) {
	b := budgettest.Open(t, small())
	var order []int
	_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*frog, error) {
		s.Defer(func() { order = append(order, 1) })
		s.Defer(func() { order = append(order, 2) })
		for {
			frogs.New(s)
		}
	})
	require.ErrorIs(t, err, budget.ErrFull)
	assert.Equal(t, []int{2, 1}, order)
	var full *scope.FullError
	require.True(t, errors.As(err, &full))
	t.Log(err)
	_ = io.EOF
}
