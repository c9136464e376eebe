package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
	"github.com/upfront-mem/upfront/tests/step"
)

// play runs the program with -json and returns its result.
func play(t *testing.T, code int, args ...string) (r Result, stderr string) {
	t.Helper()
	var stdout, errors bytes.Buffer
	got := run(t.Context(), append([]string{"-json"}, args...), &stdout, &errors)
	require.Equal(t, code, got, "stderr: %s", errors.String())
	d := json.NewDecoder(&stdout)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r))
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF, "nothing else on stdout")
	return r, errors.String()
}

// quiet reports whether a map makes at most that many objects on the Go heap. It plays a map that
// made more up to three times again: the game's allocations recur each time, the Go runtime's
// seldom.
func quiet(t *testing.T, l LevelResult, most uint64, ticks int, args []string) bool {
	t.Helper()
	for try := 0; *l.GoAllocs > most && try < 3; try++ {
		again, _ := play(t, 0, slices.Concat(args,
			[]string{"-maps", l.Name, "-ticks", strconv.Itoa(ticks)})...)
		l = again.Levels[0]
	}
	return *l.GoAllocs <= most
}

// checkRun checks conditions that hold for every good run.
func checkRun(t *testing.T, r Result, ticks, workers int, args ...string) {
	t.Helper()
	assert.Zero(t, r.Leaks)
	assert.True(t, r.IdentityOK)
	hashes := map[string]string{}
	for _, l := range r.Levels {
		require.Empty(t, l.Error, l.Name)
		assert.Equal(t, ticks, *l.Ticks, l.Name)
		assert.Empty(t, hashes[*l.Hash], "%s has the hash of another map", l.Name)
		hashes[*l.Hash] = l.Name
		assert.LessOrEqual(t, *l.Used, *l.Peak)
		assert.Positive(t, *l.FinalizersRun)
		assert.LessOrEqual(t, *l.PoolPeak, *l.PoolCapacity)
		if build == "release" && workers == 1 {
			assert.True(t, quiet(t, l, 0, ticks, args), "%s: objects on the Go heap", l.Name)
		}
		if l.BudgetFaults != nil {
			assert.Zero(t, *l.BudgetFaults, "%s: pages of the budget that were not present", l.Name)
		}
	}
}

const builtinMaps = 12 // the number of built-in maps

func TestBuiltin(t *testing.T) {
	log, durations := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "durations")
	r, stderr := play(t, 0, "-wad", doom.Builtin, "-ticks", "120", "-log", log,
		"-durations", durations)
	assert.Empty(t, stderr)
	assert.Equal(t, doom.Builtin, r.WAD)
	assert.Equal(t, build, r.Build)
	assert.Len(t, r.Levels, builtinMaps)
	checkRun(t, r, 120, 1, "-wad", doom.Builtin)
	text, err := os.ReadFile(durations)
	require.NoError(t, err)
	assert.Len(t, strings.Fields(string(text)), 120, "a line for each tick of the last map")
	text, err = os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(text), "systems built"),
		"at the start and after the tenth map")
	assert.Equal(t, builtinMaps, strings.Count(string(text), " closed after frogs "),
		"each level's finalizers ran")
	assert.Equal(t, 2+builtinMaps, strings.Count(string(text), "log closed"))
}

// freedoom reports whether both files of Freedoom are installed.
func freedoom() bool { return len(doom.InstalledWADs()) == 2 }

func needsFreedoom(t *testing.T) {
	t.Helper()
	if !freedoom() {
		step.Lacks(t, "Freedoom", "freedoom")
	}
}

// crews returns the numbers of workers to play with. Only the release build on this machine tests
// that their number changes nothing.
func crews() []string {
	switch {
	case *device != "": // not every device has four
		return []string{"1"}
	case build != "release" || step.Now() < step.Check:
		return []string{"4"}
	}
	return []string{"4", "1", "2"}
}

// A map that doesn't fit the plan is listed as not run, and the others play.
func TestMapThatDoesNotFit(t *testing.T) {
	good, big := doomtest.GoodMap(), doomtest.GoodMap()
	big[0].Name = "MAP02"
	big = doomtest.Set(big, "THINGS", bytes.Repeat(doomtest.Row(64, 64, 0, 1, 7), 50000))
	doomtest.Write(t, "maps.wad", doom.MakeWAD(append(append(good, big...), doom.Lump{Name: "E1M1"})))
	small := strings.Replace(string(widePlan), `"32MiB", "state"`, `"256KiB", "state"`, 1)
	require.NoError(t, os.WriteFile("small.json", []byte(small), 0o644))

	r, stderr := play(t, 3, "-plan", "small.json", "-wad", "maps.wad", "-maps", "MAP01,MAP02,MAP01",
		"-ticks", "10")
	require.Len(t, r.Levels, 3)
	assert.Equal(t, r.Levels[0].Hash, r.Levels[2].Hash, "the map after plays as before")
	l := r.Levels[1]
	assert.Equal(t, "MAP02", l.Name)
	assert.Nil(t, l.Ticks)
	assert.Nil(t, l.Hash)
	assert.Zero(t, r.Leaks)
	assert.True(t, r.IdentityOK)
	assert.Regexp(t,
		`region level is full: .* asked for 500\d\d\d bytes, 262104 of 262144 are free; held by "level" \(40 bytes\); `+
			`raise regions\[2\]\.size`, l.Error, "the lumps, in one temporary")
	assert.Equal(t, "frogpond: MAP02: not run: "+l.Error+"\n", stderr)

	var stdout bytes.Buffer
	code := run(t.Context(), []string{"-plan", "small.json", "-wad", "maps.wad", "-maps", "MAP02"},
		&stdout, io.Discard)
	assert.Equal(t, 3, code)
	assert.Contains(t, stdout.String(), "Not run, as the plan has no room for it: MAP02.")
}

// A map also doesn't run if the frame or scratch arenas are too small for it.
func TestFrameOrScratchTooSmall(t *testing.T) {
	for name, replace := range map[string][2]string{
		"frame":   {`"buffers": 2, "size": "4MiB"`, `"buffers": 2, "size": "4KiB"`},
		"scratch": {`"workers": 4, "size": "1MiB"`, `"workers": 4, "size": "1KiB"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			small := strings.Replace(string(widePlan), replace[0], replace[1], 1)
			require.NotEqual(t, string(widePlan), small)
			require.NoError(t, os.WriteFile("small.json", []byte(small), 0o644))
			r, _ := play(t, 3, "-plan", "small.json", "-wad", doom.Builtin, "-maps", "MAP01",
				"-bots", "300", "-workers", "4")
			assert.Contains(t, r.Levels[0].Error, name)
			assert.Zero(t, r.Leaks)
		})
	}
}

// refusal returns the system's words for a file that it doesn't open.
func refusal(name string) string {
	_, err := os.ReadFile(name)
	return err.(*os.PathError).Err.Error()
}

func TestExitCodes(t *testing.T) {
	_, absent := os.Stat("absent.wad")
	require.Error(t, absent)
	for _, test := range []struct {
		args string
		code int
		line string // the first line of stderr
	}{
		{"-h", 0, "Usage of frogpond:"},
		{"-ticks many", 2, `invalid value "many" for flag -ticks: parse error`},
		{"-ticks -1", 2, "frogpond: -ticks -1: must not be negative"},
		{"-workers 0", 2, "frogpond: -workers 0: at least 1"},
		{"-bots -1", 2, "frogpond: -bots -1: must not be negative"},
		{"-frogs 3", 2, "flag provided but not defined: -frogs"},
		{"file.wad", 2, `frogpond: unexpected argument "file.wad"`},
		{"-workers 99", 1, "frogpond: plan.json: scratch.workers: is 4; -workers 99 needs as many"},
		{"-plan absent.json", 1, "frogpond: "},
		{"-wad builtin -maps MAP77", 1,
			`frogpond: -maps: no map "MAP77" in builtin; its maps are MAP01 MAP02 `},
		{"-wad builtin -log /nowhere/log", 1, "frogpond: -log /nowhere/log: " + refusal("/nowhere/log")},
		{"-wad builtin -maps MAP01 -ticks 1 -durations /nowhere/ticks", 1,
			"frogpond: -durations: open /nowhere/ticks: " + refusal("/nowhere/ticks")},
		{"-wad builtin -maps MAP01 -ticks 1 -report /nowhere/report.json", 1,
			"frogpond: -report: open /nowhere/report.json: " + refusal("/nowhere/report.json")},
		{"-wad /", 1, "frogpond: /: offset 0: is a directory, not a WAD file\n"},
		{"-wad absent.wad", 1, "frogpond: " + absent.Error() + "\n"},
		{"-wad " + os.DevNull, 1, "frogpond: " + os.DevNull + ": offset 0: is not a regular file\n"},
		{"-wad builtin -flow MAP77", 1,
			`frogpond: -maps: no map "MAP77" in builtin; its maps are MAP01 MAP02 `},
		{"-wad builtin -flow all", 1, "frogpond: -flow all: one map at a time"},
		{"-wad builtin -flow MAP01", 0, ""},
		{"-vocabulary", 0, ""},
		{"-wad builtin -maps map03,MAP01 -ticks 0", 0, ""},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(test.args), &stdout, &stderr)
		assert.Equal(t, test.code, code, test.args)
		assert.True(t, strings.HasPrefix(stderr.String(), test.line), "%s: %s", test.args,
			stderr.String())
		// the file of -report is written at the end
		played := test.line == "" || strings.Contains(test.args, "-report")
		assert.Equal(t, played, stdout.Len() > 0, test.args)
	}
}

func TestPlanMustSuit(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct{ from, to, part string }{
		{`"name": "level"`, `"name": "map"`,
			`small.json: regions: are "init, systems, map"; this program needs init, systems, level`},
		{`"32MiB", "state": true}`, `"32MiB"}`, "small.json: regions[2].state: is false"},
		{`"buffers": 2`, `"buffers": 9`, "frame.buffers"},
		{`"go_heap"`, `"gopher"`, "gopher"},
		{`"32MiB", `, `"-8MiB", `, "regions[2].size"},
		{`"8MiB", "note"`, `"4KiB", "note"`, "raise regions[0].size"},
		{`"8MiB"}`, `"1KiB"}`, "raise regions[1].size"},
		{`"frame": {"buffers": 2, "size": "4MiB"},`, ``, "small.json: frame.buffers: is 0"},
	} {
		plan := strings.Replace(string(widePlan), test.from, test.to, 1)
		require.NotEqual(t, string(widePlan), plan)
		require.NoError(t, os.WriteFile("small.json", []byte(plan), 0o644))
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 1, run(t.Context(), []string{"-plan", "small.json", "-wad", doom.Builtin},
			&stdout, &stderr))
		assert.Contains(t, stderr.String(), test.part)
		assert.Empty(t, stdout.String())
	}
}

// Ctrl-C cancels the context. Everything is unwound, and the exit code is 0.
func TestInterrupt(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	watched, err := os.Create("log")
	require.NoError(t, err)
	defer watched.Close()
	page, played := make([]byte, 4096), []byte("MAP01 frogs")
	// Ctrl-C as soon as the log reports the map. ReadAt allocates nothing; SealStrict would
	// report it.
	go func() {
		for n := 0; !bytes.Contains(page[:n], played) && ctx.Err() == nil; {
			time.Sleep(10 * time.Millisecond)
			n, _ = watched.ReadAt(page, 0)
		}
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"-json", "-wad", doom.Builtin, "-realtime", "-ticks", "35000", "-log", "log"},
		&stdout, &stderr)
	assert.Equal(t, 0, code)
	assert.Empty(t, stderr.String())
	var r Result
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &r))
	require.Len(t, r.Levels, 1, "the map that was interrupted")
	assert.Less(t, *r.Levels[0].Ticks, 35000, "a thousand seconds of them")
	assert.Zero(t, r.Leaks)
	log, err := os.ReadFile("log")
	require.NoError(t, err)
	assert.Regexp(t, `(?s)^systems built for ticks 35000\nbudget sealed, bytes \d+\n`+
		`MAP01 loaded \d+\nMAP01 frogs 0\n.*`+
		`MAP01 closed after frogs \d+\n(log closed by process \d+\n){2}$`, string(log),
		"finalizers ran, newest first")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, 0, run(cancelled, []string{"-wad", doom.Builtin}, io.Discard, &stderr))
	assert.Empty(t, stderr.String())
}

// A scratch scope left open and a corrupted table are both reported.
func TestLeaksAndIdentity(t *testing.T) {
	plan, err := budget.ParsePlan(defaultPlan)
	require.NoError(t, err)
	b, err := budget.Open(plan)
	require.NoError(t, err)
	r := newResult(&options{})
	r.check(b)
	require.True(t, r.IdentityOK)

	ranges, err := b.Walk()
	require.NoError(t, err)
	require.Equal(t, "tables", ranges[0].What)
	tables := b.Base().Bytes()[ranges[0].Offset:][:ranges[0].Size]
	before := bytes.Clone(tables)
	for i := range tables[:4096] {
		tables[i] ^= 0x55
	}
	r.check(b)
	assert.False(t, r.IdentityOK)
	assert.Error(t, r.walk)
	copy(tables, before)

	b.Scratch(0, 0).Open("never closed")
	r.IdentityOK = true
	r.finish(b)
	assert.Equal(t, 1, r.Leaks)
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, r.print(&stdout, &stderr, true, false))
	assert.Contains(t, stdout.String(), `"leaks": 1`)
	assert.Contains(t, stderr.String(), "scratch 0.0")
}
