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

func writeWAD(t *testing.T, name string, maps ...[]doom.Lump) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, doom.MakeWAD(slices.Concat(maps...)), 0o644))
}

// A later file's map replaces the map of the same name wherever maps are played, and a line reports
// the replacement.
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

// Maps that can't be loaded, empty ones among them, are reported. The others are played.
func TestBadMapsKeepNone(t *testing.T) {
	t.Chdir(t.TempDir())
	empty := []doom.Lump{{Name: "E1M1"}}
	for _, l := range doomtest.GoodMap()[1:] {
		empty = append(empty, doom.Lump{Name: l.Name})
	}
	writeWAD(t, "maps.wad", empty, doomtest.GoodMap(), []doom.Lump{{Name: "E1M2"}},
		doomtest.Second(doomtest.OtherMap()))
	for _, how := range [][]string{nil, {"-sweep"}} {
		r, stderr := play(t, 1, append(how, "-ticks", "20", "-wad", "maps.wad")...)
		assert.Equal(t, "frogpond: E1M1: not run: maps.wad: E1M1: LINEDEFS: offset 12: is empty\n"+
			"frogpond: E1M2: not run: maps.wad: E1M2: THINGS: offset 240: the map has no such lump\n", stderr)
		var played []string
		for _, l := range r.Levels {
			if l.Error == "" {
				played = append(played, l.Name)
			}
		}
		assert.Equal(t, []string{"MAP01", "MAP02"}, played)
		assert.Len(t, r.Levels, 4)
		assert.Zero(t, r.Leaks)
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-v", "-ticks", "20", "-wad", "maps.wad"}, &stdout, &stderr))
	assert.Contains(t, stdout.String(), "Everything fitted.\nNot run, as it can't be loaded: E1M1, E1M2.\n")
	assert.Regexp(t, `(?m)^ +E1M2 +not run *$`, stdout.String())
}
