package save_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/save"
)

var goldenUpdate = flag.Bool("update", false, "write golden files that are missing; existing ones stay")

// golden is a ring with a played state in snapshot 1, for a file of testdata.
type golden struct {
	name string
	ring *save.Ring
	// plays continues from a snapshot.
	plays func(t *testing.T, number uint64)
}

// goldens returns a state of each kind. The types and the play never change: a file of each form of
// the format has them.
func goldens(t *testing.T) []golden {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	for i := range uint64(200) {
		p.step(i)
	}
	require.NoError(t, p.ring.Take(1))
	x := newShelf(t, open(t, pondPlan()), 2)
	r, h := rand.New(rand.NewPCG(7, 7)), newHeld()
	for range 200 {
		x.step(t, r, &h)
	}
	require.NoError(t, x.ring.Take(1))
	b := newBuilding(t)
	b.hall.Tick, b.lamps[3].Left = 9, -1
	require.NoError(t, b.ring.Take(1))
	heaps := newHostilePacked(t)
	return []golden{
		{"pond", p.ring, func(t *testing.T, number uint64) { playFrom(t, p, number) }},
		{"shelf", x.ring, func(t *testing.T, number uint64) {
			require.NoError(t, x.ring.Restore(background, number))
			x.survives(t, rand.New(rand.NewPCG(1, 2)))
		}},
		{"hall", b.ring, func(t *testing.T, number uint64) {
			require.NoError(t, b.ring.Restore(background, number))
			assert.EqualValues(t, -1, b.hall.Lamps.Get(b.region.Base())[3].Left)
		}},
		{"heaps", heaps.ring, func(t *testing.T, number uint64) { heaps.playOn(t, number) }},
	}
}

// TestGoldenFiles: each file that a version of the package has written is read by this one, holds
// the same snapshot, and play goes on from it.
func TestGoldenFiles(t *testing.T) {
	if *goldenUpdate {
		for _, g := range goldens(t) {
			name := filepath.Join("testdata", "form1", g.name+".save")
			if _, err := os.Stat(name); err == nil {
				continue
			}
			require.NoError(t, os.WriteFile(name, written(t, g.ring, 1), 0o600))
		}
	}
	forms, err := filepath.Glob("testdata/form*")
	require.NoError(t, err)
	require.NotEmpty(t, forms)
	for _, form := range forms {
		for _, g := range goldens(t) {
			file, err := os.ReadFile(filepath.Join(form, g.name+".save"))
			require.NoError(t, err)
			image := save.Image(g.ring, 1)
			number, err := g.ring.Read(bytes.NewReader(file))
			require.NoError(t, err, "%s: %s", form, g.name)
			assert.EqualValues(t, 1, number)
			assert.Equal(t, image, save.Image(g.ring, 1), "%s: %s", form, g.name)
			_, err = save.ReadFile(bytes.NewReader(file))
			require.NoError(t, err)
			g.plays(t, 1)
		}
	}
}
