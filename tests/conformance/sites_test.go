//go:build memdebug || memtrace

package conformance

import (
	"fmt"
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
	assert.Regexp(t, `^\t\S+/conformance\.asksHere \S+/sites_test\.go:20$`, lines[0])
	assert.Regexp(t, `^\t\S+/conformance\.TestHereNamesTheCalls \S+/sites_test\.go:26$`, lines[1])
	assert.Regexp(t, `^\ttesting\.tRunner `, lines[2])
	assert.Equal(t, []string{""}, lines[3:], "the runtime is left out")

	first, second := asksHere(), asksHere()
	assert.Equal(t, first, second, "two calls in a line read the same")
	other := asksHere()
	assert.NotEqual(t, first, other)
	assert.True(t, strings.HasPrefix(arena_c.Text(asksForItsCaller()), strings.Replace(lines[1], ":26", ":39", 1)))
}

// TestHereInsideTheLibrary: what the library does of its own accord has nobody else's name.
func TestHereInsideTheLibrary(t *testing.T) {
	ask := make(chan uint32)
	go func() { ask <- arena_c.Here(0) }()
	assert.Regexp(t, `^\t\S+/conformance\.TestHereInsideTheLibrary\.func1 `, arena_c.Text(<-ask))
}

func TestInternKeepsNamesOnce(t *testing.T) {
	for _, name := range []string{"frogs", "", "a name\nof \xff bytes", strings.Repeat("long", 1000)} {
		id := arena_c.Intern(name)
		assert.NotZero(t, id)
		assert.Equal(t, id, arena_c.Intern(strings.Clone(name)))
		assert.Equal(t, name, arena_c.Text(id))
	}
	assert.NotEqual(t, arena_c.Intern("frogs"), arena_c.Intern("frog"))
	for _, nobodys := range []uint32{0, 8191, 8192, 1 << 31, 1<<32 - 1} {
		assert.Empty(t, arena_c.Text(nobodys))
	}
}

func TestSitesThatAreKnownAllocateNothing(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		asksHere()
		arena_c.Intern("known")
		arena_c.Text(1)
	}))
}

// TestSitesOfManyGoroutines: all agree on the number of a name, and a number that anybody has has its text.
func TestSitesOfManyGoroutines(t *testing.T) {
	const goroutines, names = 8, 211 // a prime: each takes them in an order of its own
	var ids [goroutines][names]uint32
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range names {
				name := fmt.Sprintf("shared %d", (i*(2*g+1))%names)
				id := arena_c.Intern(name)
				if got := arena_c.Text(id); got != name {
					t.Errorf("%q is %q", name, got)
				}
				ids[g][(i*(2*g+1))%names] = id
				_ = arena_c.Text(id + 1) // of somebody's, or nobody's yet
				asksHere()
			}
		})
	}
	all.Wait()
	for g := range goroutines {
		assert.True(t, ids[0] == ids[g], "all got the same")
	}
}

// TestSitesThatAreLost fills the table: in a process of its own, which would have no other texts any more.
func TestSitesThatAreLost(t *testing.T) {
	if os.Getenv("UPFRONT_FILL_SITES") == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "UPFRONT_FILL_SITES=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Regexp(t, regexp.MustCompile(`filled after 81\d\d texts`), string(out))
		return
	}
	known, kept := asksHere(), 0
	for kept < 10000 && arena_c.Intern(fmt.Sprint("text ", kept)) != 0 {
		kept++
	}
	t.Logf("filled after %d texts", kept)
	require.EqualValues(t, 1, arena_c.SitesLost())
	require.Zero(t, arena_c.Intern("one more"))
	require.Zero(t, arena_c.Here(0))
	require.EqualValues(t, 3, arena_c.SitesLost())
	require.NotEmpty(t, arena_c.Text(known))
	require.Equal(t, "text 7", arena_c.Text(arena_c.Intern("text 7")), "what is there stays")
	require.EqualValues(t, 3, arena_c.SitesLost())
}

func BenchmarkHere(b *testing.B) {
	for range b.N {
		asksHere()
	}
}

func BenchmarkIntern(b *testing.B) {
	for range b.N {
		arena_c.Intern("known")
	}
}
