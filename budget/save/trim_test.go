package save_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// TestRestoreAfterTrim: Trim changes the free bytes of a heap in a state. A restored snapshot
// brings back all its bytes, those of the live blocks and those that were free, also in a tracked
// region.
func TestRestoreAfterTrim(t *testing.T) {
	for _, track := range []bool{false, true} {
		plan := trackedPlan(budget.MiB)
		plan.Regions[0].Track = track
		b := open(t, plan)
		if track {
			t.Log(b.Report().NotGranted)
		}
		var state *save.State
		var heap arena.Heap
		var block []byte
		load(t, b, "level", func(r budget.Region, s scope.Scope) {
			state, _ = save.Begin(r, s, roomMaker)
			var err error
			block = s.BytesUnzeroed(700_000, 64)
			heap, err = arena.NewHeap(block, 8)
			require.NoError(t, err)
			heap.MayLive()
		})
		var ring *save.Ring
		load(t, b, "rollback", func(_ budget.Region, s scope.Scope) { ring = save.NewRing(s, 3, state) })
		r := rand.New(rand.NewPCG(3, 4))
		var live []unsafe.Pointer
		play := func(tick uint64) {
			for range 6 {
				size := 1 + r.IntN(40_000)
				if i := r.IntN(9); i < len(live) {
					require.NoError(t, heap.Free(live[i]))
					live = slices.Delete(live, i, i+1)
				} else if p := heap.Alloc(uint64(size), 16); p != nil {
					of := unsafe.Slice((*byte)(p), size)
					for i := range of {
						of[i] = byte(tick) | 1
					}
					live = append(live, p)
				}
			}
		}
		for tick := uint64(2); tick < 120; tick += 2 {
			if tick%12 < 6 { // else the pages are older than a turn of the ring
				play(tick)
			}
			require.NoError(t, ring.Take(tick))
			hash, err := ring.Hash(tick)
			require.NoError(t, err)
			taken := slices.Clone(live)
			var want []byte
			if !arena_c.Asan { // where free bytes are poisoned
				want = bytes.Clone(block)
			}
			if tick%12 == 0 {
				play(tick + 1)
			}
			if tick%4 == 0 {
				_, err = b.Region("level").Trim(context.Background())
			} else if tick%12 > 6 {
				_, err = heap.Trim()
			}
			require.NoError(t, err)
			require.NoError(t, ring.Restore(context.Background(), tick))
			live = taken
			if want != nil {
				require.True(t, bytes.Equal(want, block), "tracked: %v, tick %d", track, tick)
			}
			require.NoError(t, ring.Take(tick+1))
			again, err := ring.Hash(tick + 1)
			require.NoError(t, err)
			require.Equal(t, hash, again, "tracked: %v, tick %d", track, tick)
		}
	}
}
