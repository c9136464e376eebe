package scope_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// labels is what those of the only region hold, without their peaks.
func labels(b *budget.Budget) (held []scope.Usage) {
	for _, u := range b.Report().Regions[0].Labels {
		if u.Bytes != 0 || u.Peak == 0 {
			held = append(held, scope.Usage{Name: u.Name, Bytes: u.Bytes})
		}
	}
	return held
}

// inLevel runs fn in a load of the region level.
func inLevel(t *testing.T, b *budget.Budget, fn func(s scope.Scope) error) error {
	t.Helper()
	type nothing struct{}
	_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*nothing, error) { return nil, fn(s) })
	return err
}

func TestLabelsBookWhatAScopeGains(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		s.Bytes(1000) // nobody's
		require.NoError(t, scope.Label(s, "sound", func() error {
			s.Bytes(100)
			s.Bytes(200)
			assert.Equal(t, []scope.Usage{{Name: "sound", Bytes: 300}}, labels(b), "also while it gains")
			return scope.Label(s, "music", func() error { s.Bytes(50); return nil })
		}))
		require.NoError(t, scope.Label(s, "empty", func() error { return nil }))
		assert.ErrorIs(t, scope.Label(s, "sound", func() error { s.Bytes(7); return errMark }), errMark)
		assert.PanicsWithValue(t, "boom", func() {
			_ = scope.Label(s, "music", func() error { s.Bytes(1); panic("boom") })
		})
		s.Bytes(1000)
		return nil
	}))
	assert.Equal(t, []scope.Usage{{Name: "sound", Bytes: 307}, {Name: "music", Bytes: 51}, {Name: "empty"}}, labels(b),
		"a region keeps them while it is loaded")
	require.NoError(t, b.Region("level").Rewind(t.Context()))
	assert.Empty(t, labels(b))
}

func TestLabelsAreInTheMessage(t *testing.T) {
	b := open(t)
	err := inLevel(t, b, func(s scope.Scope) error {
		s.Bytes(1000)
		require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(3000); return nil }))
		return scope.Label(s, "music", func() error { s.Bytes(2000); s.Bytes(1 << 20); return nil })
	})
	assert.EqualError(t, err, `budget "test": region level is full: scope "level" asked for 1048576 bytes, 256064 of 262144 are free; `+
		`held by "sound" 3000, "music" 2000, "level" 1080; raise regions[0].size in the plan to 1054656 or more`)
	assert.Empty(t, labels(b))
}

func TestLabelsOfNestedScopes(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		return scope.Label(s, "a", func() error {
			s.Bytes(10)
			require.NoError(t, s.Do("inner", func(inner scope.Scope) error {
				return scope.Label(inner, "a", func() error { // a's too, in another scope
					inner.Bytes(20)
					assert.Equal(t, []scope.Usage{{Name: "a", Bytes: 30}}, labels(b))
					assert.Panics(t, func() { _ = scope.Label(s, "a", func() error { return nil }) }, "s is covered")
					return nil
				})
			}))
			s.Bytes(1)
			assert.Equal(t, []scope.Usage{{Name: "a", Bytes: 11}}, labels(b), "inner's is gone with inner")
			return nil
		})
	}))
}

// TestLabelOfAScopeThatCloses: what fn does to its own scope harms nobody.
func TestLabelOfAScopeThatCloses(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	outer := scratch.Open("outer")
	require.NoError(t, scope.Label(outer, "a", func() error {
		s := outer.Open("s")
		require.NoError(t, scope.Label(s, "b", func() error { s.Bytes(8); return s.Close() }))
		outer.Bytes(5)
		return nil
	}))
	err := outer.Do("full", func(s scope.Scope) error { s.Bytes(1 << 20); return nil })
	var full *scope.FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, []scope.Usage{{Name: "outer", Bytes: 40, Objects: counted(2)}, {Name: "a", Bytes: 5}}, full.Top)
	require.NoError(t, outer.Close())
	assert.PanicsWithError(t, "scope: BUG: Label of a scope of scratch 0.0 that is closed", func() {
		_ = scope.Label(outer, "c", func() error { panic("it ran") })
	})
}

func TestTooManyLabels(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "few", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Limits: budget.Limits{Labels: 2}})
	ran := 0
	err := inLevel(t, b, func(s scope.Scope) error {
		for i := range 3 {
			for range 2 { // a name that is there needs no place
				if err := scope.Label(s, fmt.Sprint(i), func() error { ran++; return nil }); err != nil {
					return err
				}
			}
		}
		return nil
	})
	assert.EqualError(t, err, `budget "few": region level is full: scope "level" asked for one more of 2 labels; `+
		`raise limits.labels in the plan to 3 or more`)
	assert.Equal(t, 4, ran)
}

// TestLabelsModel books at random, with constructors that fail, and compares with sums.
func TestLabelsModel(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "model", Regions: []budget.RegionPlan{{Name: "level", Size: 8 * budget.MiB}}})
	random := rand.New(rand.NewPCG(7, 8))
	want := map[string]uint64{}
	var book func(s scope.Scope, name string, depth int)
	book = func(s scope.Scope, name string, depth int) {
		err := scope.Label(s, name, func() error {
			for range random.IntN(6) {
				n := random.IntN(100)
				switch random.IntN(4) {
				case 0:
					if depth < 4 {
						book(s, string(rune('a'+random.IntN(5))), depth+1)
					}
				case 1: // leaves nothing
					_, err := marks.Make(s, func(*mark) error { s.AllocUnzeroed(uint64(n), 1); return errMark })
					require.ErrorIs(t, err, errMark)
				default:
					s.AllocUnzeroed(uint64(n), 1)
					want[name] += uint64(n)
				}
			}
			if depth == 4 {
				return errMark
			}
			return nil
		})
		if !errors.Is(err, errMark) {
			require.NoError(t, err)
		}
	}
	for range 20 {
		clear(want)
		require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
			for range 50 {
				book(s, string(rune('a'+random.IntN(5))), 0)
			}
			return nil
		}))
		for _, u := range labels(b) {
			assert.Equal(t, want[u.Name], u.Bytes, u.Name)
		}
	}
}
