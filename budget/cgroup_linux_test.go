package budget_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestOpenNearTheLimitOfAGroup requests less and less memory in a real cgroup. Each Open fails with
// numbers, or leaves enough memory to continue. No process is killed.
func TestOpenNearTheLimitOfAGroup(t *testing.T) {
	const inside, limit = "UPFRONT_TEST_IN_GROUP", 64 * budget.MiB
	if platform.GoBacked || arena_c.Asan {
		t.Skip("a build with -race or -asan needs more memory than the group has: run it without, " +
			"go test -run NearTheLimit ./budget")
	}
	if os.Getenv(inside) == "" {
		group, why := step.MemoryGroup(limit)
		if why != "" {
			t.Skip("where a memory cgroup can be made, go test ./budget runs it:", why)
		}
		t.Cleanup(func() { assert.NoError(t, os.Remove(group)) })
		if err := exec.Command(os.Args[0], "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
			t.Skip("the emulator starts no programs; on a machine of this target, go test ./budget runs it:", err)
		}
		cmd := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, os.Args[0],
			"-test.run=^TestOpenNearTheLimitOfAGroup$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "killed by the group?\n%s", out)
		assert.Contains(t, string(out), "leaves room")
		return
	}
	for size := uint64(limit); ; size -= budget.MiB / 2 {
		b, err := budget.Open(budget.Plan{Name: "near", Regions: []budget.RegionPlan{{Name: "level", Size: size}}})
		if err != nil {
			require.Regexp(t,
				`^budget "near": the plan needs \S+ \(budget \S+, Go heap \S+, page tables and runtime \S+\), `+
					`and cgroup .* leaves \S+ of 65536KiB; lower regions\[0\].size \(\S+\) in the plan, or raise the limit: docker run --memory, `,
				err.Error())
			continue
		}
		assert.True(t, b.Report().Prefaulted)
		assert.Greater(t, size, uint64(48*budget.MiB), "what is left to the rest is far too much")
		for range 20 { // the work of a small program
			for range 1000 {
				sink = byte(len(make([]byte, 1+runtime.NumGoroutine()*1000)))
			}
			runtime.GC()
		}
		require.NoError(t, b.Close())
		t.Logf("%d bytes fit: leaves room", size)
		return
	}
}
