package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// last plays with these arguments and returns the result of the last map.
func last(t *testing.T, args string) LevelResult {
	t.Helper()
	r, _ := play(t, 0, strings.Fields(args)...)
	require.NotEmpty(t, r.Levels)
	return r.Levels[len(r.Levels)-1]
}

const three = "-wad builtin -maps MAP03 "

// A game that is saved, and continued in another run with the same inputs, ends in the same state
// as a game played in one run.
func TestSaveAndLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	straight := last(t, three+"-ticks 150 -demo inputs -save straight")
	assert.Equal(t, straight.Hash, last(t, three+"-ticks 150").Hash, "who records plays as ever")
	last(t, three+"-playdemo inputs -ticks 50 -save at50")
	last(t, three+"-playdemo inputs -load at50 -ticks 100 -save at100 -workers 4")
	end := last(t, three+"-playdemo inputs -load at100 -ticks 150 -save end")
	assert.Equal(t, straight.Hash, end.Hash)
	assert.Equal(t, straight.StateHash, end.StateHash)
	assert.Equal(t, 150, *end.Ticks)
	if build == "release" {
		assert.Less(t, *end.GoAllocs, uint64(100), "of the ticks from 100 on")
	}
	for _, file := range []string{"at100", "end"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Less(t, len(text), 256<<10)
	}
	a, err := os.ReadFile("straight")
	require.NoError(t, err)
	b, err := os.ReadFile("end")
	require.NoError(t, err)
	assert.True(t, bytes.Equal(a, b), "the same file, however one came there")

	bots := last(t, three+"-load at50 -ticks 150")
	assert.Equal(t, 150, *bots.Ticks, "bots go on")
	assert.Equal(t, bots.Hash, last(t, three+"-load at50 -ticks 150 -synctest").Hash)
	none := last(t, three+"-load end -ticks 150")
	assert.Equal(t, straight.StateHash, none.StateHash, "no tick is left")
	assert.Nil(t, none.GoAllocs)
	assert.Equal(t, TickTimes{}, none.TickTime)
}

// Inputs are played to their end, with and without lateness.
func TestReplay(t *testing.T) {
	t.Chdir(t.TempDir())
	straight := last(t, three+"-ticks 60 -demo inputs")
	text, err := os.ReadFile("inputs")
	require.NoError(t, err)
	assert.Len(t, text, 64+60*8*binary.Size(game.Input{}))
	assert.Equal(t, straight.Hash, last(t, three+"-ticks 60 -playdemo inputs").Hash)

	// more inputs than ticks
	assert.Equal(t, last(t, three+"-ticks 40").Hash, last(t, three+"-ticks 40 -playdemo inputs").Hash)
	assert.Zero(t, *last(t, three+"-ticks 40 -playdemo inputs -rollback 8").Desyncs)

	// fewer inputs than ticks: bots go on, and are recorded
	longer := last(t, three+"-ticks 90 -playdemo inputs -demo longer")
	text, err = os.ReadFile("longer")
	require.NoError(t, err)
	assert.Len(t, text, 64+90*8*binary.Size(game.Input{}))
	assert.Equal(t, longer.Hash, last(t, three+"-ticks 90 -playdemo longer").Hash)
	assert.Zero(t, *last(t, three+"-ticks 90 -playdemo inputs -rollback 8").Desyncs)

	// unfit inputs: the game goes on
	noise, err := os.ReadFile("inputs")
	require.NoError(t, err)
	for i := range noise[64:] {
		noise[64+i] = byte(i*i>>3 ^ i)
	}
	require.NoError(t, os.WriteFile("noise", noise, 0o644))
	assert.Zero(t, *last(t, three+"-ticks 60 -playdemo noise -rollback 8").Desyncs)
}

func damaged(t *testing.T, name string, file []byte, at int) {
	t.Helper()
	file = bytes.Clone(file)
	file[at] ^= 1
	require.NoError(t, os.WriteFile(name, file, 0o644))
}

// A file that can't be loaded, saved, recorded or replayed is reported in a line. No new file is
// left.
func TestBadSaves(t *testing.T) {
	t.Chdir(t.TempDir())
	last(t, three+"-ticks 20 -save saved -demo inputs")
	saved, err := os.ReadFile("saved")
	require.NoError(t, err)
	damaged(t, "head", saved, 30)
	damaged(t, "text", saved, 100)
	damaged(t, "image", saved, len(saved)-1)
	require.NoError(t, os.WriteFile("short", saved[:len(saved)-5], 0o644))
	require.NoError(t, os.WriteFile("odd", make([]byte, 100), 0o644))
	inputs, err := os.ReadFile("inputs")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("shortdemo", inputs[:len(inputs)-5], 0o644))
	inputs[8] = 0 // the version
	require.NoError(t, os.WriteFile("olddemo", inputs, 0o644))
	later := bytes.Clone(saved) // with a right checksum
	later[24+4] = 1             // the fifth byte of its number
	binary.LittleEndian.PutUint32(later[48:],
		crc32.Checksum(later[:48], crc32.MakeTable(crc32.Castagnoli)))
	require.NoError(t, os.WriteFile("later", later, 0o644))

	for _, test := range []struct {
		args string
		code int
		line string
	}{
		{"-maps MAP04 -load saved", 1, `-load saved: save: a file for region level, byte 56: it is of ` +
			`another program, plan or data: the state of region level depends on map MAP04, sum .* on map MAP03`},
		{"-maps MAP03 -seed 2 -load saved", 1,
			`-load saved: .*: the state of region level depends on map MAP03, sum .* and on map MAP03, sum `},
		{"-maps MAP03 -bots 7 -load saved", 1,
			`-load saved: .*: it is of another program, plan or data: .*Player`},
		{"-load saved -maps MAP03,MAP04", 1, `-load saved: .*another program, plan or data`},
		{"-maps MAP03 -load head", 1, `-load head: .*, byte 48: the header is damaged`},
		{"-maps MAP03 -load text", 1, `-load text: .*, byte 56: the description is damaged`},
		{"-maps MAP03 -load image", 1, `-load image: .*: the snapshot is damaged`},
		{"-maps MAP03 -load short", 1,
			`-load short: .*: the file ends early: 5 of the \d+ bytes of the snapshot are missing`},
		{"-maps MAP03 -load odd", 1, `-load odd: .*, byte 0: it isn't a snapshot file`},
		{"-maps MAP03 -load later", 1,
			`-load later: its head says tick 4294967316, and its state is of tick 20`},
		{"-maps MAP03 -load saved -ticks 19", 1, `-load saved: it is of tick 20, and -ticks is 19`},
		{"-maps MAP03 -load absent", 1, `-load: open absent: ` + refusal("absent")},
		{"-maps MAP03 -load .", 1, `-load \.: .*` + refusal(".")},
		{"-maps MAP03 -playdemo absent", 1, `-playdemo: open absent: ` + refusal("absent")},
		{"-maps MAP03 -playdemo odd", 1,
			`-playdemo odd: byte 0: it starts with "[^"]*", not with "frogdemo"`},
		{"-maps MAP03 -playdemo olddemo", 1,
			`-playdemo olddemo: byte 8: it is of version 0; this program reads 1`},
		{"-maps MAP03 -playdemo shortdemo", 1,
			`-playdemo shortdemo: byte 1979: the file ends within a tick, 19 of 20: unexpected EOF`},
		{"-maps MAP03 -playdemo inputs -bots 7", 1,
			`-playdemo inputs: it is of 8 players, and -bots is 7`},
		{"-maps MAP03 -playdemo inputs -seed 2", 1,
			`-playdemo inputs: it is of seed 1, and -seed is 2`},
		{"-maps MAP04 -playdemo inputs", 1, `-playdemo inputs: it is of map MAP03, and not of MAP04`},
		{"-maps MAP03 -save absent/file", 1,
			`-save absent/file: open absent/file.new: ` + refusal("absent/file")},
		{"-maps MAP03 -demo absent/file", 1,
			`-demo absent/file: open absent/file: ` + refusal("absent/file")},
		{"-rollback 1", 2, `-rollback 1: 2 at least, or 0 for none`},
		{"-rollback -8", 2, `-rollback -8: 2 at least, or 0 for none`},
		{"-rollback 8 -synctest", 2, `-rollback plays whole games: not with -load or -synctest`},
		{"-rollback 8 -load saved", 2, `-rollback plays whole games: not with -load or -synctest`},
		{"-demo new -load saved", 2, `-demo writes the inputs of whole games: not with -load`},
		{"-plant reset", 2, `-plant reset: needs -synctest, which finds it`},
		{"-synctest -plant clock", 2,
			`invalid value "clock" for flag -plant: a plant is one of address, reset, order`},
		{"-bots 0 -rollback 8", 2, `-bots 0: -rollback, -demo, -playdemo and -plant need a player`},
	} {
		var stderr bytes.Buffer
		args := append([]string{"-wad", "builtin", "-ticks", "30"}, strings.Fields(test.args)...)
		assert.Equal(t, test.code, run(t.Context(), args, io.Discard, &stderr), test.args)
		first, _, _ := strings.Cut(stderr.String(), "\n")
		assert.Regexp(t, `^(frogpond: )?`+test.line, first, test.args)
	}
	assert.NoFileExists(t, "new")
}
