//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

const gomemlimit = "budget/guide/gomemlimit.md"

// TestPlanOfAContainer runs the program of the page about GOMEMLIMIT under a limit of writable
// memory and, if one can be made, in a memory cgroup, and compares the output with the page. The
// last two lines depend on the system. The parts that the program subtracts never exceed the limit.
func TestPlanOfAContainer(t *testing.T) {
	step.Needs(t, step.Check)
	const limit = 256 * budget.MiB
	for _, other := range platform.Limits() {
		if other.Rest() < 2*limit {
			t.Skip(step.Unproven, other.Name, " leaves ", budget.SizeText(other.Rest()))
		}
	}
	dir := program(t, block(t, gomemlimit, "go"))
	goCommand(t, dir, "build", "-o", "node", ".")
	node := filepath.Join(dir, "node")
	code, out, stderr := runLimited(t, limit, node)
	assert.Zero(t, code, stderr)
	sums(t, out, 8*budget.MiB)

	group, why := step.MemoryGroup(limit)
	if why != "" {
		t.Log(step.Unproven, why)
		return
	}
	defer func() { assert.NoError(t, os.Remove(group)) }()
	said, err := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$1"`, group, node).CombinedOutput()
	require.NoError(t, err, "%s", said)
	sums(t, string(said), 90*budget.MiB)
}

// sums compares an output with the page, and checks its sum. The Go heap has at least some bytes.
func sums(t *testing.T, out string, goHeap uint64) {
	t.Helper()
	page := strings.SplitAfter(block(t, gomemlimit, "text"), "\n")
	lines := strings.SplitAfter(out, "\n")
	require.Len(t, lines, len(page), out)
	assert.Equal(t, page[:4], lines[:4])
	value := regexp.MustCompile(`^(.*?) +([0-9]+)KiB\n$`)
	sum := 0
	for i, line := range lines[:len(lines)-1] {
		found, said := value.FindStringSubmatch(line), value.FindStringSubmatch(page[i])
		require.NotNil(t, found, line)
		assert.Equal(t, said[1], found[1])
		bytes, err := strconv.Atoi(found[2])
		require.NoError(t, err)
		if i > 0 {
			sum += bytes
		}
		if strings.HasSuffix(found[1], "Go heap") {
			assert.GreaterOrEqual(t, bytes, int(goHeap/budget.KiB), out)
		}
	}
	assert.InDelta(t, 256*1024, sum, float64(len(lines)), "each line is rounded up: %s", out)
}

// TestChartsArithmetic: the numbers of the page's table are the sum that the chart's template
// computes, and those of the program are a 32nd of them.
func TestChartsArithmetic(t *testing.T) {
	rows := cells(t, page(t, gomemlimit), "| the chart's term | MiB |")
	require.Len(t, rows, 8)
	var mib []int
	for _, row := range rows {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		mib = append(mib, n)
	}
	others, limit := 0, 8192
	for _, n := range mib[:6] {
		others += n
	}
	text := strings.Join(strings.Fields(page(t, gomemlimit)), " ")
	assert.Contains(t, text, fmt.Sprintf("defaults subtract %d MiB. With a limit of %d MiB, GOMEMLIMIT is %d MiB.",
		others, limit, mib[7]))
	assert.Equal(t, (limit-others)*9/10, mib[7])
	assert.InDelta(t, limit-others-mib[7], mib[6], 1)
	program := block(t, gomemlimit, "go")
	assert.Contains(t, program, fmt.Sprintf("Size: %d * budget.MiB", (mib[0]+mib[1]+mib[4])/32))
	assert.Contains(t, program, fmt.Sprintf("{Name: \"tries\", Size: %d * budget.KiB}", mib[2]*1024/32))
	assert.Contains(t, program, fmt.Sprintf("{Name: \"snapshots\", Size: %d * budget.KiB", mib[3]*1024/32))
}
