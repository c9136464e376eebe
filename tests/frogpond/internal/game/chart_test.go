package game

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
)

// Each cell of the chart agrees with traces from its middle.
func TestChartIsWhatTracesSay(t *testing.T) {
	ways := [2]int{}
	eachMap(t, func(t *testing.T, g *Game) {
		l, w := g.Level, g.crew.workers[0]
		require.Len(t, l.Blocks.Ways, len(l.Blocks.Cells), "every map there is here has one")
		require.NoError(t, w.scratches[0].Do("test", func(s scope.Scope) error {
			for cell := 0; cell < len(l.Blocks.Cells); cell += 7 {
				column, row := cell%l.Blocks.Columns, cell/l.Blocks.Columns
				for direction, d := range beside {
					open := w.walkable(l, s, l.Middle(column, row), l.Middle(column+d[0], row+d[1]), &playerBody)
					require.Equal(t, open, l.Blocks.Ways[cell]>>direction&1 != 0, "cell %d, direction %d",
						cell, direction)
					ways[l.Blocks.Ways[cell]>>direction&1]++
				}
			}
			return nil
		}))
	})
	assert.Positive(t, ways[0])
	assert.Positive(t, ways[1])
}

// A map plays the same with a built blockmap; with the file's, with and without the 0 at the start
// of lists; and with wrong ones, which are replaced. It also does with a long list for all cells,
// which gets no chart.
func TestBlockmapsPlayAlike(t *testing.T) {
	const columns, rows, lines = 100, 100, 120
	words := []int{0, 0, columns, rows}
	for range columns * rows {
		words = append(words, 4+columns*rows)
	}
	for i := range lines {
		words = append(words, i%4)
	}
	blockmaps := doomtest.WrongBlockmaps()
	blockmaps["read"] = doomtest.GoodBlockmap()
	blockmaps["hostile"] = doomtest.Row(append(words, 0xffff)...)
	blockmaps["without leading 0s"] = append(doomtest.GoodBlockmap()[:2*29], doomtest.Row(1, 2, 3, 0, 0xffff)...)
	hashes := map[string]doom.Hash{}
	blockmaps["built"] = nil
	for name, blockmap := range blockmaps {
		t.Run(name, func(t *testing.T) {
			doomtest.Write(t, "map.wad", doom.MakeWAD(doomtest.Set(doomtest.GoodMap(), "BLOCKMAP", blockmap)))
			s := openServer(t, "map.wad")
			g, err := s.start(t, s.Maps[0], 8)
			require.NoError(t, err)
			assert.Equal(t, name != "hostile", g.Level.Blocks.Ways != nil)
			for range 200 {
				require.NoError(t, g.Step())
			}
			hashes[name] = g.Hash()
		})
	}
	for name, hash := range hashes {
		assert.Equal(t, hashes["built"], hash, name)
	}
}
