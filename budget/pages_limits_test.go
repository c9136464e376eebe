package budget_test

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
)

func TestLimitsOfTheProcess(t *testing.T) {
	plan := small()
	size := open(t, plan).Size()
	require.Zero(t, size%(64*budget.KiB))
	plan.GoHeap = 64 * budget.MiB
	need := size + plan.GoHeap
	before := debug.SetMemoryLimit(-1)
	kib := func(bytes uint64) string { return fmt.Sprintf("%dKiB", bytes/budget.KiB) }
	begin := fmt.Sprintf(`budget "small": the plan needs %s (budget %s, Go heap 64MiB), and `, kib(need), kib(size))
	group := platform.Limit{Name: "cgroup memory.max", Bytes: need + budget.MiB - budget.KiB, Used: budget.MiB,
		Raise: "docker run --memory"}
	machine := platform.Limit{Name: "physical memory", Bytes: need, Used: need, Raise: "a machine with more memory"}
	tooSmall := machine
	tooSmall.Bytes -= budget.KiB
	atEdge := group
	atEdge.Bytes += budget.KiB
	beyond := group
	beyond.Used = 1 << 50
	groupText := func(rest string) string {
		return begin + fmt.Sprintf("cgroup memory.max leaves %s of %s; lower the plan or raise the limit: docker run --memory", rest,
			kib(group.Bytes))
	}
	for _, c := range []struct {
		limits []platform.Limit
		text   string
	}{
		{nil, ""},
		{[]platform.Limit{machine, atEdge}, ""},
		{[]platform.Limit{group}, groupText(kib(need - budget.KiB))},
		{[]platform.Limit{machine, atEdge, group}, groupText(kib(need - budget.KiB))},
		{[]platform.Limit{beyond}, groupText("0")},
		{[]platform.Limit{tooSmall}, begin + fmt.Sprintf("physical memory leaves %s of %s; lower the plan or raise the limit: "+
			"a machine with more memory", kib(tooSmall.Bytes), kib(tooSmall.Bytes))},
	} {
		restore := budget.SetLimits(c.limits...)
		b, err := budget.Open(plan)
		restore()
		if c.text == "" {
			require.NoError(t, err)
			require.NoError(t, b.Close())
			continue
		}
		assert.Nil(t, b)
		assert.EqualError(t, err, c.text)
		assert.Equal(t, before, debug.SetMemoryLimit(-1), "the Go share is free")
	}
	restore := budget.SetLimits(group)
	defer restore()
	plan.GoHeap = 0
	require.NoError(t, open(t, plan).Close(), "without a Go share only the budget counts")
	plan.GoHeap = 1 << 40
	b, err := budget.OpenIn(static[:], plan)
	require.NoError(t, err, "the block is there already")
	require.NoError(t, b.Close())
}
