package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// TestVersions runs each version twice. Each time the sum is the program's, and the plan is large
// enough. A version with upfront makes at most a tenth of its twin's garbage.
func TestVersions(t *testing.T) {
	step.Needs(t, step.Gate)
	slow := arena_c.Race || arena_c.Asan
	rounds := 2
	if slow {
		rounds = 1
	}
	for _, p := range programs {
		var twin uint64
		var misses int
		for i, v := range p.versions {
			for range rounds {
				sum, m, err := work.Run(v.run)
				require.NoError(t, err, "%s/%s", p.name, v.name)
				require.NoError(t, p.check(v, sum))
				garbage := m.Garbage()
				if i == 0 {
					twin, misses = garbage, m.Misses()
				}
				assert.InDelta(t, misses, m.Misses(), float64(misses)/100, "%s/%s: misses", p.name, v.name)
				if i == 0 {
					continue
				}
				if !arena_c.Checked && !slow { // these builds record callers
					assert.LessOrEqual(t, float64(garbage), mostGarbage*float64(twin), "%s/%s: bytes on the Go heap",
						p.name, v.name)
				}
			}
		}
	}
}

// TestCommand runs a program as make strangers does: each version in a process of its own.
func TestCommand(t *testing.T) {
	step.Needs(t, step.Gate)
	command := filepath.Join(t.TempDir(), "strangers")
	out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	shown := exec.Command(command, "-rounds", "1", "-programs", "game")
	shown.Stderr = os.Stderr
	text, err := shown.Output()
	require.NoError(t, err)
	assert.Equal(t, 2+len(programs[3].versions), bytes.Count(text, []byte("\n")), string(text))
	assert.Contains(t, string(text), "\n| game, Go | ")
	out, err = exec.Command(command, "-one", "game/C").CombinedOutput()
	assert.Error(t, err)
	assert.Equal(t, "strangers: -one: no version \"game/C\"\n", string(out))
}

func TestChoose(t *testing.T) {
	chosen, err := choose("game,rooms")
	require.NoError(t, err)
	require.Len(t, chosen, 2)
	assert.Equal(t, "game", chosen[0].name)
	assert.Equal(t, "rooms", chosen[1].name)
	_, err = choose("game,pong")
	assert.EqualError(t, err, `-programs: no program "pong"`)
	err = programs[0].check(programs[0].versions[0], 1)
	assert.ErrorContains(t, err, "rooms/Go: the sum is 0x1, and the program's is 0x")
	assert.NoError(t, programs[0].check(programs[0].versions[0], programs[0].sum))
}

// TestTable checks medians, ratios to the twin, and bold figures above their targets.
func TestTable(t *testing.T) {
	p := program{name: "rooms", versions: []version{
		{name: "Go", file: "twin/rooms.go"},
		{name: "Upfront", file: "twin/rooms.go"},
	}}
	seen := map[string][]figures{
		"rooms/Go": {
			{CPU: 9, Garbage: 9, Slowest: 100, Resident: 8},
			{CPU: 0.5, Garbage: 8, Slowest: 900, Resident: 8},
			{CPU: 0.4, Garbage: 10, Slowest: 200, Resident: 8}},
		"rooms/Upfront": {{CPU: 0.6, Garbage: 0.9, Slowest: 220, Resident: 12.4}},
	}
	lines := codeLines("twin/rooms.go")
	assert.Greater(t, lines, 100)
	assert.Equal(t, "| program | CPU s | garbage MB | tick p99.9 µs | peak resident MB | lines |\n"+
		"|---|--:|--:|--:|--:|--:|\n"+
		"| rooms, Go | 0.50 | 9.0 | 200 | 8.0 | N |\n"+
		"| rooms, Upfront | 0.60 (**1.20 of 1.1**) | 0.9 (0.10 of 0.1) | 220 (1.10 of 1.1) | 12.4 (**1.55 of "+
		"1.3**) | N |\n",
		string(bytes.ReplaceAll([]byte(table([]program{p}, seen)), fmt.Appendf(nil, "| %d |", lines), []byte("| N |"))))
}
