package scope_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

var cells = scope.Plain[[3]uint32]()

// TestAll compares All with At, for each number of chunks around a word of states, with random
// chunks live.
func TestAll(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	for n := 1; n <= 40; n++ {
		_, s := opened(t, "s")
		pool, named := cells.Pool(s, n), cells.HandlePool(s, n)
		for range 20 {
			for i := range n { // each live or free at random
				switch x := pool.At(i); {
				case r.Uint32N(3) != 0:
				case x != nil:
					pool.Put(x)
				default:
					pool.Get()
				}
			}
			live, next := 0, 0
			for i, x := range pool.All() {
				for ; next < i; next++ {
					require.Nil(t, pool.At(next), "%d of %d", next, n)
				}
				require.Same(t, pool.At(i), x)
				live, next = live+1, i+1
			}
			require.Equal(t, pool.Live(), live)
			for h, x := range named.All() {
				require.Same(t, named.At(h), x)
				if r.Uint32N(2) == 0 {
					named.Put(h)
				}
			}
			live = 0
			for range named.All() {
				live++
			}
			require.Equal(t, named.Live(), live)
			for range int(r.Uint32N(uint32(n + 1))) {
				named.Get()
			}
		}
		require.NoError(t, s.Close())
	}
}

// TestAllAsks: All skips a value that the body puts, and all values after the body closed the scope
// or made another pool in its place.
func TestAllAsks(t *testing.T) {
	_, s := opened(t, "s")
	pool := cells.Pool(s, 100)
	for range 100 {
		pool.Get()
	}
	shown := 0
	for i := range pool.All() {
		shown++
		for k := i; k < i+10 && k < 100; k++ {
			pool.Put(pool.At(k))
		}
	}
	require.Equal(t, 10, shown)
	for range 100 {
		pool.Get()
	}
	shown = 0
	for range pool.All() {
		shown++
		require.NoError(t, s.Close())
	}
	require.Equal(t, 1, shown)

	scratch, s := opened(t, "s")
	named := cells.HandlePool(s, 100)
	for range 100 {
		named.Get()
	}
	shown = 0
	for range named.All() {
		shown++
		require.NoError(t, s.Close())
		s = scratch.Open("another")
		other := cells.Pool(s, 200)
		for range 200 {
			other.Get()
		}
	}
	require.Equal(t, 1, shown)
	for range named.All() {
		t.Error("it is closed")
	}
}

func TestAllWithoutLeaving(t *testing.T) {
	var pool scope.ObjectPool[[3]uint32]
	seen := 0
	objects := scope.Object(func(*[3]uint32) error {
		for range pool.All() {
			seen++
		}
		return nil
	})
	_, s := opened(t, "s")
	pool = objects.Pool(s, 9)
	x := pool.Get()
	pool.Get()
	require.NoError(t, pool.Put(x))
	require.Equal(t, 1, seen)
}
