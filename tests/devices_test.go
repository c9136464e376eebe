//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

// variables are those that a file of cross gives a value, by name.
func variables(t *testing.T, file string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^(\S+)\s*=\s*(.*)$`).FindAllStringSubmatch(page(t, "cross/"+file), -1) {
		found[line[1]] = line[2]
	}
	return found
}

func readPlan(t *testing.T, name string) budget.Plan {
	t.Helper()
	plan, err := budget.ReadPlan(name)
	require.NoError(t, err)
	return plan
}

// A device has no swap, and a system beside the budget: at most half of its memory is the plan's and the Go runtime's.
func TestDevicePlansFitTheirDevices(t *testing.T) {
	devices := variables(t, "devices.mk")
	targets := strings.Fields(variables(t, "targets.mk")["TARGETS"])
	names := strings.Fields(devices["DEVICES"])
	var files []string
	for _, name := range names {
		files = append(files, filepath.Join("..", "cross", name+".json"))
		plan := readPlan(t, files[len(files)-1])
		assert.Equal(t, name, plan.Name)
		need, err := plan.Need()
		require.NoError(t, err)
		unit := map[string]uint64{"MiB": budget.MiB, "GiB": budget.GiB}
		memory := devices[name+".memory"]
		count, err := strconv.ParseUint(memory[:len(memory)-3], 10, 64)
		require.NoError(t, err, name)
		assert.LessOrEqual(t, need+plan.GoHeap, count*unit[memory[len(memory)-3:]]/2, name)
		assert.Equal(t, budget.Required, plan.Pages.Prefault, "%s: memory that isn't there is missed at the start, not in play", name)
		assert.Contains(t, targets, devices[name+".target"])
		assert.Contains(t, []string{"4096", "16384", "65536"}, devices[name+".page"])
		for _, key := range []string{"cflags", "env", "cpu"} {
			assert.NotEmpty(t, devices[name+"."+key], "%s.%s", name, key)
		}
	}
	found, err := filepath.Glob(filepath.Join("..", "cross", "*.json"))
	require.NoError(t, err)
	assert.NotEmpty(t, found)
	assert.ElementsMatch(t, found, files, "a plan for each device, and a device for each plan")
}
