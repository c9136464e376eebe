package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestContestantsHoldValues checks that each cache returns the value of the latest Set, that the
// program without a cache has none, and that each cache evicts.
func TestContestantsHoldValues(t *testing.T) {
	const size, keys = 256, 400_000
	for _, p := range peers {
		c, err := p.make(32<<20, size)
		require.NoError(t, err, p.name)
		l := newLanes(c, size, 2)
		l.sets = true
		numbers := make([]uint32, keys)
		for i := range numbers {
			numbers[i] = uint32(i)
		}
		l.run(numbers, 1)
		l.sets = false
		found, _ := l.run(numbers[:1000], 1) // sets keys that were evicted
		l.timed = true
		again, longest := l.run(numbers[:1000], 2)
		if p.name == none {
			assert.Zero(t, found+again)
			continue
		}
		assert.Less(t, found, 1000, p.name)
		least := 300
		if p.name == "ristretto" {
			least = 0 // it counts Gets in a sync.Pool, which each collection empties
		}
		assert.Greater(t, again, least, "%s refuses or drops many Sets", p.name)
		assert.Positive(t, longest, p.name)
		assert.Less(t, l.payload(keys), 1.3*(32<<20), p.name)
	}
}

// TestRanksFollowZipf compares the frequencies of the first ranks, and of the last half, with their
// shares.
func TestRanksFollowZipf(t *testing.T) {
	const n, draws = 10_000, 1_000_000
	for _, s := range []float64{0.8, 1, 1.2} {
		all, tail := 0.0, 0.0
		for k := 1; k <= n; k++ {
			if all += math.Pow(float64(k), -s); k > n/2 {
				tail += math.Pow(float64(k), -s)
			}
		}
		z, r, counts, last := newZipf(n, s), rand.New(rand.NewPCG(1, 2)), [4]float64{}, 0.0
		for range draws {
			k := z.rank(r)
			require.True(t, 0 <= k && k < n, k)
			if k < len(counts) {
				counts[k]++
			}
			if k >= n/2 {
				last++
			}
		}
		for k, count := range counts {
			assert.InEpsilon(t, math.Pow(float64(k+1), -s)/all, count/draws, 0.02, "%v of %.1f", k, s)
		}
		assert.InEpsilon(t, tail/all, last/draws, 0.02, s)
	}
}

// TestWorksAreDifferent checks the first keys of each work: a loop comes back, a scan doesn't, and
// the hot set fits.
func TestWorksAreDifferent(t *testing.T) {
	const n = 1000
	for _, w := range works {
		keys, distinct := make([]uint32, 6*n), map[uint32]bool{}
		w.fill(keys, n)
		for _, k := range keys {
			distinct[k] = true
		}
		switch w.name {
		case loop.name:
			assert.Len(t, distinct, n+n/4)
		case hotSet.name:
			assert.Len(t, distinct, n/5)
		case setting.name:
			assert.Greater(t, len(distinct), 4*n)
		default:
			assert.Less(t, len(distinct), 5*n, w.name)
			assert.Greater(t, len(distinct), n/2, w.name)
		}
	}
}

// TestNextLimit: a limit in proportion, then one between those known, then their middle.
func TestNextLimit(t *testing.T) {
	const wanted = asked * (1 - near/3)
	assert.InDelta(t, wanted/2, next(point{}, point{asked, 2 * asked}, 0), 1)
	assert.InDelta(t, wanted*2, next(point{asked, asked / 2}, point{}, 0), 1)
	assert.InDelta(t, wanted, next(point{asked / 2, asked / 2}, point{2 * asked, 2 * asked}, 1), 1)
	assert.EqualValues(t, asked*3/2, next(point{asked, asked / 2}, point{2 * asked, 2 * asked}, 3))
}

// TestFewerBytesAreBetter: of two runs in the search of a limit, the one nearer to the asked bytes
// is kept, and rather one below them.
func TestFewerBytesAreBetter(t *testing.T) {
	assert.True(t, better(asked, 0.9*asked))
	assert.True(t, better(0.9*asked, 1.1*asked))
	assert.True(t, better(1.1*asked, 1.2*asked))
	assert.False(t, better(0.8*asked, 0.9*asked))
}
