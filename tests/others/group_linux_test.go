package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/others/row"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestQueriesInAGroup runs the server of queries in a memory cgroup of its own. With the quota it
// answers all queries. Without it, the kernel ends the process.
func TestQueriesInAGroup(t *testing.T) {
	step.Needs(t, step.Check)
	const limit = 352 * budget.MiB
	for i, p := range programs {
		if p.Task != "queries" {
			continue
		}
		group, why := step.MemoryGroup(limit)
		if why != "" {
			t.Skip(step.Unproven + why)
		}
		state := inGroup(t, group, i)
		assert.NoError(t, os.Remove(group))
		waited, ok := state.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		if slices.ContainsFunc(programs[:i], func(q row.Program) bool { return q.Task == p.Task }) {
			assert.True(t, waited.Signaled() && waited.Signal() == syscall.SIGKILL, "%s: %v", p.Name, state)
		} else {
			assert.True(t, state.Success(), "%s: %v", p.Name, state)
		}
	}
}

// inGroup runs a program in a group.
func inGroup(t *testing.T, group string, i int) *os.ProcessState {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, self, fmt.Sprintf("-child=%d", i))
	c.Env = append(os.Environ(), "GOMEMLIMIT=off")
	out, _ := c.CombinedOutput() // a killed process has an error
	t.Logf("%s: %v\n%s", programs[i].Name, c.ProcessState, out)
	return c.ProcessState
}
