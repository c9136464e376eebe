package budget_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
)

// TestContainerTooSmallForFrogpond is what the server prints, after its own name, where it can't have what its plan needs.
func TestContainerTooSmallForFrogpond(t *testing.T) {
	plan, err := budget.ReadPlan("../tests/frogpond/plan.json")
	require.NoError(t, err)
	shared := plan
	shared.GoHeap, shared.Pages.Prefault = 0, budget.Off
	b := open(t, shared)
	size := b.Size()
	require.NoError(t, b.Close())
	for _, limit := range []platform.Limit{
		{Name: "cgroup memory.max", Bytes: 32 * budget.MiB, Raise: "docker run --memory"},
		{Name: "cgroup v1 memory.limit_in_bytes", Bytes: 16 * budget.MiB, Raise: "docker run --memory"},
		{Name: "physical memory", Bytes: 32 * budget.MiB, Raise: "a machine with more memory"},
	} {
		restore := budget.SetLimits(limit)
		b, err := budget.Open(plan)
		restore()
		assert.Nil(t, b)
		assert.EqualError(t, err, fmt.Sprintf(`budget "handheld": the plan needs %dKiB (budget %dKiB, Go heap 32MiB), and %s leaves `+
			`%dMiB of %[4]dMiB; lower the plan or raise the limit: %[5]s`, (size+plan.GoHeap)/budget.KiB, size/budget.KiB, limit.Name,
			limit.Bytes/budget.MiB, limit.Raise))
	}
	defer budget.SetLimits(platform.Limit{Name: "cgroup memory.max", Bytes: size + plan.GoHeap})()
	require.NoError(t, open(t, plan).Close(), "the control: so much is enough")
}
