//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

// The bytes of RLIMIT_DATA that a process needs beyond its plan and the Go share. The Go runtime
// reserves its heap's addresses 64 MiB at a time. Each of its threads has a stack, of 1 MiB here
// and usually of 8. Package crypto/rand has a variable of 32 MiB that is untouched outside FIPS
// mode.
const (
	beyondPlan  = 96 * budget.MiB
	threadStack = 1 * budget.MiB
)

// runLimited runs a program with a limit of writable memory, on two processors.
func runLimited(t *testing.T, bytesOfData uint64, name string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	script := fmt.Sprintf(`ulimit -s %d; ulimit -d %d; exec "$@"`, threadStack/budget.KiB, bytesOfData/budget.KiB)
	command := exec.Command("sh", append([]string{"-c", script, "sh", name}, args...)...)
	command.Env = append(os.Environ(), "GOMAXPROCS=2")
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return command.ProcessState.ExitCode(), out.String(), errors.String()
}

func readPlan(t *testing.T, name string) budget.Plan {
	t.Helper()
	plan, err := budget.ReadPlan(name)
	require.NoError(t, err)
	return plan
}

// sizeOf returns the bytes that the plan reserves, tables included.
func sizeOf(t *testing.T, plan budget.Plan) uint64 {
	t.Helper()
	plan.Pages.Prefault, plan.GoHeap = budget.Off, 0
	b, err := budget.Open(plan)
	require.NoError(t, err)
	size := b.Size()
	require.NoError(t, b.Close())
	return size
}

// TestPlanBoundsTheProcess: frogpond plays all maps within its plan, its Go share, and a constant.
func TestPlanBoundsTheProcess(t *testing.T) {
	step.Needs(t, step.Check)
	freedoom(t) // without it, only the built-in maps are played
	plan := readPlan(t, "frogpond/plan.json")
	limit := sizeOf(t, plan) + plan.GoHeap + beyondPlan
	program := buildLike(t, "frogpond")
	code, stdout, stderr := runLimited(t, limit, program, "-json", "-ticks", "70", "-workers", "4")
	require.Zero(t, code, stderr)
	var r struct {
		Levels []struct{ Error string }
		Peak   uint64 `json:"rss_peak"`
		Bytes  uint64 `json:"budget_bytes"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	for _, l := range r.Levels {
		assert.Empty(t, l.Error)
	}
	assert.Equal(t, limit-plan.GoHeap-beyondPlan, r.Bytes)
	assert.Less(t, r.Bytes, r.Peak, "the budget is present")
	assert.LessOrEqual(t, r.Peak, limit)
	t.Logf("%d maps within %d bytes: budget %d, Go share %d, constant %d; resident at most %d",
		len(r.Levels), limit, r.Bytes, plan.GoHeap, uint64(beyondPlan), r.Peak)

	// The control: a wider plan exceeds the limit.
	wide := filepath.Join("frogpond", "testdata", "wide.json")
	plan = readPlan(t, wide)
	size := sizeOf(t, plan)
	require.Greater(t, size+plan.GoHeap+beyondPlan, limit+32*budget.MiB)
	code, stdout, stderr = runLimited(t, limit, program, "-json", "-plan", wide)
	assert.Equal(t, 1, code)
	assert.Empty(t, stdout)
	assert.Regexp(t,
		fmt.Sprintf(`^frogpond: budget "handheld": the plan needs [0-9]+KiB \(budget %s, Go heap 32768KiB, [0-9]+ more threads? [0-9.]+KiB\), `+
			`and RLIMIT_DATA leaves [0-9]+KiB of %s; lower .*the plan, or raise the limit: ulimit -d \(in KiB\), systemd LimitDATA; `+
			`each thread's stack takes 1024KiB: lower it \(ulimit -s, in KiB\)\n$`,
			budget.SizeText(size), budget.SizeText(limit)), stderr)
}
