package budget_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
)

func openStreamed(t *testing.T) *Streamed {
	t.Helper()
	b, err := budget.Open(budget.Plan{Name: "world",
		Regions: []budget.RegionPlan{{Name: "level", Size: 16 * budget.KiB}}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	level, err := loadStreamed(b.Region("level"))
	require.NoError(t, err)
	return level.Get()
}

// TestStreamedWorldIsGos compares the example's world, whose pool and heap are often full, with one
// of Go's maps and slices.
func TestStreamedWorldIsGos(t *testing.T) {
	w, rng := openStreamed(t), rand.New(rand.NewPCG(41, 6))
	type held struct {
		name   string
		plants []Plant
	}
	world, full := map[Cell]held{}, 0
	for step := range 4000 {
		at := Cell{int32(rng.IntN(4)), int32(rng.IntN(4))}
		has, ok := world[at]
		switch {
		case !ok:
			name, n := strconv.Itoa(step), rng.IntN(150)
			if !w.enter(at, []byte(name), n) {
				full++
				break
			}
			world[at] = held{name, make([]Plant, n)}
		case rng.IntN(3) == 0:
			w.leave(at)
			delete(world, at)
		default:
			p := Plant{Kind: int16(step), Age: int16(rng.Int())}
			if !w.plant(w.chunks.At(*w.at.Get(at)), p) {
				full++
				break
			}
			has.plants = append(has.plants, p)
			world[at] = has
		}
		require.Equal(t, len(world), w.chunks.Live())
		for at, want := range world {
			c := w.chunks.At(*w.at.Get(at))
			require.Equal(t, want.name, c.Name.Get(w.base))
			require.True(t, slices.Equal(want.plants, c.Plants.Get(w.base)), "step %d: %v", step, at)
			for i, way := range ways {
				beside := Cell{at.X + way.X, at.Y + way.Y}
				if _, ok := world[beside]; ok {
					require.Equal(t, beside, w.chunks.At(c.Beside[i]).At)
				} else {
					require.Nil(t, w.chunks.At(c.Beside[i]))
				}
			}
		}
	}
	assert.Greater(t, full, 100, "a world that is never full shows little")
	for at := range world {
		w.leave(at)
	}
	assert.Zero(t, w.heap.Stats().Live)
}

// TestAWorldStreamsWithoutGosHeap: chunks come, grow and go without a Go allocation.
func TestAWorldStreamsWithoutGosHeap(t *testing.T) {
	if arena_c.Checked || arena_c.Race || arena_c.Asan {
		t.Skip("other builds keep the lines that made each object: go test ./budget runs it")
	}
	w, name := openStreamed(t), []byte("pond")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		at := Cell{1, 0}
		if !w.enter(Cell{}, name, 20) || !w.enter(at, name, 50) ||
			!w.plant(w.chunks.At(*w.at.Get(at)), Plant{Kind: 1}) {
			panic("full")
		}
		w.leave(Cell{})
		w.leave(at)
	}))
}
