//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

// crossTargets has the data of cross/targets.json that pages and plans repeat.
type crossTargets struct {
	Targets, Compiled []struct{ Name string }
	Devices           []struct {
		Name, Target, Memory, CFlags, Env, CPU string
		Page                                   int
	}
}

func readTargets(t *testing.T) (c crossTargets) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(page(t, "cross/targets.json")), &c))
	return c
}

// A device has no swap, and its system needs memory: the plan and the Go runtime get half at most.
func TestDevicePlansFitTheirDevices(t *testing.T) {
	var files []string
	for _, d := range readTargets(t).Devices {
		name := d.Name
		files = append(files, filepath.Join("..", "cross", name+".json"))
		plan := readPlan(t, files[len(files)-1])
		assert.Equal(t, name, plan.Name)
		need, err := plan.Need()
		require.NoError(t, err)
		unit := map[string]uint64{"MiB": budget.MiB, "GiB": budget.GiB}
		count, err := strconv.ParseUint(d.Memory[:len(d.Memory)-3], 10, 64)
		require.NoError(t, err, name)
		assert.LessOrEqual(t, need+plan.GoHeap, count*unit[d.Memory[len(d.Memory)-3:]]/2, name)
		assert.Equal(t, budget.Required, plan.Pages.Prefault,
			"%s: memory that isn't there is missed at the start, not in play", name)
		assert.Contains(t, []int{4096, 16384, 65536}, d.Page)
		for _, key := range []string{d.Target, d.CFlags, d.Env, d.CPU} {
			assert.NotEmpty(t, key, name)
		}
	}
	found, err := filepath.Glob(filepath.Join("..", "cross", "*.json"))
	require.NoError(t, err)
	assert.NotEmpty(t, files)
	assert.ElementsMatch(t, found, append(files, filepath.Join("..", "cross", "targets.json")),
		"a plan for each device, and a device for each plan")
}

// TestPlatformsAreNamed holds the page to the targets of cross.
func TestPlatformsAreNamed(t *testing.T) {
	var want, named []string
	all := readTargets(t)
	for _, x := range append(all.Targets, all.Compiled...) {
		want = append(want, x.Name)
	}
	for _, row := range cells(t, page(t, "platform/README.md"), "| target |") {
		named = append(named, row[0])
	}
	assert.ElementsMatch(t, want, named)
}
