package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
)

// writeWAD writes a file of maps into the current folder.
func writeWAD(t *testing.T, name string, maps ...[]doom.Lump) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, doom.MakeWAD(slices.Concat(maps...)), 0o644))
}

// A later file's map replaces that of its name wherever maps are played, and that is said.
func TestLaterFilesReplace(t *testing.T) {
	t.Chdir(t.TempDir())
	writeWAD(t, "first.wad", doomtest.GoodMap(), doomtest.Second(doomtest.GoodMap()))
	writeWAD(t, "second.wad", doomtest.OtherMap())
	const said = "frogpond: second.wad replaces MAP01 of first.wad\n"
	played := func(wads string) (hashes []string) {
		r, stderr := play(t, 0, "-ticks", "100", "-wad", wads)
		assert.Equal(t, strings.Contains(wads, ","), stderr != "", stderr)
		for _, l := range r.Levels {
			hashes = append(hashes, l.Name+" "+*l.Hash)
		}
		return hashes
	}
	first, second := played("first.wad"), played("second.wad")
	require.NotEqual(t, first[0], second[0])
	assert.Equal(t, []string{second[0], first[1]}, played("first.wad,second.wad"))
	assert.Equal(t, first, played("second.wad,first.wad"))

	var stdout, stderr bytes.Buffer
	args := []string{"-wad", "first.wad", "-wad", "second.wad"}
	require.Equal(t, 0, run(t.Context(), append(args, "-flow", "MAP01"), &stdout, &stderr))
	assert.Equal(t, said, stderr.String())

	rec := recorderOf(t, "second.wad")
	_, hash := rec.play(0, 1, 0, 4, 20)
	stderr.Reset()
	stdout.Reset()
	require.Equal(t, 0, run(t.Context(), append(append([]string{"offline"}, args...), rec.dir), &stdout, &stderr))
	assert.Equal(t, said, stderr.String())
	assert.Contains(t, stdout.String(), hash)
}
