package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain is also the program that is compared: something that reports as frogpond does, and goes wrong when told to.
func TestMain(m *testing.M) {
	if os.Getenv("SAME_FAKE") != "" {
		fake(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

func fake(args []string) {
	flags := flag.NewFlagSet("fake", flag.ExitOnError)
	ticks := flags.Int("ticks", 350, "")
	maps := flags.String("maps", "E1M1,E1M3", "")
	workers := flags.Int("workers", 1, "")
	apart := flags.Int("apart", 1<<30, "tick from which E1M3 has another hash")
	peak := flags.Int("peak", 1<<30, "tick from which E1M3 has another peak")
	scratch := flags.Int("scratch", 300, "what a scratch took")
	frame := flags.Int("frame", 200, "what the frame took")
	plan := flags.String("plan", "p", "")
	allocates := flags.String("allocates", "", "in E1M3: always, or once, when other maps are played too")
	fails := flags.Int("fails", -1, "fails when told to play so many ticks")
	_ = flags.Parse(args)
	if *ticks == *fails {
		fmt.Fprintln(os.Stderr, "no such luck")
		os.Exit(1)
	}
	r := report{Workers: *workers, Plan: json.RawMessage(`{"name":"` + *plan + `"}`), IdentityOK: true}
	for name := range strings.SplitSeq(*maps, ",") {
		l := level{Name: name, Ticks: *ticks, Hash: fmt.Sprint(name, *ticks), Peak: 7, GoAllocs: new(uint64)}
		if name == "E1M3" && *ticks >= *apart {
			l.Hash += "!"
		}
		if name == "E1M3" && *ticks >= *peak {
			l.Peak++
		}
		if name == "E1M3" && (*allocates == "always" || *allocates == "once" && *maps != name) {
			*l.GoAllocs = 1
		}
		r.Levels = append(r.Levels, l)
	}
	r.Regions = []region{{"level", 100, 1, 2}, {"frame 0", 100, 0, uint64(*frame)}, {"scratch 0.0", 400, 0, uint64(*scratch)}}
	text, _ := json.Marshal(r) // the names of its fields are found whatever their case
	os.Stdout.Write(text)
}

// compare runs the command on fake programs, each a name and flags: "here -workers 2".
func compare(t *testing.T, programs ...string) (code int, out string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var args []string
	for _, p := range programs {
		name, flags, _ := strings.Cut(p, " ")
		if name == "-quiet" {
			args, name = append(args, name), "quiet"
		}
		args = append(args, name+"=SAME_FAKE=1 GORACE=atexit_sleep_ms=0 '"+self+"' "+flags) // a race build sleeps a second as it ends
	}
	var stdout, stderr bytes.Buffer
	code = run(args, &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

func TestSame(t *testing.T) {
	for _, test := range []struct {
		programs []string
		want     string // empty: they agree
	}{
		{programs: []string{"here", "two -workers 2 -scratch 290", "arm64", "wide -plan q -frame 250"}},
		{programs: []string{"-quiet -allocates once"}},
		{[]string{"-quiet -allocates always"}, "same: quiet: E1M3: Go allocations during play\n"},
		{programs: []string{"-quiet", "loud -allocates always"}},
		{[]string{"here", "there -apart 118"},
			"same: E1M3: there differs from here first at tick 118 of 350: hash E1M3118, E1M3118!\n"},
		{[]string{"here", "there -apart 350"},
			"same: E1M3: there differs from here first at tick 350 of 350: hash E1M3350, E1M3350!\n"},
		{[]string{"here -apart 1", "there"},
			"same: E1M3: there differs from here first at tick 1 of 350: hash E1M31!, E1M31\n"},
		{[]string{"here", "there -apart 0"}, "same: E1M3: there differs from here before the first tick: hash E1M30, E1M30!\n"},
		{[]string{"here", "there -peak 20"}, "same: E1M3: there differs from here first at tick 20 of 350: peak 7, 8\n"},
		{[]string{"here", "other -plan q -peak 9"}, "same: E1M3: other differs from here first at tick 9 of 350: peak 7, 8\n"},
		{[]string{"here", "there -scratch 301"},
			"same: scratch 0.0: there differs from here: size, used and peak are 400, 0, 301; there 400, 0, 300\n"},
		{[]string{"here", "there -frame 201 -workers 2"},
			"same: frame 0: there differs from here: size, used and peak are 100, 0, 201; there 100, 0, 200\n"},
		{[]string{"here", "short -ticks 70"}, "same: E1M1: short differs from here: ticks 350, 70; hash E1M1350, E1M170\n" +
			"same: E1M3: short differs from here: ticks 350, 70; hash E1M3350, E1M370\n"},
		{[]string{"here", "there -apart 118 -fails 174"},
			"same: E1M3: there differs from here by tick 350; playing it again: exit status 1: no such luck\n"},
		{[]string{"here -fails 350", "there"}, "same: here: exit status 1: no such luck\n"},
		{[]string{"here", "twice -maps E1M1,E1M1"}, "same: twice: it has two maps E1M1\n"},
	} {
		code, out := compare(t, test.programs...)
		if test.want == "" {
			assert.Zero(t, code)
			test.want = fmt.Sprintf("same: %d reports agree on 2 maps\n", len(test.programs))
		} else {
			assert.Equal(t, 1, code)
		}
		assert.Equal(t, test.want, out, "%q", test.programs)
	}
}

// A file is compared too, but can't be played again; and what one report must be is checked of each.
func TestSameFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		return name
	}
	good := write("good", `{"identity_ok": true, "levels": [{"name": "E1M1", "hash": "a", "ticks": 9, "go_allocs": 0}]}`)
	other := write("other", `{"identity_ok": true, "levels": [{"name": "E1M1", "hash": "b", "ticks": 9, "go_allocs": 3}]}`)
	twin := write("twin", `{"identity_ok": true, "levels": [{"name": "E1M2", "hash": "a", "error": "full", "budget_faults": 2}]}`)
	leaks := write("leaks", `{"leaks": 2}`)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-quiet", good, good}, ""},
		{[]string{good, other}, "same: E1M1: " + other + " differs from " + good + ": hash a, b\n"},
		{[]string{"-quiet", other}, "same: " + other + ": E1M1: Go allocations during play\n"},
		{[]string{good, twin}, "same: " + twin + ": E1M2 did not run: full\nsame: " + twin +
			": E1M2: 2 faults on pages of the budget\nsame: " + twin + ": E1M2 and E1M1 have the same hash a\n"},
		{[]string{leaks}, "same: " + leaks + ": leaks 2, identity_ok false, 0 maps\n"},
		{[]string{"/nowhere"}, "same: /nowhere: open /nowhere: no such file or directory\n"},
		{[]string{write("text", "frog")}, "same: " + dir + "/text: invalid character 'r' in literal false (expecting 'a')\n"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(test.args, &stdout, &stderr)
		assert.Equal(t, test.want, stderr.String())
		assert.Equal(t, min(len(test.want), 1), code)
	}
}
