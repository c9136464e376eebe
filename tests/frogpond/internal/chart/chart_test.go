package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/step"
)

func open(t *testing.T, wads ...string) *Charts {
	c, err := Open(t.Context(), wads, 1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// Each map fits in the small budget, one after the other, and an unknown map is an error. Each
// line's sectors exist, and the line is within the map's bounds.
func TestCharts(t *testing.T) {
	for _, wads := range [][]string{{doom.Builtin}, doom.InstalledWADs()} {
		c := open(t, wads...)
		for _, name := range c.Names() {
			chart, err := c.Load(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, name, chart.Name)
			require.NotEmpty(t, chart.Lines)
			for _, n := range chart.Lines {
				require.Equal(t, n, within(chart, n))
			}
		}
		_, err := c.Load(t.Context(), "E9M9")
		require.ErrorContains(t, err, "E9M9")
	}
}

// within returns n, clamped to the values that the chart allows.
func within(c *Chart, n Line) Line {
	n.X, n.X2 = min(max(n.X, c.MinX), c.MaxX), min(max(n.X2, c.MinX), c.MaxX)
	n.Y, n.Y2 = min(max(n.Y, c.MinY), c.MaxY), min(max(n.Y2, c.MinY), c.MaxY)
	n.Front, n.Back = min(max(n.Front, 0), len(c.Sectors)-1), min(max(n.Back, None), len(c.Sectors)-1)
	n.Kind = min(n.Kind, Door)
	return n
}

func TestKinds(t *testing.T) {
	if doom.InstalledWADs()[0] == doom.Builtin {
		step.Lacks(t, "Freedoom", "freedoom") // the built-in maps have no doors
	}
	c, err := open(t, doom.InstalledWADs()...).Load(t.Context(), "E1M1")
	require.NoError(t, err)
	counts := [Door + 1]int{}
	for _, n := range c.Lines {
		counts[n.Kind]++
	}
	assert.Greater(t, counts[Door], 4)
	assert.Greater(t, counts[Special], 4)
	assert.Greater(t, counts[Wall], counts[Door])
	assert.Greater(t, counts[Plain]+counts[Ceiling]+counts[Step], counts[Door])
}
