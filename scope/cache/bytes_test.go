package cache_test

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

// inScope calls fn with a scope of a region of size bytes.
func inScope(t testing.TB, size uint64, fn func(s scope.Scope)) {
	b, err := budget.Open(budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: size + budget.MiB}}})
	require.NoError(t, err)
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*struct{ _ byte }, error) {
		fn(s)
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, b.Close())
}

func valueOf(key []byte, version uint64, size int) []byte {
	r := rand.NewPCG(binary.LittleEndian.Uint64(append(append([]byte{}, key...), make([]byte, 8)...)), version)
	v := make([]byte, size)
	for i := range v {
		v[i] = byte(r.Uint64())
	}
	return v
}

// TestBytesModel: each value is the last one that was set, or absent; the walk agrees after each
// operation.
func TestBytesModel(t *testing.T) {
	for _, shards := range []int{0, 4} {
		for _, size := range []int{20_000, 200_000} {
			inScope(t, uint64(size), func(s scope.Scope) {
				c := cache.NewBytes(s, size, cache.Options{Shards: shards, Entry: 64, Seed: 1})
				r := rand.New(rand.NewPCG(1, 2))
				type known struct {
					value []byte
					until int64
				}
				model, now, hits := map[string]known{}, int64(0), 0
				for i := range 60_000 {
					key := fmt.Appendf(nil, "%d", r.IntN(3000))
					switch r.IntN(8) {
					case 0, 1, 2:
						value := valueOf(key, uint64(i), r.IntN(1+r.IntN(200)))
						until := int64(1<<63 - 1)
						if r.IntN(4) == 0 {
							until = now + r.Int64N(50)
						}
						if err := c.SetUntil(key, value, until); err != nil {
							require.ErrorIs(t, err, cache.ErrLarge)
							require.Greater(t, len(key)+len(value)+24, c.Most())
							break
						}
						model[string(key)] = known{value, until}
					case 3:
						_, had := model[string(key)]
						if c.Delete(key) {
							require.True(t, had)
						}
						delete(model, string(key))
					case 4:
						now++
						c.Advance(now)
					default:
						value, ok := c.Get(nil, key)
						require.Equal(t, ok, c.Has(key))
						if ok {
							hits++
							require.Equal(t, string(model[string(key)].value), string(value))
							require.Greater(t, model[string(key)].until, now)
						}
					}
					if i%16 == 0 || size < 100_000 {
						require.NoError(t, c.Walk(), "operation %d", i)
					}
				}
				require.Greater(t, hits, 500)
				c.Clear()
				require.NoError(t, c.Walk())
				require.Zero(t, c.Len())
			})
		}
	}
}

func TestHitRatio(t *testing.T) {
	const size = 1 << 20
	for _, skew := range []float64{0.8001, 1.0001, 1.2} {
		inScope(t, size, func(s scope.Scope) {
			c := cache.NewBytes(s, size, cache.Options{Entry: 80})
			n := size / 104
			z := zipf(10*n, skew)
			value := make([]byte, 64)
			lru, order := map[int]*list.Element{}, list.New()
			hits, lruHits, all := 0, 0, 0
			key := make([]byte, 16)
			for i := range 1_000_000 {
				k := z()
				binary.LittleEndian.PutUint64(key, uint64(k))
				_, ok := c.Get(nil, key)
				if i > 300_000 {
					all++
					if ok {
						hits++
					}
				}
				if !ok {
					c.Set(key, value)
				}
				if e := lru[k]; e != nil {
					order.MoveToFront(e)
					if i > 300_000 {
						lruHits++
					}
				} else {
					lru[k] = order.PushFront(k)
					if order.Len() > n {
						delete(lru, order.Remove(order.Back()).(int))
					}
				}
			}
			st := c.Stats()
			t.Logf("zipf %.1f: hits %.4f, an LRU of %d entries %.4f; entries %d crowded %d looked/evicted %.2f", skew,
				float64(hits)/float64(all), n, float64(lruHits)/float64(all), st.Entries, st.Crowded, float64(st.Looked)/float64(st.Evictions))
		})
	}
}

// zipf returns a source of numbers below n.
func zipf(n int, s float64) func() int {
	sum := make([]float64, n)
	total := 0.0
	for i := range sum {
		total += 1 / math.Pow(float64(i+1), s)
		sum[i] = total
	}
	r := rand.New(rand.NewPCG(1, 2))
	return func() int {
		x := r.Float64() * total
		lo, hi := 0, n-1
		for lo < hi {
			m := (lo + hi) / 2
			if sum[m] < x {
				lo = m + 1
			} else {
				hi = m
			}
		}
		return lo
	}
}
