package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// The chart says of each cell what a trace from its middle says.
func TestChartIsWhatTracesSay(t *testing.T) {
	ways := [2]int{}
	eachMap(t, func(t *testing.T, g *Game) {
		l, w := g.level, g.crew.workers[0]
		require.Len(t, l.Blocks.Ways, len(l.Blocks.Cells), "every map there is here has one")
		require.NoError(t, w.scratches[0].Do("test", func(s scope.Scope) error {
			for cell := 0; cell < len(l.Blocks.Cells); cell += 7 {
				column, row := cell%l.Blocks.Columns, cell/l.Blocks.Columns
				for direction, d := range beside {
					open := w.walkable(l, s, l.middle(column, row), l.middle(column+d[0], row+d[1]), &playerBody)
					require.Equal(t, open, l.Blocks.Ways[cell]>>direction&1 != 0, "cell %d, direction %d", cell, direction)
					ways[l.Blocks.Ways[cell]>>direction&1]++
				}
			}
			return nil
		}))
	})
	assert.Positive(t, ways[0])
	assert.Positive(t, ways[1])
}

// With a chart and without one a game is the same.
func TestChartChangesNothing(t *testing.T) {
	s := openServer(t, builtin)
	for _, m := range s.maps[:4] {
		var hashes [2]Hash
		for i := range hashes {
			g, err := s.start(t, m, 8)
			require.NoError(t, err)
			if i == 1 {
				g.level.Blocks.Ways = nil
			}
			for range 300 {
				require.NoError(t, g.step())
			}
			hashes[i] = g.hash()
		}
		assert.Equal(t, hashes[0], hashes[1], m.Name)
	}
}

// A blockmap whose cells share one long list has no chart, and plays as another.
func TestNoChartOfHostileBlockmap(t *testing.T) {
	const columns, rows, lines = 100, 100, 120
	words := []int{0, 0, columns, rows}
	for range columns * rows {
		words = append(words, 4+columns*rows)
	}
	for i := range lines {
		words = append(words, i%4)
	}
	hostile := row(append(words, 0xffff)...)
	var hashes []Hash
	for name, blockmap := range map[string][]byte{"good": goodBlockmap(), "hostile": hostile} {
		t.Run(name, func(t *testing.T) {
			write(t, "map.wad", wadFile(set(goodMap(), "BLOCKMAP", blockmap)))
			s := openServer(t, "map.wad")
			g, err := s.start(t, s.maps[0], 8)
			require.NoError(t, err)
			assert.Equal(t, name == "good", g.level.Blocks.Ways != nil)
			for range 200 {
				require.NoError(t, g.step())
			}
			hashes = append(hashes, g.hash())
		})
	}
	require.Len(t, hashes, 2)
	assert.Equal(t, hashes[0], hashes[1])
}
