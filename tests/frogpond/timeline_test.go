package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// readTimeline returns the timeline in a file, and the line of one region.
func readTimeline(t *testing.T, file, region string) (timeline.Data, timeline.Arena) {
	t.Helper()
	d := timelineIn(t, file)
	i := slices.IndexFunc(d.Arenas, func(line timeline.Arena) bool { return line.Name == region })
	require.GreaterOrEqual(t, i, 0)
	return d, d.Arenas[i]
}

func timelineIn(t *testing.T, file string) (d timeline.Data) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// A timeline has every tick of every map, and the peaks of the report. It allocates nothing during
// play.
func TestTimeline(t *testing.T) {
	file := filepath.Join(t.TempDir(), "timeline.json")
	var plain, stderr bytes.Buffer
	const ticks = 200
	args := []string{"-wad", doom.Builtin, "-ticks", strconv.Itoa(ticks), "-json"}
	require.Zero(t, run(t.Context(), args, &plain, &stderr), stderr.String())
	var result bytes.Buffer
	require.Zero(t, run(t.Context(), append(args, "-timeline", file), &result, &stderr), stderr.String())
	var without, with Result
	require.NoError(t, json.Unmarshal(plain.Bytes(), &without))
	require.NoError(t, json.Unmarshal(result.Bytes(), &with))

	d, level := readTimeline(t, file, "level")
	assert.EqualValues(t, ticks*len(with.Levels), d.Ticks)
	assert.Equal(t, with.Report.Arenas[2].Peak, slices.Max(level.Most))
	require.NotEmpty(t, d.Expected, "the plan's")
	for _, e := range d.Expected {
		for i, m := range d.Moments(e) {
			if _, most := e.Band(m.Expected); m.Expected != 0 {
				require.LessOrEqual(t, m.Used, most, "%s, %s in sample %d", e.Part, m.At, i)
			}
		}
	}
	loads := 0
	for _, mark := range level.Marks {
		assert.Zero(t, mark&timeline.MarkFull)
		loads += int(mark & timeline.MarkLoad)
	}
	assert.Equal(t, len(with.Levels), loads)
	for _, scratch := range []string{"frame 0", "frame 1", "scratch 0.0"} {
		_, line := readTimeline(t, file, scratch)
		assert.Equal(t, with.Report.Arena(scratch).Peak, slices.Max(line.Most), scratch)
	}
	for i, l := range with.Levels {
		assert.Equal(t, without.Levels[i].StateHash, l.StateHash)
		if most := without.Levels[i].GoAllocs; assert.Equal(t, most == nil, l.GoAllocs == nil) && most != nil {
			again := []string{"-wad", doom.Builtin, "-timeline", filepath.Join(t.TempDir(), "again.json")}
			assert.True(t, quiet(t, l, *most, ticks, again), l.Name)
		}
	}
	var picture bytes.Buffer
	require.NoError(t, view.Timeline(&picture, d))
	assert.Less(t, picture.Len(), 200<<10)
}
