//go:build checked

package conformance

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
)

func asksHere() uint32         { return arena_c.Here(0) }
func asksForItsCaller() uint32 { return arena_c.Here(1) }

func TestHereNamesTheCalls(t *testing.T) {
	var ids []uint32
	for range 2 {
		ids = append(ids, asksHere())
	}
	assert.Equal(t, ids[0], ids[1], "the same calls")
	lines := strings.Split(arena_c.Text(ids[0]), "\n")
	assert.Regexp(t, `^\t\S+/conformance\.asksHere \S+/site_test\.go:19$`, lines[0])
	assert.Regexp(t, `^\t\S+/conformance\.TestHereNamesTheCalls \S+/site_test\.go:25$`, lines[1])
	assert.Regexp(t, `^\ttesting\.tRunner `, lines[2])
	assert.Equal(t, []string{""}, lines[3:], "the runtime is left out")

	first, second := asksHere(), asksHere()
	assert.Equal(t, first, second, "two calls in a line read the same")
	other := asksHere()
	assert.NotEqual(t, first, other)
	assert.True(t, strings.HasPrefix(arena_c.Text(asksForItsCaller()), strings.Replace(lines[1], ":25", ":38", 1)))
}

// TestHereInsideTheLibrary: an action of the library itself has no caller's name.
func TestHereInsideTheLibrary(t *testing.T) {
	ask := make(chan uint32)
	go func() { ask <- arena_c.Here(0) }()
	assert.Regexp(t, `^\t\S+/conformance\.TestHereInsideTheLibrary\.func1 `, arena_c.Text(<-ask))
}

func TestSitesThatAreKnownAllocateNothing(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, func() { arena_c.Text(asksHere()) }))
}

// asksBy calls Here along one of many ways: one call for each of the lowest n bits of way.
func asksBy(way, n int) uint32 {
	switch {
	case n == 0:
		return arena_c.Here(0)
	case way&1 == 0:
		return asksBy(way>>1, n-1)
	}
	return asksBy(way>>1, n-1)
}

// TestSitesOfManyGoroutines: all goroutines agree on the number of a way, and each number has its
// text.
func TestSitesOfManyGoroutines(t *testing.T) {
	const goroutines, bits, ways = 8, 7, 1 << 7
	var ids [goroutines][ways]uint32
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range ways {
				way := i * (2*g + 1) % ways // each goroutine has its own order
				id := asksBy(way, bits)
				if text := arena_c.Text(id); strings.Count(text, "asksBy ") != bits+1 {
					t.Errorf("way %d has %q", way, text)
				}
				ids[g][way] = id
				_ = arena_c.Text(id + 1) // another goroutine's, or unused
			}
		})
	}
	all.Wait()
	different := map[uint32]bool{}
	for g := range goroutines {
		assert.True(t, ids[0] == ids[g], "all got the same")
	}
	for _, id := range ids[0] {
		different[id] = true
	}
	assert.Len(t, different, ways)
}

// TestSitesThatAreLost fills the table, in a separate process: its other texts would be lost.
func TestSitesThatAreLost(t *testing.T) {
	if os.Getenv("UPFRONT_FILL_SITES") == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "UPFRONT_FILL_SITES=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Regexp(t, regexp.MustCompile(`filled after \d+ ways`), string(out))
		return
	}
	const bits = 17 // more calls than are kept: the callers of asksBy aren't recorded
	known, kept := asksHere(), 0
	for kept < 1<<bits && asksBy(kept, bits) != 0 {
		kept++
	}
	t.Logf("filled after %d ways", kept)
	require.Zero(t, arena_c.Here(0))
	require.NotEmpty(t, arena_c.Text(known))
	for way := range 2 {
		require.Equal(t, way == 0, asksBy(way*kept, bits) != 0, "what is there stays")
	}
}

func BenchmarkHere(b *testing.B) {
	for range b.N {
		asksHere()
	}
}
