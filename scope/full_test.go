package scope_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// fullIn gives the full that fn meets in a level of so many bytes.
func fullIn(t *testing.T, size uint64, fn func(scope.Scope)) *scope.FullError {
	b, err := budget.Open(budget.Plan{Name: "advice", Regions: []budget.RegionPlan{{Name: "level", Size: size}}})
	require.NoError(t, err)
	defer b.Close()
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*point, error) {
		s.Bytes(100)
		fn(s)
		return nil, nil
	})
	var full *scope.FullError
	if !errors.As(err, &full) {
		require.NoError(t, err)
	}
	return full
}

// TestNeedOfAPoolIsEnough: a pool that is refused leaves nothing behind, and what its error says to raise
// the plan to is enough at the first try.
func TestNeedOfAPoolIsEnough(t *testing.T) {
	for name, fn := range map[string]func(scope.Scope, int){
		"plain":   func(s scope.Scope, n int) { points.Pool(s, n) },
		"objects": func(s scope.Scope, n int) { marks.Pool(s, n) },
		"handles": func(s scope.Scope, n int) { points.HandlePool(s, n) },
	} {
		for _, n := range []int{6000, 7000, 12_000, 100_001} {
			full := fullIn(t, 64*budget.KiB, func(s scope.Scope) {
				free, done := s.Free(), false
				defer func() { assert.True(t, done || s.Free() == free, "what is refused leaves nothing") }()
				fn(s, n)
				done = true
			})
			if full == nil {
				continue
			}
			assert.Nil(t, fullIn(t, full.Need, func(s scope.Scope) { fn(s, n) }), "%s of %d: %d bytes", name, n, full.Need)
		}
	}
}

// TestNeedBesideTemporariesIsEnough: also where these take more at the far end than was asked for.
func TestNeedBesideTemporariesIsEnough(t *testing.T) {
	for temp := 1; temp < 200; temp += 7 {
		asks := map[string]func(scope.Scope){
			"slice": func(s scope.Scope) { s.Temp(temp).Bytes(temp); points.Slice(s, 500) },
			"pool":  func(s scope.Scope) { s.Temp(temp); s.Temp(2 * temp); points.Pool(s, 500) },
			"temp":  func(s scope.Scope) { s.Temp(temp); s.Temp(5000) },
		}
		for name, fn := range asks {
			full := fullIn(t, 4*budget.KiB, fn)
			require.NotNil(t, full, name)
			assert.Nil(t, fullIn(t, full.Need, fn), "%s beside %d: %d bytes", name, temp, full.Need)
		}
	}
}

// TestWhatNoPlanHas: a request that overflows advises no size.
func TestWhatNoPlanHas(t *testing.T) {
	const many = math.MaxInt / 4
	asks := map[string]func(scope.Scope){
		"bytes": func(s scope.Scope) { s.AllocUnzeroed(1<<63, 8) },
		"slice": func(s scope.Scope) { points.Slice(s, many) },
		"pool":  func(s scope.Scope) { points.Pool(s, many) },
		"temp":  func(s scope.Scope) { s.Temp(many) },
		"inner": func(s scope.Scope) { s.Temp(100).Bytes(many) },
	}
	for name, fn := range asks {
		if name != "bytes" && uint64(many) < arena_c.OffsetMax {
			continue // an int has 32 bits: there is a plan with as much
		}
		full := fullIn(t, 64*budget.KiB, fn)
		require.NotNil(t, full, name)
		assert.Zero(t, full.Need, name)
		assert.ErrorContains(t, full, "no plan has as much", name)
		assert.NotContains(t, full.Error(), "or more", name)
	}
}

// TestNamesForgeNoLines: a name with a line break is quoted wherever a message has it.
func TestNamesForgeNoLines(t *testing.T) {
	const name = "tick\nERROR: all is lost\x1b[31m"
	b := open(t)
	err := inLevel(t, b, func(s scope.Scope) error {
		return scope.Label(s, name, func() error {
			return s.Do(name, func(s scope.Scope) error { s.Bytes(1000); s.Bytes(1 << 20); return nil })
		})
	})
	scratch := b.Scratch(0, 0)
	s := scratch.Open(name)
	newMark(s, 1, doFail)
	errs := []error{err, s.Do(name, func(s scope.Scope) error { s.Open(name); return nil }), s.Close(), s.Close(), s.Err()}
	for range 8 {
		s = scratch.Open(name)
	}
	errs = append(errs, s.Do(name, nil))
	for _, err := range errs {
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "\nERROR")
		assert.NotContains(t, err.Error(), "\x1b")
	}
	assert.ErrorContains(t, errs[5], "all that are open have this name: is a Close missing?")
}

// TestGetInAFinalizerOfThePool: while its scope closes, a pool gives nothing that nobody would finalize.
func TestGetInAFinalizerOfThePool(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("pool")
	ran := 0
	poolOfGetters = getters.Pool(s, 4)
	getterRan = func(g *getter) {
		ran++
		assert.Nil(t, poolOfGetters.Get(), "while its scope closes")
	}
	poolOfGetters.Get()
	poolOfGetters.Get()
	require.NoError(t, s.Close())
	assert.Equal(t, 2, ran)
}

type getter struct{ X int64 }

var (
	poolOfGetters scope.ObjectPool[getter]
	getterRan     func(*getter)
	getters       = scope.Object(func(g *getter) error { getterRan(g); return nil })
)
