package guests

import (
	"bytes"
	"context"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/others/row"
	"github.com/upfront-mem/upfront/tests/step"
)

// modelled returns the answer to a request, by Go's own FNV-1a.
func modelled(t *testing.T, r request) uint32 {
	h := fnv.New32a()
	_, err := io.CopyN(h, r.body, int64(r.size))
	require.NoError(t, err)
	return h.Sum32()
}

func opened(t *testing.T, b *budget.Budget, careful bool) *server {
	t.Helper()
	var slots *budget.Slots
	if b != nil {
		slots = b.Slots("guest")
	}
	s, err := open(t.Context(), slots, careful)
	t.Cleanup(func() { assert.NoError(t, s.close(context.Background())) })
	require.NoError(t, err)
	return s
}

// memory returns the memory of all guests in bytes, and of the largest. All are idle.
func (s *server) memory() (all, largest uint64) {
	for range count {
		g := <-s.idle
		size := uint64(g.module.Memory().Size())
		all, largest = all+size, max(largest, size)
		s.idle <- g
	}
	return all, largest
}

// TestAnswers compares each answer of each server with the model.
func TestAnswers(t *testing.T) {
	servers := []*server{opened(t, budgettest.Open(t, plan), true), opened(t, nil, false), opened(t, nil, true)}
	large := 0
	for i := range step.Pick(250, 250, 4000) {
		r := number(i)
		expected := modelled(t, r)
		for _, s := range servers {
			hash, err := s.answer(t.Context(), number(i))
			if s.careful && r.size > most {
				assert.ErrorIs(t, err, errLarge)
				large++
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, expected, hash, "request %d of %d bytes", i, r.size)
		}
	}
	assert.NotZero(t, large, "no request was too large")
	assert.NotZero(t, servers[0].replaced.Load(), "no guest was replaced")
}

// TestServe compares the sum of answers, of requests at the same time, with the model's.
func TestServe(t *testing.T) {
	s := opened(t, budgettest.Open(t, plan), true)
	expected, refused := uint32(0), uint64(0)
	const n = 250
	for i := range n {
		if r := number(i); r.size > most {
			refused++
		} else {
			expected += modelled(t, r)
		}
	}
	require.NoError(t, s.serve(t.Context(), n))
	assert.Equal(t, expected, s.sum.Load())
	assert.Equal(t, refused, s.refused.Load())
}

// TestEdge: the largest body that fits is answered, a byte more is refused, and the guest of a
// refused body answers the next.
func TestEdge(t *testing.T) {
	s := opened(t, budgettest.Open(t, plan), true)
	g := <-s.idle
	defer func() { s.idle <- g }()
	at, err := g.room.Call(t.Context(), 0)
	require.NoError(t, err)
	largest := uint32(most - at[0])
	for range 2 {
		for size, expected := range map[uint32]error{largest + 1: errLarge, 1 << 31: errLarge, 1<<32 - 1: errLarge,
			largest: nil, 0: nil} {
			r := number(1)
			r.size = size
			_, err := g.answer(t.Context(), r)
			assert.Equal(t, expected, err, size)
		}
	}
}

// TestWarm: when guests that have grown are replaced, the pages of a budget go back. The controls
// keep them: servers that let guests grow, in the same slots and with wazero's own memories.
func TestWarm(t *testing.T) {
	if platform.GoBacked || arena_c.Checked || arena_c.Asan {
		t.Skip("this build has other pages: go test ./guests runs it")
	}
	cost, err := plan.Cost()
	require.NoError(t, err)
	// A guest's memory doesn't begin or end at a page.
	fixed := cost.Resident4K - count*(most+4*budget.KiB) + count*8*budget.KiB
	for _, careful := range []bool{true, false} {
		b := budgettest.Open(t, plan)
		s := opened(t, b, careful)
		for range step.Pick(4, 4, 40) {
			require.NoError(t, s.serve(t.Context(), 250))
			all, largest := s.memory()
			present := b.Report().Resident
			assert.LessOrEqual(t, present, cost.Resident4K)
			assert.LessOrEqual(t, present, all+fixed, "pages without a guest")
			if careful {
				assert.LessOrEqual(t, largest, uint64(warm))
			} else {
				assert.Greater(t, largest, uint64(warm), "the control: no guest has grown")
				assert.Greater(t, present, count*warm+fixed, "the control: the pages went back")
			}
		}
	}
	own := opened(t, nil, false)
	require.NoError(t, own.serve(t.Context(), 2000))
	all, _ := own.memory()
	assert.Greater(t, all, cost.Resident4K, "the control: wazero's own memories stay within the plan")
}

// TestFulls refuses each request for memory once: of the slots, the guests, and the guest that
// replaces another.
func TestFulls(t *testing.T) {
	budgettest.FailEach(t, plan, func(b *budget.Budget) (err error) {
		s, err := open(t.Context(), b.Slots("guest"), true)
		defer func() { assert.NoError(t, s.close(context.Background())) }()
		if err != nil {
			return err
		}
		r := number(1)
		r.size = 2 * warm
		_, err = s.answer(t.Context(), r)
		return err
	})
}

// TestBounds: the words of each row hold.
func TestBounds(t *testing.T) {
	for _, p := range Programs() {
		m := &row.Meter{}
		require.NoError(t, p.Run(t.Context(), m, true), p.Name)
		refused := row.Figure{}
		for _, f := range m.Row.More {
			if f.Name == "refused" {
				refused = f
			}
		}
		assert.Equal(t, strings.Contains(m.Row.Bound, "refused"), refused.Value > 0, "%s: %v", p.Name, m.Row)
	}
}

// TestRebuilt builds the guest from its source.
func TestRebuilt(t *testing.T) {
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
	built, err := os.ReadFile(filepath.Join(dir, "guest.wasm"))
	require.NoError(t, err)
	if strings.Contains(string(version), "clang version 14.") { // other versions make other code
		assert.True(t, bytes.Equal(wasm, built), "guest.wasm isn't built from guest.c")
	}
}
