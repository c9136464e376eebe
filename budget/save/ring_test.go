package save_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlayAgain: after any Restore, the same inputs give the same bytes.
func TestPlayAgain(t *testing.T) {
	ctx := context.Background()
	const ticks, places = 400, 8
	inputs := rand.New(rand.NewPCG(1, 2))
	var input [ticks]uint64
	for i := range input {
		input[i] = inputs.Uint64()
	}
	straight := newPond(t, open(t, pondPlan()), "level", 1)
	var want [ticks + 1]uint64
	for i := range uint64(ticks) {
		require.NoError(t, straight.ring.Take(i))
		want[i] = hash(t, straight.ring, i)
		straight.step(input[i])
	}

	p := newPond(t, open(t, pondPlan()), "level", places)
	back := rand.New(rand.NewPCG(3, 4))
	again := 0
	for p.room.Tick < ticks {
		now := p.room.Tick
		require.NoError(t, p.ring.Take(now))
		require.Equal(t, want[now], hash(t, p.ring, now), now)
		p.step(input[now])
		if far := back.Uint64N(places); back.IntN(3) == 0 && p.ring.Has(now-far) && again < 3*ticks {
			p.step(back.Uint64()) // a wrong input
			require.NoError(t, p.ring.Restore(ctx, now-far))
			require.Equal(t, now-far, p.room.Tick)
			require.Len(t, p.marks, int(p.room.Used))
			again++
		}
	}
	assert.Greater(t, again, ticks/4)
}

// TestNoAllocations: Take, Restore and Hash don't allocate on the Go heap.
func TestNoAllocations(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 3)
	for range 20 {
		p.step(7)
	}
	n := uint64(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		n++
		if err := p.ring.Take(n); err != nil {
			t.Error(err)
		}
		if err := p.ring.Restore(context.Background(), n); err != nil {
			t.Error(err)
		}
		if _, err := p.ring.Hash(n); err != nil {
			t.Error(err)
		}
	}))
}
