package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// A run reports the maps played, the plan and its address, the use of each part, and the runs that
// the plan is from; hashes only with -v.
func TestTell(t *testing.T) {
	args := []string{"-wad", doom.Builtin, "-maps", "MAP01", "-ticks", "35"}
	var short, long bytes.Buffer
	require.Zero(t, run(t.Context(), args, &short, io.Discard))
	require.Zero(t, run(t.Context(), append(args, "-v"), &long, io.Discard))
	r, _ := play(t, 0, args...)
	for _, said := range []string{
		`\AFrogpond played 1 map of its own by itself in \d+\.\d s:\non each 8 players and up to 35 ` +
			`ticks \(.*\), with 1 worker\.\n`,
		`\nIts memory is the plan "handheld": \d+KiB, taken once, at the start\. ` +
			`It begins at 0x[0-9a-f]+[,;]`,
		`\nEverything fitted\.\nNothing leaked, and each walk of the budget accounted for every byte\.\n`,
		`\n +level +1693KiB +[\d.]+KiB +\d+ % +\[#+\.+\]\n +frame, each of 2 +37KiB .*` +
			`\n +scratch, each of 8 .*\n +tables, edges +\d+KiB`,
		`\n +part +planned +this run +free *\n`,
		`\nThe plan is the highest use in these recorded runs, and a tenth more:\n` +
			`  init     \d+ bytes in report 1, "all maps, 3500 ticks"\n` +
			`  systems  \d+ bytes in report 2, "one map, 400000 ticks"\n`,
		"\n-v lists each map, with the hash of its last state; .*\n" +
			"frogpond serve lets others play it over the network, and frogpond bots sends players\\.\n\\z",
	} {
		assert.Regexp(t, said, short.String())
	}
	assert.NotContains(t, short.String(), *r.Levels[0].Hash)
	assert.Regexp(t, `\n +MAP01 +35 +`+*r.Levels[0].Hash+` +\d+ µs +[\d.]+KiB`, long.String())
}

// A run reports whether it got the base in its plan.
func TestTellBase(t *testing.T) {
	r := newResult(&options{})
	r.BudgetBase = "0x2000000000"
	assert.Equal(t, "It begins where there was room, at 0x2000000000.", r.base())
	r.Report.Plan.Base = 0x2000000000
	assert.True(t, strings.HasPrefix(r.base(), "It begins at 0x2000000000,\nas the plan wishes"),
		r.base())
	r.Report.NotGranted = []string{"pages.lock: not allowed", "pages.base: taken"}
	r.BudgetBase = "0x10000"
	assert.Equal(t, "It begins at 0x10000; the plan's wish wasn't granted: pages.base: taken.",
		r.base())
}

// Leaks, Go allocations, page faults and gaps in a walk are also reported.
func TestTellFaults(t *testing.T) {
	r := newResult(&options{})
	assert.Contains(t, r.during(), "0 allocations, and 0 pages of the budget were missing")
	r.Leaks, r.IdentityOK, r.walk = 2, false, errors.New("a gap")
	r.Levels = []LevelResult{{Name: "MAP01", GoAllocs: new(uint64(1)), BudgetFaults: new(1)},
		{Name: "MAP02", Error: "full"}}
	assert.Equal(t, "2 leaks, and a walk of the budget did not account for every byte: a gap",
		r.kept())
	assert.Contains(t, r.during(), "1 allocation, and 1 page of the budget was missing")
	var out bytes.Buffer
	r.tell(&out, false)
	assert.Contains(t, out.String(), "Not run, as the plan has no room for it: MAP02.\n")
}
