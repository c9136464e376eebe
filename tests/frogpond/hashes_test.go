package main

import (
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the files of testdata/hashes anew")

const record = "go test ./tests/frogpond -run Hashes -update"

// TestHashes plays all maps with each crew: their states are those that were recorded, in every build and on every target.
func TestHashes(t *testing.T) {
	t.Run(builtin, func(t *testing.T) { checkHashes(t, builtin, 350, "-wad", builtin) })
	t.Run("freedoom", func(t *testing.T) {
		if !freedoom(t) {
			t.Skip(noFreedoom)
		}
		sum := uint32(0)
		for _, name := range installedWADs() {
			file, err := os.ReadFile(name)
			require.NoError(t, err)
			sum = crc32.Update(sum, crc32.IEEETable, file)
		}
		checkHashes(t, fmt.Sprintf("freedoom-%08x", sum), 70) // other releases have other maps
	})
}

// checkHashes compares what is played with the file of that name: a line for each map with its name, ticks and state.
func checkHashes(t *testing.T, name string, ticks int, args ...string) {
	t.Helper()
	file := filepath.Join("testdata", "hashes", name+".txt")
	recorded, err := os.ReadFile(file)
	switch {
	case os.IsNotExist(err) && name != builtin && os.Getenv("REQUIRE_ALL") == "": // another release
		t.Logf("%s was not recorded; the crews are compared with each other", name)
	case !*update:
		require.NoError(t, err, "%s", record)
	}
	for i, workers := range crews() {
		r, _ := play(t, 0, append(args, "-ticks", strconv.Itoa(ticks), "-workers", workers)...)
		checkRun(t, r, ticks, int(workers[0]-'0'), args...)
		var played strings.Builder
		for _, l := range r.Levels {
			fmt.Fprintln(&played, l.Name, *l.Ticks, *l.Hash)
		}
		if i == 0 && *update {
			require.NoError(t, os.WriteFile(file, []byte(played.String()), 0o644))
		}
		if i == 0 && (*update || recorded == nil) {
			recorded = []byte(played.String())
		}
		assert.Equal(t, string(recorded), played.String(), "%s with %s workers; if that is meant: %s", name, workers, record)
	}
}
