package save_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/save"
)

// FuzzApply: any bytes as a delta, and any behind a header that fits, make a snapshot that
// passes, or nothing. Play that goes on from what passes harms the game alone.
func FuzzApply(f *testing.F) {
	const good = 1<<64 - 3 // and two more: another takes the fourth place
	p := newPond(f, open(f, pondPlan()), "level", 4)
	for n := range uint64(3) {
		require.NoError(f, p.ring.Take(good+n))
		p.step(n)
		delta, err := p.ring.Delta(nil, good, good+n)
		require.NoError(f, err)
		f.Add(delta)
		f.Add(delta[save.DeltaHeader:])
	}
	f.Add([]byte{0, 1, 1})
	f.Add([]byte{200, 1, 100, 1})
	l := newLinked(f)
	for _, at := range []int{l.lamps, l.name, l.first, l.tail, l.up} {
		f.Add(append(binary.AppendUvarint(nil, uint64(at)), 2, 3, 1))
		f.Add(append(binary.AppendUvarint(nil, uint64(at)), 1, 200))
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		if _, err := l.ring.Apply(save.Sealed(l.ring, 1, 2, changes)); err == nil {
			l.plays(t, 2)
		}
		for _, delta := range [][]byte{changes, save.Sealed(p.ring, good, 7, changes)} {
			before := holding(t, p, good, good+1, good+2)
			number, err := p.ring.Apply(delta)
			if err != nil {
				require.ErrorContains(t, err, "save: a delta for region level, byte ")
				require.Equal(t, before, holding(t, p, good, good+1, good+2))
				continue
			}
			require.NoError(t, save.Hold(p.ring, number, save.Image(p.ring, number)))
			if number >= good {
				require.NoError(t, save.Hold(p.ring, number, before[number-good]))
			}
		}
	})
}

// FuzzImage: whatever bytes an image has, when it passes play goes on from there, and the pools
// hold.
func FuzzImage(f *testing.F) {
	h := newHostile(f)
	c := save.ControlOf(h.ring)
	f.Add([]byte{7})
	for _, pool := range c.Pools {
		for _, at := range []int{pool.Numbers, pool.States, pool.Chunks, pool.Chunks - 1} {
			f.Add([]byte{5, byte(at), byte(at >> 8), 1})
		}
	}
	f.Add(bytes.Repeat([]byte{6, byte(c.Words[0]), 0}, 3))
	f.Fuzz(func(t *testing.T, program []byte) { h.try(t, program) })
}
