package budget_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
)

const restReserve = 16 * budget.MiB // as Plan.GoHeap's text has it

// restful returns a plan whose Go heap is the Rest. No range of an earlier budget suits it.
func restful(t *testing.T) budget.Plan {
	plan := fresh(t, small())
	plan.GoHeap = budget.Rest
	return plan
}

// inForce returns the runtime's memory limit without the parts that only some builds add.
func inForce(b *budget.Budget, plan budget.Plan) uint64 {
	limit := uint64(debug.SetMemoryLimit(-1)) - budget.SitesOf(plan)
	if platform.GoBacked {
		limit -= b.Size()
	}
	return limit
}

func TestGoHeapIsTheRestOfALimit(t *testing.T) {
	const mapped, present = 40 * budget.MiB, 30 * budget.MiB
	defer budget.SetGoMemory(mapped, present)()
	before := debug.SetMemoryLimit(-1)
	plan := restful(t)
	memory, size := budget.MemoryOf(plan)
	beside := budget.Beside(plan)
	group := platform.Limit{Name: "cgroup memory.max", Bytes: 512 * budget.MiB, Used: 100 * budget.MiB,
		Raise: "docker run --memory"}
	outer := group
	outer.Name, outer.Used = "cgroup v1 memory.limit_in_bytes", 90*budget.MiB
	addresses := platform.Limit{Name: "RLIMIT_AS", Bytes: 4 * budget.GiB, Used: 3 * budget.GiB}
	data := platform.Limit{Name: "RLIMIT_DATA", Bytes: 200 * budget.MiB, Used: 60 * budget.MiB}
	machine := platform.Limit{Name: "physical memory", Bytes: 3 * budget.GiB, Used: 2 * budget.GiB}
	ofGroup := 412*budget.MiB + present - memory - beside - restReserve
	ofMachine := budget.GiB + present - memory - restReserve
	arenas := (budget.GiB - size - restReserve) / (64 * budget.MiB) * (64 * budget.MiB)
	for _, c := range []struct {
		limits []platform.Limit
		share  uint64
		from   string
	}{
		{[]platform.Limit{group, outer, addresses, machine}, ofGroup - ofGroup/512,
			"the rest of cgroup memory.max 524288KiB"},
		{[]platform.Limit{machine, addresses, outer, group}, ofGroup - ofGroup/512,
			"the rest of cgroup memory.max 524288KiB"},
		{[]platform.Limit{data, group}, 140*budget.MiB + mapped - size - restReserve,
			"the rest of RLIMIT_DATA 204800KiB"},
		{[]platform.Limit{addresses}, mapped + arenas, "the rest of RLIMIT_AS 4194304KiB"},
		{[]platform.Limit{machine}, ofMachine - ofMachine/512, "the rest of physical memory 3145728KiB"},
	} {
		fresh(t, plan)
		restore := budget.SetLimits(c.limits...)
		b := open(t, plan)
		assert.Equal(t, c.share, inForce(b, plan), c.from)
		r := b.Report()
		assert.Equal(t, [...]any{c.share, c.share, c.share, c.from, uint64(restReserve)},
			[...]any{b.Plan().GoHeap, r.Plan.GoHeap, r.GoHeap.Limit, r.GoHeap.From, r.GoHeap.Reserve})
		assert.Equal(t, c.share, r.Cost.GoHeap)
		assert.Contains(t, r.String(), fmt.Sprintf("\n  Go heap: limit %s, %s; 16384KiB stay in reserve\n",
			budget.SizeText(c.share), c.from))
		require.NoError(t, b.Reconfigure(background, plan), "the plan is the same")
		other := plan
		other.GoHeap = budget.GiB
		assert.ErrorContains(t, b.Reconfigure(background, other), "Reconfigure: go_heap is")
		suggested, err := budget.Suggest(r)
		require.NoError(t, err)
		assert.Equal(t, budget.Rest, suggested.GoHeap, "not the number of this machine")
		require.NoError(t, b.Close())
		restore()
		assert.Equal(t, before, debug.SetMemoryLimit(-1))
	}
	b := open(t, small())
	assert.ErrorContains(t, b.Reconfigure(background, plan),
		`Reconfigure: go_heap is 0 and can't change; the plan has "rest"`)
}

func TestGoHeapWithTooLittleRest(t *testing.T) {
	defer budget.SetGoMemory(0, 0)()
	before := debug.SetMemoryLimit(-1)
	plan := restful(t)
	memory, _ := budget.MemoryOf(plan)
	need := memory + budget.Beside(plan) + restReserve
	text := budget.SizeText
	group := platform.Limit{Name: "cgroup memory.max", Used: budget.GiB, Raise: "docker run --memory"}
	attempt := func(share uint64) error {
		group.Bytes = group.Used + need + share
		defer budget.SetLimits(group)()
		b, err := budget.Open(plan)
		if err == nil {
			require.NoError(t, b.Close())
		}
		return err
	}
	const least = 4 * budget.MiB
	assert.EqualError(t, attempt(least),
		fmt.Sprintf(`budget "small": go_heap is "rest", and cgroup memory.max of %s leaves 4088KiB for it, `+
			`which needs 4096KiB or more: of the %s that are free or the Go heap's, the plan takes %s (budget %s, page tables and runtime %s) and 16384KiB stay in reserve; `+
			`lower regions[2].size (%d) in the plan, or raise the limit: docker run --memory`,
			text(group.Bytes), text(need+least), text(need-restReserve), text(memory), text(budget.Beside(plan)),
			plan.Regions[2].Size))
	require.NoError(t, attempt(least+least/511+1))
	plan.Limits.Owned = 65535
	tables := budget.GoTables(plan)
	memory, _ = budget.MemoryOf(plan)
	need = memory + budget.Beside(plan) + restReserve
	assert.ErrorContains(t, attempt(least+least/511+1), "which needs "+text(tables), "of the tables")
	cost, err := plan.Cost()
	require.NoError(t, err)
	assert.Equal(t, tables, cost.GoHeap)
	require.NoError(t, attempt(tables+tables/511+1))
	group.Used = 2 * budget.GiB
	restore := budget.SetLimits(group)
	_, err = budget.Open(plan)
	assert.ErrorContains(t, err, "leaves 0KiB for it")
	restore()
	defer budget.SetLimits()()
	_, err = budget.Open(plan)
	assert.EqualError(t, err,
		`budget "small": go_heap is "rest", but this system shows no limit of memory; set go_heap to a size, or go_heap_max`)
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
}

// TestGoHeapMax: a bound holds below the rest of a limit, and without any limit. Without a bound,
// the report says that only the machine's memory is one.
func TestGoHeapMax(t *testing.T) {
	defer budget.SetGoMemory(40*budget.MiB, 30*budget.MiB)()
	machine := platform.Limit{Name: "physical memory", Bytes: 3 * budget.GiB}
	group := platform.Limit{Name: "cgroup memory.max", Bytes: budget.GiB}
	commit := platform.Limit{Name: "commit limit", Bytes: 2 * budget.GiB}
	high := platform.Limit{Name: "cgroup memory.high", Bytes: 200 * budget.MiB}
	const most = 64 * budget.MiB
	for _, c := range []struct {
		most   uint64
		limits []platform.Limit
		from   string
		said   bool
	}{
		{0, []platform.Limit{machine}, "the rest of physical memory 3145728KiB", true},
		{0, []platform.Limit{machine, commit}, "the rest of commit limit 2097152KiB", true},
		{0, []platform.Limit{machine, group}, "the rest of cgroup memory.max 1048576KiB", false},
		{0, []platform.Limit{group, machine}, "the rest of cgroup memory.max 1048576KiB", false},
		{most, []platform.Limit{machine}, "go_heap_max 65536KiB", false},
		{most, nil, "go_heap_max 65536KiB", false},
		{8 * budget.GiB, []platform.Limit{machine}, "the rest of physical memory 3145728KiB", true},
		{0, []platform.Limit{high, group}, "the rest of cgroup memory.high 204800KiB", false},
	} {
		plan := restful(t)
		plan.GoHeapMax = c.most
		restore := budget.SetLimits(c.limits...)
		b := open(t, plan)
		r := b.Report()
		assert.Equal(t, c.from, r.GoHeap.From)
		if c.most == most {
			assert.Equal(t, [...]uint64{most, most}, [...]uint64{inForce(b, plan), b.Plan().GoHeap})
		}
		said := slices.IndexFunc(r.NotGranted, func(line string) bool {
			return strings.HasPrefix(line, `go_heap: "rest" is `+budget.SizeText(r.GoHeap.Limit)+
				" of the machine's memory")
		})
		assert.Equal(t, c.said, said >= 0, "%v", r.NotGranted)
		assert.NoError(t, b.Plan().Check(), "the report's plan is a plan")
		require.NoError(t, b.Close())
		restore()
	}
	defer budget.SetLimits(platform.Limit{Name: "cgroup memory.high", Bytes: budget.MiB})()
	plan := small()
	b := open(t, plan)
	require.NoError(t, b.Close(), "memory.high refuses no plan")
	plan = restful(t)
	_, err := budget.Open(plan)
	assert.ErrorContains(t, err, "cgroup memory.high of 1024KiB leaves 0KiB for it")
	plan.GoHeapMax, plan.Limits.Owned = 4*budget.MiB, 65535
	_, err = budget.Open(plan)
	assert.ErrorContains(t, err, "raise go_heap_max, or lower limits or slots")
}

// TestGoHeapOfTheRestAgain: a budget that takes a closed one's range gets the same share.
func TestGoHeapOfTheRestAgain(t *testing.T) {
	defer budget.SetGoMemory(40*budget.MiB, 30*budget.MiB)()
	plan := restful(t)
	size := open(t, small()).Size()
	limit := platform.Limit{Name: "RLIMIT_AS", Bytes: budget.GiB, Used: size + 40*budget.MiB}
	if platform.GoBacked {
		t.Skip("with -race a kept range is on the Go heap: go test ./budget runs it")
	}
	defer budget.SetLimits(limit)()
	b := open(t, plan)
	share := b.Plan().GoHeap
	require.NoError(t, b.Close())
	assert.Equal(t, share, open(t, plan).Plan().GoHeap)
}

func TestGoHeapOfTheRestInAFile(t *testing.T) {
	plan,
		err := budget.ParsePlan([]byte(`{"name":"small","regions":[{"name":"level","size":"1MiB"}],"go_heap":"rest"}`))
	require.NoError(t, err)
	require.NoError(t, plan.Check())
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"go_heap":"rest"`)
	cost, err := plan.Cost()
	require.NoError(t, err)
	assert.EqualValues(t, 4*budget.MiB, cost.GoHeap, "the least")
	assert.Contains(t, plan.String(), "Go heap  4096KiB  at least, outside it: the rest\n")
	dry, err := openDry(plan)
	require.NoError(t, err)
	assert.Equal(t, budget.Rest, dry.Plan().GoHeap, "no process")
	report, err := budget.Measure(plan, func(b *budget.Budget) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, budget.Rest, report.Plan.GoHeap)
}

// TestLowerLimitOfTheOperator: GOMEMLIMIT, or a call of the program.
func TestLowerLimitOfTheOperator(t *testing.T) {
	const limit = 200 * budget.MiB
	old := debug.SetMemoryLimit(limit)
	defer debug.SetMemoryLimit(old)
	defer budget.SetLimits(platform.Limit{Name: "physical memory", Bytes: budget.GiB})()
	const origin = "a lower limit of the operator (GOMEMLIMIT, debug.SetMemoryLimit); the plan allows "
	for heap, from := range map[uint64]string{
		limit + 1:        origin + "204801KiB",
		limit:            "",
		100 * budget.MiB: "",
		budget.Rest:      origin + "the rest of physical memory 1048576KiB",
	} {
		plan := small()
		plan.GoHeap = heap
		b := open(t, plan)
		r := b.Report()
		assert.Equal(t, from, r.GoHeap.From)
		want := min(heap, limit)
		assert.Equal(t, want, r.GoHeap.Limit)
		assert.Equal(t, want, inForce(b, plan))
		if heap == limit+1 {
			assert.Equal(t, heap, b.Plan().GoHeap)
			assert.Contains(t, r.String(), "\n  Go heap: limit 204800KiB, "+from+"\n")
		}
		require.NoError(t, b.Close())
		assert.EqualValues(t, limit, debug.SetMemoryLimit(-1))
	}
}

// TestThreadsCountAsAddresses: a thread's stack counts whole, and glibc's addresses for it.
func TestThreadsCountAsAddresses(t *testing.T) {
	defer budget.SetGoMemory(0, 0)()
	plan := fresh(t, small())
	plan.GoHeap = 64 * budget.MiB
	memory, size := budget.MemoryOf(plan)
	text := budget.SizeText
	for _, c := range []struct {
		name         string
		stack, each  uint64
		more, others int
	}{
		{"RLIMIT_DATA", 8 * budget.MiB, 8*budget.MiB + 256*budget.KiB, 3, 0},
		{"RLIMIT_DATA", budget.MiB, budget.MiB + 256*budget.KiB, 1, 0},
		{"RLIMIT_AS", 8 * budget.MiB, 72*budget.MiB + 256*budget.KiB, 2, 64 * budget.MiB},
		{"RLIMIT_DATA", budget.MiB, 0, 0, 0},
		{"RLIMIT_DATA", budget.MiB, 0, -5, 0},
		{"cgroup memory.max", budget.MiB, 0, 3, 0},
	} {
		most, restore := budget.SetThreads(1, c.stack)
		restore()
		threads := uint64(max(0, c.more))*c.each + uint64(c.others)
		need := size + plan.GoHeap + threads
		if c.name == "cgroup memory.max" {
			need = memory + plan.GoHeap + budget.Beside(plan)
		}
		limit := platform.Limit{Name: c.name, Bytes: need, Raise: "RAISE"}
		_, restore = budget.SetThreads(most-c.more, c.stack)
		require.NoError(t, budget.FitsIn(plan, limit))
		limit.Bytes--
		err := budget.FitsIn(plan, limit)
		restore()
		require.ErrorContains(t, err, "the plan needs "+text(need)+" (")
		if threads == 0 {
			assert.NotContains(t, err.Error(), "thread")
			continue
		}
		s := "s"
		if c.more == 1 {
			s = ""
		}
		assert.ErrorContains(t, err, fmt.Sprintf(", %d more thread%s %s), and %s leaves ",
			c.more, s, text(threads), c.name))
		assert.ErrorContains(t, err, fmt.Sprintf("raise the limit: RAISE; each thread's stack takes %s: lower it "+
			"(ulimit -s, in KiB)", text(c.stack)))
	}
}

// TestCHeapCounts: C's heap counts against each limit.
func TestCHeapCounts(t *testing.T) {
	defer budget.SetGoMemory(0, 0)()
	defer budget.SetLimits()()
	plan := fresh(t, small())
	plan.GoHeap, plan.CHeap.Size = 64*budget.MiB, 96*budget.MiB
	memory, size := budget.MemoryOf(plan)
	for name, need := range map[string]uint64{"RLIMIT_AS": size, "RLIMIT_DATA": size,
		"cgroup memory.max": memory + budget.Beside(plan), "physical memory": memory} {
		limit := platform.Limit{Name: name, Bytes: need + 160*budget.MiB, Raise: "RAISE"}
		require.NoError(t, budget.FitsIn(plan, limit), name)
		limit.Bytes--
		err := budget.FitsIn(plan, limit)
		assert.ErrorContains(t, err, "Go heap 65536KiB, C heap 98304KiB", name)
		assert.ErrorContains(t, err, "lower c_heap (96MiB) in the plan, or raise the limit", name)
	}
	if arena_c.ProcessHeapOf() != nil {
		t.Skip("C's malloc is a heap of a plan already")
	}
	arena_c.SetProcessHeap(begunHeap{})
	defer arena_c.SetProcessHeap(nil)
	limit := platform.Limit{Name: "RLIMIT_AS", Bytes: budget.GiB + size + 64*budget.MiB,
		Used: budget.GiB + 96*budget.MiB}
	limit.Bytes += 96 * budget.MiB
	require.NoError(t, budget.FitsIn(plan, limit), "an earlier budget has begun it")
	limit.Name, limit.Bytes = "cgroup memory.max", limit.Used+memory+budget.Beside(plan)+160*budget.MiB-7
	require.NoError(t, budget.FitsIn(plan, limit), "its used bytes are present already")
	limit.Bytes--
	assert.Error(t, budget.FitsIn(plan, limit))
	plan.CHeap.Size += budget.MiB
	limit.Name, limit.Bytes = "RLIMIT_AS", limit.Used+size+160*budget.MiB
	assert.Error(t, budget.FitsIn(plan, limit), "it has another size")
}

// begunHeap is C's malloc with a heap that has begun.
type begunHeap struct{}

func (begunHeap) Begin(arena_c.ProcessPlan) (string, error)          { return "", nil }
func (begunHeap) WriteProfile(io.Writer) error                       { return nil }
func (begunHeap) Sampler(string) (unsafe.Pointer, uint32)            { return nil, 0 }
func (begunHeap) Watch(at, again uint64, crossed func(uint64)) error { return nil }
func (begunHeap) Trim() uint64                                       { return 0 }
func (begunHeap) Counts() arena_c.ProcessCounts {
	return arena_c.ProcessCounts{Size: 96 * budget.MiB, Used: 7}
}

// TestHalving: the limit with twice the room for garbage is above the limit by the garbage of an
// average collection. With it the same garbage takes half as many collections.
func TestHalving(t *testing.T) {
	allocated := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	for _, limit := range []uint64{budget.GiB, 0} {
		before := allocated()
		b := open(t, budget.Plan{Name: "pond", GoHeap: limit,
			Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}}})
		opened := allocated()
		for i := range 40 * 1024 {
			kilobyte = make([]byte, 1024)
			if i%(10*1024) == 0 {
				runtime.GC()
			}
		}
		least := allocated() - opened
		heap := b.Report().GoHeap
		most := allocated() - before
		require.NoError(t, b.Close())
		require.GreaterOrEqual(t, heap.Collections, uint64(4))
		more := heap.Halving - cmp.Or(heap.Limit, heap.Used)
		assert.GreaterOrEqual(t, more, least/heap.Collections)
		assert.LessOrEqual(t, more, most/heap.Collections)
	}
}

var kilobyte []byte // keeps make on the heap
