package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	assert.Equal(t, "frogpond scores: needs one FILE, not 2\n", stderr.String())
}

// Scores are summed up by name, with the most frogs caught first. Torn or damaged scores are
// reported.
func TestScoresCommand(t *testing.T) {
	name := filepath.Join(t.TempDir(), "scores")
	file, _, err := disk.OpenScores(name)
	require.NoError(t, err)
	defer file.Close()
	for i, s := range []struct {
		name               string
		player, ticks      uint32
		caught, deaths, on byte
	}{{"ann", 0, 10, 2, 0, '1'}, {"ann", 1, 10, 1, 0, '1'}, // one name, two players
		{"ann", 0, 20, 2, 1, '1'}, {"ann", 1, 20, 4, 0, '1'},
		{"bob", 2, 20, 7, 1, '1'}, {"\x1b[2J", 3, 20, 7, 0, '1'}, {"", 4, 20, 0, 9, '1'},
		{"ann", 0, 5, 3, 1, '1'}} { // a new game
		c := disk.Score{Seconds: int64(1000 * i), Player: s.player, Ticks: s.ticks,
			Caught: uint32(s.caught), Deaths: uint32(s.deaths), Exits: 1,
			Map: [8]byte{'M', 'A', 'P', '0', s.on}}
		copy(c.Name[:], s.name)
		require.NoError(t, file.Append([]disk.Score{c}))
	}
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"scores", name, "-n", "3"}, &stdout, &stderr))
	assert.Empty(t, stderr.String())
	assert.Equal(t, `NAME  GAMES  CAUGHT  BEST  ON     DEATHS  EXITS
ann   3      9       4     MAP01  2       3
�[2J  1      7       7     MAP01  0       1
bob   1      7       7     MAP01  1       1
`, stdout.String())

	stdout.Reset()
	require.Equal(t, 0, run(t.Context(), []string{"scores", "-json", name}, &stdout, &stderr))
	var table []Standing
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &table))
	require.Len(t, table, 4)
	assert.Equal(t, Standing{"ann", 3, 9, 2, 3, 4, "MAP01", time.Unix(7000, 0).UTC()}, table[0])
	assert.Equal(t, "-", table[3].Name)

	data, err := os.ReadFile(name)
	require.NoError(t, err)
	data[64*4]++ // bob
	require.NoError(t, os.WriteFile(name, append(data, "FSC1"...), 0o644))
	stdout.Reset()
	require.Equal(t, 1, run(t.Context(), []string{"scores", "-json", name}, &stdout, &stderr))
	assert.Equal(t, "frogpond: "+name+": the last 4 bytes are torn\nfrogpond: "+name+
		": byte 256: a score is damaged, and others after it are not\n", stderr.String())
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &table))
	assert.Len(t, table, 3)
	assert.Equal(t, 1, run(t.Context(), []string{"scores", name + "?"}, io.Discard, io.Discard))
	assert.Equal(t, 1, run(t.Context(), []string{"scores", "main.go"}, io.Discard, io.Discard))
}

func readScores(name string) (list []disk.Score, torn int, err error) {
	torn, err = disk.ReadScores(name, func(c *disk.Score) error {
		list = append(list, *c)
		return nil
	})
	return list, torn, err
}

// A file with scores of too many games is shown up to the limit, with an error.
func TestScoresOfManyGames(t *testing.T) {
	var last lastScores
	for i := range uint32(3) {
		require.NoError(t, last.add(&disk.Score{Epoch: i, Caught: 1}))
	}
	last.games = slices.Grow(last.games, gamesMost)[:gamesMost]
	assert.EqualError(t, last.add(&disk.Score{Epoch: 3}),
		"it has scores of more than 1048576 games; only the first of them are shown")
	require.NoError(t, last.add(&disk.Score{Epoch: 2, Caught: 9}), "of one that is kept")
	assert.EqualValues(t, 9, last.games[2].Caught)
}
