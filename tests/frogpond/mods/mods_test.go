package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/step"
)

const ticks = 70

// playing returns options for three built-in levels.
func playing(file string) *options {
	return &options{file: filepath.Join("testdata", file), bots: 8, most: 1 << 20, limit: time.Minute,
		Options: game.Options{WADs: []string{doom.Builtin}, Maps: "MAP01,MAP02,MAP03", Log: os.DevNull,
			Ticks: ticks, Workers: 1, Seed: 1}}
}

func without(t *testing.T) (hashes []doom.Hash) {
	parsed, err := budget.ParsePlan(plan)
	require.NoError(t, err)
	b, err := budget.Open(parsed)
	require.NoError(t, err)
	o := playing("")
	s, err := game.Boot(t.Context(), o.Options, b)
	require.NoError(t, err)
	for _, m := range s.Maps {
		level, err := s.Load(t.Context(), m, o.bots)
		require.NoError(t, err)
		g, err := s.Begin(level, o.Seed)
		require.NoError(t, err)
		for range o.Ticks {
			require.NoError(t, g.Step())
		}
		hashes = append(hashes, g.Hash())
	}
	s.Stop()
	require.NoError(t, b.Close())
	return hashes
}

// TestGood checks that good mods choose, and that their games differ from the plain one but not
// from each other.
func TestGood(t *testing.T) {
	plain := without(t)
	for _, file := range []string{"shy.wasm", "choir.wasm"} {
		played, err := playing(file).play(t.Context())
		require.NoError(t, err)
		again, err := playing(file).play(t.Context())
		require.NoError(t, err)
		for i, p := range played {
			require.NoError(t, p.thrownOut, "%v", p)
			assert.Equal(t, ticks, p.ticks)
			assert.Greater(t, p.chosen, 100)
			assert.NotEqual(t, plain[i], p.hash)
			assert.Equal(t, p.hash, again[i].hash)
			assert.Zero(t, p.left)
		}
		if file == "choir.wasm" {
			assert.Greater(t, played[0].room.Croaked, uint64(100))
		}
	}
}

// bad lists misbehaving mods, and the reason to throw each out. If a mod made no choice, the game
// ends as without mods.
var bad = []struct {
	file, why string
	in        int // the tick; -1: as soon as a frog waits
	changes   bool
}{
	{"trap.wasm", "wasm error: unreachable", 0, false},
	{"loop.wasm", "it takes more than 20ms for a tick", 0, false},
	{"grow.wasm", "it takes more than 20ms for a tick", 0, false},
	{"late.wasm", "wasm error: out of bounds memory access", 35, true},
	{"nonsense.wasm", "it chooses a heading of 16, a hop of 255 ticks and 0 croaks for frog ", -1, false},
	{"nowhere.wasm", "it gives 169 frogs their places at 131071, in 131072 bytes of memory", 0, false},
	{"vast.wasm", "Memory.Most allows 1048576: raise it: upfront: full", 0, false},
	{"other.wasm", "it doesn't export a memory, and frogs and tick as in frog.h", 0, false},
	{"needs.wasm", "module[env] not instantiated", 0, false},
}

// TestThrownOut checks that a mod that misbehaves is thrown out, that its memory is freed, and that
// the room goes on.
func TestThrownOut(t *testing.T) {
	plain := without(t)
	for _, row := range bad {
		t.Run(row.file, func(t *testing.T) {
			o := playing(row.file)
			if strings.Contains(row.why, "20ms") {
				o.limit = 20 * time.Millisecond
			}
			played, err := o.play(t.Context())
			require.NoError(t, err)
			require.Len(t, played, len(plain))
			require.ErrorContains(t, played[0].thrownOut, row.why)
			for i, p := range played {
				require.Error(t, p.thrownOut)
				assert.Equal(t, ticks, p.ticks)
				assert.Zero(t, p.left, "bytes of the mod")
				assert.Equal(t, row.changes, p.hash != plain[i])
				if row.in >= 0 {
					assert.Equal(t, row.in, p.in)
				}
			}
		})
	}
}

// TestFull checks that a region too small for a mod's largest memory is an ErrFull with the size.
func TestFull(t *testing.T) {
	o := playing("shy.wasm")
	o.most = 8 << 20
	played, err := o.play(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, played[0].thrownOut, budget.ErrFull)
	require.ErrorContains(t, played[0].thrownOut, "Memory.From has no 8388608 bytes")
	assert.Zero(t, played[0].left)
	o.most = 1 << 16
	played, err = o.play(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, played[0].thrownOut, "begins with 196608 bytes of memory")
}

// TestDamaged checks that a truncated module is refused, or thrown out at once.
func TestDamaged(t *testing.T) {
	whole := read(t, "testdata/shy.wasm")
	file := filepath.Join(t.TempDir(), "damaged.wasm")
	for end := range len(whole) {
		require.NoError(t, os.WriteFile(file, whole[:end], 0o600))
		o := playing("")
		o.file, o.Ticks, o.Maps = file, 1, "MAP01"
		played, err := o.play(t.Context())
		if err == nil { // it was cut between two sections
			require.Error(t, played[0].thrownOut, end)
		}
	}
}

func TestRun(t *testing.T) {
	for _, row := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"-mods testdata/shy.wasm -limit 1m -wad builtin -maps MAP01 -ticks 70", 0, "shy.wasm chose ", ""},
		{"-mods testdata/trap.wasm -limit 1m -wad builtin -maps MAP01 -ticks 70", 3,
			"trap.wasm chose 0 times, and was thrown out in tick 0: wasm error: unreachable\n", ""},
		{"-mods testdata/shy.wasm -rollback 8", 2, "", "-rollback: not with -mods: "},
		{"", 2, "", "-mods: the file of a mod is missing"},
		{"-mods nowhere.wasm", 1, "", "no such file"},
		{"-mods testdata/shy.c", 1, "", "testdata/shy.c: invalid magic number"},
		{"-mods testdata/shy.wasm -limit 0s", 2, "", "-limit"},
		{"-mods testdata/shy.wasm -wad builtin -maps NONE", 1, "", `no map "NONE"`},
		{"-mods testdata/shy.wasm more", 2, "", "unexpected argument"},
		{"-h", 0, "", "-mods"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, row.code, run(t.Context(), strings.Fields(row.args), &stdout, &stderr), row.args)
		assert.Contains(t, stdout.String(), row.stdout)
		assert.Contains(t, stderr.String(), row.stderr)
	}
}

func TestRebuilt(t *testing.T) {
	step.Needs(t, step.Check)
	for tool, debian := range map[string]string{"clang": "clang", "wasm-ld": "lld"} {
		if _, err := exec.LookPath(tool); err != nil {
			step.Lacks(t, tool, debian)
		}
	}
	dir := t.TempDir()
	out, err := exec.Command("sh", "testdata/build.sh", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	version, err := exec.Command("clang", "--version").Output()
	require.NoError(t, err)
	files, err := filepath.Glob("testdata/*.wasm")
	require.NoError(t, err)
	require.Len(t, files, len(bad)+2)
	for _, file := range files {
		committed, built := read(t, file), read(t, filepath.Join(dir, filepath.Base(file)))
		// other versions make other code
		if strings.Contains(string(version), "clang version 14.") {
			assert.True(t, bytes.Equal(committed, built), fmt.Sprint(file, " isn't what its source says"))
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return text
}

// A file of 40 GB isn't read, since the size of a mod is bounded.
func TestHugeMod(t *testing.T) {
	name := filepath.Join(t.TempDir(), "huge.wasm")
	require.NoError(t, os.WriteFile(name, nil, 0o644))
	if err := os.Truncate(name, 40e9); err != nil {
		t.Skip("with a TMPDIR that has sparse files, go test . runs it:", err)
	}
	_, err := readMod(name)
	assert.EqualError(t, err, "a mod has at most 16777216 bytes")
}
