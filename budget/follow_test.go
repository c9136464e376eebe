package budget_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

// followed is a budget whose limits a test moves. Its live heap is live bytes, and none of its
// collections runs.
type followed struct {
	*budget.Budget
	*budget.Watch
	plan     budget.Plan
	mutex    sync.Mutex
	live     uint64
	collects int
	warned   []budget.Warning
}

const (
	followMapped, followPresent = 60 * budget.MiB, 30 * budget.MiB
	followOthers                = 2 * budget.MiB
)

func (f *followed) setLive(live uint64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.live = live
}

// follow opens a budget of the plan within the limits, until the end of the test.
func follow(t *testing.T, plan budget.Plan, limits ...platform.Limit) *followed {
	f := &followed{plan: plan, live: 3 * budget.MiB}
	restores := []func(){budget.SetGoMemory(followMapped, followPresent), budget.SetLimits(limits...),
		budget.SetGoLive(func() (uint64, uint64) {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			return f.live, followOthers
		}, func() { f.collects++ }), budget.SetOutside(budget.Outside{Unknown: "a test"})}
	w, restore := budget.SetWatch()
	f.Watch = w
	before := debug.SetMemoryLimit(-1)
	b, err := budget.Open(f.plan)
	require.NoError(t, err)
	f.Budget = b
	t.Cleanup(func() {
		if !b.Closed() {
			assert.NoError(t, b.Close())
		}
		assert.Equal(t, before, debug.SetMemoryLimit(-1))
		if w.Moved != nil {
			assert.Equal(t, 1, w.Stopped)
		}
		for _, restore := range append(restores, restore) {
			restore()
		}
	})
	return f
}

// share returns the rest of a limit of a group, as Plan.GoHeap has it.
func (f *followed) share(l platform.Limit) uint64 {
	memory, _ := budget.MemoryOf(f.plan)
	own := uint64(followPresent)
	if !platform.GoBacked {
		own += f.Report().Resident
	}
	share := l.Bytes - (l.Used - min(l.Used, own)) - memory - budget.Beside(f.plan) - restReserve
	return share - share/512
}

// lines returns the moves without their times.
func lines(moves []string) (list []string) {
	for _, line := range moves {
		_, line, _ = strings.Cut(line, " ")
		list = append(list, line)
	}
	return list
}

func groupOf(bytes uint64) platform.Limit {
	return platform.Limit{Name: "cgroup memory.max", Bytes: bytes, Used: 100 * budget.MiB,
		Raise: "docker run --memory, systemd MemoryMax (/sys/fs/cgroup/a/memory.max)"}
}

func TestGoHeapFollowsALimit(t *testing.T) {
	const MiB, text = budget.MiB, "cgroup memory.max "
	machine := platform.Limit{Name: "physical memory", Bytes: 3 * budget.GiB, Used: budget.GiB}
	f := follow(t, restful(t), groupOf(512*MiB), machine)
	size := budget.SizeText
	first := f.Report().GoHeap
	assert.Empty(t, first.Moves)
	assert.Contains(t, f.Report().String(), "  cost: ")
	planned := f.Plan().GoHeap
	before := first.Limit
	var want []string
	for _, c := range []struct{ bytes, was uint64 }{{256 * MiB, 512 * MiB}, {1024 * MiB, 256 * MiB}} {
		f.Moved([]platform.Limit{machine, groupOf(c.bytes)}, nil)
		share := f.share(groupOf(c.bytes))
		heap := f.Report().GoHeap
		assert.Equal(t, [...]any{share, share, "the rest of cgroup memory.max " + size(c.bytes), uint64(restReserve)},
			[...]any{heap.Limit, inForce(f.Budget, f.plan), heap.From, heap.Reserve})
		want = append(want, fmt.Sprintf(text+"%s -> %s: limit %s -> %s", size(c.was), size(c.bytes), size(before),
			size(share)))
		before = share
		f.Moved([]platform.Limit{groupOf(c.bytes), machine}, nil)
	}
	busy := machine
	busy.Used *= 2
	f.Moved([]platform.Limit{busy}, nil)
	heap := f.Report().GoHeap
	assert.Equal(t, "the rest of physical memory 3145728KiB", heap.From)
	want = append(want, fmt.Sprintf(text+"1048576KiB -> none: limit %s -> %s", size(before), size(heap.Limit)))
	before = heap.Limit
	f.Moved([]platform.Limit{busy, groupOf(512 * MiB)}, nil)
	heap = f.Report().GoHeap
	want = append(want, fmt.Sprintf(text+"none -> 524288KiB: limit %s -> %s", size(before), size(heap.Limit)))
	assert.Equal(t, want, lines(heap.Moves))
	assert.Regexp(t, `^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ cgroup`, heap.Moves[0])
	r := f.Report()
	for _, line := range want {
		assert.Contains(t, r.String(), line+"\n")
	}
	assert.Contains(t, r.String(), "  cost as of Open: ")
	assert.Equal(t, [...]uint64{planned, planned}, [...]uint64{f.Plan().GoHeap, r.Plan.GoHeap}, "as of Open")
	require.NoError(t, f.Reconfigure(background, f.plan), "the plan is the same")
	assert.Empty(t, f.warned)
	f.Moved([]platform.Limit{busy, groupOf(1 << 45)}, nil)
	assert.Equal(t, "the rest of physical memory 3145728KiB", f.Report().GoHeap.From, "a limit beyond the machine")
	r.GoHeap.Moves[0] = "a copy"
	assert.NotEqual(t, r.GoHeap.Moves, f.Published().GoHeap.Moves)
	require.NoError(t, f.Close())
	limit := debug.SetMemoryLimit(-1)
	f.Moved([]platform.Limit{groupOf(200 * MiB)}, nil)
	assert.Equal(t, limit, debug.SetMemoryLimit(-1), "a move after Close")
}

// TestGoHeapFollowsParents: the least rest counts. A limit that stays keeps its share, also
// if others use more.
func TestGoHeapFollowsParents(t *testing.T) {
	const MiB = budget.MiB
	parent := groupOf(600 * MiB)
	parent.Raise, parent.Used = "docker run --memory (/sys/fs/cgroup/memory.max)", 300*MiB
	f := follow(t, restful(t), parent, groupOf(512*MiB))
	share := f.Report().GoHeap.Limit
	busy := parent
	busy.Used += 100 * MiB
	f.Moved([]platform.Limit{groupOf(800 * MiB), busy}, nil)
	assert.Equal(t, share, f.Report().GoHeap.Limit)
	busy.Bytes = 900 * MiB
	f.Moved([]platform.Limit{groupOf(800 * MiB), busy}, nil)
	assert.Equal(t, f.share(busy), f.Report().GoHeap.Limit)
	high := platform.Limit{Name: "cgroup memory.high", Bytes: 200 * MiB, Used: 100 * MiB}
	f.Moved([]platform.Limit{high, groupOf(800 * MiB), busy}, nil)
	heap := f.Report().GoHeap
	assert.Equal(t, f.share(high), heap.Limit)
	assert.Equal(t, "the rest of cgroup memory.high 204800KiB", heap.From)
	for i := range 20 {
		high.Bytes += MiB
		f.Moved([]platform.Limit{high}, []string{fmt.Sprint("file ", i)})
	}
	heap = f.Report().GoHeap
	assert.Len(t, heap.Moves, 16)
	assert.True(t, strings.HasPrefix(lines(heap.Moves)[15], "cgroup memory.high 224256KiB -> 225280KiB: "))
}

// TestGoHeapOfALimitBelowItsUse: the live heap keeps a margin, the warning has the numbers, and the
// rest is taken once the live heap fits in it.
func TestGoHeapOfALimitBelowItsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const MiB, live = budget.MiB, 200 * budget.MiB
		plan := restful(t)
		var f *followed
		plan.OnWarn = func(w budget.Warning) { f.warned = append(f.warned, w) }
		f = follow(t, plan, groupOf(512*MiB))
		own := uint64(0) // the plan's part of the live heap
		if platform.GoBacked {
			own = f.Size()
		}
		f.setLive(own + live)
		f.Moved([]platform.Limit{groupOf(256 * MiB)}, nil)
		const least = live + live/4 + followOthers
		share := f.share(groupOf(256 * MiB))
		require.Less(t, share, uint64(least))
		heap := f.Report().GoHeap
		assert.Equal(t, [...]uint64{least, least}, [...]uint64{heap.Limit, inForce(f.Budget, f.plan)})
		assert.Equal(t, "the live heap with a margin; the rest of cgroup memory.max 262144KiB leaves "+
			budget.SizeText(share), heap.From)
		memory, _ := budget.MemoryOf(plan)
		others := 100*MiB - uint64(followPresent)
		if !platform.GoBacked {
			others -= f.Report().Resident
		}
		tables := budget.Beside(plan) + (least-1)/511
		need := memory + least + others + tables + restReserve
		missing := need - 256*MiB
		if assert.Len(t, f.warned, 1) {
			w := f.warned[0]
			assert.Equal(t, [...]any{"cgroup memory.max", groupOf(0).Raise, need, uint64(256 * MiB), budget.Percent(0),
				[3]scope.Usage{{Name: "plan", Bytes: memory}, {Name: "c_heap"}, {Name: "go_heap", Bytes: least}}},
				[...]any{w.Arena, w.Key, w.Used, w.Size, w.Share, w.Labels})
			assert.Equal(t, fmt.Sprintf("cgroup memory.max is 268435456 bytes, and the process needs %d: plan %d, "+
				"go_heap %d, page tables %d, outside and other processes %d, reserve 16777216; %d bytes are missing; "+
				"nothing is taken from the plan: lower it, or raise the limit: docker run --memory, systemd MemoryMax "+
				"(/sys/fs/cgroup/a/memory.max)", need, memory, uint64(least), tables, others, missing), w.String())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.EqualValues(t, least, f.Report().GoHeap.Limit, "it lives on")
		f.setLive(0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		heap = f.Report().GoHeap
		assert.Equal(t, [...]uint64{share, share}, [...]uint64{heap.Limit, inForce(f.Budget, f.plan)})
		assert.Equal(t, "the live heap is smaller: limit 258048KiB -> "+budget.SizeText(share), lines(heap.Moves)[1])
		f.Moved([]platform.Limit{groupOf(88 * MiB)}, nil)
		assert.EqualValues(t, 6*MiB, f.Report().GoHeap.Limit, "a small live heap keeps 4 MiB")
		assert.Len(t, f.warned, 2)
		for _, live := range []uint64{8 * MiB, 40 * MiB, 48 * MiB} { // at last the rest of 88 MiB
			f.setLive(own + live)
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		f.Moved([]platform.Limit{groupOf(512 * MiB)}, nil)
		last := lines(f.Report().GoHeap.Moves)
		require.Len(t, last, 5)
		assert.Equal(t, "the live heap is larger: limit 6144KiB -> 63488KiB", last[3], "three settlings are a line")
		assert.Regexp(t, "^cgroup memory.max 90112KiB -> 524288KiB: limit 63488KiB -> ", last[4])
		require.NoError(t, f.Close())
		time.Sleep(10 * time.Second) // and no goroutine of the bubble is left
	})
}

// TestMissingBytesEndAShortage: a limit that has one more warning lacks the bytes of the warning,
// also if it is lower than all that others have.
func TestMissingBytesEndAShortage(t *testing.T) {
	const MiB = budget.MiB
	limit := func(name string) platform.Limit {
		return platform.Limit{Name: name, Bytes: 3 * budget.GiB, Used: 700 * MiB, Raise: "a test"}
	}
	for _, c := range []struct{ name, parts string }{
		{"cgroup memory.max", `page tables \d+, outside 3145728, other processes \d+, reserve 16777216`},
		{"cgroup memory.high", `page tables \d+, outside 3145728, other processes \d+, reserve 16777216`},
		{"physical memory", `page tables \d+, outside 3145728, other processes \d+, reserve 16777216`},
		{"RLIMIT_DATA", `outside \d+, reserve 16777216`},
		{"RLIMIT_AS", `outside \d+, reserve 16777216`},
	} {
		for _, live := range []uint64{0, 5 * MiB, 100*MiB + 511, 100*MiB + 512} {
			synctest.Test(t, func(t *testing.T) {
				plan := restful(t)
				var f *followed
				plan.OnWarn = func(w budget.Warning) { f.warned = append(f.warned, w) }
				f = follow(t, plan, limit(c.name))
				defer budget.SetOutside(budget.Outside{Bytes: 3 * MiB})()
				f.setLive(live)
				moved := limit(c.name)
				move := func(bytes uint64) []budget.Warning {
					f.warned, moved.Bytes = nil, bytes
					f.Moved([]platform.Limit{moved}, nil)
					return f.warned
				}
				warned := move(4096)
				require.Len(t, warned, 1, c.name)
				assert.Regexp(t, c.parts+"; ", warned[0].String())
				need := warned[0].Used
				assert.Empty(t, move(need), "%s: %s", c.name, warned[0])
				const short = "the live heap with a margin; "
				assert.NotContains(t, f.Report().GoHeap.From, short, "the rest is enough")
				if warned = move(need - 1); assert.Len(t, warned, 1) {
					assert.Equal(t, need, warned[0].Used)
				}
				assert.Contains(t, f.Report().GoHeap.From, short)
				require.NoError(t, f.Close())
			})
		}
	}
}

// TestEachShortLimitWarns: two limits that are too low are two warnings.
func TestEachShortLimitWarns(t *testing.T) {
	plan := restful(t)
	var f *followed
	plan.OnWarn = func(w budget.Warning) { f.warned = append(f.warned, w) }
	f = follow(t, plan, groupOf(512*budget.MiB))
	high := groupOf(2 * budget.MiB)
	high.Name = "cgroup memory.high"
	f.Moved([]platform.Limit{high, groupOf(3 * budget.MiB)}, nil)
	if assert.Len(t, f.warned, 2) {
		assert.Equal(t, [...]string{high.Name, groupOf(0).Name}, [...]string{f.warned[0].Arena, f.warned[1].Arena})
		assert.Equal(t, f.warned[0].Used, f.warned[1].Used)
	}
}

// TestMoveWithoutDescriptors: while the use of limits can't be read, no limit goes, and others have
// as much as before. The rest is computed again when it can be read.
func TestMoveWithoutDescriptors(t *testing.T) {
	const MiB = budget.MiB
	unread := []string{"the use of memory can't be read: too many open files"}
	machine := platform.Limit{Name: "physical memory", Bytes: 30 * budget.GiB, Used: budget.GiB, Raise: "a machine"}
	f := follow(t, restful(t), groupOf(512*MiB), machine)
	first := f.Report().GoHeap.Limit
	f.Moved([]platform.Limit{machine}, unread)
	assert.Equal(t, first, f.Report().GoHeap.Limit, "no limit goes")
	assert.Equal(t, unread, lines(f.Report().GoHeap.Moves))
	// At Open no page of the plan was present, and all of the use was others'.
	memory, _ := budget.MemoryOf(f.plan)
	others := 100*MiB - followPresent + budget.Beside(f.plan) + memory + restReserve
	group := groupOf(256 * MiB)
	for _, group.Used = range []uint64{0, 250 * MiB} { // as of another time
		group.Bytes -= MiB
		f.Moved([]platform.Limit{group, machine}, unread)
		share := group.Bytes - others
		assert.Equal(t, share-share/512, f.Report().GoHeap.Limit, "others have as much as before")
	}
	high := groupOf(200 * MiB)
	high.Name, high.Used = "cgroup memory.high", 0
	f.Moved([]platform.Limit{high, group, machine}, unread)
	share := high.Bytes - others
	assert.Equal(t, share-share/512, f.Report().GoHeap.Limit, "a new limit of a group")
	group.Used = 100 * MiB
	high.Used = 100 * MiB
	f.Moved([]platform.Limit{high, group, machine}, nil)
	heap := f.Report().GoHeap
	assert.Equal(t, f.share(high), heap.Limit)
	moves := lines(heap.Moves)
	assert.Regexp(t, "^the use of cgroup memory.high can be read again, the use of cgroup memory.max can be read "+
		"again: limit ", moves[len(moves)-1])
	f.Moved([]platform.Limit{high, group, machine}, nil)
	assert.Len(t, f.Report().GoHeap.Moves, len(moves), "once")
	f.Moved([]platform.Limit{machine}, nil)
	assert.Equal(t, "the rest of physical memory 31457280KiB", f.Report().GoHeap.From, "the limits are gone")
}

// TestCollectsForALimitBelowItsUse: Go's memory goes back when a limit falls below it, and the live
// heap is measured again.
func TestCollectsForALimitBelowItsUse(t *testing.T) {
	const MiB = budget.MiB
	f := follow(t, restful(t), groupOf(512*MiB))
	f.Moved([]platform.Limit{groupOf(256 * MiB)}, nil)
	assert.Zero(t, f.collects, "30 MiB are present, and allowed")
	live := uint64(300 * MiB)
	defer budget.SetGoLive(func() (uint64, uint64) { return live, 0 }, func() { f.collects++; live = 8 * MiB })()
	defer budget.SetGoMemory(450*MiB, 400*MiB)()
	f.Moved([]platform.Limit{groupOf(128 * MiB)}, nil)
	assert.Equal(t, 1, f.collects)
	memory, _ := budget.MemoryOf(f.plan)
	share := 128*MiB - memory - budget.Beside(f.plan) - restReserve
	assert.Equal(t, share-share/512, f.Report().GoHeap.Limit, "300 MiB were garbage")
}

func TestLimitOfTheProgramStays(t *testing.T) {
	const MiB, own = budget.MiB, 100 * budget.MiB
	f := follow(t, restful(t), groupOf(512*MiB))
	ours := debug.SetMemoryLimit(own)
	f.Moved([]platform.Limit{groupOf(256 * MiB)}, nil)
	assert.EqualValues(t, own, debug.SetMemoryLimit(-1))
	heap := f.Report().GoHeap
	assert.Equal(t, "a limit that the program has set (debug.SetMemoryLimit); the plan allows the rest of cgroup "+
		"memory.max 262144KiB", heap.From)
	assert.Equal(t, "the program has set another limit by debug.SetMemoryLimit, which stays; the limits would leave "+
		budget.SizeText(f.share(groupOf(256*MiB))), lines(heap.Moves)[1])
	debug.SetMemoryLimit(math.MaxInt64)
	f.Moved([]platform.Limit{groupOf(300 * MiB)}, nil)
	assert.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(-1), "a higher one, too")
	debug.SetMemoryLimit(ours)
	f.Moved([]platform.Limit{groupOf(280 * MiB)}, nil)
	assert.Equal(t, f.share(groupOf(280*MiB)), f.Report().GoHeap.Limit, "ours again")
}

// TestLimitOfTheProgramDuringAMove: a limit that the program sets while a move sets another stays.
func TestLimitOfTheProgramDuringAMove(t *testing.T) {
	const MiB, own = budget.MiB, 100 * budget.MiB
	f := follow(t, restful(t), groupOf(512*MiB))
	ours := debug.SetMemoryLimit(-1)
	theirs := []int64{own, own + MiB}
	defer budget.SetGoLimit(func(limit int64) int64 {
		if limit >= 0 && len(theirs) != 0 {
			debug.SetMemoryLimit(theirs[0])
			theirs = theirs[1:]
		}
		return debug.SetMemoryLimit(limit)
	})()
	f.Moved([]platform.Limit{groupOf(256 * MiB)}, nil)
	assert.EqualValues(t, own+MiB, debug.SetMemoryLimit(ours))
	assert.Regexp(t, `^a limit that the program has set `, f.Report().GoHeap.From)
	f.Moved([]platform.Limit{groupOf(280 * MiB)}, nil)
	assert.Equal(t, f.share(groupOf(280*MiB)), f.Report().GoHeap.Limit, "ours again")
}

func TestFollowedLimitHasBounds(t *testing.T) {
	const MiB = budget.MiB
	plan := restful(t)
	plan.GoHeapMax = 64 * MiB
	f := follow(t, plan, groupOf(140*MiB))
	f.Moved([]platform.Limit{groupOf(2048 * MiB)}, nil)
	assert.Equal(t, [...]any{uint64(64 * MiB), "go_heap_max 65536KiB"},
		[...]any{f.Report().GoHeap.Limit, f.Report().GoHeap.From})
	f.setLive(300 * MiB)
	f.Moved([]platform.Limit{groupOf(130 * MiB)}, nil)
	assert.EqualValues(t, 64*MiB, f.Report().GoHeap.Limit, "with a live heap that is larger")
	require.NoError(t, f.Close())

	old := debug.SetMemoryLimit(200 * MiB)
	t.Cleanup(func() { debug.SetMemoryLimit(old) }) // after Close
	f = follow(t, restful(t), groupOf(128*MiB))
	f.Moved([]platform.Limit{groupOf(2048 * MiB)}, nil)
	heap := f.Report().GoHeap
	assert.EqualValues(t, 200*MiB, heap.Limit)
	assert.Equal(t, "a lower limit of the operator (GOMEMLIMIT, debug.SetMemoryLimit); the plan allows the rest of "+
		"cgroup memory.max 2097152KiB", heap.From)
}

// TestNumberStaysAsLimitsMove: a go_heap of a number isn't changed, and the warning says that it no
// longer fits.
func TestNumberStaysAsLimitsMove(t *testing.T) {
	const MiB = budget.MiB
	plan := fresh(t, small())
	plan.GoHeap = 64 * MiB
	var out bytes.Buffer
	defer budget.SetWarnings(&out)()
	f := follow(t, plan, groupOf(512*MiB))
	memory, _ := budget.MemoryOf(plan)
	own := uint64(followPresent)
	if !platform.GoBacked {
		own += f.Report().Resident
	}
	fits := memory + budget.Beside(plan) + 64*MiB + 100*MiB - own
	f.Moved([]platform.Limit{groupOf(fits)}, nil)
	assert.Empty(t, out.String())
	for i := range uint64(5) {
		f.Moved([]platform.Limit{groupOf(fits - 1 - i)}, nil)
	}
	assert.EqualValues(t, 64*MiB, inForce(f.Budget, plan))
	heap := f.Report().GoHeap
	assert.Len(t, heap.Moves, 6)
	assert.Equal(t, fmt.Sprintf("cgroup memory.max 524288KiB -> %s: go_heap is a number, and stays 65536KiB",
		budget.SizeText(fits)), lines(heap.Moves)[0])
	assert.Zero(t, heap.Reserve)
	assert.Equal(t, 3, strings.Count(out.String(), "\n"), "the first, the second, the fourth")
	assert.Regexp(t, fmt.Sprintf(`^upfront: budget "small": cgroup memory.max is %d bytes, and the process needs %d: `+
		`plan %d, go_heap 67108864, page tables 131072, outside and other processes \d+; 1 bytes are missing; `,
		fits-1, fits, memory), out.String())
}

func TestUnreadLimitsAreReported(t *testing.T) {
	f := follow(t, restful(t), groupOf(512*budget.MiB))
	share := f.Report().GoHeap.Limit
	for range 3 {
		f.Moved([]platform.Limit{groupOf(512 * budget.MiB)}, []string{"/a can't be read"})
	}
	f.Moved([]platform.Limit{groupOf(512 * budget.MiB)}, nil)
	f.Moved([]platform.Limit{groupOf(512 * budget.MiB)}, []string{"/a can't be read", "/b can't be read"})
	heap := f.Report().GoHeap
	assert.Equal(t, []string{"/a can't be read", "/a can't be read", "/b can't be read"}, lines(heap.Moves))
	assert.Equal(t, share, heap.Limit)
}

func TestOutsideIsTaken(t *testing.T) {
	const MiB = budget.MiB
	f := follow(t, restful(t), groupOf(512*MiB))
	f.Moved([]platform.Limit{groupOf(300 * MiB)}, nil)
	without := f.Report().GoHeap.Limit
	defer budget.SetOutside(budget.Outside{Bytes: 150 * MiB, Error: 2 * MiB})()
	limit := groupOf(301 * MiB)
	f.Moved([]platform.Limit{limit}, nil)
	memory, _ := budget.MemoryOf(f.plan)
	share := limit.Bytes - 150*MiB - memory - budget.Beside(f.plan) - restReserve
	assert.Equal(t, share-share/512, f.Report().GoHeap.Limit)
	assert.Less(t, f.Report().GoHeap.Limit, without)
}

// TestNoWatchIsReported: a report of a Rest says that it doesn't follow limits, unless no cgroup
// can limit the process.
func TestNoWatchIsReported(t *testing.T) {
	reason := errors.New("platform: watch limits: open proc/self/cgroup: permission denied")
	number := fresh(t, small())
	number.GoHeap = 64 * budget.MiB
	for _, c := range []struct {
		plan budget.Plan
		err  error
		want bool
	}{
		{restful(t), reason, true}, {number, reason, false},
		{restful(t), fmt.Errorf("no cgroup: %w", errors.ErrUnsupported), false},
	} {
		restore, back := budget.SetLimits(groupOf(512*budget.MiB)), budget.FailWatch(c.err)
		b := open(t, c.plan)
		const line = `go_heap: "rest" doesn't follow limits: `
		list := b.Report().NotGranted
		assert.Equal(t, c.want, slices.Contains(list, line+reason.Error()), "%v", list)
		assert.Equal(t, c.want, strings.Contains(fmt.Sprint(list), line))
		require.NoError(t, b.Close())
		back()
		restore()
	}
}

func TestEventsOfTheKernel(t *testing.T) {
	var out bytes.Buffer
	defer budget.SetWarnings(&out)()
	plan := fresh(t, small())
	plan.GoHeap = 64 * budget.MiB
	f := follow(t, plan, groupOf(512*budget.MiB))
	const file = "/sys/fs/cgroup/a/memory.events.local"
	f.Pressed(platform.LimitEvents{File: file, High: 3, Max: 1, Stalled: 12.5})
	assert.Equal(t, `upfront: budget "small": `+file+": the group was above memory.high 3 times, at memory.max once, "+
		"and out of memory 0 times since the last warning; its tasks waited for memory in 12.50% of the "+
		"last 10 s; raise memory.high or memory.max of this group, or lower the plan\n", out.String())
	f.Pressed(platform.LimitEvents{File: file, OOM: 1})
	require.NoError(t, f.Close())
	plan.OnWarn = func(w budget.Warning) { f.warned = append(f.warned, w) }
	n := out.Len()
	g := follow(t, plan, groupOf(512*budget.MiB))
	g.Pressed(platform.LimitEvents{File: file, High: 2})
	assert.Equal(t, []budget.Warning{{Arena: "cgroup", Key: "go_heap", Size: 64 * budget.MiB,
		Events: platform.LimitEvents{File: file, High: 2}}}, f.warned)
	assert.NotContains(t, f.warned[0].String(), "waited", "a figure that isn't known is absent")
	assert.Equal(t, n, out.Len(), "OnWarn has it")
}

// TestMovesAmidReportsAndClose: any goroutine may read the limit while it moves, and Close ends the
// moves.
func TestMovesAmidReportsAndClose(t *testing.T) {
	const MiB = budget.MiB
	for range 20 {
		f := follow(t, restful(t), groupOf(512*MiB))
		var all sync.WaitGroup
		begun, closed := make(chan struct{}), make(chan struct{})
		all.Go(func() {
			for i := uint64(0); ; i++ {
				f.Moved([]platform.Limit{groupOf((128 + i%512) * MiB)}, nil)
				if i == 10 {
					close(begun)
				}
				select {
				case <-closed:
					return
				default:
				}
			}
		})
		all.Go(func() {
			for range 100 {
				assert.Positive(t, f.Published().GoHeap.Limit)
			}
		})
		<-begun
		require.NoError(t, f.Close())
		limit := debug.SetMemoryLimit(-1)
		runtime.Gosched()
		close(closed)
		all.Wait()
		assert.Equal(t, limit, debug.SetMemoryLimit(-1))
	}
}

// TestCloseDuringAMove: a move that Close overtakes leaves the limit as Close has restored it, and
// warns of nothing.
func TestCloseDuringAMove(t *testing.T) {
	old := debug.SetMemoryLimit(200 * budget.MiB) // the budget's and the operator's are the same
	t.Cleanup(func() { debug.SetMemoryLimit(old) })
	f := follow(t, restful(t), groupOf(512*budget.MiB))
	limit, live := int64(0), uint64(300*budget.MiB)
	defer budget.SetGoLive(func() (uint64, uint64) { return live, 0 }, func() {
		assert.NoError(t, f.Close())
		limit, live = debug.SetMemoryLimit(-1), 8*budget.MiB
	})()
	defer budget.SetGoMemory(450*budget.MiB, 400*budget.MiB)()
	defer budget.SetWarnings(nil)() // a write would panic
	f.Moved([]platform.Limit{groupOf(128 * budget.MiB)}, nil)
	assert.True(t, f.Closed())
	assert.Equal(t, limit, debug.SetMemoryLimit(-1))
}

// TestBudgetInABubble: a watch of real limits doesn't stop the clock of a bubble, and ends by
// Close.
func TestBudgetInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := small()
		plan.GoHeap = 64 * budget.MiB
		for range 2 {
			b := open(t, plan)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.NoError(t, b.Close())
		}
	})
}
