package pprof_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/budget/with/pprof"
	"github.com/upfront-mem/upfront/scope"
)

type frog struct{ X, Y, Age int32 }

var frogs = scope.Plain[frog]()

// TestAnyMoment: at any moment a program's report has a profile, with equal totals. The program is
// random, and the test reads it inside loads, scopes, labels, temporaries, builders and finalizers.
func TestAnyMoment(t *testing.T) {
	b := play(t)
	random := rand.New(rand.NewPCG(26, 7))
	asked := 0
	ask := func() {
		for _, r := range []budget.Report{b.Report(), b.Published()} {
			p, err := with.Profile(r)
			require.NoError(t, err)
			want := sums(r)
			for kind, total := range totals(p) {
				require.Equal(t, want[kind], total, kind)
			}
			asked++
		}
	}
	names := []string{"a", "b", "others", "temp", ""}
	var act func(s scope.Scope, depth int) error
	act = func(s scope.Scope, depth int) error {
		for range random.IntN(5) {
			name := names[random.IntN(len(names))]
			switch random.IntN(8) {
			case 0:
				s.Bytes(random.IntN(500))
			case 1:
				s.Temp(random.IntN(300) + 1).Bytes(1)
			case 2:
				s.Defer(ask)
			case 3:
				list := frogs.Build(s)
				list.Push(frog{})
				ask()
				list.Done()
			case 4:
				pool := frogs.Pool(s, 1+random.IntN(9))
				pool.Get()
			case 5:
				if depth < 4 {
					require.NoError(t, s.Do(name, func(s scope.Scope) error { return act(s, depth+1) }))
				}
			case 6:
				if depth < 4 {
					require.NoError(t, scope.Label(s, name, func() error { return act(s, depth+1) }))
				}
			default:
				ask()
			}
		}
		return nil
	}
	for range 60 {
		for _, name := range []string{"level", "nested"} {
			_, err := budget.Load(context.Background(), b.Region(name), func(s scope.Scope) (*struct{}, error) {
				return nil, act(s, 0)
			})
			require.NoError(t, err)
		}
		require.NoError(t, act(b.Frame(), 2))
		require.NoError(t, b.Scratch(0, 1).Do("work", func(s scope.Scope) error { return act(s, 2) }))
		ask()
		require.NoError(t, b.NextFrame())
		ask()
	}
	require.Greater(t, asked, 500)
}
