package lua_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// grow needs more than the heap has; work needs some 100 KiB, and keeps a part of it.
const grow = `kept = {}; while true do kept[#kept + 1] = ("frog "):rep(#kept % 100) .. #kept end`

const work = `
	local seed = 42
	kept = {}
	for i = 1, 500 do
		seed = (seed * 1103515245 + 12345) % 2147483648
		local frog = {name = "frog " .. seed, path = {}, jump = function() return i end}
		for k = 1, seed % 12 do frog.path[k] = k * i end
		kept[seed % 200 + 1] = frog
	end
	local sum = 0
	for _, frog in pairs(kept) do sum = sum + frog.jump() end
	answer = sum`

// TestFullGoesOn: a script that grows forever gets Lua's own error for a full heap, with the
// state's name and the key, any number of times. Older values survive.
func TestFullGoesOn(t *testing.T) {
	l := newState(t, 0)
	require.NoError(t, l.Run("work", work))
	answer, err := l.Get("answer")
	require.NoError(t, err)
	for range 20 {
		err := l.Run("grow", grow)
		require.ErrorIs(t, err, scope.ErrFull)
		require.EqualError(t, err,
			`lua: state "frogs": upfront: full: not enough memory: raise Size in its lua.Plan, which is 262144`)
		require.Greater(t, l.Stats().Peak, uint64(size/5*4))
		_ = l.Set("kept", nil)
		goesOn(t, l)
		require.NoError(t, l.Run("work", work))
		again, err := l.Get("answer")
		require.NoError(t, err)
		require.Equal(t, answer, again)
	}
}

func TestFullEverywhere(t *testing.T) {
	l := newState(t, 0)
	huge := strings.Repeat("-- a frog, a fly\n", size/10)
	identity := func(args []any) ([]any, error) { return args, nil }
	require.NoError(t, l.Func("huge", func([]any) ([]any, error) { return []any{huge}, nil }))
	require.NoError(t, l.Func("fails", func([]any) ([]any, error) { return nil, errors.New(huge) }))
	for name, do := range map[string]func() error{
		"set":      func() error { return l.Set("x", huge) },
		"get":      func() error { _, err := l.Get(huge); return err },
		"call":     func() error { _, err := l.Call("add", huge, 1); return err },
		"name":     func() error { _, err := l.Call(huge); return err },
		"function": func() error { return l.Func(huge, identity) },
		"chunk":    func() error { return l.Run(huge, "") },
		"source":   func() error { return l.Run("x", "x = [["+huge+"]]") },
		"string":   func() error { return l.Run("x", "local s = 'frog'; while true do s = s .. s end") },
		"rep":      func() error { return l.Run("x", "x = ('frog'):rep(1 << 28)") },
		"coroutine": func() error {
			return l.Run("x", "local all = {}; while true do all[#all + 1] = coroutine.create(add) end")
		},
		"closures": func() error {
			return l.Run("x", "local f; while true do local g = f; f = function() return g end end")
		},
		"result": func() error { _, err := l.Call("huge"); return err },
		"error":  func() error { _, err := l.Call("fails"); return err },
	} {
		require.ErrorIs(t, do(), scope.ErrFull, name)
		goesOn(t, l)
	}
}

// TestSizes: from small to large, a state can't be made, or its script is full, or it works. In
// each case all bytes come back, for a state that can't be made at once.
func TestSizes(t *testing.T) {
	const most = 512 * budget.KiB
	s := openScope(t, most+64*budget.KiB)
	var none, full, works int
	try := func(size uint64) {
		inner := s.Open("script")
		before := inner.Free()
		l, err := lua.New(inner, lua.Plan{Name: "frogs", Size: size})
		if err != nil {
			none++
			require.ErrorIs(t, err, scope.ErrFull)
			require.ErrorContains(t, err, `lua: state "frogs": upfront: full: `)
			require.Equal(t, before, inner.Free())
			require.NoError(t, inner.Close())
			return
		}
		if err = l.Run("work", work); err == nil {
			works++
			answer, err := l.Get("answer")
			require.NoError(t, err)
			require.Equal(t, int64(63506), answer)
		} else {
			full++
			require.ErrorIs(t, err, scope.ErrFull)
			if err = l.Set("kept", nil); err != nil {
				require.ErrorIs(t, err, scope.ErrFull)
			}
			if err = l.Run("on", "x = {}"); err != nil {
				require.ErrorIs(t, err, scope.ErrFull)
			}
		}
		require.NoError(t, inner.Close())
	}
	for i := range 100 {
		try(uint64(math.Pow(most, float64(i)/99)))
	}
	assert.Positive(t, none)
	assert.Positive(t, full)
	assert.Positive(t, works)
	// each of Lua's first requests is refused at some multiple of 16
	by := step.Pick[uint64](256, 256, 16)
	for size := uint64(0); size < 40*budget.KiB; size += by {
		try(size)
	}
	t.Logf("%d too small, %d full, %d work", none, full, works)
}

func TestFailEach(t *testing.T) {
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 128 * budget.KiB}}}
	budgettest.FailEach(t, plan, func(b *budget.Budget) error {
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*lua.State, error) {
			return lua.New(s, lua.Plan{Name: "frogs", Size: 64 * budget.KiB})
		})
		return err
	})
}

func TestMoreThanThereIs(t *testing.T) {
	s := openScope(t, 64*budget.KiB)
	for _, size := range []uint64{64 * budget.KiB, 1 << 40, math.MaxInt64, math.MaxUint64} {
		err := s.Do("script", func(s scope.Scope) error {
			_, err := lua.New(s, lua.Plan{Name: "frogs", Size: size})
			return err
		})
		var full *scope.FullError
		require.ErrorAs(t, err, &full)
	}
}
