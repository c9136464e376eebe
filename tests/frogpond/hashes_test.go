package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/step"
)

var (
	update = flag.Bool("update", false, "write plan.json and the files of testdata/hashes anew")
	device = flag.String("plan", "", "play with the plan of a device, a `file`")
)

const anew = "go test ./tests/frogpond -run Hashes -update, and with UPFRONT_STEP=check"

// sample holds the maps of Freedoom that make test plays: the largest, and some that are unlike it.
const sample = "E1M1,E4M7,MAP12,MAP20,MAP32"

// TestHashes plays all maps with each crew; make test plays a sample of Freedoom's. States and
// memory use must equal the recorded ones in every build, on every target, and with each device's
// plan.
func TestHashes(t *testing.T) {
	t.Run(doom.Builtin, func(t *testing.T) {
		checkHashes(t, doom.Builtin, 350, "", "-wad", doom.Builtin)
	})
	t.Run("freedoom", func(t *testing.T) {
		needsFreedoom(t)
		name, ticks, only := freedoomName(t), 70, sample
		if step.Now() >= step.Check {
			name, ticks, only = name+"-long", 350, ""
		}
		r := checkHashes(t, name, ticks, only)
		recorded := readReport(t, "testdata/recorded/freedoom.json")
		assert.Equal(t, recorded.Arenas[2].Peak, r.Report.Arenas[2].Peak,
			"the plan is of what the largest map needs: make plan")
	})
}

// TestHashesOfSiblings: a plan in which systems and level both stand on init, so that neither ends
// with the other, changes no state and no use.
func TestHashesOfSiblings(t *testing.T) {
	plan, err := budget.ParsePlan(defaultPlan)
	require.NoError(t, err)
	plan.Regions[2].On = "init"
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "siblings.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	args := []string{"-wad", doom.Builtin, "-ticks", "70", "-workers", "4"}
	of, _ := play(t, 0, args...)
	siblings, _ := play(t, 0, append(args, "-plan", file)...)
	assert.Equal(t, "init", siblings.Report.Plan.Regions[2].On)
	assert.Equal(t, played(of), played(siblings))
	checkRun(t, siblings, 70, 4, args...)
}

// otherRelease is the missing requirement on a machine with another release of Freedoom.
const otherRelease = "the release of Freedoom in testdata/hashes"

// freedoomName returns a name for the installed release of Freedoom, made from its files' checksum.
func freedoomName(t *testing.T) string {
	t.Helper()
	sum := uint32(0)
	for _, name := range doom.InstalledWADs() {
		file, err := os.ReadFile(name)
		require.NoError(t, err)
		sum = crc32.Update(sum, crc32.IEEETable, file)
	}
	return fmt.Sprintf("freedoom-%08x", sum)
}

// checkHashes compares the played maps with the file testdata/hashes/NAME.txt. only lists the maps
// to play; "" plays all.
func checkHashes(t *testing.T, name string, ticks int, only string, args ...string) (r Result) {
	t.Helper()
	file := filepath.Join("testdata", "hashes", name+".txt")
	text, err := os.ReadFile(file)
	recorded := string(text)
	// Without a file, the crews are compared with each other.
	another := os.IsNotExist(err) && name != doom.Builtin && !*update
	if !another && !*update {
		require.NoError(t, err, "%s", anew)
	}
	if *update {
		only = ""
	}
	if only != "" {
		args = append(args, "-maps", only)
	}
	if *device != "" {
		args = append(args, "-plan", *device)
	}
	for i, workers := range crews() {
		r, _ = play(t, 0, append(args, "-ticks", strconv.Itoa(ticks), "-workers", workers)...)
		checkRun(t, r, ticks, int(workers[0]-'0'), args...)
		if i == 0 && (*update || recorded == "") {
			recorded = played(r)
		}
		want := recorded
		// The split of players among scratch arenas depends on the number of workers.
		if workers != "4" {
			want, _, _ = strings.Cut(want, "scratch")
		}
		assert.Equal(t, linesOf(only, want), linesOf(only, played(r)), "%s with %s workers; if that is meant: %s",
			name, workers, anew)
		if i == 0 && *update {
			require.NoError(t, os.WriteFile(file, []byte(recorded), 0o644))
		}
	}
	if another {
		step.Lacks(t, otherRelease, "")
	}
	return r
}

// linesOf returns the lines of the named maps, or the whole text if there are no names.
func linesOf(maps, text string) string {
	if maps == "" {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, " "); slices.Contains(strings.Split(maps, ","), name) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// played returns a line for each map: name, ticks, state hash, snapshot hash, bytes used and their
// peak, finalizers, capacity of the frogs' pool and its peak. A line for each arena follows, with
// the last map's bytes and the peak; scratch arenas are listed only with 4 workers.
func played(r Result) string {
	var out strings.Builder
	for _, l := range r.Levels {
		fmt.Fprintln(&out, l.Name, *l.Ticks, *l.Hash, *l.StateHash, *l.Used, *l.Peak,
			*l.FinalizersRun, *l.PoolCapacity, *l.PoolPeak)
	}
	for _, g := range r.Report.Arenas {
		if r.Workers == 4 || !strings.HasPrefix(g.Name, "scratch") {
			fmt.Fprintln(&out, g.Name, g.Used, g.Peak)
		}
	}
	return out.String()
}
