package budget_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

func TestDemandIsGranted(t *testing.T) {
	for _, c := range pageKeys {
		t.Run(c.key, func(t *testing.T) {
			if why := ungranted(t, c.key); why != "" {
				t.Skip("where the system grants it, go test ./budget runs it:", why)
			}
			for _, demand := range []budget.Demand{budget.Off, budget.Wished, budget.Required, budget.Off} {
				plan := demanding(paged(), c.key, demand)
				b := open(t, plan)
				assert.Empty(t, b.Report().NotGranted)
				if always := c.key == "huge" && demand == budget.Off; !always {
					assert.Equal(t, demand != budget.Off, effective(t, b, c.key), demand)
				}
				present := c.key == "prefault" || c.key == "lock"
				if _, measured := b.Missing(); !measured && c.key == "lock" {
					present = false
				}
				assert.Equal(t, present && demand != budget.Off, b.Report().Prefaulted, "%s %v", c.key, demand)
				mustLoad(t, b, "level", func(s scope.Scope) { fill(s) })
				require.NoError(t, b.Close())
				assert.Zero(t, locked(t))
			}
		})
	}
}

func TestDemandIsRefused(t *testing.T) {
	for _, c := range pageKeys {
		t.Run(c.key, func(t *testing.T) {
			if why := ungranted(t, c.key); why != "" {
				t.Skip("where the system grants it, go test ./budget runs it:", why)
			}
			attempt := func(demand budget.Demand) (*budget.Budget, error) {
				plan := demanding(paged(), c.key, demand)
				restore := platform.InjectFault(c.request, c.n)
				b, err := budget.Open(plan)
				assert.Equal(t, demand != budget.Off, restore(), demand)
				return b, err
			}
			b, err := attempt(budget.Required)
			assert.Nil(t, b)
			require.ErrorContains(t, err, `budget "paged": pages.`+c.key+` is required: platform: `)
			assert.ErrorContains(t, err, "injected fault")
			b, err = attempt(budget.Wished)
			require.NoError(t, err)
			require.Len(t, b.Report().NotGranted, 1)
			assert.Regexp(t, `^pages\.`+c.key+`: platform: .*injected fault`, b.Report().NotGranted[0])
			assert.False(t, effective(t, b, c.key))
			mustLoad(t, b, "level", func(s scope.Scope) { fill(s) })
			require.NoError(t, b.Close())
			b, err = attempt(budget.Off)
			require.NoError(t, err)
			assert.Empty(t, b.Report().NotGranted)
			require.NoError(t, b.Close())
			b = open(t, demanding(paged(), c.key, budget.Required))
			assert.True(t, effective(t, b, c.key), "nothing is in the way")
			require.NoError(t, b.Close())
		})
	}
}

// TestDemandsOfARaceBuild: a race build reports the demands that it can't grant.
func TestDemandsOfARaceBuild(t *testing.T) {
	if !platform.GoBacked {
		t.Skip("only a race build can't grant them: go test -race ./budget runs it")
	}
	plan := paged()
	opened := open(t, plan)
	size, parts := opened.Size(), opened.PartBytes()
	const raceText = "unsupported operation: in a race build the memory is the Go heap's"
	for key, why := range map[string]string{
		"lock":   fmt.Sprintf("platform: lock %d bytes: %s", parts, raceText),
		"huge":   fmt.Sprintf("platform: huge pages for %d bytes: %s", size, raceText),
		"base":   fmt.Sprintf("platform: reserve %d bytes at 0x40000000: %s", size, raceText),
		"guards": "the pages of a race build are Go's",
	} {
		b := open(t, demanding(plan, key, budget.Wished))
		assert.Equal(t, []string{"pages." + key + ": " + why}, b.Report().NotGranted)
		requireCovers(t, b, requireWalk(t, b))
		require.NoError(t, b.Close())
		_, err := budget.Open(demanding(plan, key, budget.Required))
		assert.EqualError(t, err, `budget "paged": pages.`+key+` is required: `+why)
	}
}

// TestOpenWithFaults makes each request to the system fail in turn. Locked pages, the base and the
// Go share are all released.
func TestOpenWithFaults(t *testing.T) {
	for _, demand := range []budget.Demand{budget.Off, budget.Wished, budget.Required} {
		for _, request := range []string{"map", "protect", "populate", "discard", "lock", "unlock", "advise"} {
			for n, struck := 1, true; struck; n++ {
				plan := paged()
				if request == "map" {
					fresh(t, plan)
				}
				plan.GoHeap = budget.GiB
				for _, c := range pageKeys {
					if ungranted(t, c.key) == "" && (c.key != "base" || demand != budget.Off) {
						plan = demanding(plan, c.key, demand)
					}
				}
				what := fmt.Sprintf("%s %d, %v", request, n, demand)
				restore := platform.InjectFault(request, n)
				b, err := budget.Open(plan)
				struck = restore()
				require.Less(t, n, 20, what)
				if err != nil {
					assert.Nil(t, b, what)
					assert.True(t, struck, what)
					assert.Regexp(t, `^budget "paged": (pages\.[a-z]+ is required: )?platform: .*injected fault`,
						err.Error(), what)
				} else {
					lines := b.Report().NotGranted
					assert.Equal(t, struck, len(lines) == 1 && strings.Contains(lines[0], "injected fault"), what)
					assert.LessOrEqual(t, len(lines), 1, what)
					mustLoad(t, b, "level", func(s scope.Scope) { fill(s) })
					require.NoError(t, b.Close(), what)
				}
				assert.Zero(t, locked(t), what)
				again, err := budget.Open(plan)
				require.NoError(t, err, what)
				assert.Empty(t, again.Report().NotGranted, what)
				require.NoError(t, again.Close(), what)
			}
		}
	}
}

var block [4 << 20]byte

func TestOpenInWithDemands(t *testing.T) {
	plan := small()
	plan.Base = 1 << 30
	plan.Pages = budget.Pages{Prefault: budget.Wished, Lock: budget.Wished, Huge: budget.Wished, Guards: budget.Wished}
	guards := "OpenIn can't change the pages of the caller's block"
	if platform.GoBacked {
		guards = "the pages of a race build are Go's"
	}
	b, err := budget.OpenIn(block[:], plan)
	require.NoError(t, err)
	assert.Equal(t, []string{"pages.lock: OpenIn can't change the pages of the caller's block",
		"pages.huge: OpenIn can't change the pages of the caller's block",
		"pages.base: OpenIn can't change the pages of the caller's block", "pages.guards: " + guards},
		b.Report().NotGranted)
	assert.False(t, b.Report().Prefaulted)
	assert.NotEmpty(t, guardsOf(t, b), "they are part of the layout")
	require.NoError(t, b.Close())
	for _, c := range pageKeys {
		why := "OpenIn can't change the pages of the caller's block"
		for i := range block {
			block[i] = 0xA5
		}
		_, err := budget.OpenIn(block[:], demanding(small(), c.key, budget.Required))
		assert.EqualError(t, err, `budget "small": pages.`+c.key+` is required: `+why)
		for i := range block {
			if block[i] != 0xA5 {
				t.Fatalf("%s was refused, and byte %d has changed", c.key, i)
			}
		}
	}
	b, err = budget.OpenIn(block[:], small())
	require.NoError(t, err)
	assert.Empty(t, b.Report().NotGranted)
	require.NoError(t, b.Close())
}

func TestBaseThatIsTaken(t *testing.T) {
	if platform.SafeBase() == 0 {
		t.Skip(noSafeBase)
	}
	first := demanding(paged(), "base", budget.Required)
	other, larger := first, first
	other.Limits.Pools = 5000
	larger.Regions = append([]budget.RegionPlan{{Name: "more", Size: 1}}, first.Regions...)
	refused := func(plan budget.Plan, why string) {
		t.Helper()
		plan.Pages.Base = budget.Required
		_, err := budget.Open(plan)
		require.Error(t, err)
		assert.Regexp(t, `^budget "paged": pages\.base is required: `+why+`$`, err.Error())
		plan.Pages.Base = budget.Default // wished
		b, err := budget.Open(plan)
		require.NoError(t, err)
		require.Len(t, b.Report().NotGranted, 1)
		assert.Regexp(t, `^pages\.base: `+why+`$`, b.Report().NotGranted[0])
		assert.False(t, effective(t, b, "base"))
		require.NoError(t, b.Close())
	}
	b := open(t, first)
	at := fmt.Sprintf(`platform: reserve \d+ bytes at 0x%x: file exists: `, first.Base)
	refused(first, at+fmt.Sprintf(`/proc/self/maps has "%x-[0-9a-f]+ rw-p .*" there`, first.Base))
	require.NoError(t, b.Close())
	for _, plan := range []budget.Plan{larger, other} { // stale handles point into the old tables
		refused(plan,
			at+fmt.Sprintf(`base 0x%x is kept for reuse by a range of at most %d bytes with the same head of \d+; .*`,
				first.Base, b.Size()))
	}
	b = open(t, first)
	assert.True(t, effective(t, b, "base"), "its own shape fits still")
	require.NoError(t, b.Close())
}

// paged returns a plan that no other test has, with room for a huge page.
func paged() budget.Plan {
	return budget.Plan{
		Name:    "paged",
		Regions: []budget.RegionPlan{{Name: "init", Size: 64 * budget.KiB}, {Name: "level", Size: 5 * budget.MiB}},
		Limits:  budget.Limits{Scopes: 2000, Pools: 7, Owned: 16},
		Pages:   budget.Pages{Prefault: budget.Off},
	}
}

// fresh returns the plan. Until the end of the test no Open reuses the range of an earlier budget
// for it.
func fresh(t *testing.T, plan budget.Plan) budget.Plan {
	t.Cleanup(budget.HoldKept(plan))
	return plan
}

// bases are used up: the process keeps the addresses of each, and a test may run more than once.
var bases int

const noSafeBase = "this build or system has no address that is free in each process: " +
	"run it without -race, on Linux of amd64 or arm64"

// freshBase returns an unused address, or 0 where budgets can't choose theirs.
func freshBase() uint64 {
	if platform.SafeBase() == 0 {
		return 0
	}
	bases++
	return uint64(platform.SafeBase()) + uint64(bases)<<28
}

func demanding(plan budget.Plan, key string, demand budget.Demand) budget.Plan {
	*map[string]*budget.Demand{"prefault": &plan.Pages.Prefault, "lock": &plan.Pages.Lock, "huge": &plan.Pages.Huge,
		"guards": &plan.Pages.Guards, "base": &plan.Pages.Base}[key] = demand
	if key == "base" {
		if plan.Base == 0 {
			plan.Base = freshBase()
		}
		if plan.Base == 0 {
			plan.Base = 1 << 30
		}
	}
	return plan
}

// ungranted returns the reason why this system can't grant a demand, or "".
func ungranted(t *testing.T, key string) string {
	r, err := platform.Reserve(0, 8*budget.MiB, platform.Head{})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	defer func() { require.NoError(t, r.Release()) }()
	switch key {
	case "lock":
		if err = r.Lock(); runtime.GOOS != "linux" {
			return "the system doesn't report locked pages"
		}
	case "huge":
		if err = r.HugePages(); err == nil && !isHuge(t, uint64(uintptr(r.Base()))) {
			return "the emulator ignores madvise"
		}
	case "guards":
		if platform.GoBacked {
			return "with -race the pages are the Go heap's"
		}
	case "base":
		if platform.SafeBase() == 0 {
			return "no base is safe"
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func mapping(t *testing.T, file string, address uint64) string {
	text, err := os.ReadFile("/proc/self/" + file)
	require.NoError(t, err)
	found := ""
	for line := range strings.Lines(string(text)) {
		var first, end uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &first, &end); n == 2 {
			if found != "" {
				break
			}
			if first > address || address >= end {
				continue
			}
			found = line
		} else if found != "" {
			found += line
		}
	}
	return found
}

// locked returns 0 where the system doesn't report it.
func locked(t *testing.T) (kib uint64) {
	if runtime.GOOS != "linux" {
		return 0
	}
	return statusKiB(t, "VmLck:")
}

func statusKiB(t *testing.T, key string) (kib uint64) {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "\n"+key)
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib
}

// isHuge reports whether the kernel marks an address for huge pages.
func isHuge(t *testing.T, address uint64) bool {
	_, flags, _ := strings.Cut(mapping(t, "smaps", address), "VmFlags:")
	return strings.Contains(flags, " hg ")
}

func effective(t *testing.T, b *budget.Budget, key string) bool {
	base := uint64(addressOf(&b.Base().Bytes()[0]))
	switch key {
	case "prefault":
		missing, ok := b.Missing()
		return b.Report().Prefaulted && (!ok || missing == 0)
	case "lock":
		return locked(t) >= b.PartBytes()/budget.KiB
	case "huge":
		return isHuge(t, base)
	case "guards":
		guards := len(guardsOf(t, b))
		return guards > 0 && guardsInForce(t, b) == guards
	}
	return base == b.Plan().Base
}

var pageKeys = []struct {
	key, request string
	n            int // the first of these requests that the demand makes
}{{"prefault", "populate", 1}, {"lock", "lock", 1}, {"huge", "advise", 1}, {"guards", "protect", 3}, {"base", "map", 1}}
