package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// live loads a world of at most n chunks, with an empty disk.
func live(t *testing.T, n int) *World {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "world.tiles"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	disk = file
	b := budgettest.Open(t,
		budget.Plan{Name: "tiles", Regions: []budget.RegionPlan{{Name: "world", Size: 2 * budget.MiB}}})
	w, err := budget.Load(context.Background(), b.Region("world"), func(s scope.Scope) (*World, error) {
		return NewWorld(s, n), nil
	})
	require.NoError(t, err)
	return w.Get()
}

const ticks = 1500 // around a square, nearly twice

// TestTheSameWorld: a world with few chunks has the same tiles as one that evicts nothing.
func TestTheSameWorld(t *testing.T) {
	tiles := func(n int) (string, uint64) {
		w := live(t, n)
		for range ticks {
			require.NoError(t, w.Tick())
			require.LessOrEqual(t, w.chunks.Len(), n)
		}
		s := w.chunks.Stats()
		assert.Zero(t, s.Pinned)
		require.NoError(t, w.chunks.Clear(), "writes the others")
		file, err := os.ReadFile(disk.Name())
		require.NoError(t, err)
		return strings.TrimRight(string(file), "\x00"), s.Evictions
	}
	all, none := tiles(1000)
	assert.Zero(t, none)
	assert.Greater(t, strings.Count(all, string(rune(Moss))), 2000, "moss grows")
	for _, n := range []int{50, 80} {
		few, evictions := tiles(n)
		assert.NotZero(t, evictions)
		assert.True(t, all == few, "%d chunks", n)
	}
}

// TestTooFewChunks: the view's chunks aren't pinned at once, so even two are enough; one isn't, for
// a chunk and its neighbor.
func TestTooFewChunks(t *testing.T) {
	w := live(t, 2)
	for range 300 {
		require.NoError(t, w.Tick())
	}
	w = live(t, 1)
	var err error
	for i := 0; i < 300 && err == nil; i++ {
		err = w.Tick()
	}
	require.ErrorIs(t, err, scope.ErrFull)
	require.ErrorContains(t, err, "a cache has 1 of 1 values of main.Chunk pinned, and 0 in load")
}

// TestNoGarbage: a tick that streams makes no Go allocation.
func TestNoGarbage(t *testing.T) {
	if arena_c.Checked || arena_c.Race || arena_c.Asan {
		t.Skip("this build allocates for itself: go test ./tests/tiles runs it")
	}
	w := live(t, 60)
	before := w.chunks.Stats().Evictions
	assert.Zero(t, testing.AllocsPerRun(ticks, func() {
		if err := w.Tick(); err != nil {
			t.Error(err)
		}
	}))
	assert.Greater(t, w.chunks.Stats().Evictions-before, uint64(100))
}

// TestADiskThatFails: the chunk isn't kept, and the next tick reads it again.
func TestADiskThatFails(t *testing.T) {
	w := live(t, 80)
	whole := disk
	bad, err := os.OpenFile(disk.Name(), os.O_WRONLY, 0)
	require.NoError(t, err)
	disk = bad
	require.Error(t, w.Tick())
	assert.Zero(t, w.chunks.Len())
	assert.Zero(t, w.chunks.Stats().Pinned)
	disk = whole
	require.NoError(t, bad.Close())
	require.NoError(t, w.Tick())
}

func TestPlay(t *testing.T) {
	name := filepath.Join(t.TempDir(), "world.tiles")
	var out strings.Builder
	require.NoError(t, play(name, true, &out))
	page, err := os.ReadFile("../../scope/cache/README.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`world: cache of .*`).FindString(out.String())
	require.NotEmpty(t, line, out.String())
	assert.Contains(t, string(page), "    "+line+"\n")
	require.NoError(t, play(name, true, io.Discard), "and goes on")
	assert.Error(t, play(t.TempDir(), true, io.Discard))
}

// TestPage: the page shows this program, and the example of package cache.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../scope/cache/README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	example, err := os.ReadFile("../../scope/cache/example_blocks_test.go")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "\n```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```\n")
		for part := range strings.SplitSeq(block, "\n\n") {
			assert.Contains(t, string(source)+string(example), strings.TrimRight(part, "\n")+"\n")
		}
	}
	assert.LessOrEqual(t, strings.Count(string(source), "\n"), 200)
}
