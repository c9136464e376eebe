package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestPictures checks that the six files are small, and the same each time except for the Go
// heap's share in the report.
func TestPictures(t *testing.T) {
	drawn := func() (r Result, files map[string][]byte) {
		folder := filepath.Join(t.TempDir(), "new", "pictures")
		r, _ = play(t, 0, "-wad", doom.Builtin, "-maps", "MAP01,MAP03,MAP02", "-ticks", "40", "-pictures", folder)
		list, err := os.ReadDir(folder)
		require.NoError(t, err)
		files = map[string][]byte{}
		for _, f := range list {
			files[f.Name()], err = os.ReadFile(filepath.Join(folder, f.Name()))
			require.NoError(t, err)
		}
		return r, files
	}
	r, files := drawn()
	_, again := drawn()
	largest := uint64(0)
	for _, l := range r.Levels {
		largest = max(largest, *l.Used)
	}
	for _, name := range []string{"plan", "report", "timeline", "inside"} {
		picture := files[name+".svg"]
		require.NotEmpty(t, picture, name)
		assert.Less(t, len(picture), 200<<10, name)
		for decoder := xml.NewDecoder(bytes.NewReader(picture)); ; {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
		}
		if name != "report" {
			assert.Equal(t, string(again[name+".svg"]), string(picture), name)
		}
	}
	assert.Equal(t, string(again["plan.txt"]), string(files["plan.txt"]))
	assert.Len(t, files, 6)
	assert.Contains(t, string(files["report.txt"]), budget.SizeText(largest), "of the map that fills the level most")
	head, _, _ := strings.Cut(string(files["inside.svg"]), "</title>")
	assert.Contains(t, strings.ReplaceAll(head, ",", ""), " "+strconv.FormatUint(largest, 10)+" of ", "likewise")
}

// TestPicturesCantBeWritten checks the message and the exit code.
func TestPicturesCantBeWritten(t *testing.T) {
	_, stderr := play(t, 1, "-wad", doom.Builtin, "-maps", "MAP01", "-ticks", "1", "-pictures", "pictures.go")
	assert.Contains(t, stderr, "frogpond: -pictures: mkdir pictures.go: ")
}

// TestSawTooth checks that README's picture of use over time is the program's for all maps.
func TestSawTooth(t *testing.T) {
	step.Needs(t, step.Check)
	needsFreedoom(t)
	if freedoomName(t) != "freedoom-8a69bb9b" {
		step.Lacks(t, otherRelease, "")
	}
	folder := t.TempDir()
	play(t, 0, "-ticks", "35", "-pictures", folder)
	drawn, err := os.ReadFile(filepath.Join(folder, "timeline.svg"))
	require.NoError(t, err)
	file := filepath.Join("testdata", "timeline.svg")
	if *update {
		require.NoError(t, os.WriteFile(file, drawn, 0o644))
	}
	committed, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(committed), string(drawn), "make readme draws it anew")
	assert.Less(t, len(drawn), 200<<10)
}
