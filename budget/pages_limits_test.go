package budget_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
)

func TestLimitsOfTheProcess(t *testing.T) {
	plan := small()
	fresh(t, plan) // a kept range would count already
	size, addresses := budget.MemoryOf(plan)
	open(t, plan)
	defer budget.SetGoMemory(0, 0)()
	require.Zero(t, addresses%(64*budget.KiB))
	plan.GoHeap = 64 * budget.MiB
	need := size + plan.GoHeap
	before := debug.SetMemoryLimit(-1)
	kib := func(bytes uint64) string { return fmt.Sprintf("%dKiB", bytes/budget.KiB) }
	begin := fmt.Sprintf(`budget "small": the plan needs %s (budget %s, Go heap 65536KiB), and `, kib(need), kib(size))
	beside := budget.Beside(plan)
	group := platform.Limit{Name: "cgroup memory.max", Bytes: need + beside + budget.MiB - budget.KiB, Used: budget.MiB,
		Raise: "docker run --memory"}
	machine := platform.Limit{Name: "physical memory", Bytes: need, Used: need, Raise: "a machine with more memory"}
	tooSmall := machine
	tooSmall.Bytes -= budget.KiB
	atEdge := group
	atEdge.Bytes += budget.KiB
	beyond := group
	beyond.Used = 1 << 50
	groupText := func(rest string) string {
		return fmt.Sprintf(`budget "small": the plan needs %s (budget %s, Go heap 65536KiB, page tables and runtime %s), and cgroup memory.max `+
			`leaves %s of %s; lower the plan, or raise the limit: docker run --memory`, kib(need+beside), kib(size),
			kib(beside), rest, kib(group.Bytes))
	}
	for _, c := range []struct {
		limits []platform.Limit
		text   string
	}{
		{[]platform.Limit{group}, groupText(kib(need + beside - budget.KiB))},
		{[]platform.Limit{machine, atEdge, group}, groupText(kib(need + beside - budget.KiB))},
		{[]platform.Limit{beyond}, groupText("0KiB")},
		{[]platform.Limit{tooSmall}, begin + fmt.Sprintf("physical memory leaves %s of %s; lower the plan, or raise "+
			"the limit: a machine with more memory", kib(tooSmall.Bytes), kib(tooSmall.Bytes))},
		{[]platform.Limit{machine, atEdge}, ""},
		{nil, ""},
	} {
		restore := budget.SetLimits(c.limits...)
		b, err := budget.Open(plan)
		based := plan
		based.Base, based.Pages.Base = freshBase(), budget.Required
		if c.text != "" && based.Base != 0 {
			_, err := budget.Open(based)
			assert.EqualError(t, err, c.text, "nor is it the base's fault")
		}
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
	plan.GoHeap, plan.Limits = 1<<40, small().Limits
	b, err := budget.OpenIn(block[:], plan)
	require.NoError(t, err, "the block is there already")
	require.NoError(t, b.Close())
}

// TestWhatCountsAlready: the Go heap in use, and the range of a closed budget, don't count twice.
func TestWhatCountsAlready(t *testing.T) {
	plan := fresh(t, paged())
	plan.GoHeap = 64 * budget.MiB
	const used, mapped, present = 512 * budget.MiB, 40 * budget.MiB, 30 * budget.MiB
	first := plan
	first.GoHeap = 0
	b := open(t, first)
	size := b.Size()
	memory, _ := budget.MemoryOf(plan)
	head := budget.HeadOf(plan).Size
	attempt := func(name string, limit uint64) error {
		defer budget.SetLimits(platform.Limit{Name: name, Bytes: limit, Used: used})()
		b, err := budget.Open(plan)
		if err == nil {
			require.NoError(t, b.Close())
		}
		return err
	}
	// exactly expects that the plan opens with this limit, and not with a limit of one byte less.
	exactly := func(what, name string, counted uint64) {
		t.Helper()
		need := used + size + max(plan.GoHeap, budget.GoTables(plan)) - counted
		if strings.HasPrefix(name, "cgroup") {
			need += budget.Beside(plan) - size + memory
		}
		require.NoError(t, attempt(name, need), "%s, %s", what, name)
		assert.ErrorContains(t, attempt(name, need-1), name+" leaves", "%s, %s", what, name)
	}
	groups := []string{"cgroup memory.max", "cgroup v1 memory.limit_in_bytes"}
	defer budget.SetGoMemory(mapped, present)()
	fresh := map[string]uint64{"RLIMIT_DATA": mapped, "RLIMIT_AS": mapped, groups[0]: present, groups[1]: present}
	// b is open: no range is kept, and a refused plan takes none
	for name, counted := range fresh {
		assert.ErrorContains(t, attempt(name, used+memory+plan.GoHeap-counted-1), name+" leaves", "a new range")
	}
	require.NoError(t, b.Close())
	kept := map[string]uint64{"RLIMIT_DATA": head, "RLIMIT_AS": size, groups[0]: head, groups[1]: head}
	for name, counted := range kept {
		if platform.GoBacked {
			counted = size
		}
		exactly("a kept range", name, fresh[name]+counted)
	}
	defer budget.SetGoMemory(1<<40, 1<<40)()
	exactly("no more than the Go share counts", "RLIMIT_AS", size+plan.GoHeap)
	plan.GoHeap = 0
	exactly("without a share, the tables", "RLIMIT_AS", size+budget.GoTables(plan))
}

// TestNewRangeThatCounts: the plan can't take a kept range, because the head of its tables has
// another size.
func TestNewRangeThatCounts(t *testing.T) {
	plan := fresh(t, paged())
	require.NoError(t, open(t, plan).Close())
	plan.Limits.Pools = 5000
	fresh(t, plan)
	b := open(t, plan)
	size := b.Size()
	require.NoError(t, b.Close())
	fresh(t, plan)
	tables := budget.GoTables(plan)
	require.Greater(t, tables, uint64(budget.MiB)/2, "without a share the tables on the Go heap count")
	defer budget.SetGoMemory(0, 0)()
	limit := platform.Limit{Name: "RLIMIT_AS", Bytes: size + tables, Used: 1, Raise: "ulimit -v"}
	restore := budget.SetLimits(limit)
	_, err := budget.Open(plan)
	restore()
	text := budget.SizeText
	assert.EqualError(t, err,
		fmt.Sprintf(`budget "paged": the plan needs %s (budget %s, Go heap %s), and RLIMIT_AS leaves `+
			`%s of %[1]s; lower regions[1].size (5MiB) in the plan, or raise the limit: ulimit -v`,
			text(size+tables), text(size), text(tables), text(size+tables-budget.KiB)),
		"one unit; what is left is rounded down, else it would be what is needed")
	limit.Bytes++
	defer budget.SetLimits(limit)()
	require.NoError(t, open(t, plan).Close())
	limit.Used = size
	defer budget.SetLimits(limit)()
	require.NoError(t, open(t, plan).Close(), "now there is one of its own")
}

// TestRangeAtTheBaseThatCounts: the plan can take only a range that is kept at its base.
func TestRangeAtTheBaseThatCounts(t *testing.T) {
	plan := fresh(t, paged())
	if plan.Base = freshBase(); plan.Base == 0 {
		t.Skip(noSafeBase)
	}
	size := open(t, plan).Size()
	tables := budget.GoTables(plan)
	left := budget.SizeText(tables) + " of"
	defer budget.SetGoMemory(0, 0)()
	defer budget.SetLimits(platform.Limit{Name: "RLIMIT_AS", Bytes: size + tables, Used: size})()
	other := plan
	other.Base = freshBase()
	_, err := budget.Open(other)
	assert.ErrorContains(t, err, "RLIMIT_AS leaves "+left)
	_, err = budget.Open(plan)
	require.ErrorContains(t, err, "RLIMIT_AS leaves "+left, "it is in use")

	limits := budget.SetLimits()
	anywhere := plan
	anywhere.Base = 0
	require.NoError(t, open(t, anywhere).Close())
	limits() // now a range is kept elsewhere
	_, err = budget.Open(demanding(other, "base", budget.Required))
	assert.ErrorContains(t, err, "pages.base is required: the plan needs")
	b := open(t, demanding(other, "base", budget.Wished))
	require.Len(t, b.Report().NotGranted, 1)
	assert.Regexp(t, "^pages.base: the plan needs .*RLIMIT_AS leaves "+left, b.Report().NotGranted[0])
	require.NoError(t, b.Close())
}

func TestGoShareTooSmallForTheTables(t *testing.T) {
	plan := small()
	plan.GoHeap = 4 * budget.MiB
	plan.Limits.Owned = 65535
	_, err := budget.Open(plan)
	assert.EqualError(t, err, fmt.Sprintf(`budget "small": go_heap is 4MiB, but the tables of the plan's arenas need `+
		`%dKiB of it; raise go_heap, or lower limits or slots`, budget.GoTables(plan)/budget.KiB))
	plan.GoHeap = budget.GoTables(plan) - 1
	_, err = budget.Open(plan)
	assert.ErrorContains(t, err, "raise go_heap")
	plan.GoHeap++
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b := open(t, plan)
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	if !instrumented {
		assert.InEpsilon(t, plan.GoHeap, took, 0.2, "what is counted is what is taken")
	}
	require.NoError(t, b.Close())
}
