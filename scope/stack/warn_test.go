package stack

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWarner compares a warner with plain words: it reports a use of at least the share, once until
// the use has been less than nine tenths of the share.
func TestWarner(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	reported := 0
	for range 300 {
		share, size := 1+random.IntN(99), 1+random.Uint64N(5000)
		w, armed, peak, last := warner{share: share}, true, uint64(0), uint64(0)
		for range 200 {
			used := random.Uint64N(size + 1)
			if random.IntN(4) == 0 { // near the two edges
				used = min(size, size*uint64(share)/100*uint64(9+random.IntN(2))/10+random.Uint64N(3))
			}
			highest := used // since the last call
			if random.IntN(3) == 0 {
				highest += random.Uint64N(size - used + 1)
			}
			if random.IntN(20) == 0 {
				peak = used // as an arena's peak that was reset
			}
			peak = max(peak, highest)
			want := uint64(0)
			most := used
			if peak > last { // a higher use than ever; others between two calls aren't seen
				most = peak
			}
			last = peak
			enough := float64(share) / 100 * float64(size)
			if armed && float64(most)+1e-9 >= enough {
				want, armed = most, false
				reported++
			}
			if float64(used)+1e-9 < enough*9/10 {
				armed = true
			}
			assert.Equal(t, want, w.crossed(used, peak, size), "%d of %d, share %d", used, size, share)
		}
	}
	assert.Greater(t, reported, 1000)
}

func TestWarnerEdges(t *testing.T) {
	var none warner
	assert.Zero(t, none.crossed(100, 100, 100))
	w := warner{share: 80}
	for i, c := range []struct{ used, peak, want uint64 }{
		{799, 799, 0}, {800, 800, 800}, {1000, 1000, 0},
		{720, 1000, 0}, {900, 1000, 0}, // never below 72 %
		{719, 1000, 0}, {800, 1000, 800}, // again
		{0, 1000, 0}, {10, 1000, 0},
		{0, 10, 0},     // reset
		{20, 850, 850}, // over by now
		{20, 850, 0}, {20, 860, 860},
		{800, 860, 800}, {20, 900, 0}, // it never fell before the higher peak
		{1 << 38, 1 << 38, 1 << 38},
	} {
		assert.Equal(t, c.want, w.crossed(c.used, c.peak, 1000), i)
	}
	largest := warner{share: 99} // no overflow
	assert.Zero(t, largest.crossed(1<<38-1<<33, 1<<38-1<<33, 1<<38))
	assert.Equal(t, uint64(1<<38), largest.crossed(1<<38, 1<<38, 1<<38))
}
