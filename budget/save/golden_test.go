package save_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

var (
	goldenUpdate = flag.Bool("update", false, "write golden files that are missing; existing ones stay")
	goldenOther  = flag.Bool("other", false, "another build wrote the golden files")
)

// golden is a ring with a played state in snapshot 1, for a file of testdata.
type golden struct {
	name string
	ring *save.Ring
	// plays continues from a snapshot, and returns the number of a snapshot after that play.
	plays func(t *testing.T, number uint64) (after uint64)
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
	versions, reds := moods(t, 2, 4)
	return []golden{
		{"pond", p.ring, func(t *testing.T, number uint64) uint64 { playFrom(t, p, number); return number + 1 }},
		{"shelf", x.ring, func(t *testing.T, number uint64) uint64 {
			require.NoError(t, x.ring.Restore(background, number))
			x.survives(t, rand.New(rand.NewPCG(1, 2)))
			return 3
		}},
		{"hall", b.ring, func(t *testing.T, number uint64) uint64 {
			require.NoError(t, b.ring.Restore(background, number))
			lamp := &b.hall.Lamps.Get(b.region.Base())[3]
			assert.EqualValues(t, -1, lamp.Left)
			lamp.Left = 7
			require.NoError(t, b.ring.Take(2))
			return 2
		}},
		{"moods", versions, func(t *testing.T, number uint64) uint64 {
			require.NoError(t, versions.Restore(background, number))
			assert.Nil(t, reds.At(0))
			_, red := reds.Get()
			reds.Put(red)
			require.NoError(t, versions.Take(2))
			return 2
		}},
		{"heaps", heaps.ring, func(t *testing.T, number uint64) uint64 { heaps.playOn(t, number); return 2 }},
	}
}

// moods is a state of a program with a version, names, enumerators and Values.
func moods(t *testing.T, version uint32, frogs int) (ring *save.Ring, reds scope.HandlePool[frog]) {
	p, root := loadProgram(t, func(p *program, root *moody) {
		p.state.Version(version)
		save.Enum(p.state, map[string]mode{"Calm": 0, "Hungry": 1, "Asleep": 2})
		p.state.Name("blues")
		frogMaker.HandlePool(p.scope, frogs)
		p.state.Name("reds")
		reds = frogMaker.HandlePool(p.scope, frogs)
		p.state.Name("flies")
		flies := container.NewList(p.scope, flyMaker, 5)
		flies.Push(fly{At: 8})
		places := placeMaker.Slice(p.scope, 3)
		p.state.Name("places")
		save.Values(p.state, places)
		places[2].X = 4
		root.Mood = 1
	})
	for range 3 {
		_, root.Best = reds.Get()
	}
	require.NoError(t, p.ring.Take(1))
	return p.ring, reds
}

type moody struct {
	Best arena.Handle[frog]
	Mood mode
	_    [7]byte
}

// TestGoldenFiles: each file that a version of the package has written is read by this one, holds
// the same snapshot, and play goes on from it. This version writes the same bytes. The changes of
// that play are a delta, which also has a file. TestBuilds runs it with the files of other builds.
func TestGoldenFiles(t *testing.T) {
	pattern := "testdata/form*/*.save"
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, name := range files {
		seen[filepath.Base(name)] = true
	}
	if *goldenUpdate {
		for _, g := range goldens(t) {
			if name := filepath.Join("testdata", newestForm, g.name+".save"); !seen[g.name+".save"] {
				seen[g.name+".save"] = true
				require.NoError(t, os.WriteFile(name, written(t, g.ring, 1), 0o600))
			}
		}
		files, err = filepath.Glob(pattern)
		require.NoError(t, err)
	}
	for _, name := range files {
		i := slices.IndexFunc(goldens(t), func(g golden) bool { return g.name+".save" == filepath.Base(name) })
		require.NotEqual(t, -1, i, "%s: a program that wrote a golden file never goes", name)
		g := goldens(t)[i]
		file, err := os.ReadFile(name)
		require.NoError(t, err)
		if !arena_c.Checked && !*goldenOther { // a checked build's file has more names
			assert.True(t, bytes.Equal(file, written(t, g.ring, 1)), "%s: this version writes other bytes", name)
		}
		image := save.Image(g.ring, 1)
		number, err := g.ring.Read(bytes.NewReader(file))
		require.NoError(t, err, name)
		assert.EqualValues(t, 1, number)
		assert.Equal(t, image, save.Image(g.ring, 1), name)
		_, err = save.ReadFile(bytes.NewReader(file))
		require.NoError(t, err)
		goldenDelta(t, g)
	}
	assert.Len(t, seen, len(goldens(t)), "each kind of state has a file; -update writes it")
}

// goldenDelta plays from snapshot 1, and compares the changes with the file of a delta. The file's
// delta makes the same snapshot.
func goldenDelta(t *testing.T, g golden) {
	number := g.plays(t, 1)
	image := save.Image(g.ring, number)
	delta, err := g.ring.Delta(nil, 1, number)
	require.NoError(t, err)
	name := filepath.Join("testdata", "deltas", g.name+".delta")
	file, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && *goldenUpdate {
		require.NoError(t, os.WriteFile(name, delta, 0o600))
		file = delta
	} else {
		require.NoError(t, err, "-update writes it")
	}
	assert.True(t, bytes.Equal(file, delta), "%s: this version plays or writes other bytes", name)
	applied, err := g.ring.Apply(file)
	require.NoError(t, err, name)
	assert.Equal(t, number, applied)
	assert.Equal(t, image, save.Image(g.ring, number), name)
}

// newestForm is the folder of the newest form of the format.
const newestForm = "form2"
