package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
)

func TestCommands(t *testing.T) {
	var help, unknown bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"help"}, &help, io.Discard))
	require.Equal(t, 2, run(t.Context(), []string{"frogs"}, io.Discard, &unknown))
	for _, c := range commands {
		line := "\n  frogpond " + c.name + " "
		assert.Contains(t, help.String(), line)
		assert.Contains(t, unknown.String(), line)
		var usage bytes.Buffer
		assert.Equal(t, 0, run(t.Context(), []string{c.name, "-h"}, io.Discard, &usage))
		assert.Contains(t, usage.String(), "frogpond "+c.name)
		assert.Equal(t, 2, run(t.Context(), []string{c.name, "-frogs"}, io.Discard, io.Discard))
	}
	var stderr bytes.Buffer
	assert.Equal(t, 2, run(t.Context(), []string{"scores", "a", "-n", "3", "b"}, io.Discard, &stderr))
	assert.Equal(t, "frogpond scores: needs one FILE, and was given 2\n", stderr.String())
}

// Scores are summed up by name, the best first; what is torn or damaged is told.
func TestScoresCommand(t *testing.T) {
	name := filepath.Join(t.TempDir(), "scores")
	file, _, err := disk.OpenScores(name)
	require.NoError(t, err)
	defer file.Close()
	for i, s := range []struct {
		name           string
		caught, deaths uint32
	}{{"ann", 3, 1}, {"bob", 7, 1}, {"\x1b[2J", 7, 0}, {"ann", 5, 0}, {"", 0, 9}} {
		c := disk.Score{Seconds: int64(1000 * i), Ticks: 35 * 30, Caught: s.caught, Deaths: s.deaths,
			Exits: 1, Map: [8]byte{'M', 'A', 'P', '0', '1' + byte(i)}}
		copy(c.Name[:], s.name)
		require.NoError(t, file.Append([]disk.Score{c}))
	}
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"scores", name, "-n", "3"}, &stdout, &stderr))
	assert.Empty(t, stderr.String())
	assert.Equal(t, `NAME  GAMES  MINUTES  CAUGHT  BEST  ON     DEATHS  EXITS
ann   2      1.0      8       5     MAP04  1       2
?[2J  1      0.5      7       7     MAP03  0       1
bob   1      0.5      7       7     MAP02  1       1
`, stdout.String())

	stdout.Reset()
	require.Equal(t, 0, run(t.Context(), []string{"scores", "-json", name}, &stdout, &stderr))
	var table []Standing
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &table))
	require.Len(t, table, 4)
	assert.Equal(t, Standing{"ann", 2, 2 * 35 * 30, 8, 1, 2, 5, "MAP04", time.Unix(3000, 0).UTC()},
		table[0])
	assert.Equal(t, "-", table[3].Name)

	data, err := os.ReadFile(name)
	require.NoError(t, err)
	data[70]++
	require.NoError(t, os.WriteFile(name, append(data, "FSC1"...), 0o644))
	stdout.Reset()
	require.Equal(t, 1, run(t.Context(), []string{"scores", "-json", name}, &stdout, &stderr))
	assert.Equal(t, "frogpond: "+name+": the last 4 bytes are torn\nfrogpond: "+name+
		": byte 64: a score is damaged, and others after it are not\n", stderr.String())
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &table))
	assert.Len(t, table, 3)
	assert.Equal(t, 1, run(t.Context(), []string{"scores", name + "?"}, io.Discard, io.Discard))
	assert.Equal(t, 1, run(t.Context(), []string{"scores", "main.go"}, io.Discard, io.Discard))
}
