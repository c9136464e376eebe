package race

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestRaces runs each program that races, and its control. A report must show both accesses, each
// with its line of the program.
func TestRaces(t *testing.T) {
	if arena_c.Crossing {
		t.Skip("the programs are built with -race in any build: UPFRONT_STEP=check go test ./tests/race runs it")
	}
	step.Needs(t, step.Check)
	path := filepath.Join(t.TempDir(), "programs")
	require.NoError(t, Build(path))
	names, err := Names(path)
	require.NoError(t, err)
	require.Greater(t, len(names), 90)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, err := Run(path, name, true)
			require.NoError(t, err)
			assert.Empty(t, told, "the control, in which the detector is told of the order")
			seen, err := Run(path, name, false)
			require.NoError(t, err)
			if kind, _, _ := strings.Cut(name, "/"); kind == "hidden" || kind == "clean" {
				assert.Empty(t, seen)
				return
			}
			first, second := Lines(name)
			shows := func(r Report) bool { return r.Shows(first, second) }
			assert.True(t, slices.ContainsFunc(seen, shows), "no report shows %s, then %s: %v", first, second, seen)
		})
	}
}
